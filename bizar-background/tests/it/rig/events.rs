//! Events as opencode tells them.

use bizar_background::{
    Event,
    event::{
        Activity, MessageInfo, Part, Request, RequestKind, Retry, Role, ServerError, ToolState,
    },
};

pub(crate) fn busy(session: &str) -> Event<'static> {
    Event::Status {
        session: session.into(),
        activity: Activity::Busy,
    }
}

pub(crate) fn idle(session: &str) -> Event<'static> {
    Event::Status {
        session: session.into(),
        activity: Activity::Idle,
    }
}

pub(crate) fn retry(session: &str, attempt: u64, next: u64) -> Event<'static> {
    let retry = Retry {
        attempt,
        message: "rate limited".into(),
        next,
    };
    Event::Status {
        session: session.into(),
        activity: Activity::Retry(retry),
    }
}

pub(crate) fn error(session: &str, name: &str, message: &str) -> Event<'static> {
    Event::Error {
        session: Some(session.into()),
        error: server_error(name, message),
    }
}

pub(crate) fn aborted(session: &str) -> Event<'static> {
    error(session, "MessageAbortedError", "Aborted")
}

pub(crate) fn server_error(name: &str, message: &str) -> ServerError {
    ServerError {
        name: name.into(),
        message: message.into(),
    }
}

pub(crate) fn child(session: &str, parent: &str) -> Event<'static> {
    Event::Session {
        id: session.into(),
        parent: Some(parent.into()),
    }
}

fn message(session: &str, info: MessageInfo) -> Event<'static> {
    Event::Message {
        session: session.into(),
        info,
    }
}

pub(crate) fn user(session: &str, id: &str) -> Event<'static> {
    message(
        session,
        MessageInfo {
            id: id.into(),
            role: Role::User,
            ..MessageInfo::default()
        },
    )
}

pub(crate) fn assistant(session: &str, id: &str) -> Event<'static> {
    message(
        session,
        MessageInfo {
            id: id.into(),
            role: Role::Assistant,
            ..MessageInfo::default()
        },
    )
}

pub(crate) fn completed(session: &str, id: &str, finish: &str) -> Event<'static> {
    let finish = (!finish.is_empty()).then(|| finish.to_owned());
    let info = MessageInfo {
        id: id.into(),
        role: Role::Assistant,
        is_completed: true,
        finish,
        ..MessageInfo::default()
    };
    message(session, info)
}

pub(crate) fn failed(session: &str, id: &str, error: ServerError) -> Event<'static> {
    let info = MessageInfo {
        id: id.into(),
        role: Role::Assistant,
        is_completed: true,
        error: Some(error),
        ..MessageInfo::default()
    };
    message(session, info)
}

/// The message that an abort has left.
pub(crate) fn cut_off(session: &str, id: &str) -> Event<'static> {
    failed(session, id, server_error("MessageAbortedError", "Aborted"))
}

pub(crate) fn costs(session: &str, id: &str, cost: f64, tokens: u64) -> Event<'static> {
    message(
        session,
        MessageInfo {
            id: id.into(),
            role: Role::Assistant,
            cost,
            tokens,
            ..MessageInfo::default()
        },
    )
}

pub(crate) fn text(session: &str, message: &str, text: &str) -> Event<'static> {
    let part = Part::Text {
        text: text.into(),
        is_hidden: false,
    };
    Event::Part {
        session: session.into(),
        message: message.into(),
        part,
    }
}

pub(crate) fn delta(session: &str, message: &str, text: &str) -> Event<'static> {
    Event::Delta {
        session: session.to_owned().into(),
        message: message.to_owned().into(),
        text: text.to_owned().into(),
    }
}

pub(crate) fn tool(session: &str, message: &str, call: &str, state: ToolState) -> Event<'static> {
    let part = Part::Tool {
        call: call.into(),
        tool: "bash".into(),
        state,
    };
    Event::Part {
        session: session.into(),
        message: message.into(),
        part,
    }
}

pub(crate) fn step(session: &str, message: &str) -> Event<'static> {
    Event::Part {
        session: session.into(),
        message: message.into(),
        part: Part::StepStart,
    }
}

pub(crate) fn permission(session: &str, id: &str) -> Event<'static> {
    asked(session, id, RequestKind::Permission, "bash (echo hi)")
}

pub(crate) fn question(session: &str, id: &str) -> Event<'static> {
    asked(session, id, RequestKind::Question, "question (Pick?)")
}

fn asked(session: &str, id: &str, kind: RequestKind, title: &str) -> Event<'static> {
    Event::Asked(Request {
        id: id.into(),
        session: session.into(),
        kind,
        title: title.into(),
    })
}

/// A whole answer to the prompt: user, busy, text, completed, idle twice.
pub(crate) fn plain(session: &str) -> Vec<Event<'static>> {
    let (asked, said) = (format!("{session}_u"), format!("{session}_a"));
    vec![
        user(session, &asked),
        busy(session),
        assistant(session, &said),
        busy(session),
        text(session, &said, "hello world"),
        completed(session, &said, "stop"),
        idle(session),
        idle(session),
    ]
}
