//! The guard itself: the five crates put together.

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use bizar_config::{CheckedPath, Environment, LoopMode, Options};
use bizar_fingerprint::{Digester, Fingerprinter, glob_matches};
use bizar_state::{Durability, FileStore, Store};
use bizar_window::{Mode, Rules, Verdict};
use serde_json::json;

use crate::{
    call::{Args, Call, Decision, Delivery, End, Ended, Status},
    identity::{self, Identity},
    logs::Logs,
    memory::{self, Begun, Ending, Finished, Key, Line, State},
    notes::Notes,
    resident::Residents,
    sessions::{Saving, Sessions},
    setup::{Clock, Form, Setup},
};

/// Judges the tool calls of any number of sessions, logs them, and keeps what must survive.
///
/// Shared by reference between threads: calls of one session are judged in the order in which
/// they come in. No method fails or panics; what a user should hear of is in
/// [`notes`](Self::notes).
pub struct Guard<S: Store<State> = FileStore<State>> {
    options: Options,
    env: Environment,
    rules: Rules,
    identity: Identity,
    sessions: Sessions<S>,
    logs: Logs,
    notes: Arc<Notes>,
    clock: Clock,
}

impl Guard {
    /// A guard that keeps sessions in files of `stateDir`.
    ///
    /// Nothing is touched before the first call, but for the file of the fingerprint key if
    /// there is to be one.
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
        let notes = Arc::new(Notes::default());
        for note in &setup.notes {
            notes.add(note.clone());
        }
        let identity = Identity::new(&setup, &notes);
        let scope = Fingerprinter::new().of_value("scope", &json!({"directory": setup.directory}));
        let is_logged = !setup.env.disable_log && !setup.env.disable;
        Self {
            rules: rules(&setup.options),
            identity,
            sessions: Sessions {
                host: setup.host,
                scope: scope.map_or_else(|_| String::new(), |scope| scope.short().to_string()),
                form: setup.form,
                clock: Arc::clone(&setup.clock),
                notes: Arc::clone(&notes),
                store: store.filter(|_| !setup.env.disable),
                store_path,
                residents: Residents::default(),
                skipped: AtomicU64::new(0),
            },
            logs: Logs {
                directory: setup.options.log_dir.clone().filter(|_| is_logged),
                rotation_bytes: setup.options.log_rotation_bytes,
                notes: Arc::clone(&notes),
                open: Mutex::default(),
            },
            options: setup.options,
            env: setup.env,
            notes,
            clock: setup.clock,
        }
    }

    /// Judges a call that is about to be made.
    ///
    /// To be asked before anything is awaited, so that parallel calls are judged in their order.
    pub fn before(&self, call: &Call<'_>) -> Decision {
        if self.env.disable {
            return Decision::allow(None);
        }
        let (fingerprint, kind) = self.identity.of(call.tool, call.args, &self.options);
        let is_exempt = self
            .options
            .loop_exempt_tools
            .iter()
            .any(|glob| glob_matches(glob, call.tool));
        let begun = Begun {
            id: call.id,
            tool: call.tool,
            key: fingerprint.into(),
            kind,
            round: call.round,
            ladder: identity::ladder(&self.options, call.tool),
            is_judged: !self.env.disable_loop && !is_exempt,
            at: (self.clock)(),
        };
        let judged = self.step(call.session, Saving::Later, |state, lines| {
            memory::before(state, self.rules, &begun, lines)
        });
        let decision = Decision::allow(Some(fingerprint));
        match judged {
            None => Decision {
                skipped: true,
                ..decision
            },
            Some((None, _)) => decision,
            Some((Some(judgement), text)) => {
                let refused = judgement.verdict >= Verdict::Block && !self.rules.observe_only;
                if refused && self.sessions.form == Form::Resident {
                    // The call has ended.
                    self.step(call.session, Saving::Soon, |_, _| ());
                }
                Decision {
                    verdict: judgement.verdict,
                    refused,
                    halted: refused && judgement.verdict == Verdict::Halt,
                    text,
                    rule: judgement.rule,
                    count: judgement.count,
                    ..decision
                }
            }
        }
    }

    /// Takes in the end of a call that was made. A refused call has ended already.
    pub fn after(&self, end: &End<'_>) {
        self.take_in(end, None);
    }

    /// [`after`](Self::after) and [`request`](Self::request) as one step, for hosts whose text goes with the result.
    #[must_use]
    pub fn after_and_request(&self, end: &End<'_>, delivery: Delivery) -> Option<String> {
        self.take_in(end, Some(delivery))
    }

    fn take_in(&self, end: &End<'_>, delivery: Option<Delivery>) -> Option<String> {
        if self.env.disable {
            return None;
        }
        let key = match end.args {
            Args::Missing if end.id.is_some() => None,
            args => Some(Key::from(self.identity.of(end.tool, args, &self.options).0)),
        };
        let finished = Finished {
            id: end.id,
            tool: end.tool,
            key,
            end: self.ending(&end.ended),
        };
        let delivery = delivery.filter(|_| !self.is_silent());
        let taken_in = self.step(end.session, Saving::Soon, |state, lines| {
            memory::after(state, self.rules, &finished, lines);
            memory::request(state, delivery?)
        });
        if let (None, Some(key)) = (&taken_in, key) {
            // The session could not be had; the line can.
            let line = Line {
                at: finished.end.at,
                tool: memory::cut(end.tool),
                fingerprint: key.short(),
                outcome: memory::outcome(end.ended.status),
                duration: end.ended.duration.unwrap_or_default(),
            };
            self.logs.write(end.session, &[line]);
        }
        taken_in?
    }

    /// Ends all open calls of a session in one way, for hosts that tell failures by silence.
    pub fn end_open(&self, session: &str, ended: &Ended<'_>) {
        let ending = self.ending(ended);
        self.step(session, Saving::Soon, |state, lines| {
            memory::end_open(state, self.rules, ending, lines);
        });
    }

    /// The user has spoken, not a program in the user's name: a new turn begins.
    ///
    /// `agent` is the agent that is spoken to, if the host has several; the first one stays in the
    /// session's state.
    pub fn user_message(&self, session: &str, agent: Option<&str>) {
        let now = (self.clock)();
        self.step(session, Saving::Soon, |state, _| {
            memory::user_message(state, self.rules, agent, now);
        });
    }

    /// The calls of one message have all ended. Only for [`Round::Overlap`](crate::Round::Overlap).
    pub fn round_ended(&self, session: &str) {
        self.step(session, Saving::Later, |state, _| {
            memory::round_ended(state)
        });
    }

    /// The agent has nothing to do: calls still open were aborted, and the session is written.
    pub fn idle(&self, session: &str) {
        let now = (self.clock)();
        self.step(session, Saving::Now, |state, lines| {
            memory::idle(state, self.rules, now, lines)
        });
    }

    /// The session is gone: it is forgotten and its state removed; its log stays.
    pub fn deleted(&self, session: &str) {
        if self.env.disable {
            return;
        }
        let now = (self.clock)();
        let mut lines = Vec::new();
        self.sessions.remove(session, |state| {
            memory::idle(state, self.rules, now, &mut lines)
        });
        self.logs.write(session, &lines);
        self.logs.close(session);
    }

    /// The host comes to its end: calls still open in sessions in memory were aborted, and all is
    /// written. A guard that is only dropped leaves them open, for who goes on with the session.
    pub fn shut_down(&self) {
        let now = (self.clock)();
        let ending = Ending {
            status: Status::Aborted,
            digest: None,
            duration: None,
            at: now,
        };
        for session in self.sessions.residents.ids() {
            self.step(&session, Saving::Now, |state, lines| {
                memory::end_open(state, self.rules, ending, lines);
            });
        }
    }

    /// The text that is to go to the model with its next request; to be asked before each one.
    ///
    /// Not for requests that the agent knows nothing of, such as those for a title.
    #[must_use]
    pub fn request(&self, session: &str, delivery: Delivery) -> Option<String> {
        if self.is_silent() {
            return None;
        }
        self.sessions
            .step_known(session, |state| memory::request(state, delivery))?
    }

    /// Whether no model is ever told anything.
    fn is_silent(&self) -> bool {
        self.env.disable || self.env.disable_loop || self.rules.observe_only
    }

    /// Removes the state of old sessions of this host and directory, and returns how many.
    ///
    /// Old is what the host does not know and was not used for an hour; or, if the host could not
    /// be asked (`None`), what was not used for seven days.
    pub fn sweep(&self, known: Option<&HashSet<String>>) -> usize {
        self.sessions.sweep(known)
    }

    /// Writes what is not yet written. Dropping the guard does it too.
    pub fn flush(&self) {
        self.sessions.flush();
    }

    /// Digests a result that comes in pieces; `ok` as far as the host tells.
    #[must_use]
    pub fn digester(&self, ok: Option<bool>) -> Digester {
        self.identity.digester(ok)
    }

    /// What a user should hear of and was not handed out yet, each text once: options that were
    /// not used, trouble with the directories.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.notes.take()
    }

    /// Steps that were skipped because a session was locked or could not be read or written.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.sessions.skipped.load(Ordering::Relaxed)
    }

    /// The options in force.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// One step of a session and its log. `None` if it was skipped.
    fn step<R>(
        &self,
        session: &str,
        saving: Saving,
        change: impl FnOnce(&mut State, &mut Vec<Line>) -> R,
    ) -> Option<R> {
        if self.env.disable {
            return None;
        }
        let mut lines = Vec::new();
        let done = self
            .sessions
            .step(session, saving, |state| change(state, &mut lines));
        // Of a step that came to nothing there is nothing to log.
        if done.is_some() {
            self.logs.write(session, &lines);
        }
        done
    }

    fn ending(&self, ended: &Ended<'_>) -> Ending {
        Ending {
            status: ended.status,
            digest: self.identity.digest(ended),
            duration: ended.duration,
            at: (self.clock)(),
        }
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
            .field("host", &self.sessions.host)
            .field("form", &self.sessions.form)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
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
