//! Tools that fail the same way round after round.

use crate::Verdict;

/// How many failing tools of a turn are remembered.
pub(crate) const SIZE: usize = 8;
const WARN: u32 = 5;
const ESCALATE: u32 = 8;

/// One tool and how it has been failing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Family<D> {
    tool: u64,
    /// The last round that was counted.
    round: u64,
    rounds: u32,
    digest: Option<D>,
}

/// The failing tools of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Families<D> {
    places: [Option<Family<D>>; SIZE],
    /// How many places are taken: mostly none, and then nothing is searched.
    taken: usize,
}

impl<D: Copy + Eq> Families<D> {
    pub(crate) const fn new() -> Self {
        Self {
            places: [None; SIZE],
            taken: 0,
        }
    }

    /// Verdict and count of a call of `tool` in `round`, as if it failed like those before it.
    #[inline]
    pub(crate) fn judge(&self, tool: u64, round: u64) -> (Verdict, u32) {
        let rounds = self.of(tool).map_or(1, |family| {
            if family.round == round {
                family.rounds
            } else {
                family.rounds.saturating_add(1)
            }
        });
        let verdict = match rounds {
            ESCALATE.. => Verdict::Escalate,
            WARN.. => Verdict::Warn,
            _ => Verdict::Allow,
        };
        (verdict, rounds)
    }

    /// A call of `tool` succeeded.
    #[inline]
    pub(crate) fn succeeded(&mut self, tool: u64) {
        if self.taken == 0 {
            return;
        }
        for place in &mut self.places {
            if place.is_some_and(|family| family.tool == tool) {
                *place = None;
                self.taken -= 1;
            }
        }
    }

    /// A call of `tool`, made in `round`, failed with this result.
    pub(crate) fn failed(&mut self, tool: u64, round: u64, digest: Option<D>) {
        if let Some(family) = self
            .places
            .iter_mut()
            .flatten()
            .find(|family| family.tool == tool)
        {
            if family.digest != digest {
                *family = Family {
                    tool,
                    round,
                    rounds: 1,
                    digest,
                };
            } else if family.round < round {
                family.round = round;
                family.rounds = family.rounds.saturating_add(1);
            }
            return;
        }
        // A free place, else that of the tool that failed longest ago.
        let place = self
            .places
            .iter_mut()
            .min_by_key(|place| place.map(|family| family.round));
        if let Some(place) = place {
            self.taken += usize::from(place.is_none());
            *place = Some(Family {
                tool,
                round,
                rounds: 1,
                digest,
            });
        }
    }

    #[cfg(feature = "serde")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Family<D>> + '_ {
        self.places.iter().copied().flatten()
    }

    /// The families of a snapshot; `None` if there are too many.
    #[cfg(feature = "serde")]
    pub(crate) fn restore(families: &[Family<D>]) -> Option<Self> {
        let mut places = [None; SIZE];
        if families.len() > SIZE {
            return None;
        }
        for (place, family) in places.iter_mut().zip(families) {
            *place = Some(*family);
        }
        Some(Self {
            places,
            taken: families.len(),
        })
    }

    #[inline]
    fn of(&self, tool: u64) -> Option<&Family<D>> {
        if self.taken == 0 {
            return None;
        }
        self.places
            .iter()
            .flatten()
            .find(|family| family.tool == tool)
    }
}
