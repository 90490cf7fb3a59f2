//! Runs that ask for something.

use bizar_background::{Event, Limits, Permissions, Status, event::ToolState};

use super::{OPEN, done, start, started};
use crate::rig::{Rig, aborted, busy, completed, cut_off, idle, permission, question, text, tool};

#[test]
fn trace_10_permission_unanswered_then_abort() {
    let mut rig = Rig::with(Limits {
        permissions: Permissions::Wait,
        ..Limits::default()
    });
    let id = rig.spawn();
    rig.events(start("ses_1"));
    rig.events([
        tool("ses_1", "m2", "call_0", OPEN),
        permission("ses_1", "per_1"),
    ]);
    assert_eq!(
        rig.view(id).waiting_on,
        Some(bizar_background::Waiting::Permission)
    );
    rig.holds.abort = true;
    rig.kill(id);
    rig.events([
        aborted("ses_1"),
        idle("ses_1"),
        cut_off("ses_1", "m2"),
        idle("ses_1"),
    ]);
    rig.answer(bizar_background::Answer::Aborted { id });
    assert_eq!(rig.end(id), (Status::Killed, "killed".into()));
    assert_eq!(
        rig.responses(),
        [("per_1", false)],
        "the request that was left is refused"
    );
}

#[test]
fn trace_11_permission_rejected() {
    let (mut rig, id) = started();
    rig.events([
        tool("ses_1", "m2", "call_0", OPEN),
        permission("ses_1", "per_1"),
    ]);
    assert_eq!(rig.responses(), [("per_1", false)]);
    rig.events([
        Event::Answered {
            session: "ses_1".into(),
            request: "per_1".into(),
        },
        tool(
            "ses_1",
            "m2",
            "call_0",
            ToolState::Failed(
                "The user rejected permission to use this specific tool call.".into(),
            ),
        ),
        completed("ses_1", "m2", "tool-calls"),
        idle("ses_1"),
        idle("ses_1"),
    ]);
    assert_eq!(
        rig.status(id),
        Status::Running,
        "it is looked at again before it is decided"
    );
    rig.pass(1_000);
    assert_eq!(
        rig.end(id),
        (
            Status::Failed,
            "stopped at a rejected permission: bash".into()
        )
    );
    assert_eq!(rig.view(id).rejected, ["bash (echo hi)"]);
}

#[test]
fn trace_12_question() {
    let mut rig = Rig::with(Limits {
        permissions: Permissions::Wait,
        ..Limits::default()
    });
    let id = rig.spawn();
    rig.events(start("ses_1"));
    rig.events([
        tool("ses_1", "m2", "call_0", OPEN),
        question("ses_1", "que_1"),
    ]);
    assert_eq!(
        rig.view(id).waiting_on,
        Some(bizar_background::Waiting::Question)
    );
    rig.pass(299_000);
    assert_eq!(
        rig.status(id),
        Status::Running,
        "it waits until its deadline"
    );
    rig.pass(1_000);
    rig.events([aborted("ses_1"), idle("ses_1")]);
    assert_eq!(
        rig.end(id),
        (
            Status::TimedOut,
            "the deadline of 300000 ms was reached".into()
        )
    );
}

#[test]
fn trace_16_a_path_outside_the_project() {
    let (mut rig, id) = started();
    rig.events([
        tool("ses_1", "m2", "call_0", OPEN),
        permission("ses_1", "per_1"),
    ]);
    assert_eq!(rig.responses(), [("per_1", false)]);
    // The model takes the refusal and answers.
    rig.events([
        tool(
            "ses_1",
            "m2",
            "call_0",
            ToolState::Failed("rejected".into()),
        ),
        completed("ses_1", "m2", "tool-calls"),
        busy("ses_1"),
        text("ses_1", "m3", "I may not read that."),
        completed("ses_1", "m3", "stop"),
        idle("ses_1"),
    ]);
    assert_eq!(rig.end(id), done());
}
