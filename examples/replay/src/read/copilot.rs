//! Copilot CLI: events of a session and of its subagents in one file.

use std::collections::HashMap;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BadLine, Reader, millis, parse};
use crate::pending::{Answer, Pending};
use crate::record::{Call, Event, Item, Recorded};

#[derive(Debug)]
pub(super) struct Copilot {
    pending: Pending,
    session: Rc<str>,
    /// The message each agent wrote last.
    messages: HashMap<Rc<str>, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    #[serde(default)]
    r#type: String,
    agent_id: Option<String>,
    timestamp: Option<String>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    session_id: Option<String>,
    message_id: Option<String>,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    arguments: Option<Box<RawValue>>,
    success: Option<bool>,
    error: Option<Failure>,
    result: Option<Output>,
    shell_execution: Option<Shell>,
}

#[derive(Deserialize)]
struct Failure {
    message: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Output {
    content: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shell {
    exit_code: Option<i64>,
}

impl Copilot {
    pub(super) fn new(name: &str) -> Self {
        Self {
            pending: Pending::default(),
            session: name.into(),
            messages: HashMap::new(),
        }
    }
}

impl Reader for Copilot {
    fn line(&mut self, line: &str, out: &mut Vec<Item>) -> Result<(), BadLine> {
        let row: Row<'_> = serde_json::from_str(line)?;
        if !USED.contains(&row.r#type.as_str()) {
            return Ok(());
        }
        let Some(data) = row.data else {
            return Ok(());
        };
        let data: Data = parse(data)?;
        if row.r#type == "session.start" {
            self.session = data
                .session_id
                .ok_or(BadLine::Without("data.sessionId"))?
                .into();
            return Ok(());
        }
        let (session, parent): (Rc<str>, _) = match row.agent_id {
            Some(agent) => (
                format!("{}/{agent}", self.session).into(),
                Some(self.session.clone()),
            ),
            None => (self.session.clone(), None),
        };
        let time = millis(row.timestamp.as_deref());
        let id = data.tool_call_id.unwrap_or_default();
        match row.r#type.as_str() {
            "user.message" => self.pending.event(&session, Event::UserMessage, out),
            "assistant.message" => {
                self.messages
                    .insert(session, data.message_id.unwrap_or_default());
            }
            "tool.execution_start" => {
                let mut call = Call::new(
                    session.clone(),
                    data.tool_name.unwrap_or_default(),
                    data.arguments,
                );
                call.batch = self.messages.get(&session).cloned();
                call.parent = parent;
                self.pending.begin(&id, call, time, out);
            }
            _ => {
                let exit = data
                    .shell_execution
                    .and_then(|shell| shell.exit_code)
                    .unwrap_or(0);
                let failure = data.error.and_then(|error| error.message);
                let content = data.result.and_then(|result| result.content).or(failure);
                let answer = Answer {
                    ok: data.success.map(|success| success && exit == 0),
                    result: without_shell_number(Recorded::from_json(content)),
                    ended: time,
                    took: None,
                };
                self.pending.end(&session, &id, answer, out);
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Item>) {
        self.pending.finish(out);
    }
}

/// Every command ends with a line that numbers its shell; no two outputs would ever be equal.
fn without_shell_number(result: Recorded) -> Recorded {
    match result {
        Recorded::Text(mut text) => {
            if text.ends_with('>')
                && let Some(at) = text.rfind("<shellId: ")
                && !text.get(at..).unwrap_or_default().contains('\n')
            {
                text.truncate(at);
            }
            Recorded::Text(text)
        }
        other => other,
    }
}

const USED: [&str; 5] = [
    "session.start",
    "user.message",
    "assistant.message",
    "tool.execution_start",
    "tool.execution_complete",
];
