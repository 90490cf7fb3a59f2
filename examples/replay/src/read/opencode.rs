//! `opencode export`: one document, tool parts inside messages.

use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BadLine, parse};
use crate::record::{Call, Event, Item, Recorded};

#[derive(Deserialize)]
struct Export<'a> {
    info: Info,
    #[serde(borrow, default)]
    messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
struct Info {
    id: Option<String>,
    #[serde(rename = "parentID")]
    parent: Option<String>,
}

#[derive(Deserialize)]
struct Message<'a> {
    info: MessageInfo,
    #[serde(borrow, default)]
    parts: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageInfo {
    #[serde(default)]
    id: String,
    #[serde(default)]
    role: String,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    r#type: String,
    /// Written by opencode, not by a person.
    #[serde(default)]
    synthetic: bool,
    tool: Option<String>,
    state: Option<State>,
}

#[derive(Deserialize)]
struct State {
    #[serde(default)]
    status: String,
    input: Option<Box<RawValue>>,
    output: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
    metadata: Option<Metadata>,
    time: Option<Time>,
}

#[derive(Deserialize)]
struct Metadata {
    exit: Option<i64>,
}

#[derive(Deserialize)]
struct Time {
    start: Option<f64>,
    end: Option<f64>,
}

pub(super) fn read(text: &str, out: &mut Vec<Item>) -> Result<(), BadLine> {
    let export: Export<'_> = serde_json::from_str(text)?;
    let session: Rc<str> = export.info.id.ok_or(BadLine::Without("info.id"))?.into();
    let parent: Option<Rc<str>> = export.info.parent.map(Into::into);
    let mut began = None;
    for message in export.messages {
        let parts: Vec<Part> = message
            .parts
            .into_iter()
            .map(parse)
            .collect::<Result<_, _>>()?;
        if message.info.role == "user" && parts.iter().any(|part| !part.synthetic) {
            out.push(Item::Event {
                session: session.clone(),
                event: Event::UserMessage,
            });
        }
        for part in parts {
            let (Some(tool), Some(state)) =
                (part.tool.filter(|_| part.r#type == "tool"), part.state)
            else {
                continue;
            };
            let mut call = Call::new(session.clone(), tool, state.input);
            // A command that ends with another exit code than 0 is `completed` too.
            let exit = state.metadata.and_then(|metadata| metadata.exit);
            (call.ok, call.result) = match state.status.as_str() {
                "completed" => (
                    Some(exit.unwrap_or(0) == 0),
                    Recorded::from_json(state.output),
                ),
                "error" => (Some(false), Recorded::from_json(state.error)),
                _ => (None, Recorded::Absent),
            };
            let started = state.time.as_ref().and_then(|time| time.start);
            let ended = state.time.as_ref().and_then(|time| time.end);
            began = began.or(started);
            call.at = started
                .zip(began)
                .map(|(now, began): (f64, f64)| ((now - began) / 1000.0).max(0.0));
            call.took = ended
                .zip(started)
                .map(|(end, start)| (end - start).max(0.0));
            call.batch = Some(message.info.id.clone());
            call.parent = parent.clone();
            out.push(Item::Call(call));
        }
    }
    Ok(())
}
