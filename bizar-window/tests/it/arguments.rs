//! `repetition` and `cycle` look at nothing but the calls.

use bizar_window::{Call, Kind, Mode, Outcome, Rule, Rules, Session, Verdict};
use proptest::prelude::*;

/// What each call is judged, whatever else happens in between.
fn judge(mode: Mode, window: u32, keys: &[u64], noise: u64) -> Vec<(Verdict, u32, u32)> {
    let mut rules = Rules::new(mode);
    rules.window = window;
    // A halt would show the refusals instead of the count.
    rules.halt_after = 0;
    let mut session: Session<u64, u64> = Session::new(rules);
    let mut random = noise;
    keys.iter()
        .map(|key| {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let mut call = Call::new(*key, random >> 60);
            // Rounds, polls, results and turns play no part.
            call.round = (noise != 0 && random & 1 == 0).then_some(random >> 62);
            call.kind = if noise != 0 && random & 6 == 0 {
                Kind::Poll
            } else {
                Kind::Counted
            };
            if noise != 0 && random & 24 == 0 {
                session.user_message();
            }
            let judgement = session.before(&call);
            if noise == 0 || random & 32 == 0 {
                session.after(
                    judgement.handle,
                    Outcome {
                        ok: Some(true),
                        digest: Some(random),
                        refused: false,
                    },
                );
            }
            (judgement.verdict, judgement.count, judgement.period)
        })
        .collect()
}

/// Count in a window and length of the run, straight from the words.
fn slow_repetition(window: usize, keys: &[u64]) -> u32 {
    let (last, _) = keys.split_last().unwrap();
    let in_window = &keys[keys.len().saturating_sub(window)..];
    let matches = in_window.iter().filter(|key| *key == last).count();
    let run = keys.iter().rev().take_while(|key| *key == last).count();
    matches.max(run) as u32
}

/// The shortest period whose last three repetitions are complete, and at least four calls.
fn slow_cycle(keys: &[u64]) -> u32 {
    let repeats = |period: &usize| {
        let need = (3 * period).max(4);
        keys.len() >= need && {
            let tail = &keys[keys.len() - need..];
            tail.iter().zip(&tail[*period..]).all(|(a, b)| a == b)
        }
    };
    (1..=4).find(repeats).unwrap_or(0) as u32
}

fn level(count: u32) -> Verdict {
    match count {
        12.. => Verdict::Block,
        8.. => Verdict::Escalate,
        5.. => Verdict::Warn,
        3.. => Verdict::Notice,
        _ => Verdict::Allow,
    }
}

/// Few keys, and stretches of repetition among them.
fn keys() -> impl Strategy<Value = Vec<u64>> {
    let pattern = (prop::collection::vec(0..4_u64, 1..6), 1..8_usize)
        .prop_map(|(pattern, n)| pattern.repeat(n));
    prop::collection::vec(
        prop_oneof![pattern, prop::collection::vec(0..12_u64, 0..20)],
        1..8,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn repetition_agrees_with_the_slow_one(keys in keys(), window in 0..70_u32, noise: u64) {
        let width = window.clamp(3, 50) as usize;
        for (i, (verdict, count, _)) in judge(Mode::Repetition, window, &keys, noise).into_iter().enumerate() {
            let expected = slow_repetition(width, &keys[..=i]);
            prop_assert_eq!(count, expected, "call {}", i);
            prop_assert_eq!(verdict, level(expected));
        }
    }

    #[test]
    fn cycle_agrees_with_the_slow_one(keys in keys(), noise: u64) {
        for (i, (verdict, _, period)) in judge(Mode::Cycle, 10, &keys, noise).into_iter().enumerate() {
            let expected = slow_cycle(&keys[..=i]);
            prop_assert_eq!(period == 0 && verdict == Verdict::Allow, expected == 0, "call {}", i);
            if verdict == Verdict::Block {
                prop_assert_eq!(period, expected);
            }
        }
    }
}

fn counts(window: u32, keys: &[u64]) -> Vec<u32> {
    judge(Mode::Repetition, window, keys, 0)
        .into_iter()
        .map(|(_, count, _)| count)
        .collect()
}

#[test]
fn matches_of_short_sequences() {
    // Counted by hand-written brute force elsewhere; runs here are no longer than the window.
    assert_eq!(counts(3, &[1, 0, 3, 1, 1, 1]), [1, 1, 1, 1, 2, 3]);
    assert_eq!(
        counts(3, &[2, 0, 0, 1, 2, 0, 2, 1, 1]),
        [1, 1, 2, 1, 1, 1, 2, 1, 2]
    );
    assert_eq!(
        counts(3, &[0, 3, 2, 1, 0, 1, 2, 0, 0]),
        [1, 1, 1, 1, 1, 2, 1, 1, 2]
    );
    assert_eq!(counts(3, &[4]), [1]);
    // Runs longer than the window go on counting where a window alone stands still.
    assert_eq!(
        counts(3, &[1, 1, 1, 1, 0, 0, 0, 0, 1]),
        [1, 2, 3, 4, 1, 2, 3, 4, 1]
    );
}

#[test]
fn periods_of_short_sequences() {
    let periods = |keys: &[u64]| -> Vec<u32> {
        judge(Mode::Cycle, 10, keys, 0)
            .into_iter()
            .map(|(_, _, period)| period)
            .collect()
    };
    assert_eq!(periods(&[0, 0, 0]), [0, 0, 0]);
    assert_eq!(periods(&[0, 0, 0, 0, 0, 0]), [0, 0, 0, 1, 1, 1]);
    assert_eq!(periods(&[0, 1, 0, 1, 0, 1, 0]), [0, 0, 0, 0, 0, 2, 2]);
    assert_eq!(
        periods(&[0, 1, 2, 0, 1, 2, 0, 1, 2]),
        [0, 0, 0, 0, 0, 0, 0, 0, 3]
    );
    assert_eq!(
        periods(&[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]),
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4]
    );
    assert_eq!(periods(&[0, 1, 2, 3, 4].repeat(4)), [0; 20]);
}

#[test]
fn block_12_is_reached_with_a_window_of_10() {
    let verdicts = judge(Mode::Repetition, 10, &[7; 12], 0);
    assert_eq!(verdicts[11], (Verdict::Block, 12, 0));
}

#[test]
fn a_cycle_stays_blocked_until_a_call_outside_it() {
    let mut rules = Rules::new(Mode::Cycle);
    rules.halt_after = 0;
    let mut session: Session<u64, u64> = Session::new(rules);
    let mut make = |key| session.before(&Call::new(key, 1)).verdict;
    let verdicts: Vec<Verdict> = [1, 2].repeat(6).into_iter().map(&mut make).collect();
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == Verdict::Block)
            .count(),
        7
    );
    assert_eq!([make(3), make(1), make(2)], [Verdict::Allow; 3]);
}

#[test]
fn idle_clears_a_cycle_and_nothing_else() {
    let mut session: Session<u64, u64> = Session::new(Rules::new(Mode::Cycle));
    let mut verdicts = Vec::new();
    for i in 0..8 {
        verdicts.push(session.before(&Call::new(1, 1)).verdict);
        // A user message does not clear it.
        session.user_message();
        if i == 4 {
            session.idle();
        }
    }
    let (allow, block) = (Verdict::Allow, Verdict::Block);
    assert_eq!(
        verdicts,
        [allow, allow, allow, block, block, allow, allow, allow]
    );

    let mut session: Session<u64, u64> = Session::new(Rules::new(Mode::Repetition));
    for count in 1..=6 {
        let judgement = session.before(&Call::new(1, 1));
        assert_eq!(judgement.count, count);
        session.idle();
        session.user_message();
    }
}

#[test]
fn win_01_three_calls_are_only_a_notice() {
    assert_eq!(
        judge(Mode::Repetition, 10, &[1; 3], 0)[2].0,
        Verdict::Notice
    );
    assert_eq!(
        judge(Mode::Cycle, 10, &[1; 4], 0)
            .into_iter()
            .map(|call| call.0)
            .collect::<Vec<_>>()[2..],
        [Verdict::Allow, Verdict::Block]
    );
}

#[test]
fn win_03_changing_results_hide_nothing() {
    // Every call here has another result.
    assert_eq!(judge(Mode::Repetition, 10, &[1; 5], 0)[4].0, Verdict::Warn);
    assert_eq!(judge(Mode::Cycle, 10, &[1; 4], 0)[3].0, Verdict::Block);
}

#[test]
fn rules_name_themselves() {
    let rule = |mode| {
        let mut session: Session<u64, u64> = Session::new(Rules::new(mode));
        (0..5)
            .map(|_| session.before(&Call::new(1, 1)).rule)
            .last()
            .flatten()
    };
    assert_eq!(rule(Mode::Repetition), Some(Rule::Repetition));
    assert_eq!(rule(Mode::Cycle), Some(Rule::Cycle));
    assert_eq!(rule(Mode::Progress), Some(Rule::Stale));
}
