//! What the server says: typed events, read leniently.
//!
//! Shapes are those of the event streams `/event` and `/global/event` of opencode
//! 1.18. The second wraps each event in `payload` and sends a `sync` twin of some;
//! twins are dropped. Members that this crate has no use for are skipped, a missing
//! one has its zero value, and an event of an unknown type is [`Event::Unknown`].

use std::{borrow::Cow, mem, sync::LazyLock};

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) mod wire;

/// One thing the server reported.
///
/// Only [`Event::Delta`] borrows: it is by far the most frequent event, and the
/// only one that may be dropped when a reader falls behind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The stream is open; nothing of before will be repeated.
    Connected,
    /// A sign of life, every 10 s.
    Heartbeat,
    /// A session was made or changed.
    Session {
        /// The session.
        id: String,
        /// Its parent, for a subagent.
        parent: Option<String>,
    },
    /// A session is gone.
    Deleted {
        /// The session.
        session: String,
    },
    /// What a session is doing. `session.idle` is reported as [`Activity::Idle`] too.
    Status {
        /// The session.
        session: String,
        /// What it does.
        activity: Activity,
    },
    /// A run met an error. Idle follows most of the time, but not always.
    Error {
        /// The session, which the server may leave out.
        session: Option<String>,
        /// What went wrong.
        error: ServerError,
    },
    /// A message was made or changed.
    Message {
        /// The session.
        session: String,
        /// The message without its parts.
        info: MessageInfo,
    },
    /// A part of a message was made or changed.
    Part {
        /// The session.
        session: String,
        /// The message.
        message: String,
        /// The part.
        part: Part,
    },
    /// A piece of text was added to a part.
    Delta {
        /// The session.
        session: Cow<'a, str>,
        /// The message.
        message: Cow<'a, str>,
        /// The piece.
        text: Cow<'a, str>,
    },
    /// A session waits for an answer.
    Asked(Request),
    /// A request was answered by somebody.
    Answered {
        /// The session.
        session: String,
        /// The request.
        request: String,
    },
    /// An event of a type that has no meaning here.
    Unknown,
    /// Data that [`Event::parse`] could not read, or that was too long to be kept.
    Unreadable,
}

/// What a session is doing.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Activity {
    /// Nothing. It may be about to go on: idle alone proves nothing.
    Idle,
    /// A run is on.
    Busy,
    /// A run waits before it asks the provider again.
    Retry(Retry),
    /// A word that this version does not know.
    Unknown,
}

/// A wait before the provider is asked again.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, serde::Serialize)]
pub struct Retry {
    /// How many attempts have failed.
    pub attempt: u64,
    /// What the provider said.
    pub message: String,
    /// When it is asked again, in milliseconds since 1970.
    pub next: u64,
}

/// An error as the server names it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerError {
    /// Its class, such as `APIError`.
    pub name: String,
    /// Its text, for people.
    pub message: String,
}

impl ServerError {
    /// The run was ended by an abort.
    #[must_use]
    pub fn is_abort(&self) -> bool {
        self.name == "MessageAbortedError"
    }
}

/// A message without its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageInfo {
    /// The message.
    pub id: String,
    /// Who wrote it.
    pub role: Role,
    /// The model has stopped writing it.
    pub is_completed: bool,
    /// It sums up what was before and is no answer.
    pub is_summary: bool,
    /// Why the model stopped: `stop`, `tool-calls`, `length`, ...
    pub finish: Option<String>,
    /// What went wrong.
    pub error: Option<ServerError>,
    /// What it cost, in US dollars.
    pub cost: f64,
    /// Tokens of every kind, cached ones included.
    pub tokens: u64,
}

/// Who wrote a message.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Role {
    /// The model.
    Assistant,
    /// The prompt, or a text that the harness put in its place.
    User,
    /// Somebody else.
    #[default]
    Other,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// A step of the model begins.
    StepStart,
    /// A step of the model has ended.
    StepFinish,
    /// Text.
    Text {
        /// All of it, up to now.
        text: String,
        /// Neither written by the model nor meant for people.
        is_hidden: bool,
    },
    /// A tool call.
    Tool {
        /// The provider's name of the call, unique within its message only.
        call: String,
        /// The tool.
        tool: String,
        /// How far it is.
        state: ToolState,
    },
    /// Reasoning, snapshots, and what is yet to come.
    Other,
}

/// How far a tool call is.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ToolState {
    /// It is being written or it runs.
    Open,
    /// It has ended.
    Completed,
    /// It has failed with this text.
    Failed(String),
}

/// A session that waits for somebody to decide.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    /// The request.
    pub id: String,
    /// The session that waits.
    pub session: String,
    /// What is asked for.
    pub kind: RequestKind,
    /// What to show: a permission and its patterns, or the text of a question.
    pub title: String,
}

/// What a session asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestKind {
    /// May I?
    Permission,
    /// Which one?
    Question,
}

impl Event<'_> {
    /// Reads the data of one server-sent event. `None`: a twin of an event that comes by itself.
    ///
    /// # Errors
    /// The text is not JSON, or a known type does not have its shape.
    pub fn parse(data: &str) -> Result<Option<Event<'_>>, InvalidEvent> {
        if let Some(delta) = Delta::parse_fast(data) {
            return Ok(Some(delta.into()));
        }
        let outer: Envelope<'_> = serde_json::from_str(data)?;
        let (kind, properties) = match outer.payload {
            Some(inner) => (inner.kind, inner.properties),
            None => (outer.kind, outer.properties),
        };
        if kind == "sync" {
            return Ok(None);
        }
        let text = properties.map_or("{}", RawValue::get);
        read_event(&kind, text).map(Some).map_err(InvalidEvent)
    }

    /// The session the event belongs to.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Session { id, .. } => Some(id),
            Self::Deleted { session }
            | Self::Status { session, .. }
            | Self::Message { session, .. }
            | Self::Part { session, .. }
            | Self::Answered { session, .. } => Some(session),
            Self::Delta { session, .. } => Some(session),
            Self::Asked(request) => Some(&request.session),
            Self::Error { session, .. } => session.as_deref(),
            Self::Connected | Self::Heartbeat | Self::Unknown | Self::Unreadable => None,
        }
    }

    /// The same event, free of the text it was read from.
    #[must_use]
    pub fn into_owned(self) -> Event<'static> {
        match self {
            Self::Delta {
                session,
                message,
                text,
            } => Event::Delta {
                session: session.into_owned().into(),
                message: message.into_owned().into(),
                text: text.into_owned().into(),
            },
            Self::Connected => Event::Connected,
            Self::Heartbeat => Event::Heartbeat,
            Self::Session { id, parent } => Event::Session { id, parent },
            Self::Deleted { session } => Event::Deleted { session },
            Self::Status { session, activity } => Event::Status { session, activity },
            Self::Error { session, error } => Event::Error { session, error },
            Self::Message { session, info } => Event::Message { session, info },
            Self::Part {
                session,
                message,
                part,
            } => Event::Part {
                session,
                message,
                part,
            },
            Self::Asked(request) => Event::Asked(request),
            Self::Answered { session, request } => Event::Answered { session, request },
            Self::Unknown => Event::Unknown,
            Self::Unreadable => Event::Unreadable,
        }
    }
}

/// An event that cannot be read. It is counted and passed over.
#[derive(Debug, thiserror::Error)]
#[error("unreadable event: {0}")]
pub struct InvalidEvent(#[from] serde_json::Error);

fn read_event<'a>(kind: &str, text: &'a str) -> Result<Event<'a>, serde_json::Error> {
    Ok(match kind {
        DELTA => serde_json::from_str::<Delta<'a>>(text)?.into(),
        "message.part.updated" => {
            let mut part = serde_json::from_str::<PartChanged<'_>>(text)?.part;
            Event::Part {
                session: mem::take(&mut part.session_id),
                message: mem::take(&mut part.message_id),
                part: part.into(),
            }
        }
        "message.updated" => {
            let mut info = serde_json::from_str::<InfoChanged<wire::Info<'_>>>(text)?.info;
            Event::Message {
                session: mem::take(&mut info.session_id),
                info: info.into(),
            }
        }
        "session.status" => {
            let changed: StatusChanged = serde_json::from_str(text)?;
            Event::Status {
                session: changed.session_id,
                activity: changed.status.into(),
            }
        }
        "session.idle" => Event::Status {
            session: session_of(text)?,
            activity: Activity::Idle,
        },
        "session.created" | "session.updated" => {
            let changed: InfoChanged<wire::Session> = serde_json::from_str(text)?;
            Event::Session {
                id: changed.info.id,
                parent: changed.info.parent_id,
            }
        }
        "session.deleted" => Event::Deleted {
            session: session_of(text)?,
        },
        "session.error" => {
            let failed: Failed = serde_json::from_str(text)?;
            Event::Error {
                session: failed.session_id,
                error: failed.error.unwrap_or_default().into(),
            }
        }
        "permission.asked" | "question.asked" => {
            Event::Asked(serde_json::from_str::<wire::Asked>(text)?.into())
        }
        "permission.replied" | "question.replied" | "question.rejected" => {
            let answered: Replied = serde_json::from_str(text)?;
            Event::Answered {
                session: answered.session_id,
                request: answered.request_id,
            }
        }
        "server.connected" => Event::Connected,
        "server.heartbeat" => Event::Heartbeat,
        _ => Event::Unknown,
    })
}

fn session_of(text: &str) -> Result<String, serde_json::Error> {
    #[derive(Deserialize)]
    struct Only {
        #[serde(rename = "sessionID")]
        session_id: String,
    }
    serde_json::from_str::<Only>(text).map(|only| only.session_id)
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    properties: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<Payload<'a>>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    properties: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, rename = "sessionID")]
    session_id: Cow<'a, str>,
    #[serde(borrow, rename = "messageID")]
    message_id: Cow<'a, str>,
    #[serde(default, borrow)]
    field: Cow<'a, str>,
    #[serde(default, borrow)]
    delta: Cow<'a, str>,
}

impl<'a> Delta<'a> {
    /// Most events are pieces of text: they are worth a single pass instead of two.
    fn parse_fast(data: &'a str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Outer<'a> {
            #[serde(borrow)]
            payload: Inner<'a>,
        }
        #[derive(Deserialize)]
        struct Inner<'a> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            properties: Delta<'a>,
        }
        static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(DELTA));
        FINDER.find(data.as_bytes())?;
        let outer: Outer<'a> = serde_json::from_str(data).ok()?;
        (outer.payload.kind == DELTA).then_some(outer.payload.properties)
    }
}

impl<'a> From<Delta<'a>> for Event<'a> {
    fn from(delta: Delta<'a>) -> Self {
        if delta.field != "text" {
            return Self::Unknown;
        }
        Self::Delta {
            session: delta.session_id,
            message: delta.message_id,
            text: delta.delta,
        }
    }
}

const DELTA: &str = "message.part.delta";

#[derive(Deserialize)]
struct PartChanged<'a> {
    #[serde(borrow)]
    part: wire::Part<'a>,
}

#[derive(Deserialize)]
struct InfoChanged<T> {
    info: T,
}

#[derive(Deserialize)]
struct StatusChanged {
    #[serde(rename = "sessionID")]
    session_id: String,
    status: wire::Status,
}

#[derive(Deserialize)]
struct Failed {
    #[serde(rename = "sessionID")]
    session_id: Option<String>,
    error: Option<wire::Error>,
}

#[derive(Deserialize)]
struct Replied {
    #[serde(rename = "sessionID")]
    session_id: String,
    #[serde(alias = "permissionID", rename = "requestID")]
    request_id: String,
}
