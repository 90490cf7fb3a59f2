//! Kimi Code: a wire of loop events for each agent. The file itself does not name its session.

use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BadLine, Reader, parse};
use crate::pending::{Answer, Pending};
use crate::record::{Call, Event, Item, Recorded};

#[derive(Debug)]
pub(super) struct Kimi {
    pending: Pending,
    session: Rc<str>,
    parent: Option<Rc<str>>,
}

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(default)]
    r#type: String,
    time: Option<f64>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoopEvent {
    #[serde(default)]
    r#type: String,
    step_uuid: Option<String>,
    tool_call_id: Option<String>,
    name: Option<String>,
    args: Option<Box<RawValue>>,
    result: Option<Outcome>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    output: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
    duration_ms: Option<f64>,
}

impl Kimi {
    /// `…/session_x/agents/agent-0/wire.jsonl` is agent `agent-0` of `session_x`.
    pub(super) fn new(name: &str) -> Self {
        let parts: Vec<&str> = name.split(['/', '\\']).collect();
        let (session, parent) = match parts.as_slice() {
            [.., session, "agents", "main", _] => ((*session).to_owned(), None),
            [.., session, "agents", agent, _] => (format!("{session}/{agent}"), Some(*session)),
            _ => (name.to_owned(), None),
        };
        Self {
            pending: Pending::default(),
            session: session.into(),
            parent: parent.map(Into::into),
        }
    }
}

impl Reader for Kimi {
    fn line(&mut self, line: &str, out: &mut Vec<Item>) -> Result<(), BadLine> {
        let row: Row<'_> = serde_json::from_str(line)?;
        match (row.r#type.as_str(), row.event) {
            ("turn.prompt", _) => self.pending.event(&self.session, Event::UserMessage, out),
            ("context.append_loop_event", Some(event)) => {
                let event: LoopEvent = parse(event)?;
                let id = event.tool_call_id.unwrap_or_default();
                match (event.r#type.as_str(), event.result) {
                    ("tool.call", _) => {
                        let mut call = Call::new(
                            self.session.clone(),
                            event.name.unwrap_or_default(),
                            event.args,
                        );
                        call.batch = event.step_uuid;
                        call.parent = self.parent.clone();
                        self.pending.begin(&id, call, row.time, out);
                    }
                    ("tool.result", Some(outcome)) => {
                        let answer = Answer {
                            ok: Some(!outcome.is_error),
                            result: Recorded::from_json(outcome.output),
                            ended: row.time,
                            took: outcome.duration_ms,
                        };
                        self.pending.end(&self.session, &id, answer, out);
                    }
                    _ => {}
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
