//! Factory's droid: messages of the Anthropic shape, each in a row with an id.

use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::claude::Block;
use super::{BadLine, Reader, millis, parse};
use crate::pending::{Answer, Pending};
use crate::record::{Call, Event, Item, Recorded};

#[derive(Debug)]
pub(super) struct Droid {
    pending: Pending,
    session: Rc<str>,
    parent: Option<Rc<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    #[serde(default)]
    r#type: String,
    id: Option<String>,
    calling_session_id: Option<String>,
    timestamp: Option<String>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    role: String,
    /// Set on what only the model or only the user sees: nobody wrote that.
    visibility: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl Droid {
    pub(super) fn new(name: &str) -> Self {
        Self {
            pending: Pending::default(),
            session: name.into(),
            parent: None,
        }
    }
}

impl Reader for Droid {
    fn line(&mut self, line: &str, out: &mut Vec<Item>) -> Result<(), BadLine> {
        let row: Row<'_> = serde_json::from_str(line)?;
        if row.r#type == "session_start" {
            self.session = row.id.ok_or(BadLine::Without("id"))?.into();
            self.parent = row.calling_session_id.map(Into::into);
            return Ok(());
        }
        let Some(message) = row.message.filter(|_| row.r#type == "message") else {
            return Ok(());
        };
        let message: Message<'_> = parse(message)?;
        let Some(content) = message
            .content
            .filter(|content| content.get().starts_with('['))
        else {
            return Ok(());
        };
        let time = millis(row.timestamp.as_deref());
        for block in parse::<Vec<Block>>(content)? {
            match block.r#type.as_str() {
                "tool_use" => {
                    let id = block.id.unwrap_or_default();
                    let mut call = Call::new(
                        self.session.clone(),
                        block.name.unwrap_or_default(),
                        block.input,
                    );
                    call.batch = row.id.clone();
                    call.parent = self.parent.clone();
                    self.pending.begin(&id, call, time, out);
                }
                "tool_result" => {
                    let answer = Answer {
                        ok: Some(!block.is_error.unwrap_or(false)),
                        result: Recorded::from_json(block.content),
                        ended: time,
                        took: None,
                    };
                    self.pending.end(
                        &self.session,
                        &block.tool_use_id.unwrap_or_default(),
                        answer,
                        out,
                    );
                }
                "text" if message.role == "user" && message.visibility.is_none() => {
                    self.pending.event(&self.session, Event::UserMessage, out);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Item>) {
        self.pending.finish(out);
    }
}
