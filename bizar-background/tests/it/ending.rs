//! A run that is to end ends, once, for the first reason, and gives its slot back.

use std::time::Duration;

use bizar_background::{
    Answer, Effect, Event, Failure, InstanceId, Limits, Permissions, Refusal, Spawn, Status,
    event::ToolState,
};

use crate::rig::{
    Rig, aborted, assistant, busy, child, completed, costs, delta, idle, permission, plain,
    question, tool,
};

fn killed() -> (Status, String) {
    (Status::Killed, "killed".into())
}

#[test]
fn an_instance_is_final_5_s_after_its_abort() {
    let mut rig = Rig::new();
    rig.holds.abort = true;
    let id = rig.spawn();
    rig.event(busy("ses_1"));
    rig.kill(id);
    rig.pass(4_999);
    let view = rig.view(id);
    assert_eq!((view.status, view.is_ending), (Status::Running, true));
    rig.pass(1);
    assert_eq!(rig.end(id), killed());
    let view = rig.view(id);
    assert_eq!(
        (view.draining, view.warnings),
        (true, vec!["abort not confirmed".to_owned()])
    );
    assert_eq!(rig.machine.slots_taken(), 1);
    rig.pass(10_000);
    assert_eq!(rig.machine.slots_taken(), 0);
}

#[test]
fn a_kill_before_there_is_a_session_is_final_too() {
    let mut rig = Rig::new();
    rig.holds.create = true;
    let id = rig.spawn();
    rig.kill(id);
    rig.pass(5_000);
    assert_eq!(rig.end(id), killed());
    rig.pass(10_000);
    assert_eq!(rig.machine.slots_taken(), 0);
    rig.answer(Answer::Created {
        id,
        session: Ok("ses_9".into()),
    });
    assert_eq!((rig.aborts(), rig.prompts()), (vec!["ses_9"], 0));
}

#[test]
fn a_prompt_that_arrives_after_the_abort_is_aborted_too() {
    let mut rig = Rig::new();
    rig.holds.prompt = true;
    let id = rig.spawn();
    rig.kill(id);
    assert_eq!(rig.aborts(), ["ses_1"]);
    assert_eq!(
        rig.status(id),
        Status::Pending,
        "the prompt is still on its way"
    );
    rig.answer(Answer::Prompted { id, taken: Ok(()) });
    assert_eq!(rig.aborts(), ["ses_1", "ses_1"]);
    assert_eq!(rig.end(id), killed());
    // The run begins nevertheless.
    rig.event(busy("ses_1"));
    assert_eq!(rig.aborts(), ["ses_1"; 3]);
}

#[test]
fn a_kill_of_an_ended_instance_tells_its_status() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events(plain("ses_1"));
    assert_eq!(rig.machine.kill(rig.now, id), Some(Status::Done));
    assert_eq!(rig.machine.kill(rig.now, InstanceId::new(9, [9; 10])), None);
    assert_eq!(rig.aborts(), [""; 0]);
}

#[test]
fn shutdown_ends_everything_in_2_s_and_takes_nothing_new() {
    let mut rig = Rig::new();
    let ids = [rig.spawn(), rig.spawn(), rig.spawn()];
    rig.events([busy("ses_1"), busy("ses_2")]);
    rig.holds.abort = true;
    rig.machine.shutdown(rig.now);
    rig.settle();
    assert_eq!(rig.aborts(), ["ses_1", "ses_2", "ses_3"], "all at once");
    rig.pass(2_000);
    for id in ids {
        assert_eq!(
            rig.end(id),
            (Status::Failed, "background agents were shut down".into())
        );
    }
    let id = InstanceId::new(5, [0; 10]);
    assert_eq!(
        rig.machine.spawn(rig.now, id, Spawn::new("m", "go")),
        Err(Refusal::ShuttingDown)
    );
}

#[test]
fn a_lost_server_ends_everything_at_once() {
    let mut rig = Rig::new();
    let (running, killing, over) = (rig.spawn(), rig.spawn(), rig.spawn());
    rig.events([busy("ses_1"), busy("ses_2")]);
    rig.events(plain("ses_3"));
    rig.holds.abort = true;
    rig.kill(killing);
    rig.machine
        .server_lost(rig.now, "serve child exited (signal 9)");
    rig.settle();
    assert_eq!(
        rig.end(running),
        (Status::Failed, "serve child exited (signal 9)".into())
    );
    assert_eq!(rig.end(killing), killed());
    assert_eq!(rig.status(over), Status::Done);
    assert_eq!(rig.machine.slots_taken(), 0);
    rig.spawn();
}

#[test]
fn bg_057_the_cap_counts_distinct_calls_of_the_whole_tree() {
    let mut rig = Rig::with(Limits {
        tool_calls: 4,
        ..Limits::default()
    });
    let id = rig.spawn();
    rig.events([
        busy("ses_1"),
        assistant("ses_1", "m1"),
        child("ses_2", "ses_1"),
    ]);
    // One provider names every call alike; a call is pending, running and completed.
    for message in ["m1", "m2"] {
        for state in [ToolState::Open, ToolState::Open, ToolState::Completed] {
            rig.event(tool("ses_1", message, "call", state));
        }
    }
    rig.event(tool("ses_2", "c1", "call", ToolState::Open));
    assert_eq!((rig.view(id).tool_call_count, rig.aborts().len()), (3, 0));
    let part = bizar_background::event::Part::Tool {
        call: "call".into(),
        tool: "invalid".into(),
        state: ToolState::Completed,
    };
    rig.event(Event::Part {
        session: "ses_2".into(),
        message: "c2".into(),
        part,
    });
    assert_eq!(rig.aborts(), ["ses_1"]);
    rig.events([aborted("ses_1"), idle("ses_1")]);
    assert_eq!(
        rig.end(id),
        (
            Status::Failed,
            "the limit of 4 tool calls was reached".into()
        )
    );
}

#[test]
fn bg_059_calls_of_a_gap_count_once() {
    let mut rig = Rig::with(Limits {
        tool_calls: 3,
        ..Limits::default()
    });
    let id = rig.spawn();
    rig.events([
        busy("ses_1"),
        assistant("ses_1", "m1"),
        tool("ses_1", "m1", "c1", ToolState::Completed),
    ]);
    rig.unseen([tool("ses_1", "m1", "c2", ToolState::Completed)]);
    rig.event(Event::Connected);
    rig.event(Event::Connected);
    assert_eq!(rig.view(id).tool_call_count, 2);
    rig.unseen([
        tool("ses_1", "m1", "c3", ToolState::Completed),
        idle("ses_1"),
    ]);
    rig.event(Event::Connected);
    assert_eq!(
        rig.end(id),
        (
            Status::Failed,
            "the limit of 3 tool calls was reached".into()
        )
    );
}

#[test]
fn cost_and_tokens_are_limited_over_the_tree() {
    let limits = Limits {
        cost_usd: Some(1.0),
        ..Limits::default()
    };
    let mut rig = Rig::with(limits);
    let id = rig.spawn();
    rig.events([
        busy("ses_1"),
        child("ses_2", "ses_1"),
        costs("ses_1", "m1", 0.5, 10),
        costs("ses_1", "m1", 0.6, 12),
    ]);
    rig.event(costs("ses_2", "c1", 0.4, 5));
    assert_eq!((rig.view(id).cost_usd, rig.view(id).tokens), (1.0, 17));
    assert_eq!(rig.aborts(), [""; 0], "the limit itself is allowed");
    rig.event(costs("ses_2", "c1", 0.5, 6));
    rig.event(idle("ses_1"));
    assert_eq!(
        rig.end(id),
        (
            Status::Failed,
            "the cost of 1.1000 US dollars is over the limit of 1.0000".into()
        )
    );

    let mut rig = Rig::with(Limits {
        tokens: Some(100),
        ..Limits::default()
    });
    let id = rig.spawn();
    rig.events([busy("ses_1"), costs("ses_1", "m1", 0.0, 101), idle("ses_1")]);
    assert_eq!(
        rig.end(id),
        (
            Status::Failed,
            "101 tokens are over the limit of 100".into()
        )
    );
}

#[test]
fn the_deadline_runs_from_acceptance() {
    let mut rig = Rig::new();
    rig.holds.create = true;
    let id = rig.spawn_with(Spawn {
        deadline: Duration::from_secs(1),
        ..Spawn::new("mimir", "go")
    });
    rig.pass(1_000);
    assert!(rig.view(id).is_ending);
    rig.pass(5_000);
    assert_eq!(
        rig.end(id),
        (
            Status::TimedOut,
            "the deadline of 1000 ms was reached".into()
        )
    );
}

#[test]
fn requests_are_answered_as_configured() {
    for (permissions, expected) in [
        (
            Permissions::Reject,
            vec![("per_1", false), ("que_1", false)],
        ),
        (Permissions::Allow, vec![("per_1", true), ("que_1", false)]),
        (Permissions::Wait, vec![]),
    ] {
        let mut rig = Rig::with(Limits {
            permissions,
            ..Limits::default()
        });
        rig.spawn();
        rig.events([
            busy("ses_1"),
            permission("ses_1", "per_1"),
            question("ses_1", "que_1"),
            permission("ses_1", "per_1"),
        ]);
        assert_eq!(rig.responses(), expected);
    }
}

#[test]
fn no_slot_names_those_who_have_them() {
    let mut rig = Rig::with(Limits {
        live: 2,
        ..Limits::default()
    });
    let (first, second) = (rig.spawn(), rig.spawn());
    rig.event(busy("ses_2"));
    let refusal = rig
        .machine
        .spawn(rig.now, InstanceId::new(7, [7; 10]), Spawn::new("m", "go"))
        .unwrap_err();
    let expected = format!(
        "all 2 background slots are taken by {first} (mimir, pending), {second} (mimir, running): collect or kill one, or wait"
    );
    assert_eq!(refusal.to_string(), expected);
}

#[test]
fn a_run_is_stalled_only_when_nothing_is_under_way() {
    let mut rig = Rig::new();
    let id = rig.spawn_with(Spawn {
        deadline: Duration::from_secs(1800),
        ..Spawn::new("mimir", "go")
    });
    rig.events([
        busy("ses_1"),
        assistant("ses_1", "m1"),
        delta("ses_1", "m1", "hm"),
    ]);
    rig.pass(59_000);
    assert_eq!(rig.view(id).stalled_for_ms, None);
    rig.pass(1_000);
    assert_eq!(rig.view(id).stalled_for_ms, Some(60_000));
    assert_eq!(
        rig.status(id),
        Status::Running,
        "it is shown, and ends nothing"
    );
    rig.event(tool("ses_1", "m1", "c1", ToolState::Open));
    rig.pass(360_000);
    assert_eq!(rig.view(id).stalled_for_ms, None);
    rig.event(tool("ses_1", "m1", "c1", ToolState::Completed));
    rig.pass(60_000);
    assert!(rig.view(id).stalled_for_ms.is_some());
}

#[test]
fn a_session_that_cannot_be_made_fails_the_run() {
    let mut rig = Rig::new();
    rig.holds.create = true;
    let id = rig.spawn();
    rig.answer(Answer::Created {
        id,
        session: Err(Failure::Refused("500".into())),
    });
    assert_eq!(
        rig.end(id),
        (Status::Failed, "the session could not be made: 500".into())
    );
    assert_eq!(rig.machine.slots_taken(), 0);
}

#[test]
fn a_failed_run_takes_its_subagents_with_it() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([busy("ses_1"), child("ses_2", "ses_1"), busy("ses_2")]);
    rig.events([
        crate::rig::error("ses_1", "APIError", "overloaded"),
        idle("ses_1"),
    ]);
    assert_eq!(rig.end(id), (Status::Failed, "overloaded".into()));
    assert_eq!(rig.aborts(), ["ses_2"]);
    assert!(rig.view(id).draining);
    rig.event(idle("ses_2"));
    assert_eq!(rig.machine.slots_taken(), 0);
}

#[test]
fn progress_is_stored_at_most_once_a_second() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([busy("ses_1"), assistant("ses_1", "m1")]);
    let count = |rig: &Rig| {
        rig.effects
            .iter()
            .filter(|effect| **effect == Effect::Persist { id })
            .count()
    };
    assert_eq!(
        count(&rig),
        3,
        "at the start, with the session's name, when it begins"
    );
    for call in 0..100 {
        rig.event(tool(
            "ses_1",
            "m1",
            &format!("c{call}"),
            ToolState::Completed,
        ));
        rig.pass(50);
    }
    assert!((4..=9).contains(&count(&rig)), "{}", count(&rig));
    let before = count(&rig);
    rig.events([completed("ses_1", "m1", "stop"), idle("ses_1")]);
    assert_eq!(count(&rig), before + 1);
    assert_eq!(rig.machine.record(id).unwrap().tool_call_count, 100);
}

#[test]
fn ended_instances_are_forgotten_at_200() {
    let mut rig = Rig::new();
    let mut ids = Vec::new();
    for n in 0..250_u16 {
        let id = InstanceId::new(u64::from(n), [0; 10]);
        rig.machine
            .spawn(rig.now, id, Spawn::new("m", "go"))
            .unwrap();
        rig.settle();
        let session = format!("ses_{}", n + 1);
        rig.events(plain(&session));
        ids.push(id);
    }
    assert_eq!(rig.machine.views(rig.now).count(), 200);
    assert!(rig.machine.view(rig.now, ids[49]).is_none());
    assert_eq!(rig.status(ids[50]), Status::Done);
}
