//! Qwen Code: rows as Claude Code's, parts as Gemini's.

use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BadLine, Reader, millis, parse};
use crate::pending::{Answer, Pending};
use crate::record::{Call, Event, Item, Recorded};

#[derive(Debug)]
pub(super) struct Qwen {
    pending: Pending,
    name: Rc<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    #[serde(default)]
    r#type: String,
    uuid: Option<String>,
    session_id: Option<String>,
    agent_id: Option<String>,
    provenance: Option<String>,
    timestamp: Option<String>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    parts: Vec<Part>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    function_call: Option<FunctionCall>,
    function_response: Option<FunctionResponse>,
}

#[derive(Deserialize)]
struct FunctionCall {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    args: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct FunctionResponse {
    #[serde(default)]
    id: String,
    response: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct CallResult {
    status: Option<String>,
}

impl Qwen {
    pub(super) fn new(name: &str) -> Self {
        Self {
            pending: Pending::default(),
            name: name.into(),
        }
    }
}

impl Reader for Qwen {
    fn line(&mut self, line: &str, out: &mut Vec<Item>) -> Result<(), BadLine> {
        let row: Row<'_> = serde_json::from_str(line)?;
        let root: Rc<str> = row.session_id.map_or_else(|| self.name.clone(), Into::into);
        let (session, parent): (Rc<str>, _) = match row.agent_id {
            Some(agent) => (format!("{root}/{agent}").into(), Some(root)),
            None => (root, None),
        };
        let time = millis(row.timestamp.as_deref());
        match row.r#type.as_str() {
            "user"
                if row
                    .provenance
                    .as_deref()
                    .is_none_or(|from| from == "real_user") =>
            {
                self.pending.event(&session, Event::UserMessage, out);
            }
            "assistant" => {
                for part in parts(row.message)? {
                    let Some(function) = part.function_call else {
                        continue;
                    };
                    let mut call = Call::new(session.clone(), function.name, function.args);
                    call.batch = row.uuid.clone();
                    call.parent = parent.clone();
                    self.pending.begin(&function.id, call, time, out);
                }
            }
            "tool_result" => {
                let status = row
                    .tool_call_result
                    .and_then(|result| parse::<CallResult>(result).ok()?.status);
                let ok = match status.as_deref() {
                    Some("success") => Some(true),
                    Some(_) => Some(false),
                    None => None,
                };
                for function in parts(row.message)?
                    .into_iter()
                    .filter_map(|part| part.function_response)
                {
                    let result = Recorded::from_json(function.response);
                    let answer = Answer {
                        ok,
                        result,
                        ended: time,
                        took: None,
                    };
                    self.pending.end(&session, &function.id, answer, out);
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

fn parts(message: Option<&RawValue>) -> Result<Vec<Part>, BadLine> {
    Ok(message
        .map(parse::<Message>)
        .transpose()?
        .map(|message| message.parts)
        .unwrap_or_default())
}
