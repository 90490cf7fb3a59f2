//! `cycle`: patterns of one to four calls.

use crate::{Call, Key, Rule, Verdict, session::Finding};

/// The longest pattern.
pub(crate) const LONGEST: usize = 4;
/// How often a pattern comes round before it is refused.
const REPETITIONS: u32 = 3;
/// A pattern of one call needs more than its three repetitions.
const CALLS_AT_LEAST: u32 = 4;

/// The last calls, and for each period how many calls in a row equal the one a period before.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Cycle<K> {
    /// Key and tool, newest first.
    last: [Option<(K, u64)>; LONGEST],
    /// At `period - 1`.
    equal: [u32; LONGEST],
}

impl<K: Key> Cycle<K> {
    pub(crate) const fn new() -> Self {
        Self {
            last: [None; LONGEST],
            equal: [0; LONGEST],
        }
    }

    pub(crate) fn judge(&self, call: &Call<K>) -> Finding {
        for (period, equal) in (1..).zip(self.equal_with(&call.key)) {
            // The stretch that repeats, its first round included.
            let calls = equal.saturating_add(period);
            if calls >= (REPETITIONS * period).max(CALLS_AT_LEAST) {
                return Finding::new(Verdict::Block, Rule::Cycle, calls, period);
            }
        }
        Finding::new(Verdict::Allow, Rule::Cycle, 1, 0)
    }

    pub(crate) fn enter(&mut self, call: &Call<K>) {
        self.equal = self.equal_with(&call.key);
        self.last.rotate_right(1);
        self.last[0] = Some((call.key, call.tool));
    }

    /// Key and tool of the last calls, newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (K, u64)> + '_ {
        self.last.iter().copied().flatten()
    }

    fn equal_with(&self, key: &K) -> [u32; LONGEST] {
        let mut equal = self.equal;
        for (equal, before) in equal.iter_mut().zip(&self.last) {
            *equal = match before {
                Some((other, _)) if other == key => equal.saturating_add(1),
                _ => 0,
            };
        }
        equal
    }
}
