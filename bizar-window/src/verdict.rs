//! The words of a judgement: how grave it is, which rule spoke, which mode is on.

use std::{fmt, str::FromStr};

/// What a call deserves, in rising order.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Verdict {
    /// Nothing to say.
    #[default]
    Allow,
    /// Worth a line in a log, and nothing else.
    Notice,
    /// The agent should hear of it; the call goes on.
    Warn,
    /// The agent should hear it again, louder; the call goes on.
    Escalate,
    /// The call is refused.
    Block,
    /// The call is refused and the session's run should end.
    Halt,
}

/// How calls are judged.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Mode {
    /// A call counts only when it brings nothing new.
    #[default]
    Progress,
    /// Equal calls among the last few count, whatever they answered.
    Repetition,
    /// A pattern of one to four calls is refused at its third repetition.
    Cycle,
}

/// The rule that decided a verdict.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Rule {
    /// `progress`: calls that were made before and answered the same.
    Stale,
    /// `cycle`: a pattern of calls came round for the third time.
    Cycle,
    /// `progress`: one call over and over, even though its results change.
    Run,
    /// `progress`: equal calls in one message.
    Fanout,
    /// `progress`: polls that hear nothing new.
    Poll,
    /// `progress`: one tool that fails the same way round after round.
    Error,
    /// `repetition`: equal calls in the window.
    Repetition,
    /// Too many refused calls with no progress between them.
    Halt,
}

/// A word that names no [`Verdict`], [`Mode`] or [`Rule`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownWord;

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown word")
    }
}

impl std::error::Error for UnknownWord {}

/// The lower-case word of each variant, both ways.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            /// Every variant, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The lower-case word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord),
                }
            }
        }
    };
}

words!(Verdict {
    Allow = "allow",
    Notice = "notice",
    Warn = "warn",
    Escalate = "escalate",
    Block = "block",
    Halt = "halt",
});

words!(Mode {
    Progress = "progress",
    Repetition = "repetition",
    Cycle = "cycle",
});

words!(Rule {
    Stale = "stale",
    Cycle = "cycle",
    Run = "run",
    Fanout = "fanout",
    Poll = "poll",
    Error = "error",
    Repetition = "repetition",
    Halt = "halt",
});
