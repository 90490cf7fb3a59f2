//! What adds up during a run: tool calls, cost, text.

use std::collections::HashMap;

use crate::event::MessageInfo;

/// The distinct tool calls of a tree. A call's name is unique within its message only.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    /// Whether each one still runs.
    by_message: HashMap<String, HashMap<String, bool>>,
    count: usize,
}

impl Calls {
    /// Whether the call is new.
    pub(super) fn note(&mut self, message: &str, call: &str, is_open: bool) -> bool {
        let calls = match self.by_message.get_mut(message) {
            Some(calls) => calls,
            None => self.by_message.entry(message.into()).or_default(),
        };
        if let Some(known) = calls.get_mut(call) {
            *known &= is_open;
            return false;
        }
        calls.insert(call.into(), is_open);
        self.count += 1;
        true
    }

    /// Keeps the number only.
    pub(super) fn close(&mut self) {
        self.by_message = HashMap::new();
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn has_open(&self) -> bool {
        self.by_message
            .values()
            .flat_map(HashMap::values)
            .any(|is_open| *is_open)
    }
}

/// What the messages of a tree have cost.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    by_message: HashMap<String, (f64, u64)>,
    pub(super) cost: f64,
    pub(super) tokens: u64,
}

impl Usage {
    pub(super) fn note(&mut self, info: &MessageInfo) -> bool {
        let cost = if info.cost.is_finite() {
            info.cost.max(0.0)
        } else {
            0.0
        };
        let new = (cost, info.tokens);
        let old = self.by_message.get(&info.id).copied().unwrap_or_default();
        // A message only grows: a late copy of an older state changes nothing.
        if new.0 <= old.0 && new.1 <= old.1 {
            return false;
        }
        let new = (new.0.max(old.0), new.1.max(old.1));
        self.by_message.insert(info.id.clone(), new);
        self.cost += new.0 - old.0;
        self.tokens = self.tokens.saturating_add(new.1 - old.1);
        true
    }

    /// Keeps the sums only.
    pub(super) fn close(&mut self) {
        self.by_message = HashMap::new();
    }
}

/// The last characters of what the model writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Preview {
    /// The message that the model writes; texts of others are prompts.
    message: String,
    text: String,
}

impl Preview {
    pub(super) fn writes(&mut self, message: &str) {
        if self.message != message {
            message.clone_into(&mut self.message);
            self.text.clear();
        }
    }

    pub(super) fn add(&mut self, message: &str, piece: &str) {
        if self.message == message {
            self.text.push_str(piece);
            if self.text.len() > 16 * PREVIEW {
                self.text = last_chars(&self.text).into();
            }
        }
    }

    pub(super) fn replace(&mut self, message: &str, text: &str) {
        if self.message == message && !text.is_empty() {
            self.text = last_chars(text).into();
        }
    }

    pub(super) fn shown(&self) -> Option<String> {
        (!self.text.is_empty()).then(|| last_chars(&self.text).into())
    }
}

fn last_chars(text: &str) -> &str {
    let start = text
        .char_indices()
        .rev()
        .nth(PREVIEW - 1)
        .map_or(0, |(at, _)| at);
    text.get(start..).unwrap_or(text)
}

/// Characters of a preview.
pub(super) const PREVIEW: usize = 200;
