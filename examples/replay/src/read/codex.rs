//! Codex rollouts: function calls and their outputs as response items.

use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{BadLine, Reader, millis, number_after, parse};
use crate::pending::{Answer, Pending};
use crate::record::{Call, Event, Item, Recorded};

#[derive(Debug)]
pub(super) struct Codex {
    pending: Pending,
    session: Rc<str>,
    parent: Option<Rc<str>>,
    named: bool,
    /// Number of the model's current answer, and whether something has come since that ends it.
    round: u64,
    round_over: bool,
}

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(default)]
    r#type: String,
    timestamp: Option<String>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Meta {
    id: Option<String>,
    parent_thread_id: Option<String>,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(default)]
    r#type: String,
    name: Option<String>,
    namespace: Option<String>,
    arguments: Option<String>,
    input: Option<Box<RawValue>>,
    action: Option<Box<RawValue>>,
    call_id: Option<String>,
    output: Option<Box<RawValue>>,
    item: Option<Box<RawValue>>,
}

/// What older versions put around an output.
#[derive(Deserialize)]
struct Wrapped {
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Metadata {
    exit_code: Option<i64>,
}

#[derive(Deserialize)]
struct Completed {
    #[serde(default)]
    r#type: String,
}

impl Codex {
    pub(super) fn new(name: &str) -> Self {
        Self {
            pending: Pending::default(),
            session: name.into(),
            parent: None,
            named: false,
            round: 0,
            round_over: true,
        }
    }

    fn response_item(&mut self, payload: Payload, time: Option<f64>, out: &mut Vec<Item>) {
        let id = payload.call_id.unwrap_or_default();
        let (name, args) = match payload.r#type.as_str() {
            "function_call" => (
                payload.name.unwrap_or_default(),
                payload.arguments.and_then(arguments),
            ),
            "custom_tool_call" => (
                payload.name.unwrap_or_default(),
                payload.input.and_then(|input| {
                    RawValue::from_string(format!(r#"{{"input":{}}}"#, input.get())).ok()
                }),
            ),
            "local_shell_call" => ("local_shell".to_owned(), payload.action),
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                self.round_over = true;
                let result = Recorded::from_json(payload.output);
                let answer = Answer {
                    ok: succeeded(&result),
                    result,
                    ended: time,
                    took: None,
                };
                self.pending.end(&self.session, &id, answer, out);
                return;
            }
            _ => return,
        };
        if std::mem::take(&mut self.round_over) {
            self.round += 1;
        }
        let name = match payload.namespace {
            Some(server) if server.starts_with("mcp__") => format!("{server}{name}"),
            _ => name,
        };
        let mut call = Call::new(self.session.clone(), name, args);
        call.batch = Some(self.round.to_string());
        call.parent = self.parent.clone();
        self.pending.begin(&id, call, time, out);
    }
}

impl Reader for Codex {
    fn line(&mut self, line: &str, out: &mut Vec<Item>) -> Result<(), BadLine> {
        let row: Row<'_> = serde_json::from_str(line)?;
        let Some(payload) = row.payload else {
            return Ok(());
        };
        match row.r#type.as_str() {
            // A fork repeats the head of the session it came from; the first one names the file.
            "session_meta" if !self.named => {
                let meta: Meta = parse(payload)?;
                self.session = meta.id.ok_or(BadLine::Without("payload.id"))?.into();
                self.parent = meta.parent_thread_id.map(Into::into);
                self.named = true;
            }
            "response_item" => {
                let payload: Payload = parse(payload)?;
                self.response_item(payload, millis(row.timestamp.as_deref()), out);
            }
            "token_usage_record" => self.round_over = true,
            "event_msg" => {
                let Ok(payload) = parse::<Payload>(payload) else {
                    return Ok(());
                };
                let item = payload
                    .item
                    .as_deref()
                    .and_then(|item| parse::<Completed>(item).ok());
                if payload.r#type == "user_message"
                    || item.is_some_and(|item| item.r#type == "UserMessage")
                {
                    self.round_over = true;
                    self.pending.event(&self.session, Event::UserMessage, out);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Item>) {
        self.pending.finish(out);
    }
}

/// Arguments are JSON in a string; what is not JSON stays the string it is.
fn arguments(text: String) -> Option<Box<RawValue>> {
    if text.trim().is_empty() {
        return None;
    }
    RawValue::from_string(text.clone())
        .or_else(|_| to_raw_value(&text))
        .ok()
}

/// The harness writes success only into the text.
fn succeeded(result: &Recorded) -> Option<bool> {
    let Recorded::Text(text) = result else {
        return None;
    };
    if let Ok(Wrapped {
        metadata: Some(Metadata {
            exit_code: Some(code),
        }),
    }) = serde_json::from_str(text)
    {
        return Some(code == 0);
    }
    let head: String = text.lines().take(8).collect::<Vec<_>>().join("\n");
    number_after(&head, "Process exited with code")
        .or_else(|| number_after(&head, "Exit code:"))
        .map(|code| code == 0)
        .or_else(|| head.starts_with("unsupported call").then_some(false))
}
