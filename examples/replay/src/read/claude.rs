//! Claude Code: a row a content block, results in rows of the user's role.

use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BadLine, Reader, millis, parse};
use crate::pending::{Answer, Pending};
use crate::record::{Call, Event, Item, Recorded};

#[derive(Debug, Default)]
pub(super) struct Claude {
    pending: Pending,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    session_id: Option<String>,
    agent_id: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    /// Written by the harness under the user's name.
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_compact_summary: bool,
    timestamp: Option<String>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// A content block of the Anthropic message format; also what droid writes.
#[derive(Deserialize)]
pub(super) struct Block {
    #[serde(default)]
    pub(super) r#type: String,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) input: Option<Box<RawValue>>,
    pub(super) tool_use_id: Option<String>,
    pub(super) is_error: Option<bool>,
    pub(super) content: Option<Box<RawValue>>,
}

impl Reader for Claude {
    fn line(&mut self, line: &str, out: &mut Vec<Item>) -> Result<(), BadLine> {
        let row: Row<'_> = serde_json::from_str(line)?;
        let role = row.r#type.map_or("", RawValue::get);
        if !matches!(role, r#""assistant""# | r#""user""#) {
            return Ok(());
        }
        let Some(message) = row.message else {
            return Ok(());
        };
        let message: Message<'_> = parse(message)?;
        let root: Rc<str> = row.session_id.ok_or(BadLine::Without("sessionId"))?.into();
        let (session, parent) = match (row.agent_id, row.is_sidechain) {
            (Some(agent), _) => (format!("{root}/{agent}").into(), Some(root)),
            (None, true) => (format!("{root}/sidechain").into(), Some(root)),
            (None, false) => (root, None),
        };
        let time = millis(row.timestamp.as_deref());
        let Some(content) = message
            .content
            .filter(|content| content.get().starts_with('['))
        else {
            if role == r#""user""#
                && message.content.is_some()
                && !row.is_meta
                && !row.is_compact_summary
            {
                self.pending.event(&session, Event::UserMessage, out);
            }
            return Ok(());
        };
        let blocks: Vec<Block> = parse(content)?;
        let has_results = blocks.iter().any(|block| block.r#type == "tool_result");
        for block in blocks {
            match block.r#type.as_str() {
                "tool_use" => {
                    let id = block.id.unwrap_or_default();
                    let mut call =
                        Call::new(session.clone(), block.name.unwrap_or_default(), block.input);
                    call.batch = message.id.clone();
                    call.parent = parent.clone();
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
                        &session,
                        &block.tool_use_id.unwrap_or_default(),
                        answer,
                        out,
                    );
                }
                "text"
                    if role == r#""user""#
                        && !has_results
                        && !row.is_meta
                        && !row.is_compact_summary =>
                {
                    self.pending.event(&session, Event::UserMessage, out);
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
