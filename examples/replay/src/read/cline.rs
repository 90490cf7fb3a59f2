//! Cline: one document a session, messages of the Anthropic shape.

use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BadLine, parse};
use crate::pending::{Answer, Pending};
use crate::record::{Call, Event, Item, Recorded};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    session_id: Option<String>,
    origin: Option<Origin>,
    #[serde(borrow, default)]
    messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Origin {
    parent_thread_id: Option<String>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    id: String,
    #[serde(default)]
    role: String,
    ts: Option<f64>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    r#type: String,
    id: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
    tool_use_id: Option<String>,
    is_error: Option<bool>,
    content: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Part {
    success: Option<bool>,
}

pub(super) fn read(text: &str, out: &mut Vec<Item>) -> Result<(), BadLine> {
    let document: Document<'_> = serde_json::from_str(text)?;
    let session: Rc<str> = document
        .session_id
        .ok_or(BadLine::Without("sessionId"))?
        .into();
    let parent: Option<Rc<str>> = document
        .origin
        .and_then(|origin| origin.parent_thread_id)
        .map(Into::into);
    let mut pending = Pending::default();
    for message in document.messages {
        let Some(content) = message
            .content
            .filter(|content| content.get().starts_with('['))
        else {
            if message.role == "user" {
                pending.event(&session, Event::UserMessage, out);
            }
            continue;
        };
        for block in parse::<Vec<Block>>(content)? {
            match block.r#type.as_str() {
                "tool_use" => {
                    let id = block.id.unwrap_or_default();
                    let mut call =
                        Call::new(session.clone(), block.name.unwrap_or_default(), block.input);
                    call.batch = Some(message.id.clone());
                    call.parent = parent.clone();
                    pending.begin(&id, call, message.ts, out);
                }
                "tool_result" => {
                    let parts = block
                        .content
                        .as_deref()
                        .and_then(|content| parse::<Vec<Part>>(content).ok());
                    let failed = parts
                        .is_some_and(|parts| parts.iter().any(|part| part.success == Some(false)));
                    let answer = Answer {
                        ok: Some(!failed && !block.is_error.unwrap_or(false)),
                        result: Recorded::from_json(block.content),
                        ended: message.ts,
                        took: None,
                    };
                    pending.end(
                        &session,
                        &block.tool_use_id.unwrap_or_default(),
                        answer,
                        out,
                    );
                }
                "text" if message.role == "user" => {
                    pending.event(&session, Event::UserMessage, out)
                }
                _ => {}
            }
        }
    }
    pending.finish(out);
    Ok(())
}
