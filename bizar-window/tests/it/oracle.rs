//! `progress` once more: slow, obvious, and written from the words alone.
//!
//! It keeps the whole history of a turn and looks through it for every answer.

use bizar_window::{Kind, Ladder, Outcome, Rule, Verdict};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Known {
    Open,
    Missing,
    Assumed(u64),
    Digest(u64),
    Bare(bool),
    Refused,
}

#[derive(Clone, Debug)]
struct Record {
    key: u64,
    round: u64,
    known: Known,
    stale: bool,
    /// An answer of a poll that was news; else a counted call.
    is_poll: bool,
    copies: u32,
    verdict: (Verdict, Option<Rule>, u32),
}

#[derive(Clone, Copy, Debug)]
struct OpenPoll {
    key: u64,
    is_open: bool,
    number: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Ticket {
    Call {
        turn: u32,
        record: usize,
        round: u64,
        tool: u64,
    },
    Poll {
        turn: u32,
        number: usize,
        round: u64,
        tool: u64,
    },
    None,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Event {
    News,
    UnchangedPoll,
    OurRefusal,
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    turn: u32,
    records: Vec<Record>,
    polls: Vec<OpenPoll>,
    poll_count: usize,
    events: Vec<Event>,
    /// (tool, round, digest of the failure or `None` for a success), in the order of arrival.
    ends: Vec<(u64, u64, Option<Option<u64>>)>,
    streak: u32,
    round: u64,
    round_id: Option<u64>,
    halt_after: usize,
    observe_only: bool,
}

impl Oracle {
    pub(crate) fn new(halt_after: u32, observe_only: bool) -> Self {
        Self {
            halt_after: halt_after as usize,
            observe_only,
            ..Self::default()
        }
    }

    pub(crate) fn before(
        &mut self,
        key: u64,
        tool: u64,
        kind: Kind,
        round: Option<u64>,
        ladder: Ladder,
    ) -> ((Verdict, Option<Rule>, u32), Ticket) {
        if round.is_none() || round != self.round_id {
            self.end_round();
            self.round += 1;
            self.round_id = round;
        }
        let turn = self.turn;
        if kind != Kind::Poll
            && let Some(record) = self.ring().rev().find(|&i| {
                let record = &self.records[i];
                record.key == key && record.round == self.round && !record.is_poll
            })
        {
            self.records[record].copies += 1;
            let copies = self.records[record].copies;
            let fanout = match copies {
                0..=4 => Verdict::Allow,
                5..=7 => Verdict::Notice,
                _ => Verdict::Warn,
            };
            let first = self.records[record].verdict;
            let verdict = if fanout > first.0 {
                (fanout, Some(Rule::Fanout), copies)
            } else {
                first
            };
            let ticket = if self.records[record].known == Known::Refused {
                Ticket::None
            } else {
                Ticket::Call {
                    turn,
                    record: usize::MAX,
                    round: self.round,
                    tool,
                }
            };
            return (verdict, ticket);
        }

        let mut candidates = Vec::new();
        if kind == Kind::Poll {
            let count = 1 + self.since_news(Event::UnchangedPoll) as u32;
            let exceeds = |times: u64| u64::from(count) > u64::from(ladder.block()) * times;
            let verdict = if exceeds(16) {
                Verdict::Block
            } else if exceeds(8) {
                Verdict::Escalate
            } else if exceeds(4) {
                Verdict::Warn
            } else {
                Verdict::Allow
            };
            candidates.push((verdict, Rule::Poll, count));
        } else {
            let (count, laps) = self.count_and_laps(key);
            candidates.push((climb(ladder, count, laps), Rule::Stale, count));
            let run = 1 + self
                .records
                .iter()
                .rev()
                .filter(|r| !r.is_poll)
                .take_while(|r| r.key == key)
                .count() as u32;
            let verdict = if run >= 4 * ladder.block() {
                Verdict::Block
            } else if run >= 2 * ladder.block() {
                Verdict::Escalate
            } else if run >= ladder.block() {
                Verdict::Warn
            } else {
                Verdict::Allow
            };
            candidates.push((verdict, Rule::Run, run));
        }
        let failing = self.failing_rounds(tool);
        let verdict = match failing {
            0..=4 => Verdict::Allow,
            5..=7 => Verdict::Warn,
            _ => Verdict::Escalate,
        };
        candidates.push((verdict, Rule::Error, failing));

        let mut decided = candidates[0];
        for candidate in candidates {
            if candidate.0 > decided.0 {
                decided = candidate;
            }
        }
        if kind == Kind::ArgsMissing && decided.0 > Verdict::Warn {
            decided.0 = Verdict::Warn;
        }
        let refused = decided.0 >= Verdict::Block && !self.observe_only;
        if refused {
            self.events.push(Event::OurRefusal);
            let refusals = self.since_news(Event::OurRefusal);
            if self.halt_after > 0 && refusals > self.halt_after {
                decided = (Verdict::Halt, Rule::Halt, refusals as u32);
            }
        }
        let verdict = (
            decided.0,
            (decided.0 > Verdict::Allow).then_some(decided.1),
            decided.2,
        );

        if kind == Kind::Poll {
            return (
                verdict,
                if refused {
                    Ticket::None
                } else {
                    self.open_poll(key, tool)
                },
            );
        }
        self.records.push(Record {
            key,
            round: self.round,
            known: if refused { Known::Refused } else { Known::Open },
            stale: refused,
            is_poll: false,
            copies: 1,
            verdict,
        });
        if refused {
            self.streak += 1;
            return (verdict, Ticket::None);
        }
        (
            verdict,
            Ticket::Call {
                turn,
                record: self.records.len() - 1,
                round: self.round,
                tool,
            },
        )
    }

    pub(crate) fn after(&mut self, ticket: Ticket, outcome: &Outcome<u64>) {
        let ok = if outcome.refused {
            Some(false)
        } else {
            outcome.ok
        };
        let known = match (outcome.digest, ok) {
            (Some(digest), _) => Known::Digest(digest),
            (None, Some(ok)) => Known::Bare(ok),
            (None, None) => return,
        };
        let (turn, tool, round) = match ticket {
            Ticket::Call {
                turn, tool, round, ..
            }
            | Ticket::Poll {
                turn, tool, round, ..
            } => (turn, tool, round),
            Ticket::None => return,
        };
        let is_heard = turn == self.turn
            && match ticket {
                Ticket::Call {
                    record: usize::MAX, ..
                } => true,
                Ticket::Call { record, .. } => self.end_call(record, known),
                Ticket::Poll { number, .. } => self.answer_poll(number, known),
                Ticket::None => false,
            };
        if !is_heard {
            return;
        }
        match ok {
            Some(true) => self.ends.push((tool, round, None)),
            // A failure that arrives after one of a later round tells nothing about rounds in a row.
            Some(false) if self.is_latest(tool, round, outcome.digest) => {
                self.ends.push((tool, round, Some(outcome.digest)));
            }
            _ => {}
        }
    }

    pub(crate) fn user_message(&mut self) {
        *self = Self {
            turn: self.turn + 1,
            round: self.round,
            poll_count: self.poll_count,
            ..Self::new(self.halt_after as u32, self.observe_only)
        };
    }

    /// What stands in the ring for a call to come: the last 48 records.
    fn ring(&self) -> std::ops::Range<usize> {
        self.records.len().saturating_sub(48)..self.records.len()
    }

    /// What stands in the ring for a call that is there itself: 48 others.
    fn ring_with_itself(&self) -> std::ops::Range<usize> {
        self.records.len().saturating_sub(49)..self.records.len()
    }

    fn count_and_laps(&self, key: u64) -> (u32, u32) {
        let counted: Vec<&Record> = self
            .ring()
            .map(|i| &self.records[i])
            .filter(|r| !r.is_poll)
            .collect();
        let Some(distance) = counted
            .iter()
            .rev()
            .position(|record| record.key == key)
            .map(|i| i as u32 + 1)
        else {
            return (1, 1);
        };
        (
            self.streak + 1 + distance.min(4),
            1 + (self.streak + 1) / distance,
        )
    }

    /// How many events of a kind there were since the last news.
    fn since_news(&self, kind: Event) -> usize {
        let since = self
            .events
            .iter()
            .rev()
            .take_while(|event| **event != Event::News);
        since.filter(|event| **event == kind).count()
    }

    /// Rounds, the current one included, in which calls of this tool failed alike.
    fn failing_rounds(&self, tool: u64) -> u32 {
        let mut rounds = vec![self.round];
        let mut digest = None;
        for (_, round, end) in self.ends.iter().rev().filter(|end| end.0 == tool) {
            match (end, digest) {
                (Some(failure), None) => digest = Some(*failure),
                (Some(failure), Some(first)) if *failure == first => {}
                _ => break,
            }
            rounds.push(*round);
        }
        rounds.sort_unstable();
        rounds.dedup();
        rounds.len() as u32
    }

    fn is_latest(&self, tool: u64, round: u64, digest: Option<u64>) -> bool {
        let last = self.ends.iter().rev().find(|end| end.0 == tool);
        !last.is_some_and(|(_, other, end)| *end == Some(digest) && *other > round)
    }

    fn stands(&self, key: u64, known: Known, except: Option<usize>) -> bool {
        let ring = if except.is_some() {
            self.ring_with_itself()
        } else {
            self.ring()
        };
        ring.filter(|i| Some(*i) != except).any(|i| {
            let record = &self.records[i];
            record.key == key
                && match (record.known, known) {
                    (
                        Known::Digest(a) | Known::Assumed(a),
                        Known::Digest(b) | Known::Assumed(b),
                    ) => a == b,
                    (Known::Missing, Known::Missing) => true,
                    (Known::Bare(a), Known::Bare(b)) => a == b,
                    _ => false,
                }
        })
    }

    fn missing(&self, key: u64, ring: std::ops::Range<usize>) -> Known {
        let digest = ring
            .rev()
            .map(|i| &self.records[i])
            .filter(|r| r.key == key)
            .find_map(|r| match r.known {
                Known::Digest(digest) | Known::Assumed(digest) => Some(digest),
                _ => None,
            });
        digest.map_or(Known::Missing, Known::Assumed)
    }

    fn end_round(&mut self) {
        for i in 0..self.records.len() {
            if self.records[i].known == Known::Open && self.ring_with_itself().contains(&i) {
                let missing = self.missing(self.records[i].key, self.ring_with_itself());
                self.end_call(i, missing);
            }
        }
        for i in 0..self.polls.len() {
            if self.polls[i].is_open {
                self.polls[i].is_open = false;
                let key = self.polls[i].key;
                let missing = self.missing(key, self.ring());
                self.end_poll(key, missing);
            }
        }
    }

    /// Whether the call was still waiting to hear this.
    fn end_call(&mut self, i: usize, known: Known) -> bool {
        if !self.ring_with_itself().contains(&i) {
            return false;
        }
        match self.records[i].known {
            Known::Open => {
                self.records[i].known = known;
                if self.stands(self.records[i].key, known, Some(i)) {
                    self.records[i].stale = true;
                    self.streak += 1;
                } else {
                    self.streak = 0;
                    self.events.push(Event::News);
                }
                true
            }
            Known::Missing | Known::Assumed(_) => {
                self.records[i].known = known;
                if self.records[i].stale && !self.stands(self.records[i].key, known, Some(i)) {
                    self.records[i].stale = false;
                    let after = self.records[i + 1..]
                        .iter()
                        .filter(|record| record.stale)
                        .count();
                    self.streak = self.streak.min(after as u32);
                    self.events.push(Event::News);
                }
                true
            }
            Known::Digest(_) | Known::Bare(_) | Known::Refused => false,
        }
    }

    fn open_poll(&mut self, key: u64, tool: u64) -> Ticket {
        let number = self.poll_count;
        self.poll_count += 1;
        // Six are kept; what the seventh pushes out has ended without an answer.
        if let Some(i) = self.polls.iter().position(|poll| poll.number + 6 <= number) {
            let poll = self.polls.remove(i);
            if poll.is_open {
                let missing = self.missing(poll.key, self.ring());
                self.end_poll(poll.key, missing);
            }
        }
        self.polls.push(OpenPoll {
            key,
            is_open: true,
            number,
        });
        Ticket::Poll {
            turn: self.turn,
            number,
            round: self.round,
            tool,
        }
    }

    fn answer_poll(&mut self, number: usize, known: Known) -> bool {
        let Some(i) = self.polls.iter().position(|poll| poll.number == number) else {
            return false;
        };
        let poll = self.polls.remove(i);
        // A late answer that is no news was counted when it was missed.
        if poll.is_open || !self.stands(poll.key, known, None) {
            self.end_poll(poll.key, known);
        }
        true
    }

    fn end_poll(&mut self, key: u64, known: Known) {
        if self.stands(key, known, None) {
            self.events.push(Event::UnchangedPoll);
            return;
        }
        self.streak = 0;
        self.events.push(Event::News);
        self.records.push(Record {
            key,
            round: self.round,
            known,
            stale: false,
            is_poll: true,
            copies: 1,
            verdict: (Verdict::Allow, None, 0),
        });
    }
}

fn climb(ladder: Ladder, count: u32, laps: u32) -> Verdict {
    let reached = |threshold: u32| {
        count >= threshold && f64::from(laps) >= (f64::from(threshold) / 2.0).ceil()
    };
    let notice = ladder.warn().checked_sub(2).filter(|notice| *notice >= 2);
    if reached(ladder.block()) {
        Verdict::Block
    } else if reached(ladder.escalate()) {
        Verdict::Escalate
    } else if reached(ladder.warn()) {
        Verdict::Warn
    } else if notice.is_some_and(reached) {
        Verdict::Notice
    } else {
        Verdict::Allow
    }
}
