//! What is kept of one session, and when it may go.

use std::collections::{HashSet, VecDeque};

use serde::{Deserialize, Deserializer, Serialize};

use crate::Document;

/// What is kept of one session: counts, times, the last calls, and the detector's snapshot `S`.
///
/// Nothing here can hold an argument, a result or a text of the model, as long as `S` cannot.
/// All times are milliseconds since 1970-01-01 UTC.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionState<S> {
    session_id: String,
    host: String,
    scope: String,
    parent_agent: Option<String>,
    started_at: i64,
    last_activity_at: i64,
    turn_count: u64,
    #[serde(deserialize_with = "last_calls")]
    tool_calls: VecDeque<ToolCall>,
    /// How often the verdict rose to warn or escalate.
    pub warnings_issued: u64,
    /// How many calls were refused.
    pub blocks_triggered: u64,
    /// The detector's snapshot; `None` until it was first saved.
    pub detector: Option<S>,
}

impl<S> SessionState<S> {
    /// A session that starts at `now`. `host` is the harness (`opencode`, `claude`, ...) and
    /// `scope` a hash of the project: a sweep looks only at its own of both.
    pub fn new(
        session_id: impl Into<String>,
        host: impl Into<String>,
        scope: impl Into<String>,
        now: i64,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            host: host.into(),
            scope: scope.into(),
            parent_agent: None,
            started_at: now,
            last_activity_at: now,
            turn_count: 0,
            tool_calls: VecDeque::new(),
            warnings_issued: 0,
            blocks_triggered: 0,
            detector: None,
        }
    }

    /// The user said something: a new turn. The `agent` of the first user message stays the
    /// session's agent for ever.
    pub fn user_message(&mut self, agent: Option<&str>, now: i64) {
        if self.turn_count == 0 && self.parent_agent.is_none() {
            self.parent_agent = agent.map(str::to_owned);
        }
        self.turn_count = self.turn_count.saturating_add(1);
        self.touch(now);
    }

    /// A call has ended. Only the last [`TOOL_CALLS`] are remembered.
    pub fn tool_call(&mut self, call: ToolCall) {
        self.touch(call.at);
        if self.tool_calls.len() >= TOOL_CALLS {
            self.tool_calls.pop_front();
        }
        self.tool_calls.push_back(call);
    }

    /// Something else happened. A clock that went back does not make the session look older.
    pub fn touch(&mut self, now: i64) {
        self.last_activity_at = self.last_activity_at.max(now);
    }

    /// The session's id, as the host gave it.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// The harness that runs the session.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The hash of the project that the session belongs to.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// The agent of the session's first user message, if the host named one.
    pub fn parent_agent(&self) -> Option<&str> {
        self.parent_agent.as_deref()
    }

    /// When the session was first seen.
    pub fn started_at(&self) -> i64 {
        self.started_at
    }

    /// When something last happened. Never goes back.
    pub fn last_activity_at(&self) -> i64 {
        self.last_activity_at
    }

    /// How many user messages there were.
    pub fn turn_count(&self) -> u64 {
        self.turn_count
    }

    /// The last calls, oldest first.
    pub fn tool_calls(&self) -> impl DoubleEndedIterator<Item = &ToolCall> + ExactSizeIterator {
        self.tool_calls.iter()
    }
}

impl<S: Serialize + for<'de> Deserialize<'de>> Document for SessionState<S> {
    const KIND: &'static str = "bizar.session";
    const VERSION: u32 = 1;

    fn id(&self) -> &str {
        &self.session_id
    }
}

/// One call that has ended: no argument, no result.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The tool's name.
    pub tool: String,
    /// The call's fingerprint, or the first digits of it, in hex.
    pub fingerprint: String,
    /// When it ended, in milliseconds since 1970-01-01 UTC.
    pub at: i64,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a call ended; the words of the log line.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It was cancelled, or the session ended first.
    Aborted,
    /// It was refused.
    Blocked,
    /// It failed.
    Error,
    /// It succeeded.
    Ok,
}

/// Which sessions may go: the rule for [`Store::sweep`](crate::Store::sweep).
///
/// ```
/// use std::collections::HashSet;
/// use bizar_state::{SessionState, Sweep};
///
/// const HOUR: i64 = 60 * 60 * 1000;
/// let session: SessionState<()> = SessionState::new("ses_1", "opencode", "5f2c", 0);
/// let nobody = HashSet::new();
/// let mut sweep = Sweep { host: "opencode", scope: "5f2c", known: Some(&nobody), now: HOUR };
/// assert!(!sweep.is_stale(&session));
/// sweep.now += 1;
/// assert!(sweep.is_stale(&session));
/// sweep.known = None; // the host could not be asked
/// assert!(!sweep.is_stale(&session));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    /// The host that sweeps. Sessions of others are not looked at.
    pub host: &'a str,
    /// The project that is swept. Sessions of others are not looked at.
    pub scope: &'a str,
    /// The ids of the sessions that the host still knows, which stay whatever their age;
    /// `None` if it could not be asked.
    pub known: Option<&'a HashSet<String>>,
    /// The time now, in milliseconds since 1970-01-01 UTC.
    pub now: i64,
}

impl Sweep<'_> {
    /// Whether the session may go: unknown to its host for more than an hour without activity, or
    /// for more than 7 days if the host could not be asked. If the clock went back behind the last
    /// activity, the session stays.
    pub fn is_stale<S>(&self, session: &SessionState<S>) -> bool {
        if session.host != self.host || session.scope != self.scope {
            return false;
        }
        let limit = match self.known {
            Some(known) if known.contains(&session.session_id) => return false,
            Some(_) => HOUR,
            None => 7 * 24 * HOUR,
        };
        self.now.saturating_sub(session.last_activity_at) > limit
    }
}

fn last_calls<'de, D: Deserializer<'de>>(from: D) -> Result<VecDeque<ToolCall>, D::Error> {
    let mut calls = VecDeque::deserialize(from)?;
    calls.drain(..calls.len().saturating_sub(TOOL_CALLS));
    Ok(calls)
}

/// How many calls a [`SessionState`] remembers.
pub const TOOL_CALLS: usize = 50;

const HOUR: i64 = 60 * 60 * 1000;
