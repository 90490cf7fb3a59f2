use serde::{Deserialize, Serialize};
use serde_json::Value;

const OPEN: &str = "[[script:";
const CLOSE: &str = "]]";

/// What the model will answer, request by request.
///
/// A script travels inside the prompt as `[[script:HEX]]` or, part-way, `[[script:HEX@N]]`, so one
/// server can play any number of scripts at once and keeps no state about them. The answer to a
/// request is the step whose number is the number of assistant turns after the last marker in the
/// conversation. After the last step the model says "done".
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Script {
    steps: Vec<Step>,
}

impl Script {
    /// An empty script: the model says "done".
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds a step that is played `n` times.
    #[must_use]
    pub fn repeat(self, n: u32, step: Step) -> Self {
        self.then(Step { times: n, ..step })
    }

    /// Adds a step that asks for one tool call.
    #[must_use]
    pub fn call(self, tool: &str, args: Value) -> Self {
        self.then(Step::call(tool, args))
    }

    /// Adds a step that answers with text only, which ends a turn.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.then(Step::say(text))
    }

    /// The prompt that makes a [`ModelServer`](crate::ModelServer) play this script.
    ///
    /// The text holds no space and no quote besides those of `words`, so it survives any shell.
    #[must_use]
    pub fn prompt(&self, words: &str) -> String {
        format!("{words}{}", self.marker(0))
    }

    pub(crate) fn marker(&self, from: usize) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        let from = if from == 0 {
            String::new()
        } else {
            format!("@{from}")
        };
        format!("{OPEN}{}{from}{CLOSE}", hex::encode(json))
    }

    /// The last script in a text and the number of its steps that are already played.
    pub(crate) fn find(text: &str) -> Option<(Self, usize)> {
        let rest = &text.get(text.rfind(OPEN)? + OPEN.len()..)?;
        let marker = rest.get(..rest.find(CLOSE)?)?;
        let (code, from) = marker.split_once('@').unwrap_or((marker, "0"));
        let script = serde_json::from_slice(&hex::decode(code).ok()?).ok()?;
        Some((script, from.parse().ok()?))
    }

    pub(crate) fn step(&self, index: usize) -> Option<&Step> {
        self.steps
            .iter()
            .flat_map(|step| std::iter::repeat_n(step, step.times as usize))
            .nth(index)
    }
}

/// One answer of the model.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Step {
    /// Text of the answer; may stand beside calls.
    pub text: String,
    /// Reasoning before the answer, empty for none.
    pub reasoning: String,
    /// Tool calls; several make one round of parallel calls.
    pub calls: Vec<Call>,
    /// How often this step is played.
    pub times: u32,
    /// Requests of this step that fail before it is answered.
    pub failure: Option<Failure>,
    /// Whether, and where, the answer stops for good.
    pub hang: Option<Hang>,
    /// Milliseconds before the answer begins.
    pub delay_ms: u64,
    /// Tokens that the answer claims the request had; large values make clients compact.
    pub tokens: u64,
}

impl Step {
    /// An answer of text.
    #[must_use]
    pub fn say(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            reasoning: String::new(),
            calls: Vec::new(),
            times: 1,
            failure: None,
            hang: None,
            delay_ms: 0,
            tokens: 10,
        }
    }

    /// An answer that asks for one call.
    #[must_use]
    pub fn call(tool: &str, args: Value) -> Self {
        Self::say("").and(tool, args)
    }

    /// Adds a call to the same round.
    #[must_use]
    pub fn and(mut self, tool: &str, args: Value) -> Self {
        self.calls.push(Call {
            tool: tool.to_owned(),
            args,
            id: None,
        });
        self
    }

    /// The first `times` requests of this step get `status` instead of an answer.
    #[must_use]
    pub fn failing(self, status: u16, times: u32) -> Self {
        Self {
            failure: Some(Failure { status, times }),
            ..self
        }
    }

    /// The answer stops at `hang` until the client goes away.
    #[must_use]
    pub fn hanging(self, hang: Hang) -> Self {
        Self {
            hang: Some(hang),
            ..self
        }
    }

    /// The answer claims that the request had `tokens` tokens.
    #[must_use]
    pub fn tokens(self, tokens: u64) -> Self {
        Self { tokens, ..self }
    }

    /// The answer begins `ms` milliseconds late.
    #[must_use]
    pub fn after_ms(self, ms: u64) -> Self {
        Self {
            delay_ms: ms,
            ..self
        }
    }
}

/// A tool call that the model asks for.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Call {
    /// Name of the tool.
    pub tool: String,
    /// Arguments; a string is sent as it is, so that broken JSON can be sent too.
    pub args: Value,
    /// The call's id; a fresh one if absent.
    pub id: Option<String>,
}

/// Requests that fail.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Failure {
    /// HTTP status.
    pub status: u16,
    /// How many requests of the step get it.
    pub times: u32,
}

/// Where an answer stops.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub enum Hang {
    /// Nothing is answered at all.
    Headers,
    /// After the first event of the stream.
    Stream,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_script_survives_its_marker_and_the_last_marker_wins() {
        let first = Script::new().say("one");
        let second = Script::new()
            .repeat(3, Step::call("read", json!({"a": "]]@"})))
            .say("two");
        let text = format!("{} and {}", first.prompt("x "), second.prompt("y "));
        assert_eq!(Script::find(&text), Some((second.clone(), 0)));
        assert_eq!(Script::find(&second.marker(7)), Some((second.clone(), 7)));
        assert_eq!(second.step(2), second.step(0));
        assert_eq!(second.step(3), Some(&Step::say("two")));
        assert_eq!(second.step(4), None);
        assert_eq!(Script::find("[[script:zz]]"), None);
    }
}
