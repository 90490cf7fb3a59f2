//! What a harness tells the guard, and what it is told.

use std::time::Duration;

use bizar_fingerprint::{Digest, Fingerprint};
use bizar_window::{Rule, Verdict};
use serde_json::Value;

/// A tool call that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The session, as the host names it. A subagent's is a session of its own.
    pub session: &'a str,
    /// The call, as the host names it; `None` if it does not, and then [`Guard::after`](crate::Guard::after)
    /// finds it by tool and arguments, the oldest one first.
    pub id: Option<&'a str>,
    /// The tool's name.
    pub tool: &'a str,
    /// The arguments.
    pub args: Args<'a>,
    /// The message of the model that asked for it.
    pub round: Round<'a>,
}

impl<'a> Call<'a> {
    /// A call in a message of its own.
    #[must_use]
    pub fn new(session: &'a str, tool: &'a str, args: impl Into<Args<'a>>) -> Self {
        Self {
            session,
            id: None,
            tool,
            args: args.into(),
            round: Round::Own,
        }
    }

    /// Names the call.
    #[must_use]
    pub fn id(self, id: &'a str) -> Self {
        Self {
            id: Some(id),
            ..self
        }
    }

    /// Says which message asked for it.
    #[must_use]
    pub fn round(self, round: Round<'a>) -> Self {
        Self { round, ..self }
    }
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
pub enum Args<'a> {
    /// The host did not tell them. The call can at most be warned about.
    Missing,
    /// JSON text.
    Text(&'a str),
    /// A parsed document.
    Value(&'a Value),
}

impl<'a> From<&'a str> for Args<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a Value> for Args<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Value(value)
    }
}

/// Which calls belong together: those that the model asked for in one message.
#[derive(Clone, Copy, Debug, Default)]
pub enum Round<'a> {
    /// Calls come one at a time.
    #[default]
    Own,
    /// The message's id. Calls of one message share it.
    Message(&'a str),
    /// The host names no message: a call that begins while another is open belongs to its
    /// round, until [`Guard::round_ended`](crate::Guard::round_ended).
    Overlap,
    /// The same on a host that may leave a call open for ever: once a call of the round has
    /// ended, the next one begins a round of its own.
    Burst,
}

/// The end of a call.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The session, as in [`Call::session`].
    pub session: &'a str,
    /// The call, as in [`Call::id`].
    pub id: Option<&'a str>,
    /// The tool's name, as in [`Call::tool`].
    pub tool: &'a str,
    /// The arguments, as in [`Call::args`]; may be [`Args::Missing`] if there is an id.
    pub args: Args<'a>,
    /// How it ended.
    pub ended: Ended<'a>,
}

impl<'a> End<'a> {
    /// The end of a call that is found by its tool and arguments.
    #[must_use]
    pub fn new(
        session: &'a str,
        tool: &'a str,
        args: impl Into<Args<'a>>,
        ended: Ended<'a>,
    ) -> Self {
        Self {
            session,
            id: None,
            tool,
            args: args.into(),
            ended,
        }
    }

    /// Names the call.
    #[must_use]
    pub fn id(self, id: &'a str) -> Self {
        Self {
            id: Some(id),
            ..self
        }
    }
}

/// How a call ended, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// Whether it succeeded.
    pub status: Status,
    /// Its result.
    pub result: Output<'a>,
    /// How long it took, if the host says; else the time since [`Guard::before`](crate::Guard::before).
    pub duration: Option<Duration>,
}

impl<'a> Ended<'a> {
    /// It succeeded with this result.
    #[must_use]
    pub fn ok(result: impl Into<Output<'a>>) -> Self {
        Self::new(Status::Ok, result)
    }

    /// It failed with this result.
    #[must_use]
    pub fn failed(result: impl Into<Output<'a>>) -> Self {
        Self::new(Status::Failed, result)
    }

    /// It ended in this way with this result.
    #[must_use]
    pub fn new(status: Status, result: impl Into<Output<'a>>) -> Self {
        Self {
            status,
            result: result.into(),
            duration: None,
        }
    }
}

/// Whether a call succeeded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Status {
    /// It did.
    Ok,
    /// It did not.
    Failed,
    /// The host does not tell.
    Unknown,
    /// Somebody else, a user or another hook, refused it.
    Refused,
    /// It was cancelled. Nothing is known of its result.
    Aborted,
}

/// The result of a call.
#[derive(Clone, Copy, Debug)]
pub enum Output<'a> {
    /// The host does not tell.
    Missing,
    /// Text, whatever its encoding.
    Text(&'a [u8]),
    /// A parsed document.
    Value(&'a Value),
    /// What [`Guard::digester`](crate::Guard::digester) made of a result that comes in pieces.
    Digest(Digest),
}

impl<'a> From<&'a str> for Output<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Output<'a> {
    fn from(text: &'a [u8]) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a Value> for Output<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Value(value)
    }
}

impl From<Digest> for Output<'_> {
    fn from(digest: Digest) -> Self {
        Self::Digest(digest)
    }
}

/// What the guard says about a call that is about to be made.
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use = "a decision that nobody acts on stops no loop"]
#[non_exhaustive]
pub struct Decision {
    /// What the call deserves. Act on [`refused`](Self::refused) and [`halted`](Self::halted), which know
    /// whether to act at all.
    pub verdict: Verdict,
    /// Do not make the call; answer it with [`text`](Self::text) as its error.
    pub refused: bool,
    /// End the session's run as well.
    pub halted: bool,
    /// The text for the agent: of every refusal, and of a warning when the level has just risen. Hosts that
    /// ask [`Guard::request`](crate::Guard::request) before each request to the model leave the latter to it.
    pub text: Option<String>,
    /// The rule that decided.
    pub rule: Option<Rule>,
    /// The counter that decided.
    pub count: u32,
    /// The identity of tool and arguments.
    pub fingerprint: Option<Fingerprint>,
    /// The call was not judged: its session was locked too long, or could not be read or written.
    pub skipped: bool,
}

impl Decision {
    pub(crate) fn allow(fingerprint: Option<Fingerprint>) -> Self {
        Self {
            verdict: Verdict::Allow,
            refused: false,
            halted: false,
            text: None,
            rule: None,
            count: 0,
            fingerprint,
            skipped: false,
        }
    }
}

/// What becomes of a text that a host gives to the model.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// It is gone after one request: the text is due with each request while the level lasts.
    Forgets,
    /// It stays in the history: the text is due once for each rise of the level.
    Keeps,
    /// It stays in the history, and goes with the result of a call: as [`Keeps`](Self::Keeps), but not
    /// while the round has brought something new, for then the repetition was none.
    WithResult,
}
