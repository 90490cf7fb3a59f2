//! Events are read from the shapes of opencode 1.18, and from anything else without harm.

use bizar_background::{
    Event, Limits, Machine, Now,
    event::{
        Activity, MessageInfo, Part, Request, RequestKind, Retry, Role, ServerError, ToolState,
    },
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(kind: &str, properties: Value) -> Event<'static> {
    let data = json!({"id": "evt_1", "type": kind, "properties": properties}).to_string();
    let wrapped = json!({"directory": "/d", "payload": {"id": "evt_1", "type": kind, "properties": properties}}).to_string();
    let event = Event::parse(&data).unwrap().unwrap().into_owned();
    assert_eq!(
        Event::parse(&wrapped).unwrap().unwrap(),
        event,
        "the global stream says the same"
    );
    event
}

fn part(part: Value) -> Part {
    let Event::Part {
        session,
        message,
        part,
    } = read(
        "message.part.updated",
        json!({"sessionID": "ses_1", "part": part, "time": 1}),
    )
    else {
        panic!("no part")
    };
    assert_eq!((session.as_str(), message.as_str()), ("ses_1", "msg_1"));
    part
}

#[test]
fn statuses() {
    let status = |status: Value| {
        read(
            "session.status",
            json!({"sessionID": "ses_1", "status": status}),
        )
    };
    let is = |activity| Event::Status {
        session: "ses_1".into(),
        activity,
    };
    assert_eq!(status(json!({"type": "busy"})), is(Activity::Busy));
    assert_eq!(status(json!({"type": "idle"})), is(Activity::Idle));
    assert_eq!(
        status(
            json!({"type": "retry", "attempt": 1, "message": "rate limited", "next": 1_796_060_686_482_u64})
        ),
        is(Activity::Retry(Retry {
            attempt: 1,
            message: "rate limited".into(),
            next: 1_796_060_686_482
        }))
    );
    assert_eq!(status(json!({"type": "dreaming"})), is(Activity::Unknown));
    assert_eq!(
        read("session.idle", json!({"sessionID": "ses_1"})),
        is(Activity::Idle)
    );
}

#[test]
fn errors() {
    let event = read(
        "session.error",
        json!({"sessionID": "ses_1", "error": {"name": "APIError", "data": {"message": "bad request here", "statusCode": 400}}}),
    );
    let error = ServerError {
        name: "APIError".into(),
        message: "bad request here".into(),
    };
    assert_eq!(
        event,
        Event::Error {
            session: Some("ses_1".into()),
            error
        }
    );
    let bare = read("session.error", json!({"error": {"name": "UnknownError"}}));
    let error = ServerError {
        name: "UnknownError".into(),
        message: "UnknownError".into(),
    };
    assert_eq!(
        bare,
        Event::Error {
            session: None,
            error
        }
    );
}

#[test]
fn messages() {
    let event = read(
        "message.updated",
        json!({"sessionID": "ses_1", "info": {"id": "msg_1", "role": "assistant", "sessionID": "ses_1", "cost": 0.5,
            "time": {"created": 1, "completed": 2}, "finish": "stop", "modelID": "m1",
            "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 1, "cache": {"read": 2, "write": 3}}}}),
    );
    let info = MessageInfo {
        id: "msg_1".into(),
        role: Role::Assistant,
        is_completed: true,
        finish: Some("stop".into()),
        cost: 0.5,
        tokens: 21,
        ..MessageInfo::default()
    };
    assert_eq!(
        event,
        Event::Message {
            session: "ses_1".into(),
            info
        }
    );
    let event = read(
        "message.updated",
        json!({"info": {"id": "msg_1", "role": "user", "sessionID": "ses_1", "time": {"created": 1}, "summary": {"diffs": []}}}),
    );
    let info = MessageInfo {
        id: "msg_1".into(),
        role: Role::User,
        ..MessageInfo::default()
    };
    assert_eq!(
        event,
        Event::Message {
            session: "ses_1".into(),
            info
        }
    );
}

#[test]
fn parts() {
    let with = |rest: Value| {
        let mut all = json!({"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_1"});
        all.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        part(all)
    };
    assert_eq!(
        with(json!({"type": "text", "text": "hi"})),
        Part::Text {
            text: "hi".into(),
            is_hidden: false
        }
    );
    let hidden = with(json!({"type": "text", "text": "hi", "synthetic": true}));
    assert_eq!(
        hidden,
        Part::Text {
            text: "hi".into(),
            is_hidden: true
        }
    );
    assert_eq!(with(json!({"type": "step-start"})), Part::StepStart);
    assert_eq!(
        with(json!({"type": "step-finish", "reason": "stop", "tokens": {}, "cost": 0})),
        Part::StepFinish
    );
    assert_eq!(with(json!({"type": "snapshot"})), Part::Other);
    let tool = |state: Value| {
        with(json!({"type": "tool", "tool": "bash", "callID": "call_0", "state": state}))
    };
    let is = |state| Part::Tool {
        call: "call_0".into(),
        tool: "bash".into(),
        state,
    };
    assert_eq!(
        tool(json!({"status": "pending", "input": {}, "raw": ""})),
        is(ToolState::Open)
    );
    assert_eq!(
        tool(json!({"status": "running", "input": {"command": "x"}, "metadata": {"output": "y"}})),
        is(ToolState::Open)
    );
    assert_eq!(
        tool(json!({"status": "completed", "input": {}, "output": "z"})),
        is(ToolState::Completed)
    );
    assert_eq!(
        tool(json!({"status": "error", "error": "no"})),
        is(ToolState::Failed("no".into()))
    );
}

#[test]
fn deltas_of_text_only() {
    let delta = |field| {
        read(
            "message.part.delta",
            json!({"sessionID": "ses_1", "messageID": "msg_1", "partID": "p", "field": field, "delta": "a\n"}),
        )
    };
    let text = Event::Delta {
        session: "ses_1".into(),
        message: "msg_1".into(),
        text: "a\n".into(),
    };
    assert_eq!(delta("text"), text);
    assert_eq!(delta("reasoning"), Event::Unknown);
}

#[test]
fn requests() {
    let event = read(
        "permission.asked",
        json!({"id": "per_1", "sessionID": "ses_1", "permission": "bash", "patterns": ["echo hi", "ls"], "metadata": {}, "always": []}),
    );
    let request = Request {
        id: "per_1".into(),
        session: "ses_1".into(),
        kind: RequestKind::Permission,
        title: "bash (echo hi, ls)".into(),
    };
    assert_eq!(event, Event::Asked(request));
    let event = read(
        "question.asked",
        json!({"id": "que_1", "sessionID": "ses_1", "questions": [{"question": "Pick?"}]}),
    );
    let request = Request {
        id: "que_1".into(),
        session: "ses_1".into(),
        kind: RequestKind::Question,
        title: "question (Pick?)".into(),
    };
    assert_eq!(event, Event::Asked(request));
    for kind in [
        "permission.replied",
        "question.replied",
        "question.rejected",
    ] {
        let event = read(
            kind,
            json!({"sessionID": "ses_1", "requestID": "per_1", "reply": "reject"}),
        );
        assert_eq!(
            event,
            Event::Answered {
                session: "ses_1".into(),
                request: "per_1".into()
            }
        );
    }
}

#[test]
fn sessions() {
    let event = read(
        "session.created",
        json!({"sessionID": "ses_2", "info": {"id": "ses_2", "parentID": "ses_1"}}),
    );
    assert_eq!(
        event,
        Event::Session {
            id: "ses_2".into(),
            parent: Some("ses_1".into())
        }
    );
    let event = read("session.deleted", json!({"sessionID": "ses_1", "info": {}}));
    assert_eq!(
        event,
        Event::Deleted {
            session: "ses_1".into()
        }
    );
    assert_eq!(read("server.connected", json!({})), Event::Connected);
    assert_eq!(read("server.heartbeat", json!({})), Event::Heartbeat);
    assert_eq!(
        read("plugin.added", json!({"sessionID": 7})),
        Event::Unknown
    );
}

#[test]
fn sync_twins_are_dropped() {
    let twin = json!({"payload": {"type": "sync", "syncEvent": {"type": "session.updated.1", "data": {}}}});
    assert_eq!(Event::parse(&twin.to_string()).unwrap(), None);
}

#[test]
fn what_cannot_be_read_is_an_error_and_no_more() {
    for bad in [
        "",
        "{",
        "null",
        "[1]",
        "{\"type\":\"session.idle\"}",
        "{\"type\":\"session.status\",\"properties\":[]}",
    ] {
        assert!(Event::parse(bad).is_err(), "{bad}");
    }
    assert_eq!(Event::parse("{}").unwrap(), Some(Event::Unknown));
}

proptest! {
    #[test]
    fn any_text_is_an_event_or_an_error(text in "\\PC{0,80}") {
        if let Ok(Some(event)) = Event::parse(&text) {
            Machine::new(Limits::default()).event(Now::default(), &event);
        }
    }
}
