//! Gemini CLI chats: messages that are written again as they grow; the last writing counts.

use std::collections::HashMap;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BadLine, Reader, millis, number_after, parse};
use crate::record::{Call, Event, Item, Recorded};

#[derive(Debug)]
pub(super) struct Gemini {
    session: Rc<str>,
    messages: Messages,
}

/// Messages by id, in the order they first appeared.
#[derive(Debug, Default)]
struct Messages {
    list: Vec<Message>,
    index: HashMap<String, usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    session_id: Option<String>,
    #[serde(borrow, rename = "$set")]
    set: Option<&'a RawValue>,
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Set<'a> {
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    session_id: Option<String>,
    #[serde(borrow, default)]
    messages: Vec<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    #[serde(default)]
    id: String,
    #[serde(default)]
    r#type: String,
    timestamp: Option<String>,
    content: Option<Box<RawValue>>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
}

#[derive(Debug, Deserialize)]
struct ToolCall {
    #[serde(default)]
    name: String,
    args: Option<Box<RawValue>>,
    status: Option<String>,
    result: Option<Box<RawValue>>,
    timestamp: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    function_response: Option<FunctionResponse>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct FunctionResponse {
    response: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Response {
    output: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

impl Gemini {
    pub(super) fn new(name: &str) -> Self {
        Self {
            session: name.into(),
            messages: Messages::default(),
        }
    }
}

impl Reader for Gemini {
    fn line(&mut self, line: &str, _: &mut Vec<Item>) -> Result<(), BadLine> {
        let row: Row<'_> = serde_json::from_str(line)?;
        if let Some(set) = row.set {
            for message in parse::<Set<'_>>(set)?.messages.unwrap_or_default() {
                self.messages.put(parse(message)?);
            }
        } else if row.r#type.is_some() {
            self.messages.put(serde_json::from_str(line)?);
        } else if let Some(session) = row.session_id {
            self.session = session.into();
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Item>) {
        std::mem::take(&mut self.messages).emit(&self.session, out);
    }
}

/// The older form: one document.
pub(super) fn read(text: &str, out: &mut Vec<Item>) -> Result<(), BadLine> {
    let document: Document<'_> = serde_json::from_str(text)?;
    let mut messages = Messages::default();
    for message in document.messages {
        messages.put(parse(message)?);
    }
    messages.emit(
        &document
            .session_id
            .ok_or(BadLine::Without("sessionId"))?
            .into(),
        out,
    );
    Ok(())
}

impl Messages {
    fn put(&mut self, message: Message) {
        let next = self.list.len();
        let at = if message.id.is_empty() {
            next
        } else {
            *self.index.entry(message.id.clone()).or_insert(next)
        };
        match self.list.get_mut(at) {
            Some(old) => *old = message,
            None => self.list.push(message),
        }
    }

    fn emit(self, session: &Rc<str>, out: &mut Vec<Item>) {
        let mut began = None;
        for message in self.list {
            if message.type_is("user") && message.is_written_by_a_person() {
                out.push(Item::Event {
                    session: session.clone(),
                    event: Event::UserMessage,
                });
            }
            let started = millis(message.timestamp.as_deref());
            for tool_call in message.tool_calls {
                began = began.or(started);
                let mut call = Call::new(session.clone(), tool_call.name, tool_call.args);
                (call.ok, call.result) =
                    answer(tool_call.status.as_deref(), tool_call.result.as_deref());
                call.batch = Some(message.id.clone());
                call.at = started
                    .zip(began)
                    .map(|(now, began)| ((now - began) / 1000.0).max(0.0));
                let ended = millis(tool_call.timestamp.as_deref());
                call.took = ended
                    .zip(started)
                    .map(|(end, start)| (end - start).max(0.0));
                out.push(Item::Call(call));
            }
        }
    }
}

impl Message {
    fn type_is(&self, kind: &str) -> bool {
        self.r#type == kind
    }

    /// Results of tools come under the user's name too.
    fn is_written_by_a_person(&self) -> bool {
        let Some(content) = self.content.as_deref() else {
            return false;
        };
        match parse::<Vec<Part>>(content) {
            Ok(parts) => parts
                .iter()
                .any(|part| part.text.is_some() && part.function_response.is_none()),
            Err(_) => content.get().starts_with('"'),
        }
    }
}

/// A failed shell command has the status `success`; only its text says the exit code.
fn answer(status: Option<&str>, result: Option<&RawValue>) -> (Option<bool>, Recorded) {
    let part = result
        .and_then(|result| parse::<Vec<Part>>(result).ok())
        .and_then(|parts| parts.into_iter().next());
    let raw = part
        .and_then(|part| part.function_response)
        .and_then(|function| function.response);
    let response = raw.as_deref().and_then(|raw| parse::<Response>(raw).ok());
    let failed = response
        .as_ref()
        .is_some_and(|response| response.error.is_some());
    let result = match response {
        Some(
            Response {
                output: Some(text), ..
            }
            | Response {
                error: Some(text), ..
            },
        ) => Recorded::from_json(Some(text)),
        _ => Recorded::from_json(raw),
    };
    let exit = match &result {
        Recorded::Text(text) => number_after(text, "Exit Code:"),
        _ => None,
    };
    let ok = match status {
        Some("success") => Some(!failed && exit.unwrap_or(0) == 0),
        Some("error" | "cancelled") => Some(false),
        _ => None,
    };
    (ok, result)
}
