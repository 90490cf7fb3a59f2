//! What goes into a session and what comes out of it.

use crate::{Ladder, Mode, Rule, Verdict};

/// The identity of a call: two calls are the same when their keys are equal.
///
/// The tag makes searching fast. Equal keys have equal tags; unequal keys may, but that costs time.
pub trait Key: Copy + Eq {
    /// 64 well-mixed bits of the key.
    fn tag(&self) -> u64;
}

impl Key for [u8; 16] {
    fn tag(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = *self;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

impl Key for [u8; 32] {
    fn tag(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = *self;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

impl Key for u64 {
    fn tag(&self) -> u64 {
        // Fibonacci hashing: small numbers must not share their low bits.
        self.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
    }
}

/// What a session is to watch for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct Rules {
    /// How calls are judged.
    pub mode: Mode,
    /// How many calls `repetition` looks at, the current one included; taken as 3 to 50.
    pub window: u32,
    /// More refused calls than this with no progress between them halt; 0 = never.
    pub halt_after: u32,
    /// Verdicts are reported and nothing follows from them: no call counts as refused.
    pub observe_only: bool,
}

impl Rules {
    /// The default rules in `mode`.
    ///
    /// ```
    /// use bizar_window::{Mode, Rules};
    ///
    /// let mut rules = Rules::new(Mode::Cycle);
    /// rules.halt_after = 0;
    /// ```
    #[must_use]
    pub const fn new(mode: Mode) -> Self {
        Self {
            mode,
            window: 10,
            halt_after: 3,
            observe_only: false,
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::new(Mode::default())
    }
}

/// What sort of call it is; the caller knows the tools, this crate does not.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Kind {
    /// An ordinary call.
    #[default]
    Counted,
    /// A call that waits for something: `progress` gives it far more patience.
    Poll,
    /// The host did not tell the arguments, so the key is that of the tool alone: at most a warning.
    ArgsMissing,
}

/// A call that is about to be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Call<K> {
    /// The identity of tool and arguments.
    pub key: K,
    /// Any 64-bit hash of the tool's name.
    pub tool: u64,
    /// What sort of call it is.
    pub kind: Kind,
    /// The message that asked for it: calls of one message share it. `None` = a message of its own.
    pub round: Option<u64>,
    /// The thresholds of this tool.
    pub ladder: Ladder,
}

impl<K> Call<K> {
    /// An ordinary call in a message of its own, on the default ladder.
    #[must_use]
    pub fn new(key: K, tool: u64) -> Self {
        Self {
            key,
            tool,
            kind: Kind::Counted,
            round: None,
            ladder: Ladder::default(),
        }
    }
}

/// How a call ended.
///
/// Neither `ok` nor `digest` known is the same as never reporting an end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Outcome<D> {
    /// Whether it succeeded, if the host tells.
    pub ok: Option<bool>,
    /// A digest of the result and of whether it was an error, if there is a result.
    pub digest: Option<D>,
    /// Somebody else refused the call: it counts as failed.
    pub refused: bool,
}

impl<D> Outcome<D> {
    /// It succeeded with this result.
    #[must_use]
    pub const fn ok(digest: D) -> Self {
        Self {
            ok: Some(true),
            digest: Some(digest),
            refused: false,
        }
    }

    /// It failed with this result.
    #[must_use]
    pub const fn failed(digest: D) -> Self {
        Self {
            ok: Some(false),
            digest: Some(digest),
            refused: false,
        }
    }

    /// Somebody else refused it with this text.
    #[must_use]
    pub const fn refused(digest: D) -> Self {
        Self {
            ok: Some(false),
            digest: Some(digest),
            refused: true,
        }
    }
}

/// Ties the end of a call to its beginning.
///
/// A handle stays good across a snapshot. One that its session no longer knows is ignored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Handle {
    pub(crate) place: Place,
    pub(crate) seq: u64,
    pub(crate) round: u64,
    pub(crate) tool: u64,
}

/// Where the session keeps what it must know of an open call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub(crate) enum Place {
    /// An entry of the ring.
    Entry,
    /// The entry of the first copy in the same round.
    Copy,
    /// A slot for open polls.
    Poll,
    /// Nowhere: its end changes nothing.
    Nowhere,
}

/// What a session says about a call that is about to be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use = "a verdict that nobody acts on stops no loop"]
#[non_exhaustive]
pub struct Judgement {
    /// What the call deserves. From [`Verdict::Block`] up it is to be refused, unless observing only.
    pub verdict: Verdict,
    /// The rule that decided; `None` for [`Verdict::Allow`].
    pub rule: Option<Rule>,
    /// The counter that decided. For an allowed call: how often it was made, this one included, in the sense of the mode.
    pub count: u32,
    /// The number of calls in the pattern; 0 where the rule knows no pattern.
    pub period: u32,
    /// The level of the session rose to warn or escalate with this call.
    pub rose: bool,
    /// What [`Session::after`](crate::Session::after) wants when the call has ended.
    pub handle: Handle,
}

/// The text that is due with the next request to the model.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Pending {
    /// [`Verdict::Warn`] or [`Verdict::Escalate`].
    pub verdict: Verdict,
    /// The rule that decided.
    pub rule: Rule,
    /// The tool of the call that last reached the level.
    pub tool: u64,
    /// Its count.
    pub count: u32,
    /// The number of calls in its pattern; 0 where the rule knows no pattern.
    pub period: u32,
    /// The call itself, for [`Session::pattern`](crate::Session::pattern).
    pub handle: Handle,
}
