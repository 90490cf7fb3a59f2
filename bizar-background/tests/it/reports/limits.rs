//! Slots, deadlines and counts.

use bizar_background::{
    Effect, Event, InstanceId, Limits, Refusal, Spawn, Status, Waiting, event::ToolState,
};

use super::{done, running};
use crate::rig::{
    Rig, assistant, busy, child, completed, delta, idle, permission, plain, retry, text, tool,
};

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
