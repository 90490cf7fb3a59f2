//! What went wrong elsewhere, and must not here.

use bizar_background::{Answer, Event, InstanceId, Status, Waiting, event::ToolState};

use crate::rig::{
    Rig, assistant, busy, child, completed, error, failed, idle, permission, plain, server_error,
    text, tool, user,
};

mod kills;
mod limits;

fn done() -> (Status, String) {
    (Status::Done, String::new())
}

fn failed_with(error: &str) -> (Status, String) {
    (Status::Failed, error.into())
}

fn running() -> (Rig, InstanceId) {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([user("ses_1", "m1"), busy("ses_1"), assistant("ses_1", "m2")]);
    (rig, id)
}

#[test]
fn bg_001_work_after_the_end_is_shown_and_changes_nothing() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events(plain("ses_1"));
    rig.events([
        user("ses_1", "m8"),
        busy("ses_1"),
        error("ses_1", "APIError", "late"),
        idle("ses_1"),
    ]);
    rig.pass(20_000);
    assert_eq!(rig.end(id), done());
    assert!(rig.view(id).reactivated);
    assert!(rig.machine.record(id).unwrap().reactivated);
}

#[test]
fn bg_004_an_end_in_a_gap_is_found_by_reading() {
    let (mut rig, id) = running();
    rig.unseen([
        text("ses_1", "m2", "all"),
        completed("ses_1", "m2", "stop"),
        idle("ses_1"),
    ]);
    rig.pass(3_000);
    assert_eq!(rig.status(id), Status::Running);
    rig.event(Event::Connected);
    rig.pass(1_999);
    assert_eq!(rig.end(id), done());
}

#[test]
fn bg_005_three_ends_in_one_gap() {
    let mut rig = Rig::new();
    let ids = [rig.spawn(), rig.spawn(), rig.spawn()];
    rig.events(["ses_1", "ses_2", "ses_3"].map(busy));
    for session in ["ses_1", "ses_2", "ses_3"] {
        rig.unseen(plain(session));
    }
    rig.event(Event::Connected);
    for id in ids {
        assert_eq!(rig.end(id), done());
    }
}

#[test]
fn bg_006_tool_calls_of_a_gap_come_from_the_messages() {
    let (mut rig, id) = running();
    rig.event(tool("ses_1", "m2", "c1", ToolState::Completed));
    rig.unseen([
        tool("ses_1", "m2", "c2", ToolState::Completed),
        tool("ses_1", "m3", "c1", ToolState::Completed),
        completed("ses_1", "m3", "tool-calls"),
        assistant("ses_1", "m3"),
        text("ses_1", "m4", "end"),
        completed("ses_1", "m4", "stop"),
        idle("ses_1"),
    ]);
    rig.event(Event::Connected);
    assert_eq!(rig.end(id), done());
    assert_eq!(rig.view(id).tool_call_count, 3);
}

#[test]
fn bg_009_idle_overtakes_the_text() {
    let (mut rig, id) = running();
    rig.events([text("ses_1", "m2", ""), idle("ses_1"), idle("ses_1")]);
    assert_eq!(rig.status(id), Status::Running);
    rig.events([
        text("ses_1", "m2", "the whole text"),
        completed("ses_1", "m2", "stop"),
    ]);
    rig.pass(50);
    assert_eq!(rig.end(id), done());
    let snapshot = rig.snapshot("ses_1").unwrap();
    assert_eq!(
        snapshot.sessions[0].transcript.text(1 << 20).result,
        "the whole text"
    );
}

#[test]
fn bg_010_idle_is_the_first_event() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.unseen(plain("ses_1"));
    rig.tell(&idle("ses_1"));
    assert_eq!(rig.end(id), done());
    assert_eq!(rig.view(id).result_preview.as_deref(), Some("hello world"));
}

#[test]
fn bg_013_only_the_user_message_exists() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([user("ses_1", "m1"), idle("ses_1")]);
    rig.pass(14_999);
    assert_eq!(rig.status(id), Status::Pending, "the run may still begin");
    rig.pass(2_002);
    assert_eq!(
        rig.end(id),
        failed_with("the run ended without an assistant message")
    );
    // The same after a sign of work.
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([user("ses_1", "m1"), busy("ses_1"), idle("ses_1")]);
    rig.pass(1_000);
    assert_eq!(
        rig.end(id),
        failed_with("the run ended without an assistant message")
    );
}

#[test]
fn bg_015_the_last_step_fails() {
    let (mut rig, id) = running();
    rig.events([
        text("ses_1", "m2", "an early step"),
        completed("ses_1", "m2", "tool-calls"),
        busy("ses_1"),
    ]);
    rig.events([
        assistant("ses_1", "m3"),
        error("ses_1", "APIError", "503 overloaded"),
        idle("ses_1"),
    ]);
    rig.event(failed(
        "ses_1",
        "m3",
        server_error("APIError", "503 overloaded"),
    ));
    assert_eq!(rig.end(id), failed_with("503 overloaded"));
    let transcript = &rig.snapshot("ses_1").unwrap().sessions[0].transcript;
    assert_eq!(transcript.text(1 << 20).result, "an early step");
}

#[test]
fn bg_016_a_cut_stream_looks_like_a_stop() {
    let (mut rig, id) = running();
    rig.events([
        completed("ses_1", "m2", "unknown"),
        idle("ses_1"),
        idle("ses_1"),
    ]);
    rig.pass(1_000);
    assert_eq!(rig.end(id), failed_with("the last step produced nothing"));
}

#[test]
fn bg_020_a_busy_descendant_is_named() {
    let (mut rig, id) = running();
    rig.unseen([child("ses_2", "ses_1"), busy("ses_2")]);
    rig.events([
        text("ses_1", "m2", "done"),
        completed("ses_1", "m2", "stop"),
        idle("ses_1"),
    ]);
    rig.pass(50 * 60 * 1000 / 20);
    let view = rig.view(id);
    assert_eq!(
        (view.status, view.waiting_on),
        (Status::Running, Some(Waiting::Descendant))
    );
    assert_eq!(view.waiting_for.as_deref(), Some("ses_2"));
    rig.event(idle("ses_2"));
    rig.pass(400);
    assert_eq!(rig.end(id), done());
}

#[test]
fn bg_030_a_failed_start_is_tracked_and_poisons_nothing() {
    let mut rig = Rig::new();
    rig.holds.create = true;
    let first = rig.spawn();
    // An event without a session, and one of nobody, before there is a name.
    rig.event(idle(""));
    rig.event(busy("ses_x"));
    rig.answer(Answer::Created {
        id: first,
        session: Err(bizar_background::Failure::Unclear("reset".into())),
    });
    rig.holds.create = false;
    let second = rig.spawn();
    rig.events(plain("ses_1"));
    assert_eq!(
        rig.end(first),
        failed_with("the session could not be made: reset")
    );
    assert_eq!(rig.end(second), done());
}

#[test]
fn bg_041_the_request_of_a_subagent_is_answered_and_listed() {
    let (mut rig, id) = running();
    rig.events([child("ses_2", "ses_1"), permission("ses_2", "per_1")]);
    assert_eq!(rig.responses(), [("per_1", false)]);
    assert_eq!(rig.view(id).rejected, ["bash (echo hi)"]);
}

#[test]
fn bg_043_a_default_configuration_that_asks_never_hangs() {
    let (mut rig, id) = running();
    rig.events([
        tool("ses_1", "m2", "c1", ToolState::Open),
        permission("ses_1", "per_1"),
    ]);
    rig.events([
        tool("ses_1", "m2", "c1", ToolState::Failed("rejected".into())),
        completed("ses_1", "m2", "tool-calls"),
        idle("ses_1"),
    ]);
    rig.pass(1_000);
    assert_eq!(
        rig.end(id),
        failed_with("stopped at a rejected permission: bash")
    );
}

#[test]
fn bg_080_idle_of_an_unknown_session() {
    let (mut rig, id) = running();
    let effects = rig.effects.len();
    rig.tell(&idle("ses_nobody"));
    assert_eq!(rig.effects.len(), effects);
    assert_eq!(rig.status(id), Status::Running);
    assert_eq!(rig.machine.counters().foreign, 1);
}

#[test]
fn bg_081_the_error_of_a_subagent_is_a_warning() {
    let (mut rig, id) = running();
    rig.events([
        child("ses_2", "ses_1"),
        busy("ses_2"),
        error("ses_2", "APIError", "overloaded"),
        busy("ses_2"),
    ]);
    rig.pass(5_000);
    assert_eq!(rig.status(id), Status::Running);
    assert_eq!(
        rig.view(id).warnings,
        ["a subagent met an error: overloaded"]
    );
}

#[test]
fn bg_083_an_error_without_a_session() {
    let (mut rig, id) = running();
    rig.tell(&Event::Error {
        session: None,
        error: server_error("UnknownError", "x"),
    });
    rig.pass(5_000);
    assert_eq!(rig.status(id), Status::Running);
    assert_eq!(rig.machine.counters().errors_without_session, 1);
}

#[test]
fn bg_027_events_that_come_before_the_name_of_the_session() {
    let mut rig = Rig::new();
    rig.holds.create = true;
    let id = rig.spawn();
    rig.holds.create = false;
    for event in [
        busy("ses_1"),
        child("ses_2", "ses_1"),
        permission("ses_2", "per_1"),
        busy("ses_2"),
    ] {
        rig.tell(&event);
    }
    rig.pass(4_000);
    rig.world
        .sessions
        .insert("ses_1".into(), crate::rig::Session::default());
    rig.answer(Answer::Created {
        id,
        session: Ok("ses_1".into()),
    });
    assert_eq!(rig.status(id), Status::Running);
    assert_eq!(rig.responses(), [("per_1", false)]);
}

#[test]
fn bg_027_kept_events_are_few_and_not_old() {
    let mut rig = Rig::new();
    rig.holds.create = true;
    let id = rig.spawn();
    rig.tell(&permission("ses_1", "per_old"));
    rig.pass(5_000);
    rig.tell(&permission("ses_1", "per_lost"));
    for _ in 0..64 {
        rig.tell(&busy("ses_1"));
    }
    rig.answer(Answer::Created {
        id,
        session: Ok("ses_1".into()),
    });
    assert_eq!(rig.responses(), []);
    assert_eq!(rig.status(id), Status::Running);
}

#[test]
fn bg_099_an_unknown_agent_fails_within_the_hold() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([
        error("ses_1", "UnknownError", "Agent not found: \"nosuch\"."),
        error("ses_1", "UnknownError", "UnknownError"),
    ]);
    rig.pass(2_000);
    assert_eq!(rig.end(id), failed_with("Agent not found: \"nosuch\"."));
}
