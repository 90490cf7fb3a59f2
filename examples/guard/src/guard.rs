//! The guard itself: the five crates put together.

use std::{
    collections::HashSet,
    fmt,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bizar_config::{CheckedPath, Environment, LoopMode, Options, Thresholds};
use bizar_fingerprint::{Digest, Digester, Fingerprint, Fingerprinter, IgnoredArgs, glob_matches};
use bizar_log::{Entry, SessionLog, ShortFingerprint};
use bizar_state::{Durability, FileStore, Store, Sweep};
use bizar_window::{Kind, Ladder, Mode, Rules, Verdict};

use crate::{
    call::{Args, Call, Decision, Delivery, End, Ended, Output, Status},
    key_file,
    kind::{POLL_TOOLS, kind_with},
    memory::{self, Begun, Ending, Finished, Line, State},
    notes::Notes,
    resident::{Resident, Residents, lock},
    setup::{Clock, Form, Setup},
};

/// Judges the tool calls of any number of sessions, logs them, and keeps what must survive.
///
/// Shared by reference between threads: calls of one session are judged in the order in which they come in. No
/// method fails or panics; what a user should hear of is in [`notes`](Self::notes).
pub struct Guard<S: Store<State> = FileStore<State>> {
    host: String,
    scope: String,
    options: Options,
    env: Environment,
    rules: Rules,
    /// Fingerprinters that nobody uses at the moment; each keeps its buffers.
    idle_fingerprinters: Mutex<Vec<Fingerprinter>>,
    fingerprinter: Fingerprinter,
    store: Option<S>,
    /// Checked before each use of the store: a link into a secret directory may have been made.
    store_path: Option<CheckedPath>,
    form: Form,
    residents: Residents,
    /// The one that was used last is the last.
    logs: Mutex<Vec<(String, Arc<Mutex<SessionLog>>)>>,
    notes: Notes,
    skipped: AtomicU64,
    clock: Clock,
}

impl Guard {
    /// A guard that keeps sessions in files of `stateDir`. Nothing is touched before the first call, except the
    /// fingerprint key's file, if there is one.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let path = setup.options.state_dir.clone();
        let store = path
            .as_ref()
            .map(|path| FileStore::new(path.as_path(), Durability::Process));
        Self::build(setup, store, path)
    }
}

impl<S: Store<State>> Guard<S> {
    /// A guard that keeps sessions in a store of your own.
    #[must_use]
    pub fn with_store(setup: Setup, store: S) -> Self {
        Self::build(setup, Some(store), None)
    }

    fn build(setup: Setup, store: Option<S>, store_path: Option<CheckedPath>) -> Self {
        let notes = Notes::default();
        for note in &setup.notes {
            notes.add(note.clone());
        }
        let rules = rules(&setup.options);
        let off = setup.env.disable;
        Self {
            scope: Fingerprinter::new()
                .of_value("scope", &serde_json::json!({"directory": setup.directory}))
                .map_or_else(|_| String::new(), |scope| scope.short().to_string()),
            fingerprinter: fingerprinter(&setup, rules.mode, off, &notes),
            host: setup.host,
            options: setup.options,
            env: setup.env,
            rules,
            idle_fingerprinters: Mutex::default(),
            store: store.filter(|_| !off),
            store_path,
            form: setup.form,
            residents: Residents::default(),
            logs: Mutex::default(),
            notes,
            skipped: AtomicU64::new(0),
            clock: setup.clock,
        }
    }

    /// Judges a call that is about to be made. Call it before anything is awaited, so that parallel calls are judged
    /// in their order.
    pub fn before(&self, call: &Call<'_>) -> Decision {
        if self.env.disable {
            return Decision::allow(None);
        }
        let (fingerprint, kind) = self.identity(call.tool, call.args);
        let begun = Begun {
            id: call.id,
            tool: call.tool,
            fingerprint,
            kind,
            round: call.round,
            ladder: self.ladder(call.tool),
            is_judged: !self.env.disable_loop
                && !self
                    .options
                    .loop_exempt_tools
                    .iter()
                    .any(|glob| glob_matches(glob, call.tool)),
            at: (self.clock)(),
        };
        let mut lines = Vec::new();
        let judged = self.session(call.session, Saving::Later, |state| {
            memory::before(state, self.rules, &begun, &mut lines)
        });
        self.log(call.session, &lines);
        let decision = Decision::allow(Some(fingerprint));
        match judged {
            None => Decision {
                skipped: true,
                ..decision
            },
            Some((None, _)) => decision,
            Some((Some(judgement), text)) => {
                let refused = judgement.verdict >= Verdict::Block && !self.rules.observe_only;
                Decision {
                    verdict: judgement.verdict,
                    refused,
                    halted: judgement.verdict == Verdict::Halt && refused,
                    text,
                    rule: judgement.rule,
                    count: judgement.count,
                    ..decision
                }
            }
        }
    }

    /// Takes in the end of a call that was made. Refused calls have ended already.
    pub fn after(&self, end: &End<'_>) {
        if self.env.disable {
            return;
        }
        let fingerprint = match end.args {
            Args::Missing if end.id.is_some() => None,
            args => Some(self.identity(end.tool, args).0),
        };
        let finished = Finished {
            id: end.id,
            tool: end.tool,
            fingerprint,
            end: self.ending(&end.ended),
        };
        let mut lines = Vec::new();
        let taken_in = self.session(end.session, Saving::Soon, |state| {
            memory::after(state, self.rules, &finished, &mut lines)
        });
        if taken_in.is_none()
            && let Some(fingerprint) = fingerprint
        {
            // The session could not be had, the line can.
            lines = vec![Line {
                at: finished.end.at,
                tool: memory::cut(end.tool),
                fingerprint,
                outcome: memory::outcome(end.ended.status),
                duration: end.ended.duration.unwrap_or_default(),
            }];
        }
        self.log(end.session, &lines);
    }

    /// Ends all open calls of a session in one way, for hosts that tell failures only by silence.
    pub fn end_open(&self, session: &str, ended: &Ended<'_>) {
        let ending = self.ending(ended);
        self.step(session, Saving::Soon, |state, lines| {
            memory::end_open(state, self.rules, ending, lines)
        });
    }

    /// The user has spoken, not a program in the user's name: a new turn begins. `agent` is the agent that is asked,
    /// if the host has several; the first one stays in the session's state.
    pub fn user_message(&self, session: &str, agent: Option<&str>) {
        let now = (self.clock)();
        self.step(session, Saving::Soon, |state, _| {
            memory::user_message(state, self.rules, agent, now)
        });
    }

    /// The calls of one message have all ended. Only for [`Round::Overlap`](crate::Round::Overlap).
    pub fn round_ended(&self, session: &str) {
        self.step(session, Saving::Later, |state, _| {
            memory::round_ended(state)
        });
    }

    /// The agent has nothing to do. Calls that are still open were aborted; the session is written.
    pub fn idle(&self, session: &str) {
        let now = (self.clock)();
        self.step(session, Saving::Now, |state, lines| {
            memory::idle(state, self.rules, now, lines)
        });
    }

    /// The session is gone: it is forgotten, its state removed, its log kept.
    pub fn deleted(&self, session: &str) {
        if self.env.disable {
            return;
        }
        let now = (self.clock)();
        let mut lines = Vec::new();
        let store = self.store();
        let mut finish = |state: &mut State| memory::idle(state, self.rules, now, &mut lines);
        match self.form {
            Form::Resident => self.residents.remove(session, |resident| {
                if let Some(state) = &mut resident.state {
                    finish(state);
                }
                self.noted(store.map(|store| store.remove(session)));
            }),
            Form::PerCall(patience) => {
                let change = |slot: &mut Option<State>| {
                    if let Some(mut state) = slot.take() {
                        finish(&mut state);
                    }
                };
                self.noted(store.map(|store| store.update_within(session, patience, change)));
            }
        }
        self.log(session, &lines);
        lock(&self.logs).retain(|(id, _)| id != session);
    }

    /// The text that is to go to the model with its next request, asked before each one.
    #[must_use]
    pub fn request(&self, session: &str, delivery: Delivery) -> Option<String> {
        if self.env.disable || self.env.disable_loop || self.rules.observe_only {
            return None;
        }
        let Form::PerCall(_) = self.form else {
            return self.session(session, Saving::Later, |state| {
                memory::request(state, delivery)
            })?;
        };
        let mut state = self
            .noted(self.store().map(|store| store.load(session)))?
            .document?;
        if memory::is_due(&state) {
            return self.session(session, Saving::Now, |state| {
                memory::request(state, delivery)
            })?;
        }
        memory::request(&mut state, delivery)
    }

    /// Removes the state of old sessions of this host and directory: those that are not `known` after an hour, or,
    /// if the host could not be asked, all after seven days. Returns how many.
    pub fn sweep(&self, known: Option<&HashSet<String>>) -> usize {
        let now = (self.clock)();
        let sweep = Sweep {
            host: &self.host,
            scope: &self.scope,
            known,
            now,
        };
        let Some(report) = self.noted(
            self.store()
                .map(|store| store.sweep(|state| sweep.is_stale(state))),
        ) else {
            return 0;
        };
        for error in &report.errors {
            self.notes.add(error.to_string());
        }
        report.removed.len()
    }

    /// Writes what is not yet written. Dropping the guard does it too.
    pub fn flush(&self) {
        self.residents.for_each(|resident| self.save(resident));
    }

    /// Digests a result that comes in pieces; `ok` as far as the host tells.
    #[must_use]
    pub fn digester(&self, ok: Option<bool>) -> Digester {
        self.fingerprinter.digester(ok)
    }

    /// What a user should hear of and was not handed out yet: options that were not used, trouble with the
    /// directories. Each text once.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.notes.take()
    }

    /// Steps that were skipped because a session was locked or unreadable.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// The options in force.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    fn step(&self, id: &str, saving: Saving, change: impl FnOnce(&mut State, &mut Vec<Line>)) {
        if self.env.disable {
            return;
        }
        let mut lines = Vec::new();
        self.session(id, saving, |state| change(state, &mut lines));
        self.log(id, &lines);
    }

    /// One step of a session, in its turn. `None` if it was skipped.
    fn session<R>(
        &self,
        id: &str,
        saving: Saving,
        change: impl FnOnce(&mut State) -> R,
    ) -> Option<R> {
        let fresh = || State::new(id, &*self.host, &*self.scope, (self.clock)());
        let done = match self.form {
            Form::Resident => Some(self.resident(id, saving, fresh, change)),
            Form::PerCall(patience) => self
                .noted(self.store().map(|store| {
                    store.update_within(id, patience, |slot| {
                        let mut state = slot.take().unwrap_or_else(fresh);
                        let done = change(&mut state);
                        *slot = Some(state);
                        done
                    })
                }))
                .map(|updated| {
                    if let Some(unusable) = updated.unusable {
                        self.notes.add(unusable.to_string());
                    }
                    updated.value
                }),
        };
        if done.is_none() {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    fn resident<R>(
        &self,
        id: &str,
        saving: Saving,
        fresh: impl FnOnce() -> State,
        change: impl FnOnce(&mut State) -> R,
    ) -> R {
        let resident = self.residents.get(id, |leaving| self.save(leaving));
        let mut resident = lock(&resident);
        let state = match resident.state.take() {
            Some(state) => state,
            None => self.load(id).unwrap_or_else(fresh),
        };
        let state = resident.state.insert(state);
        let done = change(state);
        resident.is_dirty = true;
        let now = (self.clock)();
        let is_time = resident
            .saved_at
            .is_none_or(|at| !(at..at.saturating_add(SAVE_EVERY_MS)).contains(&now));
        if saving == Saving::Now || (saving == Saving::Soon && is_time) {
            self.save(&mut resident);
        }
        done
    }

    fn load(&self, id: &str) -> Option<State> {
        let loaded = self.noted(self.store().map(|store| store.load(id)))?;
        if let Some(unusable) = loaded.unusable {
            self.notes.add(unusable.to_string());
        }
        loaded.document
    }

    fn save(&self, resident: &mut Resident) {
        let Some(state) = resident
            .state
            .as_ref()
            .filter(|_| resident.is_dirty && !resident.is_gone)
        else {
            return;
        };
        // Trouble is tried again, but not at every call.
        resident.saved_at = Some((self.clock)());
        let copy = state.clone();
        let id = copy.session_id().to_owned();
        let saved = self.noted(
            self.store()
                .map(|store| store.update_within(&id, SAVE_PATIENCE, |slot| *slot = Some(copy))),
        );
        if let Some(updated) = saved {
            resident.is_dirty = false;
            if let Some(unusable) = updated.unusable {
                self.notes.add(unusable.to_string());
            }
        }
    }

    /// The store, if there is one and its directory may be used.
    fn store(&self) -> Option<&S> {
        if let Some(Err(refused)) = self.store_path.as_ref().map(CheckedPath::check) {
            self.notes
                .add(format!("stateDir: {refused}: sessions are not kept"));
            return None;
        }
        self.store.as_ref()
    }

    /// What came of a step of the store; trouble becomes a note.
    fn noted<T>(&self, result: Option<Result<T, S::Error>>) -> Option<T> {
        result?
            .inspect_err(|error| self.notes.add(error.to_string()))
            .ok()
    }

    fn log(&self, session: &str, lines: &[Line]) {
        let Some(directory) = self
            .options
            .log_dir
            .as_ref()
            .filter(|_| !lines.is_empty() && !self.env.disable_log)
        else {
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
        let log = self.session_log(session, directory);
        let mut log = lock(&log);
        for line in lines {
            let fingerprint = ShortFingerprint::of(line.fingerprint.as_bytes());
            let entry = Entry::new(
                line.at,
                session,
                &line.tool,
                fingerprint,
                outcome(line.outcome),
                line.duration,
            );
            if let Some(warning) = log.append(&entry).warning() {
                self.notes.add(warning.to_string());
            }
        }
    }

    /// The log of a session; those that were used last stay open.
    fn session_log(&self, session: &str, directory: &Path) -> Arc<Mutex<SessionLog>> {
        let mut logs = lock(&self.logs);
        let log = match logs.iter().position(|(id, _)| id == session) {
            Some(index) => logs.remove(index).1,
            None => {
                let log = SessionLog::open(directory, session, self.options.log_rotation_bytes);
                Arc::new(Mutex::new(log))
            }
        };
        if logs.len() >= Form::LIVE_SESSIONS {
            logs.remove(0);
        }
        logs.push((session.to_owned(), Arc::clone(&log)));
        log
    }

    /// The identity of a call, and its kind. Arguments without an identity count as missing.
    fn identity(&self, tool: &str, args: Args<'_>) -> (Fingerprint, Kind) {
        let mut fingerprinter = lock(&self.idle_fingerprinters)
            .pop()
            .unwrap_or_else(|| self.fingerprinter.clone());
        let fingerprint = match args {
            Args::Missing => None,
            Args::Text(text) => fingerprinter.of_text(tool, text).ok(),
            Args::Value(value) => fingerprinter.of_value(tool, value).ok(),
        };
        let identity = match fingerprint {
            Some(fingerprint) => {
                let polls = self.options.loop_poll_tools.as_deref();
                let kind = match polls {
                    Some(polls) => kind_with(polls, tool, args),
                    None => kind_with(&POLL_TOOLS, tool, args),
                };
                (fingerprint, kind)
            }
            None => (fingerprinter.of_absent(tool), Kind::ArgsMissing),
        };
        lock(&self.idle_fingerprinters).push(fingerprinter);
        identity
    }

    fn ending(&self, ended: &Ended<'_>) -> Ending {
        Ending {
            status: ended.status,
            digest: self.digest(ended),
            duration: ended.duration,
            at: (self.clock)(),
        }
    }

    fn digest(&self, ended: &Ended<'_>) -> Option<Digest> {
        let ok = match ended.status {
            Status::Ok => Some(true),
            Status::Failed | Status::Refused => Some(false),
            Status::Unknown => None,
            Status::Aborted => return None,
        };
        match ended.result {
            Output::Missing => None,
            Output::Text(text) => Some(self.fingerprinter.digest_text(ok, text)),
            Output::Value(value) => Some(self.fingerprinter.digest_value(ok, value)),
            Output::Digest(digest) => Some(digest),
        }
    }

    fn ladder(&self, tool: &str) -> Ladder {
        let own = self
            .options
            .loop_tool_thresholds
            .iter()
            .find(|own| glob_matches(&own.glob, tool));
        let thresholds: Thresholds = own.map_or(self.options.thresholds, |own| own.thresholds);
        Ladder::new(thresholds.warn(), thresholds.escalate(), thresholds.block())
    }
}

impl<S: Store<State>> Drop for Guard<S> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl<S: Store<State>> fmt::Debug for Guard<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("host", &self.host)
            .field("options", &self.options)
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

/// When a resident session is written after a step.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Saving {
    /// With a later step.
    Later,
    /// Unless it was just written.
    Soon,
    Now,
}

fn rules(options: &Options) -> Rules {
    let mut rules = Rules::new(match options.loop_mode {
        LoopMode::Progress => Mode::Progress,
        LoopMode::Repetition => Mode::Repetition,
        LoopMode::Cycle => Mode::Cycle,
    });
    rules.window = options.loop_window_size;
    rules.halt_after = options.loop_halt_after_blocks;
    rules.observe_only = options.loop_observe_only;
    rules
}

fn fingerprinter(setup: &Setup, mode: Mode, off: bool, notes: &Notes) -> Fingerprinter {
    let mut fingerprinter = Fingerprinter::new();
    if mode == Mode::Cycle {
        // Strings are compared as they are.
        fingerprinter = fingerprinter.ignored(IgnoredArgs::none());
    } else {
        let mut ignored = IgnoredArgs::default();
        for (glob, names) in &setup.options.loop_ignore_args {
            ignored.add(glob.as_str(), names);
        }
        fingerprinter = fingerprinter.ignored(ignored);
        let in_tree = fingerprinter
            .clone()
            .worktree(setup.worktree.as_deref().unwrap_or_default());
        fingerprinter = if in_tree.has_worktree() {
            in_tree
        } else {
            fingerprinter.worktree(&setup.directory)
        };
    }
    match setup
        .options
        .fingerprint_key_file
        .as_ref()
        .filter(|_| !off)
        .map(key_file::read_or_make)
    {
        Some(Ok(key)) => fingerprinter.keyed(&key),
        Some(Err(why)) => {
            notes.add(format!(
                "fingerprintKeyFile: {why}: fingerprints have no key"
            ));
            fingerprinter
        }
        None => fingerprinter,
    }
}

fn outcome(outcome: bizar_state::Outcome) -> bizar_log::Outcome {
    match outcome {
        bizar_state::Outcome::Ok => bizar_log::Outcome::Ok,
        bizar_state::Outcome::Error => bizar_log::Outcome::Error,
        bizar_state::Outcome::Blocked => bizar_log::Outcome::Blocked,
        bizar_state::Outcome::Aborted => bizar_log::Outcome::Aborted,
    }
}

/// Ten times a second.
const SAVE_EVERY_MS: i64 = 100;

/// How long a resident session waits to be written; it is tried again later.
const SAVE_PATIENCE: Duration = Duration::from_millis(50);
