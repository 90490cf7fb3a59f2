//! Count and verdict on the screen are those that the guard itself gave.

use bizar_guard::Decision;
use bizar_top::model::Model;
use bizar_window::{Mode, Rule, Verdict};
use serde_json::json;

use crate::{
    demo::Agent,
    rig::{NOW, source},
};

/// The session as it is read from the disk after `times` equal calls, beside the guard's last decision.
fn after(times: usize, options: &str) -> (Decision, Model) {
    let home = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(home.path(), "opencode", "s", options, NOW);
    let mut last = None;
    for _ in 0..times {
        last = Some(agent.call("bash", json!({"command": "make"}), "failed"));
    }
    agent.guard.flush();
    let mut model = Model::default();
    model.tell(source(home.path()).scan());
    assert_eq!(model.notes(), Vec::<String>::new());
    (last.unwrap(), model)
}

#[test]
fn progress_agrees_with_the_guard_on_every_call() {
    for times in 1..=16 {
        let (decision, model) = after(times, "{}");
        let session = model.session("s").unwrap();
        assert_eq!(session.verdict(), decision.verdict, "call {times}");
        let standing = session.standing().unwrap();
        assert_eq!(standing.rule, decision.rule, "call {times}");
        if decision.verdict < Verdict::Halt {
            assert_eq!(session.count(), decision.count, "call {times}");
        } else {
            // The guard's number is that of refusals; the place on the ladder is kept.
            assert_eq!((standing.refused, session.count()), (decision.count, 14));
        }
    }
}

#[test]
fn repetition_agrees_with_the_guard_on_every_call() {
    for times in 1..=16 {
        let (decision, model) = after(times, r#"{"loopMode":"repetition"}"#);
        let session = model.session("s").unwrap();
        assert_eq!(session.verdict(), decision.verdict, "call {times}");
        assert_eq!(session.standing().unwrap().rules.mode, Mode::Repetition);
        if decision.verdict < Verdict::Halt {
            assert_eq!(session.count(), decision.count, "call {times}");
        } else {
            assert_eq!(session.standing().unwrap().rule, Some(Rule::Halt));
        }
    }
}

#[test]
fn cycle_agrees_with_the_guard_on_every_call() {
    for times in 1..=9 {
        let (decision, model) = after(times, r#"{"loopMode":"cycle"}"#);
        let session = model.session("s").unwrap();
        assert_eq!(session.verdict(), decision.verdict, "call {times}");
        assert_eq!(session.standing().unwrap().rules.mode, Mode::Cycle);
    }
}

#[test]
fn observe_only_shows_the_verdict_that_would_have_been() {
    let (decision, model) = after(12, r#"{"loopObserveOnly":true}"#);
    let session = model.session("s").unwrap();
    assert!(!decision.refused);
    assert_eq!((session.verdict(), session.count()), (Verdict::Block, 12));
    assert_eq!(session.state().unwrap().blocks_triggered, 0);
}

#[test]
fn the_ladder_is_that_of_host_and_tool() {
    use bizar_top::standing::Ladders;
    let file = r#"{"loopThresholdBlock": 20, "loopToolThresholds": {"web*": {"block": 40}}, "hosts": {"codex": {"loopThresholdBlock": 30}}}"#;
    let mut ladders = Ladders::new(
        None,
        Some(file.to_owned()),
        bizar_config::Environment::default(),
    );
    let mut of = |host: &str, tool: &str| {
        let ladder = ladders.of(host, tool);
        (ladder.warn(), ladder.escalate(), ladder.block())
    };
    assert_eq!(of("opencode", "bash"), (5, 8, 20));
    assert_eq!(of("opencode", "webfetch"), (5, 8, 40));
    assert_eq!(of("codex", "bash"), (5, 8, 30));
    assert_eq!(of("gemini", "bash"), (2, 3, 20));
    for host in 0..1000 {
        assert_eq!(of(&format!("host {host}"), "bash"), (5, 8, 20));
    }
}

#[test]
fn a_detector_of_another_version_costs_the_verdict_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(home.path(), "opencode", "s", "{}", NOW);
    agent.repeat(6, "bash", &json!({}), "x");
    agent.guard.flush();
    let path = crate::demo::directory(home.path()).join("s.json");
    let mut document: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for detector in [
        json!({"from": "the future"}),
        json!(null),
        json!([1, "x"]),
        json!(7),
    ] {
        document["detector"] = detector;
        std::fs::write(&path, document.to_string()).unwrap();
        let mut model = Model::default();
        model.tell(source(home.path()).scan());
        let session = model.session("s").unwrap();
        assert!(session.standing().is_none());
        assert_eq!(session.state().unwrap().warnings_issued, 1);
        assert_eq!(session.tool(), Some("bash"));
    }
}
