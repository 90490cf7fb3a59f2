//! `progress`: a call counts only when it brings nothing new.
//!
//! The functions of a call are inlined into `before` and `after`: handing their small structs from
//! one to the next would cost more than what they do.

use crate::{
    Call, Handle, Key, Kind, Outcome, Rule, Verdict,
    call::Place,
    family::Families,
    polls::Polls,
    ring::{Answer, Entry, Last, Ring, Slot},
    session::Finding,
};

/// Distances beyond this add no more to the count.
const MAX_DISTANCE: u32 = 4;
/// Equal calls in one round that are noticed, and warned about.
const FANOUT_NOTICE: u32 = 5;
const FANOUT_WARN: u32 = 8;

/// Everything `progress` remembers of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Progress<K, D> {
    pub(crate) ring: Ring<K, D>,
    pub(crate) polls: Polls<K>,
    pub(crate) families: Families<D>,
    /// The last counted call; the ring may have forgotten it.
    pub(crate) last: Option<K>,
    /// How many times in a row it was made.
    pub(crate) run: u32,
    /// Stale calls in a row.
    pub(crate) streak: u32,
    /// Poll answers since the last news that were known already.
    pub(crate) unchanged: u32,
    /// The first entry of the current round.
    pub(crate) round_start: u64,
    /// Calls of the round that have not ended; 0 is exact, so that most rounds end at once.
    pub(crate) open: u32,
}

/// What a result brought.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Brought {
    News,
    Nothing,
}

impl<K: Key, D: Copy + Eq> Progress<K, D> {
    pub(crate) const fn new() -> Self {
        Self {
            ring: Ring::new(0),
            polls: Polls::new(),
            families: Families::new(),
            last: None,
            run: 0,
            streak: 0,
            unchanged: 0,
            round_start: 0,
            open: 0,
        }
    }

    /// A new turn: everything is forgotten, and open handles lead nowhere.
    pub(crate) fn clear(&mut self) {
        let head = self.ring.head();
        *self = Self {
            ring: Ring::new(head),
            polls: self.polls.cleared(),
            round_start: head,
            ..Self::new()
        };
    }

    /// A round is over: what has not ended by now is missing.
    #[inline]
    pub(crate) fn end_round(&mut self) -> Brought {
        let start = std::mem::replace(&mut self.round_start, self.ring.head());
        if self.open == 0 {
            return Brought::Nothing;
        }
        let mut brought = Brought::Nothing;
        for seq in self.ring.since(start) {
            if let Some(slot) = self.ring.find(seq)
                && let Some(entry) = self.ring.entry(slot)
                && entry.answer == Answer::Open
            {
                let answer = self.missing(&entry.key, Some(slot));
                brought = brought.or(self.end_entry(slot, answer));
            }
        }
        while let Some(key) = self.polls.next_open() {
            let answer = self.missing(&key, None);
            brought = brought.or(self.end_poll(key, answer));
        }
        // News of a poll is an entry too, and belongs to the round that is over.
        self.round_start = self.ring.head();
        self.open = 0;
        brought
    }

    /// Where the same call was made before.
    #[inline]
    pub(crate) fn last(&self, call: &Call<K>) -> Option<Last> {
        match call.kind {
            Kind::Poll => None,
            Kind::Counted | Kind::ArgsMissing => self.ring.last(&call.key),
        }
    }

    /// The finding on a call that was already made in this round, and the sequence number there.
    #[inline]
    pub(crate) fn judge_copy(&mut self, last: Option<Last>) -> Option<(Finding, u64)> {
        let Last { slot, back, .. } = last?;
        let seq = self.ring.head().checked_sub(u64::from(back))?;
        if seq < self.round_start {
            return None;
        }
        let entry = self.ring.entry_mut(slot)?;
        entry.copies = entry.copies.saturating_add(1);
        let copies = u32::from(entry.copies);
        let first = Finding {
            verdict: entry.verdict,
            rule: entry.rule,
            period: u32::from(entry.period),
            count: self.ring.count(slot),
        };
        let level = match copies {
            FANOUT_WARN.. => Verdict::Warn,
            FANOUT_NOTICE.. => Verdict::Notice,
            _ => Verdict::Allow,
        };
        Some((first.or(Finding::new(level, Rule::Fanout, copies, 0)), seq))
    }

    /// The finding on a call that is new in this round.
    #[inline]
    pub(crate) fn judge(&self, call: &Call<K>, last: Option<Last>, round: u64) -> Finding {
        let finding = match call.kind {
            Kind::Poll => self.judge_poll(call),
            Kind::Counted | Kind::ArgsMissing => {
                self.judge_stale(call, last).or(self.judge_run(call))
            }
        };
        let (verdict, rounds) = self.families.judge(call.tool, round);
        finding.or(Finding::new(verdict, Rule::Error, rounds, 0))
    }

    /// Takes in the call that was just judged.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        call: &Call<K>,
        last: Option<Last>,
        finding: Finding,
        is_refused: bool,
    ) -> (Place, u64) {
        if call.kind == Kind::Poll {
            return self.enter_poll(call, is_refused);
        }
        self.run = self.run_with(&call.key);
        self.last = Some(call.key);
        let entry = Entry {
            key: call.key,
            answer: if is_refused {
                Answer::Refused
            } else {
                Answer::Open
            },
            copies: 1,
            verdict: finding.verdict,
            rule: finding.rule,
            period: u8::try_from(finding.period).unwrap_or(u8::MAX),
        };
        let seq = self.ring.push(entry, call.tool, finding.count, last);
        if is_refused {
            self.streak = self.streak.saturating_add(1);
            if let Some(slot) = self.ring.find(seq) {
                self.ring.mark_stale(slot);
            }
        } else {
            self.open += 1;
        }
        (Place::Entry, seq)
    }

    /// A call has ended, perhaps late.
    #[inline]
    pub(crate) fn after(&mut self, handle: Handle, outcome: &Outcome<D>) -> Brought {
        let ok = if outcome.refused {
            Some(false)
        } else {
            outcome.ok
        };
        let answer = match (outcome.digest, ok) {
            (Some(digest), _) => Answer::Known(digest),
            (None, Some(ok)) => Answer::Bare(ok),
            // Nothing is told: it stays open and is missing when its round ends.
            (None, None) => return Brought::Nothing,
        };
        let brought = match handle.place {
            Place::Entry => match self
                .ring
                .find(handle.seq)
                .filter(|&slot| !self.ring.is_poll(slot))
            {
                Some(slot) => self.answer_entry(slot, answer),
                None => None,
            },
            Place::Copy => self.ring.find(handle.seq).and_then(|slot| {
                let is_refused = self
                    .ring
                    .entry(slot)
                    .is_some_and(|entry| entry.answer == Answer::Refused);
                (!is_refused).then_some(Brought::Nothing)
            }),
            Place::Poll => self.answer_poll(handle.seq, answer),
            Place::Nowhere => None,
        };
        let Some(brought) = brought else {
            return Brought::Nothing;
        };
        match ok {
            Some(true) => self.families.succeeded(handle.tool),
            Some(false) => self
                .families
                .failed(handle.tool, handle.round, outcome.digest),
            None => {}
        }
        brought
    }

    /// Key and tool of the counted calls up to and including this one, newest first.
    pub(crate) fn calls_until(&self, handle: Handle) -> impl Iterator<Item = (K, u64)> + '_ {
        let end = match handle.place {
            Place::Entry | Place::Copy => handle.seq.saturating_add(1),
            Place::Poll | Place::Nowhere => 0,
        };
        self.ring
            .counted_before(end)
            .filter_map(|slot| Some((self.ring.entry(slot)?.key, self.ring.tool(slot))))
    }

    #[inline]
    fn judge_stale(&self, call: &Call<K>, last: Option<Last>) -> Finding {
        let Some(Last { distance, .. }) = last else {
            return Finding::new(
                call.ladder.level(|threshold| threshold <= 1),
                Rule::Stale,
                1,
                1,
            );
        };
        let stale = self.streak.saturating_add(1);
        let count = stale.saturating_add(distance.min(MAX_DISTANCE));
        // laps = 1 + floor(stale / distance) >= ceil(threshold / 2), without a division.
        let verdict = call.ladder.level(|threshold| {
            count >= threshold && stale >= (threshold.div_ceil(2) - 1).saturating_mul(distance)
        });
        Finding::new(verdict, Rule::Stale, count, distance)
    }

    #[inline]
    fn judge_run(&self, call: &Call<K>) -> Finding {
        let run = self.run_with(&call.key);
        let block = call.ladder.block();
        let verdict = if run < block {
            Verdict::Allow
        } else if run < block * 2 {
            Verdict::Warn
        } else if run < block * 4 {
            Verdict::Escalate
        } else {
            Verdict::Block
        };
        Finding::new(verdict, Rule::Run, run, 1)
    }

    fn judge_poll(&self, call: &Call<K>) -> Finding {
        let polls = self.unchanged.saturating_add(1);
        let block = call.ladder.block();
        let verdict = if polls <= block * 4 {
            Verdict::Allow
        } else if polls <= block * 8 {
            Verdict::Warn
        } else if polls <= block * 16 {
            Verdict::Escalate
        } else {
            Verdict::Block
        };
        Finding::new(verdict, Rule::Poll, polls, 0)
    }

    fn enter_poll(&mut self, call: &Call<K>, is_refused: bool) -> (Place, u64) {
        if is_refused {
            return (Place::Nowhere, 0);
        }
        // A poll that is pushed out while still open has ended without an answer.
        if let Some(key) = self.polls.pushed_out() {
            let answer = self.missing(&key, None);
            self.end_poll(key, answer);
        }
        self.open += 1;
        (Place::Poll, self.polls.open(call.key))
    }

    /// The first answer of an entry, or a late one. `None` if it has had one.
    #[inline]
    fn answer_entry(&mut self, slot: Slot, answer: Answer<D>) -> Option<Brought> {
        let entry = *self.ring.entry(slot)?;
        match entry.answer {
            Answer::Open => {
                self.open = self.open.saturating_sub(1);
                Some(self.end_entry(slot, answer))
            }
            Answer::Missing | Answer::Assumed(_) => Some(self.correct_entry(slot, answer)),
            Answer::Known(_) | Answer::Bare(_) | Answer::Refused => None,
        }
    }

    #[inline]
    fn end_entry(&mut self, slot: Slot, answer: Answer<D>) -> Brought {
        let is_stale = self.ring.is_repeated(slot, &answer);
        self.ring.answer(slot, answer);
        if is_stale {
            self.ring.mark_stale(slot);
            self.streak = self.streak.saturating_add(1);
            Brought::Nothing
        } else {
            self.streak = 0;
            self.unchanged = 0;
            Brought::News
        }
    }

    /// A late answer: a call that was taken to be stale may have been news.
    fn correct_entry(&mut self, slot: Slot, answer: Answer<D>) -> Brought {
        let Some(entry) = self.ring.entry_mut(slot) else {
            return Brought::Nothing;
        };
        entry.answer = answer;
        let key = entry.key;
        if !self.ring.is_stale(slot) || self.ring.has_pair(&key, &answer, Some(slot)) {
            return Brought::Nothing;
        }
        self.ring.clear_stale(slot);
        self.streak = self.streak.min(self.ring.stale_after(slot));
        self.unchanged = 0;
        Brought::News
    }

    fn answer_poll(&mut self, seq: u64, answer: Answer<D>) -> Option<Brought> {
        let (key, is_late) = self.polls.answered(seq)?;
        if !is_late {
            self.open = self.open.saturating_sub(1);
        } else if self.ring.has_pair(&key, &answer, None) {
            // It was counted when it was missed.
            return Some(Brought::Nothing);
        }
        Some(self.end_poll(key, answer))
    }

    fn end_poll(&mut self, key: K, answer: Answer<D>) -> Brought {
        if self.ring.has_pair(&key, &answer, None) {
            self.unchanged = self.unchanged.saturating_add(1);
            return Brought::Nothing;
        }
        let entry = Entry {
            key,
            answer,
            copies: 1,
            verdict: Verdict::Allow,
            rule: None,
            period: 0,
        };
        self.ring.push_poll(entry);
        self.streak = 0;
        self.unchanged = 0;
        Brought::News
    }

    fn missing(&self, key: &K, slot: Option<Slot>) -> Answer<D> {
        self.ring
            .last_digest(key, slot)
            .map_or(Answer::Missing, Answer::Assumed)
    }

    #[inline]
    fn run_with(&self, key: &K) -> u32 {
        if self.last.as_ref() == Some(key) {
            self.run.saturating_add(1)
        } else {
            1
        }
    }
}

impl Brought {
    pub(crate) fn or(self, other: Self) -> Self {
        if self == Self::News { self } else { other }
    }
}
