//! Rules of other systems, to compare on the same input.
//!
//! Built from descriptions of what they do, not from their code. They judge and nothing follows: a call they would stop is
//! recorded as it was, so that each sees the same session.

use std::collections::VecDeque;

/// A recorded call as these rules see it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// Identity of tool and arguments.
    pub key: [u8; 32],
    /// Identity of the result; `None` = not recorded.
    pub digest: Option<[u8; 16]>,
    /// Whether it is known to have failed.
    pub failed: bool,
}

/// What a rule found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stuck {
    /// The counter that decided.
    pub count: u32,
    /// Calls in the pattern.
    pub period: u32,
}

/// opencode's: three identical calls in a row.
#[derive(Debug, Default)]
pub struct Opencode {
    last: Option<[u8; 32]>,
    run: u32,
}

impl Opencode {
    /// Takes the next call.
    pub fn step(&mut self, step: &Step) -> Option<Stuck> {
        self.run = if self.last == Some(step.key) {
            self.run.saturating_add(1)
        } else {
            1
        };
        self.last = Some(step.key);
        (self.run >= 3).then_some(Stuck {
            count: self.run,
            period: 1,
        })
    }
}

/// Gemini CLI's: a pattern of one to five calls, five times.
#[derive(Debug, Default)]
pub struct Gemini {
    recent: VecDeque<[u8; 32]>,
    /// For each period: how many calls in a row equalled the one a period before.
    equal: [u32; 5],
}

impl Gemini {
    /// Takes the next call.
    pub fn step(&mut self, step: &Step) -> Option<Stuck> {
        let mut found = None;
        for (period, equal) in (1_u32..).zip(&mut self.equal) {
            let before = self
                .recent
                .len()
                .checked_sub(period as usize)
                .and_then(|at| self.recent.get(at));
            *equal = if before == Some(&step.key) {
                equal.saturating_add(1)
            } else {
                0
            };
            let repeats = *equal / period + 1;
            if repeats >= 5 && found.is_none() {
                found = Some(Stuck {
                    count: repeats,
                    period,
                });
            }
        }
        self.recent.push_back(step.key);
        if self.recent.len() > 5 {
            self.recent.pop_front();
        }
        found
    }
}

/// OpenHands': since the last user message, four equal pairs of action and observation, three equal actions that all failed,
/// or six pairs that alternate.
///
/// It looks after a call, so the call that completes the pattern is the one it fires at.
#[derive(Debug, Default)]
pub struct Openhands {
    recent: VecDeque<Step>,
}

impl Openhands {
    /// Takes the next call, its result included.
    pub fn step(&mut self, step: &Step) -> Option<Stuck> {
        self.recent.push_front(*step);
        self.recent.truncate(6);
        let pair = |at: usize| {
            self.recent
                .get(at)
                .and_then(|step| Some((step.key, step.digest?)))
        };
        let all = |mut range: std::ops::Range<usize>, test: &dyn Fn(usize) -> bool| range.all(test);
        if all(1..4, &|at| pair(at).is_some() && pair(at) == pair(0)) {
            return Some(Stuck {
                count: 4,
                period: 1,
            });
        }
        let failed = |at: usize| {
            self.recent
                .get(at)
                .is_some_and(|other| other.failed && other.key == step.key)
        };
        if all(0..3, &failed) {
            return Some(Stuck {
                count: 3,
                period: 1,
            });
        }
        if all(2..6, &|at| pair(at).is_some() && pair(at) == pair(at - 2)) {
            return Some(Stuck {
                count: 6,
                period: 2,
            });
        }
        None
    }

    /// The user wrote.
    pub fn user_message(&mut self) {
        self.recent.clear();
    }
}
