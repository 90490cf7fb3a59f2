//! `progress` agrees with its slow twin, whatever happens in whatever order.

use bizar_window::{Call, Handle, Kind, Ladder, Outcome, Rules, Session, Verdict};
use proptest::prelude::*;

use crate::oracle::{Oracle, Ticket};

/// Something that happens to a session.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    Before {
        key: u64,
        tool: u64,
        kind: Kind,
        round: Round,
        end: Option<Outcome<u64>>,
    },
    /// An earlier call ends, perhaps late or again: an index from the last call back.
    After {
        back: usize,
        outcome: Outcome<u64>,
    },
    UserMessage,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Round {
    Own,
    Same,
    Next,
}

fn outcome() -> impl Strategy<Value = Outcome<u64>> {
    (
        prop::option::of(any::<bool>()),
        prop::option::weighted(0.9, 0..3_u64),
        prop::bool::weighted(0.05),
    )
        .prop_map(|(ok, digest, refused)| Outcome {
            ok,
            digest,
            refused,
        })
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![6 => Just(Kind::Counted), 2 => Just(Kind::Poll), 1 => Just(Kind::ArgsMissing)]
}

fn anything() -> impl Strategy<Value = Vec<Happening>> {
    let round = prop_oneof![2 => Just(Round::Own), 3 => Just(Round::Same), 2 => Just(Round::Next)];
    let before = (
        0..5_u64,
        0..4_u64,
        kind(),
        round,
        prop::option::weighted(0.6, outcome()),
    )
        .prop_map(|(key, tool, kind, round, end)| Happening::Before {
            key,
            tool,
            kind,
            round,
            end,
        });
    let after =
        (0..20_usize, outcome()).prop_map(|(back, outcome)| Happening::After { back, outcome });
    let one = prop_oneof![12 => before, 4 => after, 1 => Just(Happening::UserMessage)];
    prop::collection::vec(one, 0..60)
}

/// A stretch of calls that go round, with answers that stay, change now and then, or stay away.
fn laps() -> impl Strategy<Value = Vec<Happening>> {
    let round = prop_oneof![3 => Just(Round::Own), 1 => Just(Round::Next), 1 => Just(Round::Same)];
    (
        1..52_u64,
        1..16_u64,
        kind(),
        round,
        0..40_u64,
        prop::option::of(any::<bool>()),
    )
        .prop_map(|(period, laps, kind, round, change, ok)| {
            (0..(period * laps).min(260))
                .map(|i| {
                    let digest = if change > 0 && i % change == 0 { i } else { 0 };
                    let is_missing = change == 13 && i % 3 == 0;
                    Happening::Before {
                        key: i % period,
                        tool: i % period % 4,
                        kind,
                        round,
                        end: (!is_missing).then_some(Outcome {
                            ok,
                            digest: Some(digest),
                            refused: false,
                        }),
                    }
                })
                .collect()
        })
}

pub(crate) fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    prop::collection::vec(prop_oneof![anything(), laps()], 1..6).prop_map(|parts| parts.concat())
}

/// Feeds happenings to a session, and shows what it says.
pub(crate) struct Feed {
    pub(crate) round: u64,
    pub(crate) handles: Vec<Handle>,
    pub(crate) ladder: Ladder,
}

impl Feed {
    pub(crate) fn new(ladder: Ladder) -> Self {
        Self {
            round: 0,
            handles: Vec::new(),
            ladder,
        }
    }

    pub(crate) fn call(&mut self, key: u64, tool: u64, kind: Kind, round: Round) -> Call<u64> {
        if !matches!(round, Round::Same) {
            self.round += 1;
        }
        let round = (!matches!(round, Round::Own)).then_some(self.round);
        Call {
            key,
            tool,
            kind,
            round,
            ladder: self.ladder,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn progress_agrees_with_the_slow_one(
        happenings in happenings(),
        (warn, escalate, block) in prop_oneof![Just((5, 8, 12)), (1..8_u32, 1..12_u32, 1..16_u32)],
        halt_after in 0..4_u32,
        observe_only in prop::bool::weighted(0.2),
    ) {
        let mut rules = Rules::default();
        (rules.halt_after, rules.observe_only) = (halt_after, observe_only);
        let mut session: Session<u64, u64> = Session::new(rules);
        let mut oracle = Oracle::new(halt_after, observe_only);
        let mut feed = Feed::new(Ladder::new(warn, escalate, block));
        let mut tickets: Vec<Ticket> = Vec::new();
        for (i, happening) in happenings.iter().enumerate() {
            match happening {
                Happening::Before { key, tool, kind, round, end } => {
                    let call = feed.call(*key, *tool, *kind, *round);
                    let judgement = session.before(&call);
                    let (expected, ticket) = oracle.before(*key, *tool, *kind, call.round, feed.ladder);
                    prop_assert_eq!((judgement.verdict, judgement.rule, judgement.count), expected, "happening {}", i);
                    feed.handles.push(judgement.handle);
                    tickets.push(ticket);
                    let is_made = judgement.verdict < Verdict::Block || observe_only;
                    if let Some(outcome) = end && is_made {
                        session.after(judgement.handle, *outcome);
                        oracle.after(ticket, outcome);
                    }
                }
                Happening::After { back, outcome } => {
                    if let Some(at) = feed.handles.len().checked_sub(back + 1) {
                        session.after(feed.handles[at], *outcome);
                        oracle.after(tickets[at], outcome);
                    }
                }
                Happening::UserMessage => {
                    session.user_message();
                    oracle.user_message();
                }
            }
        }
    }
}
