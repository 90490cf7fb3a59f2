//! No rung is dead: every level of every mode is some call's verdict, whatever the options.

use bizar_window::{Call, Kind, Ladder, Mode, Outcome, Rule, Rules, Session, Verdict};
use proptest::prelude::*;

/// Verdict and rule at each of `n` identical calls with one answer.
fn climb(rules: Rules, ladder: Ladder, kind: Kind, n: u32) -> Vec<(Verdict, u32)> {
    let mut session: Session<u64, u64> = Session::new(rules);
    (0..n)
        .map(|_| {
            let mut call = Call::new(1, 1);
            (call.ladder, call.kind) = (ladder, kind);
            let judgement = session.before(&call);
            if judgement.verdict < Verdict::Block || rules.observe_only {
                session.after(judgement.handle, Outcome::ok(1));
            }
            (judgement.verdict, judgement.count)
        })
        .collect()
}

fn levels(ladder: Ladder) -> Vec<(u32, Verdict)> {
    let notice = ladder.notice().map(|count| (count, Verdict::Notice));
    let rest = [
        (ladder.warn(), Verdict::Warn),
        (ladder.escalate(), Verdict::Escalate),
        (ladder.block(), Verdict::Block),
    ];
    notice.into_iter().chain(rest).collect()
}

proptest! {
    #[test]
    fn every_threshold_is_some_verdict(
        (warn, escalate, block) in (0..60_u32, 0..80_u32, 0..120_u32),
        window in 0..70_u32,
        halt_after in 0..6_u32,
        observe_only: bool,
        mode in prop::sample::select(&[Mode::Progress, Mode::Repetition][..]),
    ) {
        let ladder = Ladder::new(warn, escalate, block);
        let mut rules = Rules::new(mode);
        (rules.window, rules.halt_after, rules.observe_only) = (window, halt_after, observe_only);
        let n = ladder.block() + halt_after + 1;
        let verdicts = climb(rules, ladder, Kind::Counted, n);
        for (count, verdict) in levels(ladder) {
            // n identical calls count exactly n, and the level is reached exactly there.
            prop_assert_eq!(verdicts[count as usize - 1], (verdict, count));
            if count > 1 {
                prop_assert!(verdicts[count as usize - 2].0 < verdict);
            }
        }
        let last = verdicts[n as usize - 1].0;
        let halts = halt_after > 0 && !observe_only;
        prop_assert_eq!(last, if halts { Verdict::Halt } else { Verdict::Block });
    }

    #[test]
    fn cycle_blocks_and_halts(period in 1..=4_u64, halt_after in 0..6_u32, observe_only: bool) {
        let mut rules = Rules::new(Mode::Cycle);
        (rules.halt_after, rules.observe_only) = (halt_after, observe_only);
        let mut session: Session<u64, u64> = Session::new(rules);
        let first = if period == 1 { 4 } else { 3 * period };
        for i in 1..=first + u64::from(halt_after) {
            let judgement = session.before(&Call::new(i % period, 1));
            let expected = if i < first {
                Verdict::Allow
            } else if halt_after > 0 && !observe_only && i >= first + u64::from(halt_after) {
                Verdict::Halt
            } else {
                Verdict::Block
            };
            prop_assert_eq!(judgement.verdict, expected, "call {}", i);
        }
    }

    #[test]
    fn run_and_poll_bounds_are_reached((warn, escalate, block) in (3..10_u32, 1..10_u32, 1..14_u32)) {
        let ladder = Ladder::new(warn, escalate, block);
        let mut session: Session<u64, u64> = Session::new(Rules::default());
        let mut call = Call::new(1, 1);
        call.ladder = ladder;
        let mut reached = Vec::new();
        for i in 0..u64::from(ladder.block()) * 4 {
            let judgement = session.before(&call);
            session.after(judgement.handle, Outcome::ok(i));
            if judgement.rule == Some(Rule::Run) {
                reached.push((judgement.count / ladder.block(), judgement.verdict));
            }
        }
        reached.dedup();
        let expected = [(1, Verdict::Warn), (2, Verdict::Escalate), (3, Verdict::Escalate), (4, Verdict::Block)];
        prop_assert_eq!(reached, expected);

        let polls = climb(Rules::default(), ladder, Kind::Poll, ladder.block() * 16 + 2);
        for (times, verdict) in [(4, Verdict::Warn), (8, Verdict::Escalate), (16, Verdict::Block)] {
            // The first answer is news; a level is reached when the count exceeds the bound.
            let at = (ladder.block() * times) as usize + 1;
            prop_assert!(polls[at - 1].0 < verdict);
            prop_assert_eq!(polls[at], (verdict, at as u32));
        }
    }

    #[test]
    fn ladders_are_in_order(warn: u32, escalate: u32, block: u32) {
        let ladder = Ladder::new(warn, escalate, block);
        prop_assert!(1 <= ladder.warn() && ladder.warn() < ladder.escalate());
        prop_assert!(ladder.escalate() < ladder.block() && ladder.block() <= Ladder::MAX);
        prop_assert!(ladder.notice().is_none_or(|notice| notice >= 2 && notice == ladder.warn() - 2));
        prop_assert_eq!(Ladder::new(ladder.warn(), ladder.escalate(), ladder.block()), ladder);
    }
}

#[test]
fn the_highest_ladder_is_reached() {
    let ladder = Ladder::new(u32::MAX, u32::MAX, u32::MAX);
    for mode in [Mode::Progress, Mode::Repetition] {
        let verdicts = climb(Rules::new(mode), ladder, Kind::Counted, Ladder::MAX + 3);
        for (count, verdict) in levels(ladder) {
            assert_eq!(verdicts[count as usize - 1], (verdict, count), "{mode}");
        }
        assert_eq!(verdicts.last(), Some(&(Verdict::Halt, 4)), "{mode}");
    }
}

#[test]
fn words_are_read_back() {
    for verdict in Verdict::ALL {
        assert_eq!(verdict.as_str().parse(), Ok(*verdict));
    }
    for mode in Mode::ALL {
        assert_eq!(mode.to_string().parse(), Ok(*mode));
    }
    for rule in Rule::ALL {
        assert_eq!(rule.to_string().parse(), Ok(*rule));
    }
    assert!("Block".parse::<Verdict>().is_err());
    assert!(Verdict::ALL.is_sorted());
}
