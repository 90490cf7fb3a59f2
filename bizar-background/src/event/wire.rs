//! The JSON shapes behind [`Event`](super::Event) and [`Transcript`](crate::Transcript).

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, de::Visitor};
use serde_json::value::RawValue;

use super::{Activity, MessageInfo, Request, RequestKind, Retry, Role, ServerError, ToolState};

#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) info: Info<'a>,
    #[serde(borrow, default = "Vec::new")]
    pub(crate) parts: Vec<Part<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Info<'a> {
    id: String,
    #[serde(default, rename = "sessionID")]
    pub(super) session_id: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    time: Time,
    /// A flag in assistant messages, an object in user messages.
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    finish: Option<String>,
    error: Option<Error>,
    #[serde(default)]
    cost: f64,
    tokens: Option<Tokens>,
}

#[derive(Default, Deserialize)]
struct Time {
    completed: Option<f64>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    input: f64,
    #[serde(default)]
    output: f64,
    #[serde(default)]
    reasoning: f64,
    cache: Option<Cache>,
}

#[derive(Deserialize)]
struct Cache {
    #[serde(default)]
    read: f64,
    #[serde(default)]
    write: f64,
}

impl From<Info<'_>> for MessageInfo {
    fn from(info: Info<'_>) -> Self {
        let tokens = info.tokens.map_or(0.0, |tokens| {
            let cache = tokens.cache.map_or(0.0, |cache| cache.read + cache.write);
            tokens.input + tokens.output + tokens.reasoning + cache
        });
        Self {
            id: info.id,
            role: match info.role.as_str() {
                "assistant" => Role::Assistant,
                "user" => Role::User,
                _ => Role::Other,
            },
            is_completed: info.time.completed.is_some(),
            is_summary: info.summary.is_some_and(|summary| summary.get() == "true"),
            finish: info.finish,
            error: info.error.map(ServerError::from),
            cost: info.cost,
            tokens: whole(tokens),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Part<'a> {
    #[serde(default, rename = "sessionID")]
    pub(super) session_id: String,
    #[serde(default, rename = "messageID")]
    pub(super) message_id: String,
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default, deserialize_with = "lossy")]
    text: String,
    #[serde(default)]
    synthetic: bool,
    #[serde(default)]
    ignored: bool,
    #[serde(default, rename = "callID")]
    call_id: String,
    #[serde(default)]
    tool: String,
    #[serde(borrow)]
    state: Option<State<'a>>,
}

#[derive(Deserialize)]
struct State<'a> {
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(default, deserialize_with = "lossy")]
    error: String,
}

impl From<Part<'_>> for super::Part {
    fn from(part: Part<'_>) -> Self {
        match part.kind.as_ref() {
            "text" => Self::Text {
                text: part.text,
                is_hidden: part.synthetic || part.ignored,
            },
            "tool" => Self::Tool {
                call: part.call_id,
                tool: part.tool,
                state: match part.state {
                    Some(state) if state.status == "completed" => ToolState::Completed,
                    Some(state) if state.status == "error" => ToolState::Failed(state.error),
                    _ => ToolState::Open,
                },
            },
            "step-start" => Self::StepStart,
            "step-finish" => Self::StepFinish,
            _ => Self::Other,
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    #[serde(rename = "parentID")]
    pub(crate) parent_id: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Status {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    attempt: f64,
    #[serde(default, deserialize_with = "lossy")]
    message: String,
    #[serde(default)]
    next: f64,
}

impl From<Status> for Activity {
    fn from(status: Status) -> Self {
        match status.kind.as_str() {
            "idle" => Self::Idle,
            "busy" => Self::Busy,
            "retry" => Self::Retry(Retry {
                attempt: whole(status.attempt),
                message: status.message,
                next: whole(status.next),
            }),
            _ => Self::Unknown,
        }
    }
}

#[derive(Default, Deserialize)]
pub(crate) struct Error {
    #[serde(default)]
    name: String,
    #[serde(default)]
    data: ErrorData,
    #[serde(default, deserialize_with = "lossy")]
    message: String,
}

#[derive(Default, Deserialize)]
struct ErrorData {
    #[serde(default, deserialize_with = "lossy")]
    message: String,
}

impl From<Error> for ServerError {
    fn from(error: Error) -> Self {
        let message = [error.data.message, error.message, error.name.clone()];
        let message = message.into_iter().find(|text| !text.is_empty());
        Self {
            name: error.name,
            message: message.unwrap_or_else(|| "unknown error".into()),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Asked {
    id: String,
    #[serde(rename = "sessionID")]
    session_id: String,
    permission: Option<String>,
    #[serde(default)]
    patterns: Vec<String>,
    #[serde(default)]
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    #[serde(default, deserialize_with = "lossy")]
    question: String,
}

impl From<Asked> for Request {
    fn from(asked: Asked) -> Self {
        let (kind, title) = match asked.permission {
            Some(name) if asked.patterns.is_empty() => (RequestKind::Permission, name),
            Some(name) => (
                RequestKind::Permission,
                format!("{name} ({})", asked.patterns.join(", ")),
            ),
            None => {
                let texts: Vec<_> = asked
                    .questions
                    .into_iter()
                    .map(|one| one.question)
                    .collect();
                (
                    RequestKind::Question,
                    format!("question ({})", texts.join(" ")),
                )
            }
        };
        Self {
            id: asked.id,
            session: asked.session_id,
            kind,
            title,
        }
    }
}

/// A text that may hold half a surrogate pair, which JavaScript writes when it has cut an emoji in two.
/// One such letter must not make a whole conversation unreadable.
fn lossy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Lossy;
    impl Visitor<'_> for Lossy {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text")
        }

        fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<String, E> {
            let text = str::from_utf8(bytes).map(str::to_owned);
            Ok(text.unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned()))
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.into())
        }
    }
    deserializer.deserialize_bytes(Lossy)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, which is what is wanted"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
