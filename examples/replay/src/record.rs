//! What every reader turns a recorded session into.

use std::rc::Rc;

use serde_json::value::RawValue;

/// One line of a recorded session.
#[derive(Clone, Debug)]
pub enum Item {
    /// A tool call with what it answered.
    Call(Call),
    /// Something that is not a call, in the session it belongs to.
    Event {
        /// Name of the session.
        session: Rc<str>,
        /// What happened.
        event: Event,
    },
}

impl Item {
    /// The session this line belongs to.
    pub fn session(&self) -> &Rc<str> {
        match self {
            Self::Call(call) => &call.session,
            Self::Event { session, .. } => session,
        }
    }
}

/// A recorded tool call, its result included.
#[derive(Clone, Debug)]
pub struct Call {
    /// Name of the session; unique within one file.
    pub session: Rc<str>,
    /// Name of the tool.
    pub tool: String,
    /// The arguments as they were written; `None` = absent or `null`.
    pub args: Option<Box<RawValue>>,
    /// The harness did not record the arguments at all.
    pub args_missing: bool,
    /// `Some(false)`: failed, or refused by someone else. `None`: not known.
    pub ok: Option<bool>,
    /// What the call answered, in the most exact form that was recorded.
    pub result: Recorded,
    /// The user's turn, in any spelling; a changed value starts a turn.
    pub turn: Option<String>,
    /// The message that asked for the call; consecutive calls that share it are one round.
    pub batch: Option<String>,
    /// Seconds since the session began.
    pub at: Option<f64>,
    /// Duration in milliseconds.
    pub took: Option<f64>,
    /// Name of the session that started this one.
    pub parent: Option<Rc<str>>,
}

impl Call {
    /// A call of which only session, tool and arguments are known.
    pub fn new(session: Rc<str>, tool: impl Into<String>, args: Option<Box<RawValue>>) -> Self {
        Self {
            session,
            tool: tool.into(),
            args,
            args_missing: false,
            ok: None,
            result: Recorded::Absent,
            turn: None,
            batch: None,
            at: None,
            took: None,
            parent: None,
        }
    }

    /// Whether the recording says nothing about how the call ended.
    pub fn is_unanswered(&self) -> bool {
        self.ok.is_none() && matches!(self.result, Recorded::Absent)
    }
}

/// A recorded result.
#[derive(Clone, Debug)]
pub enum Recorded {
    /// No result.
    Absent,
    /// JSON other than a string.
    Json(Box<RawValue>),
    /// Text.
    Text(String),
    /// A hash of the result made by the recorder after it removed volatile parts.
    Norm(String),
    /// A hash of the unchanged result.
    Sha256(String),
}

impl Recorded {
    /// A result from JSON text: `null` is no result, a string is its text.
    pub fn from_json(raw: Option<Box<RawValue>>) -> Self {
        match raw {
            None => Self::Absent,
            Some(raw) => match text_of(&raw) {
                Some(text) => Self::Text(text),
                None => Self::Json(raw),
            },
        }
    }
}

/// Something that happened between calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// The session was removed; what follows under its name starts from nothing.
    Deleted,
    /// The agent stopped and waits for its user.
    Idle,
    /// The user wrote; a new turn begins.
    UserMessage,
}

/// The decoded string, if the JSON text is one.
pub(crate) fn text_of(raw: &RawValue) -> Option<String> {
    if raw.get().starts_with('"') {
        serde_json::from_str(raw.get()).ok()
    } else {
        None
    }
}
