//! Runs with subagents.

use bizar_background::{Status, event::ToolState};

use super::{ENDED, OPEN, done, started};
use crate::rig::{aborted, assistant, busy, child, completed, cut_off, idle, text, tool, user};

#[test]
fn trace_13_subagent() {
    let (mut rig, id) = started();
    rig.events([
        tool("ses_1", "m2", "call_0", OPEN),
        child("ses_2", "ses_1"),
        user("ses_2", "c1"),
        busy("ses_2"),
        assistant("ses_2", "c2"),
        text("ses_2", "c2", "hello"),
        completed("ses_2", "c2", "stop"),
        busy("ses_2"),
        idle("ses_2"),
        idle("ses_2"),
        tool("ses_1", "m2", "call_0", ENDED),
    ]);
    assert_eq!(rig.status(id), Status::Running);
    rig.events([
        completed("ses_1", "m2", "tool-calls"),
        busy("ses_1"),
        assistant("ses_1", "m3"),
        text("ses_1", "m3", "hello world"),
        completed("ses_1", "m3", "stop"),
        busy("ses_1"),
        idle("ses_1"),
        idle("ses_1"),
    ]);
    assert_eq!(rig.end(id), done());
    assert_eq!(rig.view(id).result_preview.as_deref(), Some("hello world"));
}

#[test]
fn trace_14_subagent_aborted_with_its_parent() {
    let (mut rig, id) = started();
    rig.events([
        tool("ses_1", "m2", "call_0", OPEN),
        child("ses_2", "ses_1"),
        busy("ses_2"),
        assistant("ses_2", "c2"),
    ]);
    rig.holds.abort = true;
    rig.kill(id);
    rig.events([
        aborted("ses_2"),
        idle("ses_2"),
        tool(
            "ses_1",
            "m2",
            "call_0",
            ToolState::Failed("Task cancelled".into()),
        ),
        idle("ses_2"),
        aborted("ses_1"),
        idle("ses_1"),
        cut_off("ses_1", "m2"),
        idle("ses_1"),
    ]);
    rig.answer(bizar_background::Answer::Aborted { id });
    assert_eq!(rig.end(id), (Status::Killed, "killed".into()));
    assert_eq!(
        rig.aborts(),
        ["ses_1"],
        "the abort of the parent was enough"
    );
}

#[test]
fn trace_19_a_subagent_in_the_background() {
    let (mut rig, id) = started();
    rig.events([
        tool("ses_1", "m2", "call_0", OPEN),
        child("ses_2", "ses_1"),
        tool("ses_1", "m2", "call_0", ENDED),
        busy("ses_2"),
        completed("ses_1", "m2", "tool-calls"),
        busy("ses_1"),
        text("ses_1", "m3", "hello world"),
        completed("ses_1", "m3", "stop"),
        busy("ses_1"),
        idle("ses_1"),
        idle("ses_1"),
    ]);
    let view = rig.view(id);
    assert_eq!(
        (view.status, view.waiting_on),
        (Status::Running, Some(bizar_background::Waiting::Descendant))
    );
    assert_eq!(view.waiting_for.as_deref(), Some("ses_2"));
    rig.pass(40_000);
    assert_eq!(rig.status(id), Status::Running);
    rig.events([
        completed("ses_2", "c2", "stop"),
        idle("ses_2"),
        idle("ses_2"),
    ]);
    assert_eq!(
        rig.status(id),
        Status::Running,
        "the parent gets time to wake up"
    );
    rig.event(user("ses_1", "m4"));
    rig.pass(94);
    rig.events([busy("ses_1"), assistant("ses_1", "m5")]);
    rig.pass(5_000);
    rig.events([
        text("ses_1", "m5", "the end"),
        completed("ses_1", "m5", "stop"),
        busy("ses_1"),
        idle("ses_1"),
        idle("ses_1"),
    ]);
    assert_eq!(rig.end(id), done());
    assert_eq!(rig.view(id).result_preview.as_deref(), Some("the end"));
}
