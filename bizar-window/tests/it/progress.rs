//! What `progress` promises, by example.

use bizar_window::{
    Call, Handle, Judgement, Kind, Outcome, Rule, Rules, Session,
    Verdict::{self, Allow, Block, Escalate, Halt, Notice, Warn},
};

use crate::play::{call, each, play, steps, times};

type Watch = Session<u64, u64>;

fn watch() -> Watch {
    Watch::new(Rules::default())
}

fn before(session: &mut Watch, key: u64, round: Option<u64>) -> Judgement {
    let mut call = Call::new(key, key);
    call.round = round;
    session.before(&call)
}

fn make(session: &mut Watch, key: u64, answer: u64) -> Judgement {
    let judgement = before(session, key, None);
    session.after(judgement.handle, Outcome::ok(answer));
    judgement
}

fn poll(session: &mut Watch, key: u64, answer: Option<u64>) -> Judgement {
    let mut call = Call::new(key, key);
    call.kind = Kind::Poll;
    let judgement = session.before(&call);
    if let Some(answer) = answer {
        session.after(judgement.handle, Outcome::ok(answer));
    }
    judgement
}

#[test]
fn two_calls_in_turn_block_at_the_twelfth() {
    let pair = steps![call("a", 1).says("x"), call("b", 1).says("y")];
    let verdicts = play(times(6, pair));
    assert_eq!(
        verdicts.0.iter().position(|verdict| *verdict == Block),
        Some(11)
    );
}

#[test]
fn longer_cycles_need_complete_laps() {
    for period in 3..=48 {
        let verdicts = play(each(period * 7, |i| {
            call("step", i % period).says(i % period)
        }));
        let first = |level| {
            verdicts
                .0
                .iter()
                .position(|verdict| *verdict >= level)
                .map(|i| i as u64 + 1)
        };
        // ceil(t / 2) laps of 5, 8 and 12.
        let laps = [3, 4, 6];
        for (level, laps) in [Warn, Escalate, Block].into_iter().zip(laps) {
            let at = first(level).unwrap();
            assert!(
                (period * laps..=period * laps + 12).contains(&at),
                "{level} of period {period} at {at}"
            );
        }
    }
    play(each(490, |i| call("step", i % 49).says(i % 49))).never(Notice);
}

#[test]
fn news_starts_the_count_anew() {
    let mut session = watch();
    let mut counts = Vec::new();
    for answer in 0..3 {
        // A call is judged before it answers, so the news shows at the next one.
        counts.extend((0..4).map(|_| make(&mut session, 1, answer).count));
    }
    // The twelfth call in a row is the run bound's.
    assert_eq!(counts, [1, 2, 3, 4, 5, 2, 3, 4, 5, 2, 3, 12]);
}

#[test]
fn retrying_a_refused_call_stays_blocked_until_there_is_news() {
    let mut rules = Rules::default();
    rules.halt_after = 0;
    let mut session = Watch::new(rules);
    for _ in 0..11 {
        let _ = make(&mut session, 1, 1);
    }
    for _ in 0..20 {
        assert_eq!(before(&mut session, 1, None).verdict, Block);
    }
    let _ = make(&mut session, 2, 1);
    assert_eq!(before(&mut session, 1, None).verdict, Allow);
}

#[test]
fn every_member_of_a_blocked_cycle_stays_blocked() {
    let mut rules = Rules::default();
    rules.halt_after = 0;
    let mut session = Watch::new(rules);
    let verdicts: Vec<Verdict> = (0..20)
        .map(|i| make(&mut session, i % 2, 1).verdict)
        .collect();
    assert!(
        verdicts[11..].iter().all(|verdict| *verdict == Block),
        "{verdicts:?}"
    );
}

#[test]
fn copies_count_once_and_share_the_first_verdict() {
    let mut session = watch();
    for round in 0..4 {
        for copy in 1..=4_u32 {
            let judgement = before(&mut session, 1, Some(round));
            assert_eq!(judgement.count, round as u32 + 1, "copy {copy}");
            session.after(judgement.handle, Outcome::ok(u64::from(copy)));
        }
    }
    // Five of them are noticed, eight warned about.
    let mut session = watch();
    let judgements: Vec<Judgement> = (0..9).map(|_| before(&mut session, 1, Some(0))).collect();
    let verdicts: Vec<Verdict> = judgements
        .iter()
        .map(|judgement| judgement.verdict)
        .collect();
    assert_eq!(
        verdicts,
        [
            Allow, Allow, Allow, Allow, Notice, Notice, Notice, Warn, Warn
        ]
    );
    assert_eq!(
        (judgements[4].rule, judgements[4].count),
        (Some(Rule::Fanout), 5)
    );
}

#[test]
fn a_copy_of_a_refused_call_is_refused_and_no_further_refusal() {
    let mut session = watch();
    for round in 0..11 {
        let judgement = before(&mut session, 1, Some(round));
        session.after(judgement.handle, Outcome::ok(1));
    }
    for _ in 0..9 {
        assert_eq!(before(&mut session, 1, Some(11)).verdict, Block);
    }
    assert_eq!(session.refused(), 1);
    assert_eq!(before(&mut session, 1, Some(12)).verdict, Block);
    assert_eq!(session.refused(), 2);
}

#[test]
fn missing_results_are_taken_from_the_last_one() {
    let mut session = watch();
    let _ = make(&mut session, 1, 1);
    let counts: Vec<u32> = (0..4)
        .map(|_| before(&mut session, 1, None).count)
        .collect();
    assert_eq!(counts, [2, 3, 4, 5]);
    // A new answer is news.
    let _ = make(&mut session, 1, 2);
    assert_eq!(before(&mut session, 1, None).count, 2);
}

#[test]
fn a_late_result_corrects_what_was_assumed() {
    let mut session = watch();
    let _ = make(&mut session, 1, 1);
    let late: Vec<Handle> = (0..3)
        .map(|_| before(&mut session, 1, None).handle)
        .collect();
    assert_eq!(before(&mut session, 1, None).count, 5);
    // The second of them had another answer; one stale call follows it, and the open one.
    session.after(late[1], Outcome::ok(2));
    assert_eq!(before(&mut session, 1, None).count, 4);
    // Told twice is told once.
    session.after(late[1], Outcome::ok(3));
    assert_eq!(before(&mut session, 1, None).count, 5);
}

#[test]
fn calls_of_one_round_stay_open_together() {
    let mut session = watch();
    for round in 0..6 {
        let handles: Vec<Handle> = (0..3)
            .map(|key| before(&mut session, key, Some(round)).handle)
            .collect();
        for (answer, handle) in handles.into_iter().enumerate().rev() {
            session.after(handle, Outcome::ok(answer as u64));
        }
    }
    // Six laps of three calls: 15 stale ones, distance 3.
    assert_eq!(before(&mut session, 0, Some(6)).count, 15 + 1 + 3);
}

#[test]
fn polls_have_patience() {
    let mut session = watch();
    let judgements: Vec<Judgement> = (0..194).map(|_| poll(&mut session, 1, Some(1))).collect();
    let first = |level| {
        judgements
            .iter()
            .position(|judgement| judgement.verdict == level)
    };
    // `unchanged + 1` exceeds 48, 96, 192; the first answer is news.
    assert_eq!(
        [first(Warn), first(Escalate), first(Block)],
        [Some(49), Some(97), Some(193)]
    );
    assert_eq!(
        (judgements[49].rule, judgements[49].count),
        (Some(Rule::Poll), 49)
    );
    // Whichever poll, and one that was never answered counts as well.
    assert_eq!(poll(&mut session, 2, None).verdict, Block);
    // News from a counted call is news for polls.
    let _ = make(&mut session, 3, 1);
    assert_eq!(poll(&mut session, 1, Some(1)).count, 1);
}

#[test]
fn polls_without_an_answer_are_unchanged() {
    let mut session = watch();
    let last = (0..60).map(|_| poll(&mut session, 1, None)).last().unwrap();
    assert_eq!((last.verdict, last.count), (Warn, 59));
}

#[test]
fn polls_neither_extend_nor_break_a_run() {
    let mut session = watch();
    let _ = poll(&mut session, 9, Some(1));
    for n in 1..=11 {
        assert_eq!(make(&mut session, 1, 1).count, n);
        let _ = poll(&mut session, 9, Some(1));
    }
    assert_eq!(make(&mut session, 1, 1).verdict, Block);
    // With answers that change the run goes on, however many polls bring news in between.
    let mut session = watch();
    let last = (0..12)
        .map(|i| {
            for j in 0..60 {
                let _ = poll(&mut session, 9, Some(60 * i + j));
            }
            make(&mut session, 1, i)
        })
        .last()
        .unwrap();
    assert_eq!(
        (last.verdict, last.rule, last.count),
        (Warn, Some(Rule::Run), 12)
    );
}

#[test]
fn run_bound_holds_while_results_change() {
    let mut session = watch();
    let verdicts: Vec<Verdict> = (0..48).map(|i| make(&mut session, 1, i).verdict).collect();
    assert_eq!(
        [verdicts[10], verdicts[11], verdicts[22], verdicts[23]],
        [Allow, Warn, Warn, Escalate]
    );
    assert_eq!([verdicts[46], verdicts[47]], [Escalate, Block]);
}

#[test]
fn one_tool_that_fails_alike_is_never_blocked() {
    let mut session = watch();
    let verdicts: Vec<(Verdict, Option<Rule>)> = (0..40)
        .map(|key| {
            let judgement = session.before(&Call::new(key, 1));
            session.after(judgement.handle, Outcome::failed(1));
            // Others in between, and unknown outcomes of the same, change nothing.
            let _ = make(&mut session, 1000 + key, key);
            let unknown = session.before(&Call::new(2000 + key, 1));
            session.after(
                unknown.handle,
                Outcome {
                    ok: None,
                    digest: Some(5),
                    refused: false,
                },
            );
            (judgement.verdict, judgement.rule)
        })
        .collect();
    assert_eq!(
        [verdicts[3].0, verdicts[4].0, verdicts[6].0, verdicts[7].0],
        [Allow, Warn, Warn, Escalate]
    );
    assert_eq!(verdicts[39], (Escalate, Some(Rule::Error)));
}

#[test]
fn another_failure_or_a_success_ends_an_error_family() {
    for outcome in [Outcome::failed(2), Outcome::ok(1)] {
        let mut session = watch();
        let mut fail = |key, outcome| {
            let judgement = session.before(&Call::new(key, 1));
            session.after(judgement.handle, outcome);
            judgement.verdict
        };
        for key in 0..4 {
            let _ = fail(key, Outcome::failed(1));
        }
        assert_eq!(fail(10, outcome), Warn);
        assert_eq!(fail(11, Outcome::failed(1)), Allow);
    }
}

#[test]
fn our_refusals_are_no_failures() {
    let mut session = watch();
    for _ in 0..20 {
        let judgement = make(&mut session, 1, 1);
        if judgement.verdict >= Block {
            session.after(judgement.handle, Outcome::refused(9));
        }
    }
    // Another call of the tool is not judged by them.
    assert_eq!(session.before(&Call::new(2, 1)).verdict, Allow);
}

#[test]
fn eight_failing_tools_are_remembered() {
    let fail_in_turn = |tools: u64| {
        let mut session = watch();
        let mut worst = Allow;
        for i in 0..tools * 6 {
            let judgement = session.before(&Call::new(1000 + i, i % tools));
            session.after(judgement.handle, Outcome::failed(1));
            worst = worst.max(judgement.verdict);
        }
        worst
    };
    assert_eq!([fail_in_turn(8), fail_in_turn(9)], [Warn, Allow]);
}

#[test]
fn identical_failures_are_told_as_identical_calls() {
    let mut session = watch();
    let judgements: Vec<Judgement> = (0..8)
        .map(|_| {
            let judgement = before(&mut session, 1, None);
            session.after(judgement.handle, Outcome::failed(1));
            judgement
        })
        .collect();
    assert_eq!(
        (judgements[4].verdict, judgements[4].rule),
        (Warn, Some(Rule::Stale))
    );
    assert_eq!(
        (judgements[7].verdict, judgements[7].rule),
        (Escalate, Some(Rule::Stale))
    );
}

#[test]
fn success_and_failure_without_a_result_are_answers() {
    let mut session = watch();
    let bare = |ok| Outcome {
        ok: Some(ok),
        digest: None,
        refused: false,
    };
    for (n, ok) in [true, true, true, false, true].into_iter().enumerate() {
        let judgement = before(&mut session, 1, None);
        session.after(judgement.handle, bare(ok));
        assert_eq!(judgement.count, [1, 2, 3, 4, 2][n]);
    }
}

#[test]
fn foreign_and_old_handles_are_ignored() {
    let mut session = watch();
    let old = before(&mut session, 1, None).handle;
    let old_poll = poll(&mut session, 2, None).handle;
    session.user_message();
    let fresh = format!("{session:?}");
    session.after(old, Outcome::ok(1));
    session.after(old_poll, Outcome::ok(1));
    assert_eq!(format!("{session:?}"), fresh);
    let mut other = watch();
    for i in 0..100 {
        let _ = make(&mut other, i, i);
    }
    let far = make(&mut other, 1, 1).handle;
    session.after(far, Outcome::ok(1));
    assert_eq!(format!("{session:?}"), fresh);
}

#[test]
fn halt_follows_the_third_refusal_and_the_turn_ends_it() {
    let mut session = watch();
    let verdicts: Vec<Verdict> = (0..16).map(|_| make(&mut session, 1, 1).verdict).collect();
    assert_eq!(verdicts[11..], [Block, Block, Block, Halt, Halt]);
    session.user_message();
    assert_eq!(make(&mut session, 1, 1).verdict, Allow);
}
