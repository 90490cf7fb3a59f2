//! Runs that are ended from outside.

use bizar_background::{Answer, Effect, Limits, Permissions, Status};

use super::running;
use crate::rig::{Rig, aborted, busy, child, completed, delta, error, idle, permission, plain};

#[test]
fn bg_031_the_deadline_does_not_overwrite_a_kill() {
    let mut rig = Rig::new();
    rig.holds.abort = true;
    let id = rig.spawn();
    rig.event(busy("ses_1"));
    rig.pass(299_999);
    rig.kill(id);
    rig.pass(1);
    rig.events([aborted("ses_1"), idle("ses_1")]);
    rig.pass(5_000);
    assert_eq!(rig.end(id), (Status::Killed, "killed".into()));
}

#[test]
fn bg_032_the_error_comes_before_the_answer_of_the_abort() {
    let (mut rig, id) = running();
    rig.holds.abort = true;
    rig.kill(id);
    rig.events([aborted("ses_1"), idle("ses_1")]);
    rig.answer(Answer::Aborted { id });
    assert_eq!(rig.end(id), (Status::Killed, "killed".into()));
}

#[test]
fn bg_033_two_enders_and_one_end() {
    let (mut rig, id) = running();
    rig.kill(id);
    rig.event(idle("ses_1"));
    let changes = rig.changes.len();
    rig.kill(id);
    rig.machine.shutdown(rig.now);
    rig.machine.server_lost(rig.now, "gone");
    rig.events([
        error("ses_1", "APIError", "late"),
        completed("ses_1", "m2", "stop"),
        idle("ses_1"),
    ]);
    rig.pass(600_000);
    assert_eq!(rig.end(id), (Status::Killed, "killed".into()));
    assert_eq!(rig.changes.len(), changes);
}

#[test]
fn bg_035_a_kill_reaches_subagents_in_the_background() {
    let (mut rig, id) = running();
    rig.events([
        child("ses_2", "ses_1"),
        busy("ses_2"),
        completed("ses_1", "m2", "stop"),
        idle("ses_1"),
    ]);
    rig.kill(id);
    assert_eq!(rig.aborts(), ["ses_1", "ses_2"]);
    rig.events([aborted("ses_2"), idle("ses_2")]);
    rig.pass(500);
    assert_eq!(rig.end(id), (Status::Killed, "killed".into()));
}

#[test]
fn bg_036_a_session_that_stays_busy_after_its_abort() {
    let (mut rig, id) = running();
    rig.kill(id);
    rig.pass(5_000);
    let view = rig.view(id);
    assert_eq!((view.status, view.draining), (Status::Killed, true));
    assert_eq!(view.warnings, ["abort not confirmed"]);
    assert_eq!(rig.aborts(), ["ses_1"; 3], "aborted, and twice again");
    assert_eq!(rig.machine.slots_taken(), 1);
    rig.pass(10_000);
    assert_eq!(rig.machine.slots_taken(), 0);
    assert_eq!(
        rig.view(id).warnings,
        [
            "abort not confirmed",
            "still busy after the abort: the slot was given back"
        ]
    );
    assert_eq!(
        rig.effects.last(),
        Some(&Effect::Retire),
        "nothing else runs: what it runs is ended with the server"
    );
    rig.pass(60_000);
    let retired = rig
        .effects
        .iter()
        .filter(|effect| **effect == Effect::Retire);
    assert_eq!(retired.count(), 1);
}

#[test]
fn bg_036_the_server_is_not_ended_under_another_run() {
    let (mut rig, id) = running();
    let other = rig.spawn();
    rig.event(busy("ses_2"));
    rig.kill(id);
    rig.pass(20_000);
    assert_eq!(
        (rig.view(id).draining, rig.machine.slots_taken()),
        (false, 1)
    );
    assert!(!rig.effects.contains(&Effect::Retire));
    rig.events(plain("ses_2"));
    rig.pass(0);
    assert_eq!(rig.status(other), Status::Done);
    assert_eq!(rig.effects.last(), Some(&Effect::Retire));
}

#[test]
fn bg_039_a_request_that_outlives_its_run_is_refused() {
    let mut rig = Rig::with(Limits {
        permissions: Permissions::Wait,
        ..Limits::default()
    });
    let id = rig.spawn();
    rig.events([
        busy("ses_1"),
        child("ses_2", "ses_1"),
        child("ses_3", "ses_2"),
        busy("ses_3"),
    ]);
    rig.event(permission("ses_3", "per_1"));
    rig.kill(id);
    rig.events([idle("ses_3"), idle("ses_1")]);
    rig.pass(500);
    assert_eq!(rig.end(id), (Status::Killed, "killed".into()));
    assert_eq!(rig.responses(), [("per_1", false)]);
    // One that comes later too.
    rig.event(permission("ses_3", "per_2"));
    assert_eq!(rig.responses(), [("per_1", false), ("per_2", false)]);
}

#[test]
fn bg_040_text_after_the_abort_is_reported() {
    let (mut rig, id) = running();
    rig.kill(id);
    rig.event(idle("ses_1"));
    rig.pass(500);
    assert_eq!(rig.status(id), Status::Killed);
    rig.event(delta("ses_1", "m2", "a remainder"));
    assert_eq!(rig.aborts(), ["ses_1"]);
    rig.pass(3_000);
    rig.events([delta("ses_1", "m2", "w7"), delta("ses_1", "m2", "w8")]);
    assert_eq!(rig.aborts(), ["ses_1", "ses_1"], "aborted once more");
    assert_eq!(
        rig.view(id).warnings,
        ["abort not confirmed: text still arrives"]
    );
    assert_eq!(rig.end(id), (Status::Killed, "killed".into()));
}

#[test]
fn bg_049_a_kill_while_the_session_is_made() {
    let mut rig = Rig::new();
    rig.holds.create = true;
    let id = rig.spawn();
    rig.kill(id);
    rig.answer(Answer::Created {
        id,
        session: Ok("ses_7".into()),
    });
    rig.pass(5_000);
    assert_eq!(rig.end(id), (Status::Killed, "killed".into()));
    assert_eq!((rig.aborts(), rig.prompts()), (vec!["ses_7"], 0));
    assert_eq!(rig.view(id).session_id.as_deref(), Some("ses_7"));
}

#[test]
fn bg_050_no_prompt_after_the_deadline() {
    let mut rig = Rig::new();
    rig.holds.create = true;
    let id = rig.spawn();
    rig.pass(305_000);
    assert_eq!(rig.status(id), Status::TimedOut);
    rig.answer(Answer::Created {
        id,
        session: Ok("ses_7".into()),
    });
    assert_eq!((rig.aborts(), rig.prompts()), (vec!["ses_7"], 0));
}

#[test]
fn bg_082_an_abort_of_nobody_makes_no_record() {
    let mut rig = Rig::new();
    rig.events([idle("ses_unknown"), idle("ses_unknown")]);
    assert_eq!(rig.machine.views(rig.now).count(), 0);
    assert_eq!(rig.effects, []);
}
