//! Done is proved, not assumed.

use bizar_background::{
    Answer, Effect, Event, Failure, Limits, Permissions, Spawn, Status, Waiting, event::ToolState,
};

use crate::rig::{
    Rig, assistant, busy, child, completed, error, failed, idle, permission, plain, server_error,
    text, tool, user,
};

fn is_done(rig: &Rig, id: bizar_background::InstanceId) -> bool {
    rig.end(id) == (Status::Done, String::new())
}

#[test]
fn looks_come_at_50_150_400_and_1000_ms() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([user("ses_1", "m1"), busy("ses_1"), assistant("ses_1", "m2")]);
    let looks = |rig: &Rig| {
        rig.effects
            .iter()
            .filter(|e| matches!(e, Effect::Observe { .. }))
            .count()
    };
    let before = looks(&rig);
    rig.event(idle("ses_1"));
    for (ms, expected) in [
        (0, 1),
        (49, 1),
        (1, 2),
        (99, 2),
        (1, 3),
        (249, 3),
        (1, 4),
        (599, 4),
    ] {
        rig.pass(ms);
        assert_eq!(looks(&rig) - before, expected);
        assert_eq!(rig.status(id), Status::Running);
    }
    rig.pass(1);
    assert_eq!(
        rig.end(id),
        (
            Status::Failed,
            "the run ended in the middle of an answer".into()
        )
    );
}

#[test]
fn an_answer_that_is_completed_late_is_done() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([
        user("ses_1", "m1"),
        busy("ses_1"),
        assistant("ses_1", "m2"),
        idle("ses_1"),
    ]);
    rig.pass(300);
    rig.unseen([
        text("ses_1", "m2", "late"),
        completed("ses_1", "m2", "stop"),
    ]);
    rig.pass(100);
    assert!(is_done(&rig, id));
}

#[test]
fn a_look_that_was_overtaken_proves_nothing() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events(plain("ses_1").into_iter().take(6));
    rig.holds.observe = true;
    rig.event(idle("ses_1"));
    let ticket = rig.ticket();
    let old = rig.snapshot("ses_1");
    // Somebody asks for more before the look is answered.
    rig.holds.observe = false;
    rig.events([user("ses_1", "m3"), busy("ses_1")]);
    rig.answer(Answer::Observed {
        id,
        ticket,
        snapshot: old,
    });
    assert_eq!(rig.status(id), Status::Running);
    rig.events([
        text("ses_1", "m4", "more"),
        completed("ses_1", "m4", "stop"),
        idle("ses_1"),
    ]);
    assert!(is_done(&rig, id));
}

#[test]
fn done_while_the_stream_is_down() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.unseen(plain("ses_1"));
    rig.pass(14_999);
    assert_eq!(rig.status(id), Status::Pending);
    rig.pass(1);
    assert!(is_done(&rig, id), "{:?}", rig.end(id));
}

#[test]
fn a_server_that_does_not_answer_fails_nothing() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events(plain("ses_1").into_iter().take(6));
    rig.world.is_down = true;
    rig.event(idle("ses_1"));
    rig.pass(60_000);
    assert_eq!(rig.status(id), Status::Running);
    rig.world.is_down = false;
    rig.pass(1_000);
    assert!(is_done(&rig, id));
}

#[test]
fn a_look_that_is_never_answered_is_given_up() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events(plain("ses_1").into_iter().take(6));
    rig.holds.observe = true;
    rig.event(idle("ses_1"));
    rig.pass(34_000);
    rig.holds.observe = false;
    assert_eq!(rig.status(id), Status::Running);
    rig.pass(2_000);
    assert!(is_done(&rig, id));
}

#[test]
fn a_session_is_gone_after_two_looks() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.event(busy("ses_1"));
    rig.world.sessions.clear();
    rig.machine.reconcile(rig.now);
    rig.settle();
    assert_eq!(rig.status(id), Status::Running);
    rig.pass(1_000);
    assert_eq!(rig.end(id), (Status::Failed, "the session is gone".into()));
}

#[test]
fn absent_from_the_map_is_not_busy_and_nothing_more() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.event(busy("ses_1"));
    rig.unseen([idle("ses_1"), assistant("ses_1", "m2")]);
    rig.machine.reconcile(rig.now);
    rig.settle();
    assert_eq!(rig.status(id), Status::Running);
    rig.unseen([completed("ses_1", "m2", "stop")]);
    rig.pass(50);
    assert!(is_done(&rig, id));
}

#[test]
fn a_prompt_that_is_not_started_fails_after_15_s() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.unseen([busy("ses_1"), idle("ses_1")]);
    rig.pass(14_999);
    assert_eq!(rig.status(id), Status::Pending);
    rig.pass(2_002);
    assert_eq!(rig.status(id), Status::Failed);
    assert_eq!(rig.aborts(), ["ses_1"], "it may start yet");
    // It does.
    rig.events([busy("ses_1")]);
    assert_eq!(rig.aborts(), ["ses_1", "ses_1"]);
    assert!(!rig.view(id).reactivated);
}

#[test]
fn an_unclear_prompt_is_sent_again_once_and_only_if_it_did_not_arrive() {
    for arrived in [false, true] {
        let mut rig = Rig::new();
        rig.holds.prompt = true;
        let id = rig.spawn();
        if arrived {
            rig.unseen([user("ses_1", "m1")]);
        }
        let unclear = || Answer::Prompted {
            id,
            taken: Err(Failure::Unclear("connection reset".into())),
        };
        rig.answer(unclear());
        assert_eq!(rig.prompts(), if arrived { 1 } else { 2 });
        if !arrived {
            rig.answer(unclear());
            assert_eq!(rig.prompts(), 2, "never a third time");
        }
        rig.events(plain("ses_1"));
        rig.pass(15_000);
        assert!(is_done(&rig, id), "arrived {arrived}: {:?}", rig.end(id));
    }
}

#[test]
fn a_prompt_that_was_refused_fails_with_the_reason() {
    let mut rig = Rig::new();
    rig.holds.prompt = true;
    let id = rig.spawn();
    rig.answer(Answer::Prompted {
        id,
        taken: Err(Failure::Refused("400 bad request".into())),
    });
    assert_eq!(
        rig.end(id),
        (
            Status::Failed,
            "the prompt was refused: 400 bad request".into()
        )
    );
    assert_eq!((rig.machine.slots_taken(), rig.aborts()), (0, vec![]));
}

#[test]
fn an_answer_that_was_cut_is_done_with_a_warning() {
    for (finish, warnings) in [
        ("stop", vec![]),
        (
            "length",
            vec!["the last answer was cut at the model's output limit"],
        ),
        (
            "content-filter",
            vec!["the last answer was cut by a content filter"],
        ),
    ] {
        let mut rig = Rig::new();
        let id = rig.spawn();
        rig.events([
            user("ses_1", "m1"),
            busy("ses_1"),
            text("ses_1", "m2", "so far"),
            completed("ses_1", "m2", finish),
            idle("ses_1"),
        ]);
        assert!(is_done(&rig, id));
        assert_eq!(rig.view(id).warnings, warnings);
    }
}

#[test]
fn reasoning_alone_is_an_answer() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([
        user("ses_1", "m1"),
        busy("ses_1"),
        completed("ses_1", "m2", "stop"),
        idle("ses_1"),
    ]);
    assert!(is_done(&rig, id));
}

#[test]
fn an_unanswered_message_is_no_end() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events(plain("ses_1").into_iter().take(6));
    rig.events([user("ses_1", "m9"), idle("ses_1")]);
    rig.pass(999);
    assert_eq!(rig.status(id), Status::Running);
    rig.pass(1);
    assert_eq!(
        rig.end(id),
        (
            Status::Failed,
            "the run ended with an unanswered message".into()
        )
    );
}

#[test]
fn an_error_and_then_more_work_is_a_warning() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([
        user("ses_1", "m1"),
        busy("ses_1"),
        error("ses_1", "ContextOverflowError", "too long"),
        busy("ses_1"),
    ]);
    rig.pass(10_000);
    assert_eq!(rig.status(id), Status::Running);
    assert_eq!(
        rig.view(id).warnings,
        ["the run went on after an error: too long"]
    );
    rig.events([
        text("ses_1", "m2", "short"),
        completed("ses_1", "m2", "stop"),
        idle("ses_1"),
    ]);
    assert!(is_done(&rig, id));
}

#[test]
fn an_error_that_only_the_messages_show() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.event(busy("ses_1"));
    rig.unseen([
        idle("ses_1"),
        failed("ses_1", "m2", server_error("APIError", "overloaded")),
    ]);
    rig.event(Event::Connected);
    assert_eq!(rig.end(id), (Status::Failed, "overloaded".into()));
}

#[test]
fn a_loop_guard_refusal_that_only_the_messages_show() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    let refusal = ToolState::Failed(
        "Loop protection: a cycle of 3 calls around bash repeats. Use task to escalate.".into(),
    );
    rig.event(busy("ses_1"));
    rig.unseen([
        assistant("ses_1", "m2"),
        tool("ses_1", "m2", "c1", refusal),
        completed("ses_1", "m2", "stop"),
        idle("ses_1"),
    ]);
    rig.event(Event::Connected);
    rig.pass(1_000);
    assert_eq!(rig.status(id), Status::Failed);
    assert_eq!(rig.view(id).loop_guard_tool.as_deref(), Some("bash"));
}

#[test]
fn bg_095_the_guards_words_elsewhere_mean_nothing() {
    let words = "Loop protection: 12 identical calls to bash. Use task to escalate.";
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([
        user("ses_1", "m1"),
        busy("ses_1"),
        text("ses_1", "m2", words),
        tool(
            "ses_1",
            "m2",
            "c1",
            ToolState::Failed(format!("grep found:\n{words}")),
        ),
        tool("ses_1", "m2", "c2", ToolState::Completed),
        completed("ses_1", "m2", "stop"),
        idle("ses_1"),
    ]);
    assert!(is_done(&rig, id));
    assert_eq!(rig.view(id).loop_guard_tool, None);
}

#[test]
fn a_subagent_that_came_in_the_gap_is_found() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events(plain("ses_1").into_iter().take(6));
    rig.unseen([
        child("ses_2", "ses_1"),
        child("ses_3", "ses_2"),
        busy("ses_3"),
        idle("ses_1"),
    ]);
    rig.event(idle("ses_1"));
    let view = rig.view(id);
    assert_eq!(
        (view.status, view.waiting_for.as_deref()),
        (Status::Running, Some("ses_3"))
    );
    // From now on its events count.
    rig.events([permission("ses_3", "per_1")]);
    assert_eq!(rig.responses(), [("per_1", false)]);
    rig.events([completed("ses_3", "c1", "stop"), idle("ses_3")]);
    rig.pass(400);
    assert!(is_done(&rig, id));
}

#[test]
fn a_request_that_came_in_the_gap_is_answered() {
    for (permissions, responses) in [
        (Permissions::Reject, vec![("per_1", false)]),
        (Permissions::Allow, vec![("per_1", true)]),
        (Permissions::Wait, vec![]),
    ] {
        let mut rig = Rig::with(Limits {
            permissions,
            ..Limits::default()
        });
        let id = rig.spawn_with(Spawn::new("mimir", "go"));
        rig.event(busy("ses_1"));
        rig.unseen([permission("ses_1", "per_1")]);
        rig.event(Event::Connected);
        assert_eq!(rig.responses(), responses);
        let waits = (permissions == Permissions::Wait).then_some(Waiting::Permission);
        assert_eq!(rig.view(id).waiting_on, waits);
    }
}

#[test]
fn the_record_tells_what_the_run_waits_for() {
    let mut rig = Rig::with(Limits {
        permissions: Permissions::Wait,
        ..Limits::default()
    });
    let id = rig.spawn_with(Spawn::new("mimir", "go"));
    rig.event(busy("ses_1"));
    rig.pass(1_000);
    let answered = Event::Answered {
        session: "ses_1".into(),
        request: "per_1".into(),
    };
    for (event, waits) in [
        (permission("ses_1", "per_1"), Some(Waiting::Permission)),
        (answered, None),
    ] {
        rig.effects.clear();
        rig.event(event);
        rig.pass(1_000);
        assert!(rig.effects.contains(&Effect::Persist { id }));
        let record = rig.machine.record(id).unwrap();
        assert_eq!(
            (record.waiting_on, record.view().waiting_on),
            (waits, waits)
        );
    }
}

#[test]
fn a_run_that_is_over_before_the_prompt_is_answered() {
    let mut rig = Rig::new();
    rig.holds.prompt = true;
    let id = rig.spawn();
    rig.events(plain("ses_1"));
    assert_eq!(rig.status(id), Status::Running);
    rig.answer(Answer::Prompted { id, taken: Ok(()) });
    assert!(is_done(&rig, id));
}
