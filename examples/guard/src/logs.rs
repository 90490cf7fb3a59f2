//! The logs of the sessions.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use bizar_config::CheckedPath;
use bizar_log::{Entry, Outcome, SessionLog};

use crate::{memory::Line, notes::Notes, resident::lock, setup::Form};

/// Writes the lines of all sessions; those that were used last stay open.
#[derive(Debug)]
pub(crate) struct Logs {
    /// `None` if nothing is to be logged.
    pub(crate) directory: Option<CheckedPath>,
    pub(crate) rotation_bytes: u64,
    pub(crate) notes: Arc<Notes>,
    /// The one that was used last is the last.
    pub(crate) open: Mutex<Vec<(String, Arc<Mutex<SessionLog>>)>>,
}

impl Logs {
    pub(crate) fn write(&self, session: &str, lines: &[Line]) {
        let Some(directory) = self.directory.as_ref().filter(|_| !lines.is_empty()) else {
            return;
        };
        let directory = match directory.check() {
            Ok(directory) => directory,
            Err(refused) => {
                return self
                    .notes
                    .add(format!("logDir: {refused}: nothing is logged"));
            }
        };
        let log = self.of(session, directory);
        let mut log = lock(&log);
        for line in lines {
            let outcome = outcome(line.outcome);
            let entry = Entry::new(
                line.at,
                session,
                &line.tool,
                line.fingerprint,
                outcome,
                line.duration,
            );
            if let Some(warning) = log.append(&entry).warning() {
                self.notes.add(warning.to_string());
            }
        }
    }

    pub(crate) fn close(&self, session: &str) {
        lock(&self.open).retain(|(id, _)| id != session);
    }

    fn of(&self, session: &str, directory: &Path) -> Arc<Mutex<SessionLog>> {
        let mut open = lock(&self.open);
        let log = match open.iter().position(|(id, _)| id == session) {
            Some(index) => open.remove(index).1,
            None => Arc::new(Mutex::new(SessionLog::open(
                directory,
                session,
                self.rotation_bytes,
            ))),
        };
        if open.len() >= Form::LIVE_SESSIONS {
            open.remove(0);
        }
        open.push((session.to_owned(), Arc::clone(&log)));
        log
    }
}

fn outcome(outcome: bizar_state::Outcome) -> Outcome {
    match outcome {
        bizar_state::Outcome::Ok => Outcome::Ok,
        bizar_state::Outcome::Error => Outcome::Error,
        bizar_state::Outcome::Blocked => Outcome::Blocked,
        bizar_state::Outcome::Aborted => Outcome::Aborted,
    }
}
