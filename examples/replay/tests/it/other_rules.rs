//! The rules of other systems against oracles that look at the whole history each time.

use bizar_replay::rules::{Gemini, Opencode, Openhands, Step};
use proptest::prelude::*;

/// Few different calls and results, so that everything repeats.
fn histories() -> impl Strategy<Value = Vec<Option<Step>>> {
    let step =
        (0_u8..3, prop::option::of(0_u8..2), any::<bool>()).prop_map(|(key, digest, failed)| {
            Step {
                key: [key; 32],
                digest: digest.map(|digest| [digest; 16]),
                failed,
            }
        });
    // `None` is a user message.
    let random = prop::collection::vec(
        prop_oneof![12 => step.clone().prop_map(Some), 1 => Just(None)],
        0..60,
    );
    let cycle = (prop::collection::vec(step, 1..7), 1_usize..14).prop_map(|(lap, times)| {
        lap.iter()
            .copied()
            .cycle()
            .take(lap.len() * times)
            .map(Some)
            .collect()
    });
    prop_oneof![random, cycle]
}

fn keys(history: &[Option<Step>]) -> Vec<[u8; 32]> {
    history.iter().flatten().map(|step| step.key).collect()
}

proptest! {
    #[test]
    fn opencode_fires_at_three_in_a_row(history in histories()) {
        let mut rule = Opencode::default();
        for end in 1..=history.len() {
            let Some(step) = history[end - 1] else { continue };
            let keys = keys(&history[..end]);
            let run = keys.iter().rev().take_while(|key| **key == step.key).count();
            let got = rule.step(&step);
            prop_assert_eq!(got.is_some(), run >= 3);
            if let Some(stuck) = got {
                prop_assert_eq!(stuck.count as usize, run);
            }
        }
    }

    #[test]
    fn gemini_fires_at_a_pattern_of_up_to_five_five_times(history in histories()) {
        let mut rule = Gemini::default();
        for end in 1..=history.len() {
            let Some(step) = history[end - 1] else { continue };
            let keys = keys(&history[..end]);
            let expected = (1..=5).find(|period| {
                let Some(start) = keys.len().checked_sub(period * 5) else { return false };
                let laps: Vec<_> = keys[start..].chunks(*period).collect();
                laps.iter().all(|lap| lap == &laps[0])
            });
            let got = rule.step(&step);
            prop_assert_eq!(got.map(|stuck| stuck.period as usize), expected);
            prop_assert!(got.is_none_or(|stuck| stuck.count >= 5));
        }
    }

    #[test]
    fn openhands_fires_at_equal_pairs_since_the_user_wrote(history in histories()) {
        let mut rule = Openhands::default();
        let mut since: Vec<Step> = Vec::new();
        for item in history {
            let Some(step) = item else {
                rule.user_message();
                since.clear();
                continue;
            };
            since.push(step);
            let last = |count: usize| since.len().checked_sub(count).map(|start| &since[start..]);
            let known = |steps: &[Step]| steps.iter().all(|step| step.digest.is_some());
            let same = |a: &Step, b: &Step| (a.key, a.digest) == (b.key, b.digest);
            let four = last(4).is_some_and(|steps| known(steps) && steps.iter().all(|step| same(step, &steps[0])));
            let failures = last(3).is_some_and(|steps| steps.iter().all(|step| step.failed && step.key == steps[0].key));
            let turns = last(6).is_some_and(|steps| known(steps) && (2..6).all(|at| same(&steps[at], &steps[at - 2])));
            prop_assert_eq!(rule.step(&step).is_some(), four || failures || turns);
        }
    }
}
