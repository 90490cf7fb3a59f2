//! The four request and answer shapes. Each module reads a request body into the common
//! [`Turn`]s and writes a [`Step`] as the events of its stream.
#![expect(
    clippy::indexing_slicing,
    reason = "an index by name into a JSON value gives null, or inserts into an object made here"
)]

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde_json::{Value, json};

use crate::script::Step;

/// The interface that a request used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Api {
    /// Anthropic `/v1/messages`.
    Anthropic,
    /// OpenAI `/v1/chat/completions` and everything that imitates it.
    Chat,
    /// Gemini `:streamGenerateContent` and `:generateContent`.
    Gemini,
    /// OpenAI `/v1/responses`, which Codex speaks.
    Responses,
}

/// One part of a conversation, the same for all interfaces.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// A system or developer text.
    System(String),
    /// A text of the user.
    User(String),
    /// A text of the model, empty when it only asked for calls.
    Assistant(String),
    /// What a tool answered.
    Tool(String),
}

pub(crate) struct Conversation {
    pub(crate) turns: Vec<Turn>,
    /// Names of the tools on offer.
    pub(crate) tools: Vec<String>,
    pub(crate) stream: bool,
}

impl Api {
    pub(crate) fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next()?;
        if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else if path.ends_with("enerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    pub(crate) fn read(self, path: &str, body: &Value) -> Conversation {
        match self {
            Self::Anthropic => anthropic::read(body),
            Self::Chat => chat::read(body),
            Self::Gemini => gemini::read(path, body),
            Self::Responses => responses::read(body),
        }
    }

    /// The events of the answer, each a complete server-sent event.
    pub(crate) fn events(self, step: &Step, ids: &[String]) -> Vec<String> {
        match self {
            Self::Anthropic => anthropic::events(step, ids),
            Self::Chat => chat::events(step, ids),
            Self::Gemini => vec![data(&gemini::whole(step))],
            Self::Responses => responses::events(step, ids),
        }
    }

    /// The answer as one JSON document, for requests that did not ask for a stream.
    pub(crate) fn whole(self, step: &Step, ids: &[String]) -> Value {
        match self {
            Self::Anthropic => anthropic::whole(step, ids),
            Self::Chat => chat::whole(step, ids),
            Self::Gemini => gemini::whole(step),
            Self::Responses => responses::whole(step, ids),
        }
    }
}

fn data(event: &Value) -> String {
    format!("data: {event}\n\n")
}

/// `event:` and `data:`, where the type stands in both.
fn named(event: &Value) -> String {
    format!("event: {}\n{}", text(event, "type"), data(event))
}

fn text(value: &Value, key: &str) -> String {
    value
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A content that is a string, or a list of parts with `text`.
fn content(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .map(|part| text(part, "text"))
            .collect::<Vec<_>>()
            .join("\n"),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Arguments as the text that travels: strings as they are, everything else as JSON.
fn arguments(args: &Value) -> String {
    args.as_str()
        .map_or_else(|| args.to_string(), str::to_owned)
}

/// Arguments where the interface wants an object; broken text becomes an empty one.
fn object(args: &Value) -> Value {
    if args.is_object() {
        args.clone()
    } else {
        json!({})
    }
}
