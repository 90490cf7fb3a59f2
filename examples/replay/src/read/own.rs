//! Our own JSON Lines: the contract of `bizar-replay`.

use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BadLine, Reader};
use crate::record::{Call, Event, Item, Recorded, text_of};

/// Keeps only the last session's name, so that it is stored once.
#[derive(Debug, Default)]
pub(super) struct Own {
    session: Option<Rc<str>>,
}

/// Every field raw: a field of a strange type is our decision, not the parser's.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    session: Option<&'a RawValue>,
    #[serde(borrow)]
    tool: Option<&'a RawValue>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    args: Option<Box<RawValue>>,
    #[serde(borrow)]
    args_missing: Option<&'a RawValue>,
    result: Option<Box<RawValue>>,
    #[serde(borrow)]
    result_norm: Option<&'a RawValue>,
    #[serde(borrow)]
    result_sha256: Option<&'a RawValue>,
    #[serde(borrow)]
    ok: Option<&'a RawValue>,
    #[serde(borrow)]
    turn: Option<&'a RawValue>,
    #[serde(borrow)]
    batch: Option<&'a RawValue>,
    #[serde(borrow)]
    t: Option<&'a RawValue>,
    #[serde(borrow)]
    ms: Option<&'a RawValue>,
    #[serde(borrow)]
    parent: Option<&'a RawValue>,
}

impl Reader for Own {
    fn line(&mut self, line: &str, out: &mut Vec<Item>) -> Result<(), BadLine> {
        let line: Line<'_> = serde_json::from_str(line)?;
        let name = string(line.session, "session")?.ok_or(BadLine::Without("session"))?;
        let session = match &self.session {
            Some(session) if **session == *name => session.clone(),
            _ => self.session.insert(name.into()).clone(),
        };
        if let Some(event) = string(line.event, "event")? {
            let event = match event.as_str() {
                "user_message" => Event::UserMessage,
                "idle" => Event::Idle,
                "deleted" => Event::Deleted,
                _ => return Err(BadLine::Wrong("event")),
            };
            out.push(Item::Event { session, event });
            return Ok(());
        }
        let tool = string(line.tool, "tool")?.ok_or(BadLine::Without("tool"))?;
        let mut call = Call::new(session, tool, line.args);
        call.args_missing = boolean(line.args_missing, "args_missing")?.unwrap_or(false);
        call.ok = boolean(line.ok, "ok")?;
        call.result = match (
            line.result,
            present(line.result_norm),
            present(line.result_sha256),
        ) {
            (Some(result), _, _) => Recorded::from_json(Some(result)),
            (None, Some(norm), _) => Recorded::Norm(norm),
            (None, None, Some(sha256)) => Recorded::Sha256(sha256),
            (None, None, None) => Recorded::Absent,
        };
        call.turn = present(line.turn);
        call.batch = present(line.batch);
        call.at = number(line.t);
        call.took = number(line.ms);
        call.parent = line.parent.and_then(text_of).map(Into::into);
        out.push(Item::Call(call));
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<Item>) {}
}

fn string(raw: Option<&RawValue>, field: &'static str) -> Result<Option<String>, BadLine> {
    match raw {
        None => Ok(None),
        Some(raw) => Ok(Some(text_of(raw).ok_or(BadLine::Wrong(field))?)),
    }
}

fn boolean(raw: Option<&RawValue>, field: &'static str) -> Result<Option<bool>, BadLine> {
    match raw.map(RawValue::get) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(BadLine::Wrong(field)),
    }
}

/// Any value, as text that is equal for equal values.
fn present(raw: Option<&RawValue>) -> Option<String> {
    raw.map(|raw| text_of(raw).unwrap_or_else(|| raw.get().to_owned()))
}

/// A finite number that is not negative; anything else says nothing.
fn number(raw: Option<&RawValue>) -> Option<f64> {
    let number: f64 = serde_json::from_str(raw?.get()).ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}
