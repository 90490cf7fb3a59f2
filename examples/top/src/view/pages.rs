//! Pages of text: the details of one row, and the help.

use bizar_window::Verdict;
use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};

use crate::{
    app::{App, Table},
    document::Instance,
    model::Session,
    text::{self, Side},
    view::{self, Theme},
};

/// Everything that is known of the selected row.
pub(super) fn details(app: &App, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let selected = app
        .cursor(app.focus)
        .selected
        .as_deref()
        .unwrap_or_default();
    let lines = match app.focus {
        Table::Sessions => app
            .model
            .session(selected)
            .map(|session| of_session(session, app.now, theme, width)),
        Table::Instances => app
            .model
            .instance(selected)
            .map(|instance| of_instance(instance, app.now, width)),
    };
    lines.unwrap_or_else(|| vec![Line::raw(text::cut("it is gone", width))])
}

/// What the keys do, what the columns say, and everything that could not be read.
pub(super) fn help(app: &App, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = HELP
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(head) => heading(head.trim(), width),
            None => Line::raw(text::cut(line, width)),
        })
        .collect();
    let notes = app.model.notes();
    if !notes.is_empty() {
        lines.push(Line::default());
        lines.push(heading("What could not be read", width));
        let notes = notes.iter().flat_map(|note| wrap(note, width));
        lines.extend(notes.map(|line| Line::styled(line, theme.of(Verdict::Warn))));
    }
    lines
}

fn of_session(session: &Session, now: i64, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let ago = |at: i64| format!("{} ago", text::span(now.saturating_sub(at)));
    let mut facts: Vec<(&str, String)> = vec![("session", session.id().to_owned())];
    if let Some(state) = session.state() {
        facts.push(("host", state.host().to_owned()));
        facts.push(("agent", state.parent_agent().unwrap_or("-").to_owned()));
        facts.push(("project", state.scope().to_owned()));
        facts.push(("turns", state.turn_count().to_string()));
        facts.push((
            "warned, refused",
            format!("{}, {}", state.warnings_issued, state.blocks_triggered),
        ));
    }
    facts.push((
        "started",
        session.started_at().map_or_else(|| "-".to_owned(), ago),
    ));
    facts.push((
        "last activity",
        session
            .last_activity_at()
            .map_or_else(|| "-".to_owned(), ago),
    ));
    facts.push(("calls a minute", session.calls_a_minute(now).to_string()));
    match session.standing() {
        Some(standing) => {
            let rules = standing.rules;
            let observed = if rules.observe_only {
                ", observe only"
            } else {
                ""
            };
            facts.push(("mode", format!("{}{observed}", rules.mode)));
            let rule = standing
                .rule
                .map_or_else(String::new, |rule| format!(" (rule: {rule})"));
            facts.push(("verdict", format!("{}{rule}", standing.verdict)));
            let ladder = standing.ladder;
            facts.push((
                "count",
                format!(
                    "{} on the ladder {} / {} / {}",
                    standing.count,
                    ladder.warn(),
                    ladder.escalate(),
                    ladder.block()
                ),
            ));
            let halt = match rules.halt_after {
                0 => "never halts".to_owned(),
                after => format!("halts after {after}"),
            };
            facts.push(("refused in a row", format!("{}, {halt}", standing.refused)));
            let due = standing.due.map_or("-", Verdict::as_str);
            facts.push(("agent will hear", due.to_owned()));
            for (tool, at) in standing.open.iter().rev().take(MOST_RUNNING) {
                let running = text::span(now.saturating_sub(*at));
                facts.push(("running", format!("{tool}, for {running}")));
            }
        }
        None => facts.push(("verdict", "unknown: no usable state document".to_owned())),
    }
    let mut lines = list(&facts, width);
    lines.push(Line::default());
    lines.push(heading("Last calls", width));
    let calls = session.last_calls();
    if calls.is_empty() {
        lines.push(Line::styled("none", theme.dim()));
    }
    lines.extend(calls.iter().map(|call| {
        let ago = text::span(now.saturating_sub(call.at));
        let duration = call
            .duration_ms
            .map_or_else(String::new, |ms| format!("{ms}ms"));
        let tool = text::pad(&text::cut(&call.tool, 24), 24, Side::Left);
        let ago = text::pad(&ago, 5, Side::Right);
        let line = format!(
            "{ago}  {tool}  {}  {:7}  {duration:>9}",
            text::cut(&call.fingerprint, 12),
            call.outcome
        );
        let looks = match call.outcome {
            "blocked" => theme.of(Verdict::Block),
            "error" => theme.of(Verdict::Warn),
            _ => Style::new(),
        };
        Line::styled(text::cut(&line, width), looks)
    }));
    lines
}

fn of_instance(instance: &Instance, now: i64, width: usize) -> Vec<Line<'static>> {
    let ago = |at: i64| format!("{} ago", text::span(now.saturating_sub(at)));
    let text_or = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mut facts: Vec<(&str, String)> = vec![
        ("background", instance.instance_id.clone()),
        ("session", text_or(&instance.session_id)),
        ("agent", instance.agent.clone()),
        ("asked for by", text_or(&instance.parent_agent)),
        ("status", instance.status.clone()),
        ("started", ago(instance.started_at)),
        (
            "ended",
            instance.ended_at.map_or_else(|| "-".to_owned(), ago),
        ),
        ("time left", view::left(instance, now)),
        ("waits for", view::waits_for(instance)),
        ("tool calls", instance.tool_call_count.to_string()),
        ("cost", text::dollars(instance.cost_usd)),
        ("tokens", instance.tokens.to_string()),
    ];
    if let Some(error) = &instance.error {
        facts.push(("error", error.clone()));
    }
    if let Some(tool) = &instance.loop_guard_tool {
        facts.push(("refused tool", tool.clone()));
    }
    if instance.reactivated {
        facts.push(("note", "set to work again after its end".to_owned()));
    }
    facts.extend(
        instance
            .warnings
            .iter()
            .map(|warning| ("warning", warning.clone())),
    );
    list(&facts, width)
}

/// A name and a value a line; long values go on in the next lines.
fn list(facts: &[(&str, String)], width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (name, value) in facts {
        let mut name = text::cut(name, width);
        for value in wrap(value, width.saturating_sub(NAMES)) {
            lines.push(Line::from(vec![
                Span::styled(
                    text::pad(&std::mem::take(&mut name), NAMES, Side::Left),
                    Style::new().add_modifier(Modifier::DIM),
                ),
                Span::raw(value),
            ]));
        }
    }
    lines
}

/// Safe text in lines of at most `width` columns, broken anywhere; at most [`MOST_WRAPPED`] of them.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let safe = text::safe(text);
    let mut lines = vec![String::new()];
    let mut taken = 0;
    for c in safe.chars() {
        let columns = text::columns(c.encode_utf8(&mut [0; 4]));
        if taken + columns > width && taken > 0 {
            if lines.len() == MOST_WRAPPED {
                break;
            }
            lines.push(String::new());
            taken = 0;
        }
        taken += columns;
        if let Some(line) = lines.last_mut() {
            line.push(c);
        }
    }
    lines
}

fn heading(text: &str, width: usize) -> Line<'static> {
    Line::styled(
        text::cut(text, width),
        Style::new().add_modifier(Modifier::BOLD),
    )
}

const NAMES: usize = 18;
const MOST_RUNNING: usize = 8;
const MOST_WRAPPED: usize = 12;

const HELP: &str = "\
# Keys
up down  k j     move; page up, page down, home g, end G: further
enter            details of the selected row; esc: back
tab              the other table
/                filter: id, host, agent, tool, verdict; enter: keep, esc: clear
s  r             next order: trouble, activity, rate, age, name; reverse it
p  space         pause: nothing changes until it is pressed again
?  h             this page
q  ctrl-c        quit

# Sessions
COUNT            times in a row the last call brought nothing new / refused at
VERDICT          of the last call: allow notice warn escalate block halt;
                 in brackets where the guard only observes
WARN BLOCK       how often the agent was warned; how many calls were refused
/MIN             calls that ended within the last minute
IDLE AGE         since the last activity; since the start
..               behind a tool: this call is running
Rows are dim after five minutes without activity.

# Background agents
CALLS COST       of the agent and its subagents
LEFT             until it is ended at the latest
WAITS FOR        a permission, a question, the provider (retry), a subagent
                 (descendant); or why it ended";
