//! What is known of the sessions and background agents. Pure: it is told the news and the time.

use std::collections::{BTreeMap, VecDeque};

use bizar_log::Entry;
use bizar_window::Verdict;

use crate::{
    document::{Instance, State},
    source::{News, Place, Trouble},
    standing::{Ladders, Standing},
};

/// Everything that is known.
#[derive(Debug, Default)]
pub struct Model {
    sessions: BTreeMap<String, Session>,
    instances: BTreeMap<String, Instance>,
    directories: BTreeMap<Place, Trouble>,
    files: BTreeMap<(Place, String), String>,
    ladders: Ladders,
    noted: Vec<String>,
}

impl Model {
    /// Knows nothing yet, but the thresholds of every host.
    #[must_use]
    pub fn new(ladders: Ladders) -> Self {
        Self {
            ladders,
            ..Self::default()
        }
    }

    /// Takes in what else is to be said.
    pub fn note(&mut self, notes: impl IntoIterator<Item = String>) {
        self.noted.extend(notes);
    }

    /// Takes in what was read.
    pub fn tell(&mut self, news: impl IntoIterator<Item = News>) {
        for news in news {
            self.tell_one(news);
        }
    }

    /// The sessions, by file name.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.sessions.values()
    }

    /// The background agents, oldest first.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.instances.values()
    }

    /// The session in files of this name.
    #[must_use]
    pub fn session(&self, name: &str) -> Option<&Session> {
        self.sessions.get(name)
    }

    /// The background agent of this id.
    #[must_use]
    pub fn instance(&self, id: &str) -> Option<&Instance> {
        self.instances
            .values()
            .find(|instance| instance.instance_id == id)
    }

    /// What could not be read, directories first. A line each; the text may hold anything a path can.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let directories = self.directories.iter();
        // Most users never run background agents, and not every guard writes a log.
        let directories = directories.filter(|(place, trouble)| {
            **place != Place::Background || !matches!(trouble, Trouble::Missing(_) | Trouble::Unset)
        });
        let mut notes = self.noted.clone();
        notes.extend(directories.map(|(place, trouble)| format!("{place}: {trouble}")));
        let files = self.files.iter();
        notes.extend(files.map(|((place, name), why)| format!("{place}: {name}: {why}")));
        let bad_lines = self
            .sessions
            .values()
            .filter(|session| session.bad_lines > 0);
        notes.extend(bad_lines.map(|session| {
            let lines = session.bad_lines;
            format!(
                "{}: {}: {lines} lines are no entries",
                Place::Logs,
                session.name
            )
        }));
        notes
    }

    /// Whether a directory is there and cannot be read.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.directories
            .values()
            .any(|trouble| matches!(trouble, Trouble::Unreadable(..)))
    }

    fn tell_one(&mut self, news: News) {
        match news {
            News::Lines {
                name,
                entries,
                bad_lines,
            } => {
                self.files.remove(&(Place::Logs, name.clone()));
                let session = self.session_mut(name);
                session.has_log = true;
                session.bad_lines = session.bad_lines.saturating_add(bad_lines);
                for entry in entries {
                    session.add(entry);
                }
            }
            News::State { name, state } => {
                let key = (Place::States, name.clone());
                match state {
                    Ok(state) => {
                        self.files.remove(&key);
                        let standing = Standing::of(&state, &mut self.ladders);
                        let session = self.session_mut(name);
                        session.standing = standing;
                        session.state = Some(*state);
                    }
                    Err(reason) => {
                        self.files.insert(key, reason.to_string());
                        self.drop_state(&name);
                    }
                }
            }
            News::Instance { name, instance } => match instance {
                Ok(instance) => {
                    self.files.remove(&(Place::Background, name.clone()));
                    self.instances.insert(name, *instance);
                }
                Err(reason) => {
                    self.instances.remove(&name);
                    self.files
                        .insert((Place::Background, name), reason.to_string());
                }
            },
            News::Gone { place, name } => {
                self.files.remove(&(place, name.clone()));
                match place {
                    Place::Background => {
                        self.instances.remove(&name);
                    }
                    Place::States => self.drop_state(&name),
                    Place::Logs => self.drop_log(&name),
                }
            }
            News::BadLog { name, reason } => {
                self.files.insert((Place::Logs, name), reason.to_string());
            }
            News::Directory { place, trouble } => {
                match trouble {
                    Some(trouble) => self.directories.insert(place, trouble),
                    None => self.directories.remove(&place),
                };
            }
        }
    }

    fn session_mut(&mut self, name: String) -> &mut Session {
        self.sessions
            .entry(name)
            .or_insert_with_key(|name| Session {
                name: name.clone(),
                ..Session::default()
            })
    }

    fn drop_state(&mut self, name: &str) {
        if let Some(session) = self.sessions.get_mut(name) {
            session.state = None;
            session.standing = None;
            if !session.has_log {
                self.sessions.remove(name);
            }
        }
    }

    fn drop_log(&mut self, name: &str) {
        if let Some(session) = self.sessions.get_mut(name) {
            session.has_log = false;
            session.bad_lines = 0;
            session.lines.clear();
            session.ended.clear();
            if session.state.is_none() {
                self.sessions.remove(name);
            }
        }
    }
}

/// One session, as its log and its document tell of it.
#[derive(Debug, Default)]
pub struct Session {
    name: String,
    state: Option<State>,
    standing: Option<Standing>,
    has_log: bool,
    /// The last lines of its log, oldest first.
    lines: VecDeque<Entry>,
    /// When calls ended that may still count for the rate, in order of arrival.
    ended: VecDeque<i64>,
    bad_lines: u64,
}

/// A call that has ended, wherever that was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ended {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The tool's name.
    pub tool: String,
    /// The first digits of the fingerprint.
    pub fingerprint: String,
    /// How: a word of the log line.
    pub outcome: &'static str,
    /// How long it took, if the log tells.
    pub duration_ms: Option<u128>,
}

impl Session {
    /// The name of its files.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its id, as the host gave it.
    #[must_use]
    pub fn id(&self) -> &str {
        match &self.state {
            Some(state) => state.session_id(),
            None => self.lines.back().map_or(&self.name, Entry::session),
        }
    }

    /// Its document, unless it is missing or cannot be used.
    #[must_use]
    pub fn state(&self) -> Option<&State> {
        self.state.as_ref()
    }

    /// Where it stands on the ladder, unless its document does not tell.
    #[must_use]
    pub fn standing(&self) -> Option<&Standing> {
        self.standing.as_ref()
    }

    /// The tool of its last call.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        if let Some((tool, _)) = self.running() {
            return Some(tool);
        }
        let called = self
            .state
            .as_ref()
            .and_then(|state| state.tool_calls().next_back());
        match (called, self.lines.back()) {
            (Some(call), Some(line)) if line.at() > call.at => Some(line.tool()),
            (Some(call), _) => Some(&call.tool),
            (None, line) => line.map(Entry::tool),
        }
    }

    /// The call that is running: its tool, and since when.
    #[must_use]
    pub fn running(&self) -> Option<(&str, i64)> {
        let (tool, at) = self.standing.as_ref()?.open.last()?;
        Some((tool, *at))
    }

    /// The verdict of its last call.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.standing
            .as_ref()
            .map_or(Verdict::Allow, |standing| standing.verdict)
    }

    /// The count of its last call.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.standing.as_ref().map_or(0, |standing| standing.count)
    }

    /// When something last happened, in milliseconds since 1970.
    #[must_use]
    pub fn last_activity_at(&self) -> Option<i64> {
        let state = self.state.as_ref().map(|state| state.last_activity_at());
        state.max(self.lines.back().map(Entry::at))
    }

    /// When it was first seen; without a document, in the lines that are remembered.
    #[must_use]
    pub fn started_at(&self) -> Option<i64> {
        let first = self.lines.front().map(Entry::at);
        self.state
            .as_ref()
            .map(|state| state.started_at())
            .or(first)
    }

    /// How many calls ended within the last minute.
    #[must_use]
    pub fn calls_a_minute(&self, now: i64) -> usize {
        let is_recent = |at: i64| at > now.saturating_sub(MINUTE) && at <= now;
        let logged = self.ended.iter().filter(|at| is_recent(**at)).count();
        // Without a log, as many as the document remembers.
        let kept = self.state.as_ref().map_or(0, |state| {
            state
                .tool_calls()
                .rev()
                .take_while(|call| is_recent(call.at))
                .count()
        });
        logged.max(kept)
    }

    /// Whether something happened within the last five minutes, or a call is running.
    #[must_use]
    pub fn is_active(&self, now: i64) -> bool {
        self.last_activity_at()
            .is_some_and(|at| at > now.saturating_sub(5 * MINUTE))
    }

    /// Its last calls, newest first: from the log, or else from the document.
    #[must_use]
    pub fn last_calls(&self) -> Vec<Ended> {
        if self.lines.is_empty() {
            let calls = self.state.iter().flat_map(|state| state.tool_calls().rev());
            return calls
                .map(|call| Ended {
                    at: call.at,
                    tool: call.tool.clone(),
                    fingerprint: call.fingerprint.clone(),
                    outcome: match call.outcome {
                        bizar_state::Outcome::Aborted => "aborted",
                        bizar_state::Outcome::Blocked => "blocked",
                        bizar_state::Outcome::Error => "error",
                        bizar_state::Outcome::Ok => "ok",
                    },
                    duration_ms: None,
                })
                .collect();
        }
        let lines = self.lines.iter().rev();
        lines
            .map(|line| Ended {
                at: line.at(),
                tool: line.tool().to_owned(),
                fingerprint: line.fingerprint().to_string(),
                outcome: line.outcome().as_str(),
                duration_ms: Some(line.duration().as_millis()),
            })
            .collect()
    }

    fn add(&mut self, entry: Entry) {
        let newest = entry.at();
        while self
            .ended
            .front()
            .is_some_and(|at| *at <= newest.saturating_sub(MINUTE))
            || self.ended.len() >= MOST_ENDED
        {
            self.ended.pop_front();
        }
        self.ended.push_back(newest);
        if self.lines.len() >= MOST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(entry);
    }
}

const MINUTE: i64 = 60_000;

/// Lines that are remembered of a session.
const MOST_LINES: usize = 50;

/// A session that makes more calls than this in a minute is shown with this many.
const MOST_ENDED: usize = 9999;
