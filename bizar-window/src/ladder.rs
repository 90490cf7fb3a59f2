//! The counts at which a verdict rises.

use crate::Verdict;

/// The counts at which a call is warned about, escalated and blocked.
///
/// Always in order and within bounds: `1 <= warn < escalate < block <= 1_000_000`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Ladder {
    warn: u32,
    escalate: u32,
    block: u32,
}

impl Ladder {
    /// The highest threshold there is. Sixteen times as much still fits a `u32`.
    pub const MAX: u32 = 1_000_000;

    /// A ladder of these counts, moved into order where they are not.
    ///
    /// `warn` is at least 1, and each later threshold is at least one above the one before.
    ///
    /// ```
    /// use bizar_window::Ladder;
    ///
    /// let ladder = Ladder::new(0, 9, 4);
    /// assert_eq!((ladder.warn(), ladder.escalate(), ladder.block()), (1, 9, 10));
    /// ```
    #[must_use]
    pub fn new(warn: u32, escalate: u32, block: u32) -> Self {
        let warn = warn.clamp(1, Self::MAX - 2);
        let escalate = escalate.clamp(warn + 1, Self::MAX - 1);
        let block = block.clamp(escalate + 1, Self::MAX);
        Self {
            warn,
            escalate,
            block,
        }
    }

    /// The count that gives a notice, `warn - 2`; there is none below 2.
    #[must_use]
    pub const fn notice(self) -> Option<u32> {
        if self.warn >= 4 {
            Some(self.warn - 2)
        } else {
            None
        }
    }

    /// The count that gives a warning.
    #[must_use]
    pub const fn warn(self) -> u32 {
        self.warn
    }

    /// The count that gives a second, louder warning.
    #[must_use]
    pub const fn escalate(self) -> u32 {
        self.escalate
    }

    /// The count that refuses the call.
    #[must_use]
    pub const fn block(self) -> u32 {
        self.block
    }

    /// The highest level whose threshold `is_reached`.
    #[inline]
    pub(crate) fn level(self, is_reached: impl Fn(u32) -> bool) -> Verdict {
        if is_reached(self.block) {
            Verdict::Block
        } else if is_reached(self.escalate) {
            Verdict::Escalate
        } else if is_reached(self.warn) {
            Verdict::Warn
        } else if self.notice().is_some_and(is_reached) {
            Verdict::Notice
        } else {
            Verdict::Allow
        }
    }
}

impl Default for Ladder {
    /// Warn at 5, escalate at 8, block at 12.
    fn default() -> Self {
        Self {
            warn: 5,
            escalate: 8,
            block: 12,
        }
    }
}
