//! Which text is due, halting, and observing only.

use bizar_window::{
    Call, Judgement, Kind, Mode, Outcome, Rule, Rules, Session,
    Verdict::{self, Allow, Block, Escalate, Halt, Warn},
};

type Watch = Session<u64, u64>;

fn make(session: &mut Watch, key: u64, answer: u64, round: Option<u64>) -> Judgement {
    let mut call = Call::new(key, key % 10);
    call.round = round;
    let judgement = session.before(&call);
    session.after(judgement.handle, Outcome::ok(answer));
    judgement
}

fn verdicts(session: &mut Watch, key: u64, n: usize) -> Vec<Verdict> {
    (0..n)
        .map(|_| make(session, key, 1, None).verdict)
        .collect()
}

#[test]
fn text_stays_due_until_a_round_brings_news() {
    let mut session = Watch::new(Rules::default());
    verdicts(&mut session, 7, 4);
    assert_eq!(session.pending(), None);
    let fifth = make(&mut session, 7, 1, None);
    assert!(fifth.rose);
    let pending = session.pending().unwrap();
    assert_eq!(
        (pending.verdict, pending.rule, pending.tool, pending.count),
        (Warn, Rule::Stale, 7, 5)
    );
    // Asking again changes nothing, and the next call is not a rise.
    assert_eq!(session.pending(), Some(pending));
    assert!(!make(&mut session, 7, 1, None).rose);
    assert_eq!(session.level(), Warn);
    // Another call that brings nothing new does not end it, one that does ends it.
    let _ = make(&mut session, 8, 1, None);
    assert_eq!(session.level(), Allow);
}

#[test]
fn a_round_without_news_ends_nothing() {
    let mut session = Watch::new(Rules::default());
    let _ = make(&mut session, 8, 1, None);
    verdicts(&mut session, 7, 7);
    assert_eq!(session.level(), Warn);
    // Stale, far back, and a lap short of any level.
    let other = make(&mut session, 8, 1, None);
    assert_eq!(other.verdict, Allow);
    assert_eq!(session.level(), Warn);
}

#[test]
fn a_round_in_which_a_call_reaches_the_level_ends_nothing() {
    let mut session = Watch::new(Rules::default());
    for round in 0..6 {
        let _ = make(&mut session, 7, 1, Some(round));
    }
    assert_eq!(session.level(), Warn);
    // The same call again and something new beside it.
    let _ = make(&mut session, 7, 1, Some(6));
    let _ = make(&mut session, 100, 1, Some(6));
    assert_eq!(session.level(), Warn);
    let _ = make(&mut session, 101, 1, Some(7));
    assert_eq!(session.level(), Allow);
}

#[test]
fn level_falls_to_what_the_round_reached() {
    let mut session = Watch::new(Rules::default());
    for round in 0..8 {
        let _ = make(&mut session, 7, 1, Some(round));
    }
    assert_eq!(session.level(), Escalate);
    // Copies of one call warn; their answer is news.
    let last = (0..8)
        .map(|_| make(&mut session, 9, 1, Some(8)))
        .last()
        .unwrap();
    assert_eq!(
        (last.verdict, last.rule, last.count),
        (Warn, Some(Rule::Fanout), 8)
    );
    assert_eq!(session.level(), Warn);
}

#[test]
fn rises_are_told_once_each() {
    let mut session = Watch::new(Rules::default());
    let rises: Vec<bool> = (0..14)
        .map(|_| make(&mut session, 7, 1, None).rose)
        .collect();
    let at: Vec<usize> = rises
        .iter()
        .enumerate()
        .filter(|(_, rose)| **rose)
        .map(|(i, _)| i + 1)
        .collect();
    assert_eq!(at, [5, 8]);
}

#[test]
fn a_refusal_has_its_own_text_and_keeps_the_level() {
    let mut session = Watch::new(Rules::default());
    verdicts(&mut session, 7, 13);
    assert_eq!(session.pending().unwrap().verdict, Escalate);
    let mut cycle = Watch::new(Rules::new(Mode::Cycle));
    assert_eq!(verdicts(&mut cycle, 7, 4)[3], Block);
    assert_eq!(cycle.pending(), None);
}

#[test]
fn level_follows_the_calls_where_results_play_no_part() {
    let mut session = Watch::new(Rules::new(Mode::Repetition));
    verdicts(&mut session, 7, 6);
    assert_eq!(session.level(), Warn);
    let _ = make(&mut session, 8, 1, None);
    assert_eq!(session.level(), Allow);
}

#[test]
fn a_user_message_clears_the_level() {
    let mut session = Watch::new(Rules::default());
    verdicts(&mut session, 7, 9);
    session.user_message();
    assert_eq!((session.level(), session.refused()), (Allow, 0));
    assert_eq!(make(&mut session, 7, 1, None).count, 1);
}

#[test]
fn halt_after_more_than_three_refusals() {
    for mode in Mode::ALL {
        let mut session = Watch::new(Rules::new(*mode));
        let refused: Vec<Judgement> = (0..30)
            .map(|_| make(&mut session, 7, 1, None))
            .filter(|judgement| judgement.verdict >= Block)
            .collect();
        let first: Vec<Verdict> = refused
            .iter()
            .take(5)
            .map(|judgement| judgement.verdict)
            .collect();
        assert_eq!(first, [Block, Block, Block, Halt, Halt], "{mode}");
        assert_eq!((refused[3].rule, refused[3].count), (Some(Rule::Halt), 4));
    }
}

#[test]
fn halt_after_zero_is_never() {
    let mut rules = Rules::default();
    rules.halt_after = 0;
    let mut session = Watch::new(rules);
    assert_eq!(verdicts(&mut session, 7, 100).iter().max(), Some(&Block));
}

#[test]
fn news_clears_the_refusals() {
    let mut session = Watch::new(Rules::default());
    verdicts(&mut session, 7, 14);
    assert_eq!(session.refused(), 3);
    let _ = make(&mut session, 8, 1, None);
    assert_eq!(session.refused(), 0);
}

#[test]
fn any_call_let_through_clears_the_refusals_where_results_play_no_part() {
    for mode in [Mode::Repetition, Mode::Cycle] {
        let mut session = Watch::new(Rules::new(mode));
        verdicts(&mut session, 7, if mode == Mode::Cycle { 6 } else { 14 });
        assert_eq!(session.refused(), 3);
        let _ = make(&mut session, 8, 1, None);
        assert_eq!(session.refused(), 0);
    }
}

#[test]
fn observing_only_refuses_nothing() {
    for mode in Mode::ALL {
        let mut rules = Rules::new(*mode);
        rules.observe_only = true;
        let mut session = Watch::new(rules);
        let all = verdicts(&mut session, 7, 40);
        assert_eq!(all.iter().max(), Some(&Block), "{mode}");
        assert_eq!((session.refused(), session.pending()), (0, None), "{mode}");
    }
    // The real result is used, so a change at last is news.
    let mut rules = Rules::default();
    rules.observe_only = true;
    let mut session = Watch::new(rules);
    verdicts(&mut session, 7, 20);
    assert_eq!(make(&mut session, 7, 2, None).verdict, Block);
    let after = make(&mut session, 7, 2, None);
    assert_eq!((after.verdict, after.rule), (Warn, Some(Rule::Run)));
}

#[test]
fn missing_arguments_warn_at_most() {
    for mode in Mode::ALL {
        let mut session = Watch::new(Rules::new(*mode));
        let mut call = Call::new(7, 7);
        call.kind = Kind::ArgsMissing;
        let worst = (0..60)
            .map(|_| {
                let judgement = session.before(&call);
                session.after(judgement.handle, Outcome::ok(1));
                judgement.verdict
            })
            .max();
        assert_eq!(worst, Some(Warn), "{mode}");
    }
}
