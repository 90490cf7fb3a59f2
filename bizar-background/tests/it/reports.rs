//! What went wrong elsewhere, and must not here.

use bizar_background::{
    Answer, Effect, Event, InstanceId, Limits, Permissions, Refusal, Spawn, Status, Waiting,
    event::ToolState,
};

use crate::rig::{
    Rig, aborted, assistant, busy, child, completed, delta, error, failed, idle, permission, plain,
    retry, server_error, text, tool, user,
};

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
        failed_with("stopped at a rejected permission: bash (echo hi)")
    );
}

#[test]
fn bg_046_ended_instances_have_no_slot() {
    let mut rig = Rig::new();
    for n in 1..=8 {
        rig.spawn();
        rig.events(plain(&format!("ses_{n}")));
    }
    assert_eq!(rig.machine.slots_taken(), 0);
    rig.spawn();
}

#[test]
fn bg_047_late_events_take_no_slot() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events(plain("ses_1"));
    rig.events([
        completed("ses_1", "ses_1_a", "stop"),
        text("ses_1", "ses_1_a", "late"),
        busy("ses_1"),
        delta("ses_1", "ses_1_a", "x"),
        child("ses_9", "ses_1"),
        busy("ses_9"),
        permission("ses_1", "per_1"),
    ]);
    assert_eq!(rig.machine.slots_taken(), 0);
    assert_eq!(rig.end(id), done());
}

#[test]
fn bg_048_two_idles_in_one_millisecond_give_one_slot_back() {
    let mut rig = Rig::with(Limits {
        live: 2,
        ..Limits::default()
    });
    rig.spawn();
    rig.spawn();
    rig.events(plain("ses_1"));
    rig.events([idle("ses_1"), idle("ses_1")]);
    assert_eq!(rig.machine.slots_taken(), 1);
    rig.spawn();
    let more = rig
        .machine
        .spawn(rig.now, InstanceId::new(9, [9; 10]), Spawn::new("m", "go"));
    assert!(matches!(more, Err(Refusal::NoSlot { limit: 2, .. })));
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
fn bg_052_a_retry_beyond_the_deadline_is_shown() {
    let (mut rig, id) = running();
    let next = rig.now.epoch_ms + 5 * 3_600_000;
    rig.event(retry("ses_1", 1, next));
    let view = rig.view(id);
    assert_eq!(
        (view.status, view.waiting_on),
        (Status::Running, Some(Waiting::Retry))
    );
    assert_eq!(
        view.retry.map(|retry| (retry.message, retry.next)),
        Some(("rate limited".into(), next))
    );
    rig.pass(300_000);
    // An abort in a retry gives idle and no error.
    rig.event(idle("ses_1"));
    assert_eq!(
        rig.end(id),
        (
            Status::TimedOut,
            "the deadline of 300000 ms was reached".into()
        )
    );
}

#[test]
fn bg_055_a_long_tool_is_no_stall() {
    let mut rig = Rig::new();
    let id = rig.spawn_with(Spawn {
        deadline: std::time::Duration::from_secs(1800),
        ..Spawn::new("m", "go")
    });
    rig.events([
        busy("ses_1"),
        assistant("ses_1", "m1"),
        tool("ses_1", "m1", "c1", ToolState::Open),
    ]);
    for _ in 0..36 {
        rig.pass(10_000);
        rig.event(Event::Heartbeat);
    }
    let view = rig.view(id);
    assert_eq!((view.status, view.stalled_for_ms), (Status::Running, None));
}

#[test]
fn bg_056_a_deadline_that_nobody_waits_for() {
    let (mut rig, id) = running();
    rig.event(text("ses_1", "m2", "so far"));
    rig.pass(300_000);
    rig.event(idle("ses_1"));
    let view = rig.view(id);
    assert_eq!(
        (view.status, view.result_preview.as_deref()),
        (Status::TimedOut, Some("so far"))
    );
    assert_eq!(
        view.error.as_deref(),
        Some("the deadline of 300000 ms was reached")
    );
    assert_eq!(view.ended_at, Some(rig.now.epoch_ms));
    assert!(rig.effects.ends_with(&[Effect::Persist { id }]));
}

#[test]
fn bg_058_a_call_whose_input_comes_later_is_one_call() {
    let pending = r#"{"type":"message.part.updated","properties":{"sessionID":"ses_1","part":{"id":"p","messageID":"m2",
        "sessionID":"ses_1","type":"tool","tool":"bash","callID":"c1","state":{"status":"pending","input":{},"raw":""}}}}"#;
    let run = pending.replace(
        r#""pending","input":{}"#,
        r#""running","input":{"command":"ls"}"#,
    );
    let (mut rig, id) = running();
    for data in [pending, &run, &run] {
        rig.tell(&Event::parse(data).unwrap().unwrap());
    }
    assert_eq!(rig.view(id).tool_call_count, 1);
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
fn bg_082_an_abort_of_nobody_makes_no_record() {
    let mut rig = Rig::new();
    rig.events([idle("ses_unknown"), idle("ses_unknown")]);
    assert_eq!(rig.machine.views(rig.now).count(), 0);
    assert_eq!(rig.effects, []);
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
