//! The same as a plain table, and as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::{
    app::App,
    document::Instance,
    model::Session,
    text::{self, Side},
    view,
};

/// Writes tables for a person: no colour, no escape sequence, nothing cut but ids of more than 40 characters.
///
/// # Errors
/// What writing to `out` says.
pub fn table(out: &mut impl Write, app: &App) -> io::Result<()> {
    let now = app.now;
    let ago = |at: Option<i64>| at.map_or_else(dash, |at| text::span(now.saturating_sub(at)));
    let mut rows = vec![
        [
            "SESSION", "HOST", "TOOL", "COUNT", "VERDICT", "WARN", "BLOCK", "/MIN", "IDLE", "AGE",
        ]
        .map(str::to_owned),
    ];
    rows.extend(app.shown_sessions().into_iter().map(|session| {
        let state = session.state();
        let standing = session.standing();
        [
            text::cut_middle(session.id(), 40),
            text::cut(state.map_or("-", |state| state.host()), 12),
            text::cut(session.tool().unwrap_or("-"), 24),
            standing.map_or_else(dash, |it| format!("{}/{}", it.count, it.ladder.block())),
            view::verdict_word(session).to_owned(),
            state.map_or_else(dash, |state| state.warnings_issued.to_string()),
            state.map_or_else(dash, |state| state.blocks_triggered.to_string()),
            session.calls_a_minute(now).to_string(),
            ago(session.last_activity_at()),
            ago(session.started_at()),
        ]
    }));
    write_rows(out, &rows, &[3, 5, 6, 7, 8, 9])?;

    let instances = app.shown_instances();
    if instances.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut rows = vec![
        [
            "BACKGROUND",
            "AGENT",
            "STATUS",
            "CALLS",
            "COST",
            "LEFT",
            "WAITS FOR",
        ]
        .map(str::to_owned),
    ];
    rows.extend(instances.into_iter().map(|instance| {
        [
            text::cut_middle(&instance.instance_id, 40),
            text::cut(&instance.agent, 16),
            text::cut(&instance.status, 12),
            instance.tool_call_count.to_string(),
            text::dollars(instance.cost_usd),
            view::left(instance, now),
            text::cut(&view::waits_for(instance), 60),
        ]
    }));
    write_rows(out, &rows, &[3, 4, 5])
}

/// Writes one JSON object in one line of ASCII; times are milliseconds since 1970.
///
/// # Errors
/// What writing to `out` says.
pub fn json(out: &mut impl Write, app: &App) -> io::Result<()> {
    let sessions = app.shown_sessions();
    let sessions = sessions.into_iter().map(|it| of_session(it, app.now));
    let instances = app.shown_instances();
    let instances = instances.into_iter().map(|it| of_instance(it, app.now));
    let document = json!({
        "at": app.now,
        "sessions": sessions.collect::<Vec<_>>(),
        "instances": instances.collect::<Vec<_>>(),
        "notes": app.model.notes(),
    });
    writeln!(out, "{}", ascii(&document.to_string()))
}

fn of_session(session: &Session, now: i64) -> Value {
    let state = session.state();
    let standing = session.standing();
    json!({
        "session": session.id(),
        "host": state.map(|state| state.host()),
        "scope": state.map(|state| state.scope()),
        "agent": state.and_then(|state| state.parent_agent()),
        "tool": session.tool(),
        "isRunning": session.running().is_some(),
        "count": standing.map(|it| it.count),
        "ladder": standing.map(|it| json!({
            "warn": it.ladder.warn(),
            "escalate": it.ladder.escalate(),
            "block": it.ladder.block(),
        })),
        "verdict": standing.map(|it| it.verdict.as_str()),
        "rule": standing.and_then(|it| it.rule).map(|rule| rule.as_str()),
        "mode": standing.map(|it| it.rules.mode.as_str()),
        "observeOnly": standing.map(|it| it.rules.observe_only),
        "refusedInARow": standing.map(|it| it.refused),
        "warningsIssued": state.map(|state| state.warnings_issued),
        "blocksTriggered": state.map(|state| state.blocks_triggered),
        "turnCount": state.map(|state| state.turn_count()),
        "callsAMinute": session.calls_a_minute(now),
        "startedAt": session.started_at(),
        "lastActivityAt": session.last_activity_at(),
    })
}

fn of_instance(instance: &Instance, now: i64) -> Value {
    json!({
        "instanceId": instance.instance_id,
        "sessionId": instance.session_id,
        "agent": instance.agent,
        "parentAgent": instance.parent_agent,
        "status": instance.status,
        "toolCallCount": instance.tool_call_count,
        "costUsd": instance.cost_usd,
        "tokens": instance.tokens,
        "startedAt": instance.started_at,
        "endedAt": instance.ended_at,
        "leftMs": instance.left(now),
        "waitingOn": instance.waiting_on,
        "waitingFor": instance.waiting_for,
        "error": instance.error,
        "loopGuardTool": instance.loop_guard_tool,
        "draining": instance.draining,
    })
}

fn write_rows<const N: usize>(
    out: &mut impl Write,
    rows: &[[String; N]],
    numbers: &[usize],
) -> io::Result<()> {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = text::columns(cell).max(*width);
        }
    }
    for row in rows {
        let cells = (0..).zip(row).zip(widths).map(|((number, cell), width)| {
            let side = if numbers.contains(&number) {
                Side::Right
            } else {
                Side::Left
            };
            text::pad(cell, width, side)
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// JSON in which everything but printable ASCII is escaped: whoever prints it on a terminal prints text.
fn ascii(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, ' '..='~') {
            escaped.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

fn dash() -> String {
    "-".to_owned()
}
