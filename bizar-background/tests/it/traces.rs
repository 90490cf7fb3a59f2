//! The streams that opencode really sends, retyped, and how each run ends.

use bizar_background::{Event, InstanceId, Spawn, Status, event::ToolState};

use crate::rig::{
    Rig, aborted, assistant, busy, completed, cut_off, delta, error, failed, idle, plain, retry,
    server_error, step, text, tool, user,
};

mod asked;
mod trees;

const OPEN: ToolState = ToolState::Open;
const ENDED: ToolState = ToolState::Completed;

fn done() -> (Status, String) {
    (Status::Done, String::new())
}

/// The beginning of every run: the prompt comes back, and the model begins.
fn start(session: &str) -> Vec<Event<'static>> {
    vec![
        user(session, "m1"),
        text(session, "m1", "PROMPT"),
        busy(session),
        assistant(session, "m2"),
        busy(session),
        user(session, "m1"),
        step(session, "m2"),
    ]
}

fn started() -> (Rig, InstanceId) {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events(start("ses_1"));
    (rig, id)
}

#[test]
fn trace_01_plain() {
    let (mut rig, id) = started();
    rig.events([
        delta("ses_1", "m2", "hello "),
        delta("ses_1", "m2", "world"),
        text("ses_1", "m2", "hello world"),
        assistant("ses_1", "m2"),
        completed("ses_1", "m2", "stop"),
        busy("ses_1"),
        idle("ses_1"),
        idle("ses_1"),
        user("ses_1", "m1"),
    ]);
    assert_eq!(rig.end(id), done());
    let view = rig.view(id);
    assert_eq!(
        view.result_preview.as_deref(),
        Some("hello world"),
        "the prompt that comes back is no result"
    );
    let statuses: Vec<_> = rig.changes.iter().map(|change| change.status).collect();
    assert_eq!(statuses, [Status::Pending, Status::Running, Status::Done]);
    assert_eq!(rig.aborts(), [""; 0]);
}

#[test]
fn trace_02_two_tools() {
    let (mut rig, id) = started();
    for (message, call) in [("m2", "call_0"), ("m3", "call_1")] {
        rig.events([
            assistant("ses_1", message),
            tool("ses_1", message, call, OPEN),
            tool("ses_1", message, call, OPEN),
            tool("ses_1", message, call, OPEN),
            tool("ses_1", message, call, ENDED),
            completed("ses_1", message, "tool-calls"),
            busy("ses_1"),
        ]);
    }
    assert_eq!(rig.status(id), Status::Running);
    rig.events([
        text("ses_1", "m4", "ready"),
        completed("ses_1", "m4", "stop"),
        busy("ses_1"),
        idle("ses_1"),
        idle("ses_1"),
    ]);
    assert_eq!(rig.end(id), done());
    assert_eq!(rig.view(id).tool_call_count, 2);
}

#[test]
fn trace_03_abort_midstream() {
    let (mut rig, id) = started();
    rig.holds.abort = true;
    rig.kill(id);
    rig.events([
        aborted("ses_1"),
        idle("ses_1"),
        idle("ses_1"),
        text("ses_1", "m2", "w0 w1"),
        cut_off("ses_1", "m2"),
        idle("ses_1"),
    ]);
    rig.answer(bizar_background::Answer::Aborted { id });
    assert_eq!(rig.end(id), (Status::Killed, "killed".into()));
    assert_eq!(rig.machine.slots_taken(), 0);
    assert_eq!(rig.view(id).warnings, [""; 0]);
}

#[test]
fn trace_04_abort_before_first_step() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.holds.abort = true;
    rig.event(user("ses_1", "m1"));
    rig.kill(id);
    rig.events([
        busy("ses_1"),
        cut_off("ses_1", "m2"),
        idle("ses_1"),
        idle("ses_1"),
    ]);
    rig.answer(bizar_background::Answer::Aborted { id });
    assert_eq!(rig.end(id), (Status::Killed, "killed".into()));
}

#[test]
fn trace_05_abort_while_a_tool_runs() {
    let (mut rig, id) = started();
    rig.events([tool("ses_1", "m2", "call_0", OPEN)]);
    rig.holds.abort = true;
    rig.kill(id);
    rig.events([
        aborted("ses_1"),
        idle("ses_1"),
        tool("ses_1", "m2", "call_0", ENDED),
        cut_off("ses_1", "m2"),
        idle("ses_1"),
    ]);
    rig.answer(bizar_background::Answer::Aborted { id });
    assert_eq!(rig.end(id), (Status::Killed, "killed".into()));
    assert_eq!(rig.view(id).tool_call_count, 1);
}

#[test]
fn trace_06_provider_error() {
    let (mut rig, id) = started();
    rig.events([
        error("ses_1", "APIError", "bad request here"),
        idle("ses_1"),
        idle("ses_1"),
    ]);
    assert_eq!(rig.end(id), (Status::Failed, "bad request here".into()));
    rig.events([
        failed("ses_1", "m2", server_error("APIError", "bad request here")),
        idle("ses_1"),
        idle("ses_1"),
    ]);
    assert_eq!(rig.end(id), (Status::Failed, "bad request here".into()));
    assert_eq!((rig.aborts(), rig.machine.slots_taken()), (vec![], 0));
}

#[test]
fn trace_07_provider_busy_for_ever() {
    let (mut rig, id) = started();
    for attempt in 1..=5 {
        rig.event(retry("ses_1", attempt, 2_000_000));
        assert_eq!(rig.view(id).retry.unwrap().attempt, attempt);
        rig.pass(1_000);
        rig.event(busy("ses_1"));
        assert_eq!(rig.status(id), Status::Running);
    }
    rig.events([
        error("ses_1", "APIError", "rate limited"),
        idle("ses_1"),
        idle("ses_1"),
    ]);
    assert_eq!(rig.end(id), (Status::Failed, "rate limited".into()));
    assert_eq!(rig.view(id).warnings.len(), 5);
}

#[test]
fn trace_08_unknown_model() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([
        user("ses_1", "m1"),
        busy("ses_1"),
        error("ses_1", "UnknownError", "Model not found: nope/x."),
        idle("ses_1"),
        idle("ses_1"),
        error(
            "ses_1",
            "UnknownError",
            "ProviderModelNotFoundError: a stack",
        ),
    ]);
    assert_eq!(
        rig.end(id),
        (Status::Failed, "Model not found: nope/x.".into())
    );
}

#[test]
fn trace_09_unknown_agent() {
    let mut rig = Rig::new();
    let id = rig.spawn();
    rig.events([
        error("ses_1", "UnknownError", "Agent not found: \"nosuch\"."),
        error("ses_1", "UnknownError", "UnknownError: UnknownError"),
    ]);
    assert_eq!(rig.status(id), Status::Pending);
    rig.pass(2_000);
    assert_eq!(
        rig.end(id),
        (Status::Failed, "Agent not found: \"nosuch\".".into())
    );
    assert_eq!(rig.machine.slots_taken(), 0);
}

#[test]
fn trace_15_deleted_midrun() {
    let (mut rig, id) = started();
    rig.event(Event::Deleted {
        session: "ses_1".into(),
    });
    rig.event(delta("ses_1", "m2", "w3 "));
    assert_eq!(rig.end(id), (Status::Failed, "session deleted".into()));
    assert_eq!(rig.aborts(), ["ses_1"], "what goes on is aborted");
    assert_eq!(rig.machine.slots_taken(), 0);
}

#[test]
fn trace_17_second_prompt_while_busy() {
    let (mut rig, id) = started();
    rig.events([
        user("ses_1", "m3"),
        tool("ses_1", "m2", "call_0", ENDED),
        completed("ses_1", "m2", "tool-calls"),
        busy("ses_1"),
        text("ses_1", "m4", "both"),
        completed("ses_1", "m4", "stop"),
        idle("ses_1"),
        idle("ses_1"),
        user("ses_1", "m3"),
    ]);
    assert_eq!(rig.end(id), done());
}

#[test]
fn trace_18_disposed_midrun() {
    let (mut rig, id) = started();
    rig.events([
        aborted("ses_1"),
        idle("ses_1"),
        idle("ses_1"),
        cut_off("ses_1", "m2"),
    ]);
    assert_eq!(rig.end(id), (Status::Failed, "aborted from outside".into()));
}

#[test]
fn trace_20_loop_guard() {
    let (mut rig, id) = started();
    let refusal = "Loop protection: 12 identical calls to bash. Use task to escalate.";
    rig.events([
        tool("ses_1", "m2", "call_4", OPEN),
        tool("ses_1", "m2", "call_4", ToolState::Failed(refusal.into())),
    ]);
    assert_eq!(rig.aborts(), ["ses_1"]);
    rig.events([aborted("ses_1"), idle("ses_1"), idle("ses_1")]);
    rig.pass(500);
    assert_eq!(
        rig.end(id),
        (
            Status::Failed,
            "the loop guard refused a call of bash".into()
        )
    );
    assert_eq!(rig.view(id).loop_guard_tool.as_deref(), Some("bash"));
}

#[test]
fn several_runs_at_once() {
    let mut rig = Rig::new();
    let ids: Vec<_> = (0..8)
        .map(|_| rig.spawn_with(Spawn::new("mimir", "go")))
        .collect();
    let mut streams: Vec<_> = (1..=8)
        .map(|n| plain(&format!("ses_{n}")).into_iter())
        .collect();
    // One event of each session in turn.
    loop {
        let events: Vec<_> = streams.iter_mut().filter_map(Iterator::next).collect();
        if events.is_empty() {
            break;
        }
        rig.events(events);
    }
    for id in ids {
        assert_eq!(rig.end(id), done());
    }
}
