//! The screen. Pure: what is drawn depends on the [`App`] and the size alone.

mod columns;
mod pages;

use bizar_window::Verdict;
use ratatui::{
    Frame,
    layout::Rect,
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

use crate::{
    app::{App, Cursor, Page, Table},
    document::Instance,
    model::Session,
    text,
    view::columns::{Cell, Columns},
};

/// How things are told apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Theme {
    /// Colours may be used. Everything they say is also said in words.
    pub has_colour: bool,
}

/// Draws everything, and notes in `app` where the rows are.
pub fn draw(frame: &mut Frame<'_>, app: &mut App, theme: Theme) {
    let area = frame.area();
    app.sessions.area = Rect::default();
    app.instances.area = Rect::default();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        put(
            frame,
            area,
            0,
            Line::raw(text::cut("too small", usize::from(area.width))),
        );
        return;
    }
    put(frame, area, 0, title(app, theme, usize::from(area.width)));
    let body = Rect {
        y: area.y + 1,
        height: area.height - 2,
        ..area
    };
    match app.page {
        Page::Tables => tables(frame, app, theme, body),
        Page::Details | Page::Help => page(frame, app, theme, body),
    }
    put(
        frame,
        area,
        area.height - 1,
        keys(app, theme, usize::from(area.width)),
    );
}

fn title(app: &App, theme: Theme, width: usize) -> Line<'static> {
    let (all, active, looping) = app.counts();
    let live = app.model.instances().filter(|instance| instance.is_live());
    let mut parts = vec![
        format!("{all} {}", plural(all, "session")),
        format!("{active} active"),
        format!("{looping} looping"),
    ];
    if app.model.instances().next().is_some() {
        parts.push(format!("{} background", live.count()));
    }
    if app.is_paused {
        parts.insert(0, "PAUSED".to_owned());
    }
    let order = if app.is_reversed { ", reversed" } else { "" };
    let name = "bizar-top  ";
    let room = width.saturating_sub(name.len());
    let left = text::cut(&parts.join(", "), room);
    let room = room.saturating_sub(text::columns(&left));
    // As much of it as there is room for.
    let order = format!("by {}{order}", app.sort.as_str());
    let rights = [format!("{order}  {}", app.watching), order];
    let right = rights
        .into_iter()
        .find(|right| text::columns(right) + 2 <= room)
        .unwrap_or_default();
    let looks = if app.is_paused {
        Style::new().add_modifier(Modifier::REVERSED)
    } else if looping > 0 {
        theme.of(Verdict::Warn)
    } else {
        Style::new()
    };
    Line::from(vec![
        Span::styled(name, Style::new().add_modifier(Modifier::BOLD)),
        Span::styled(left, looks),
        Span::styled(text::pad(&right, room, text::Side::Right), theme.dim()),
    ])
}

/// The sessions above, the background agents below if there are any, what is wrong in the last line.
fn tables(frame: &mut Frame<'_>, app: &mut App, theme: Theme, area: Rect) {
    let notes = app.model.notes();
    let mut rows = area;
    if let Some(note) = notes.first() {
        let more = match notes.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more: ?)"),
        };
        let width = usize::from(area.width);
        let room = width.saturating_sub(more.len() + 2);
        let line = format!("! {}{more}", text::cut_middle(note, room));
        rows.height -= 1;
        put(
            frame,
            area,
            area.height - 1,
            Line::styled(line, theme.of(Verdict::Warn)),
        );
    }
    let instances = app.shown_instances().len();
    let instances_height = if app.model.instances().next().is_none() {
        0
    } else {
        let wanted = u16::try_from(instances.max(1)).unwrap_or(u16::MAX);
        // A third of the screen, or half of it where the keys are there.
        let share = if app.focus == Table::Instances { 2 } else { 3 };
        wanted.saturating_add(1).min(rows.height / share).max(2)
    };
    let [above, below] = [
        Rect {
            height: rows.height.saturating_sub(instances_height),
            ..rows
        },
        Rect {
            y: rows.y + rows.height.saturating_sub(instances_height),
            height: instances_height.min(rows.height),
            ..rows
        },
    ];
    table(frame, app, theme, above, Table::Sessions);
    if instances_height > 0 {
        table(frame, app, theme, below, Table::Instances);
    }
}

fn table(frame: &mut Frame<'_>, app: &mut App, theme: Theme, area: Rect, which: Table) {
    if area.height == 0 {
        return;
    }
    let width = usize::from(area.width);
    let columns = match which {
        Table::Sessions => Columns::of_sessions(width),
        Table::Instances => Columns::of_instances(width),
    };
    let is_focused = app.focus == which;
    let mut head = Style::new().add_modifier(Modifier::UNDERLINED);
    if is_focused {
        head = head.add_modifier(Modifier::BOLD);
    }
    put(frame, area, 0, Line::styled(columns.head(), head));

    let rows_area = Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    };
    let height = usize::from(rows_area.height);
    let mut cursor = Cursor {
        area: rows_area,
        ..app.cursor(which).clone()
    };
    let (count, selected, mut lines) = match which {
        Table::Sessions => {
            let shown = app.shown_sessions();
            let names: Vec<&str> = shown.iter().map(|session| session.name()).collect();
            let selected = app.selected(&names, which).unwrap_or(0);
            cursor.first = first_row(cursor.first, selected, shown.len(), height);
            let rows = shown.iter().skip(cursor.first).take(height);
            let lines = rows.map(|row| columns.line(&session_cells(row, app.now, theme)));
            (shown.len(), selected, lines.collect::<Vec<_>>())
        }
        Table::Instances => {
            let shown = app.shown_instances();
            let names: Vec<&str> = shown.iter().map(|row| row.instance_id.as_str()).collect();
            let selected = app.selected(&names, which).unwrap_or(0);
            cursor.first = first_row(cursor.first, selected, shown.len(), height);
            let rows = shown.iter().skip(cursor.first).take(height);
            let lines = rows.map(|row| columns.line(&instance_cells(row, app.now, theme)));
            (shown.len(), selected, lines.collect())
        }
    };
    if count == 0 {
        let why = match which {
            _ if !app.filter.is_empty() => "nothing has this text in it",
            Table::Sessions => "no session has been seen yet",
            Table::Instances => "no background agent",
        };
        lines.push(Line::styled(text::cut(why, width), theme.dim()));
    } else if is_focused
        && let Some(row) = selected.checked_sub(cursor.first)
        && let Some(line) = lines.get_mut(row)
    {
        line.style = Style::new().add_modifier(Modifier::REVERSED);
    }
    for (row, line) in (0..rows_area.height).zip(lines) {
        put(frame, rows_area, row, line);
    }
    match which {
        Table::Sessions => app.sessions = cursor,
        Table::Instances => app.instances = cursor,
    }
}

/// The first row to show, so that the selected one is on the screen and as little as possible moves.
fn first_row(first: usize, selected: usize, rows: usize, height: usize) -> usize {
    let first = first
        .min(selected)
        .max((selected + 1).saturating_sub(height));
    first.min(rows.saturating_sub(height))
}

fn session_cells(session: &Session, now: i64, theme: Theme) -> Vec<Cell> {
    let verdict = session.verdict();
    let is_active = session.is_active(now);
    let plain = if is_active { Style::new() } else { theme.dim() };
    let grave = if verdict > Verdict::Allow && is_active {
        theme.of(verdict)
    } else {
        plain
    };
    let ago = |at: Option<i64>| {
        at.map_or_else(|| "-".to_owned(), |at| text::span(now.saturating_sub(at)))
    };
    let state = session.state();
    let of_state =
        |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let tool = match session.running() {
        // A call that runs is marked: the same tool may have ended just now.
        Some((tool, _)) if is_active => format!("{tool} .."),
        _ => session.tool().unwrap_or("-").to_owned(),
    };
    let (count, bar) = match session.standing() {
        Some(standing) => {
            let block = standing.ladder.block();
            (
                format!("{}/{block}", standing.count),
                bar(standing.count, block),
            )
        }
        None => ("-".to_owned(), String::new()),
    };
    vec![
        Cell::new(session.id(), plain),
        Cell::new(state.map_or("-", |state| state.host()), plain),
        Cell::new(&tool, plain),
        Cell::new(&count, grave),
        Cell::new(&bar, grave),
        Cell::new(verdict_word(session), grave),
        Cell::new(&of_state(state.map(|state| state.warnings_issued)), plain),
        Cell::new(&of_state(state.map(|state| state.blocks_triggered)), plain),
        Cell::new(&session.calls_a_minute(now).to_string(), plain),
        Cell::new(&ago(session.last_activity_at()), plain),
        Cell::new(&ago(session.started_at()), plain),
    ]
}

fn instance_cells(instance: &Instance, now: i64, theme: Theme) -> Vec<Cell> {
    let plain = if instance.is_live() {
        Style::new()
    } else {
        theme.dim()
    };
    let status = match instance.status.as_str() {
        "failed" | "timed_out" | "killed" => theme.of(Verdict::Warn),
        _ => plain,
    };
    vec![
        Cell::new(&instance.instance_id, plain),
        Cell::new(&instance.agent, plain),
        Cell::new(&instance.status, status),
        Cell::new(&instance.tool_call_count.to_string(), plain),
        Cell::new(&text::dollars(instance.cost_usd), plain),
        Cell::new(&left(instance, now), plain),
        Cell::new(&waits_for(instance), plain),
    ]
}

/// The verdict of the last call; in brackets if the guard only observes.
pub(crate) fn verdict_word(session: &Session) -> &'static str {
    let verdict = session.verdict();
    let is_observed = session
        .standing()
        .is_some_and(|standing| standing.rules.observe_only);
    match (session.standing(), verdict) {
        (None, _) => "-",
        (_, Verdict::Notice) if is_observed => "(notice)",
        (_, Verdict::Warn) if is_observed => "(warn)",
        (_, Verdict::Escalate) if is_observed => "(escal.)",
        (_, Verdict::Block) if is_observed => "(block)",
        (_, Verdict::Halt) if is_observed => "(halt)",
        _ => verdict.as_str(),
    }
}

/// What is left until a background agent is ended.
pub(crate) fn left(instance: &Instance, now: i64) -> String {
    match instance.left(now) {
        Some(left) if left < 0 => "overdue".to_owned(),
        Some(left) => text::countdown(left),
        None => "-".to_owned(),
    }
}

/// What a background agent waits for, or why it ended.
pub(crate) fn waits_for(instance: &Instance) -> String {
    let waits = match (&instance.waiting_on, &instance.waiting_for) {
        (Some(on), Some(whom)) => Some(format!("{on} ({whom})")),
        (Some(on), None) => Some(on.clone()),
        (None, _) => None,
    };
    if let Some(waits) = waits {
        return waits;
    }
    match instance {
        _ if instance.draining => "its session to become quiet".to_owned(),
        _ if instance.is_ending => "its end".to_owned(),
        Instance {
            error: Some(error), ..
        } => error.clone(),
        Instance {
            stalled_for_ms: Some(ms),
            ..
        } => format!("no sign of life for {}", text::span(*ms)),
        _ => "-".to_owned(),
    }
}

/// Six characters: how far up the ladder a count is.
fn bar(count: u32, block: u32) -> String {
    let filled = u64::from(count.min(block)) * 6 / u64::from(block.max(1));
    let filled = usize::try_from(filled).unwrap_or(6);
    format!("{}{}", "#".repeat(filled), ".".repeat(6 - filled))
}

fn page(frame: &mut Frame<'_>, app: &mut App, theme: Theme, area: Rect) {
    let width = usize::from(area.width);
    let lines = match app.page {
        Page::Details => pages::details(app, theme, width),
        Page::Help | Page::Tables => pages::help(app, theme, width),
    };
    let most = lines.len().saturating_sub(usize::from(area.height));
    app.scroll = app.scroll.min(most);
    for (row, line) in (0..area.height).zip(lines.into_iter().skip(app.scroll)) {
        put(frame, area, row, line);
    }
}

fn keys(app: &App, theme: Theme, width: usize) -> Line<'static> {
    if app.is_typing {
        let room = width.saturating_sub(2);
        // The end of what is typed is what one looks at.
        let typed = text::safe(&app.filter).into_owned();
        let typed = if text::columns(&typed) > room {
            text::cut_middle(&typed, room)
        } else {
            typed
        };
        return Line::styled(
            format!("/{typed}_"),
            Style::new().add_modifier(Modifier::BOLD),
        );
    }
    let keys = match app.page {
        Page::Tables => {
            "q quit  enter details  / filter  s sort  r reverse  p pause  tab table  ? help"
        }
        Page::Details | Page::Help => "esc back  up/down scroll  p pause  q quit",
    };
    if app.filter.is_empty() {
        return Line::styled(text::cut(keys, width), theme.dim());
    }
    let filter = text::cut_middle(&app.filter, width / 3);
    let filter = format!("/{filter}  ");
    let room = width.saturating_sub(text::columns(&filter));
    Line::from(vec![
        Span::styled(filter, Style::new().add_modifier(Modifier::BOLD)),
        Span::styled(text::cut(&format!("esc clear  {keys}"), room), theme.dim()),
    ])
}

impl Theme {
    fn of(self, verdict: Verdict) -> Style {
        let colour = match verdict {
            Verdict::Allow => return Style::new(),
            Verdict::Notice => Color::Cyan,
            Verdict::Warn => Color::Yellow,
            Verdict::Escalate => Color::Magenta,
            Verdict::Block | Verdict::Halt => Color::Red,
        };
        let style = match verdict {
            Verdict::Allow | Verdict::Notice => Style::new(),
            _ => Style::new().add_modifier(Modifier::BOLD),
        };
        if self.has_colour {
            style.fg(colour)
        } else {
            style
        }
    }

    fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}

fn put(frame: &mut Frame<'_>, area: Rect, row: u16, line: Line<'_>) {
    if row < area.height {
        let buffer = frame.buffer_mut();
        // The style of a line is that of its whole row.
        buffer.set_style(
            Rect {
                y: area.y + row,
                height: 1,
                ..area
            },
            line.style,
        );
        buffer.set_line(area.x, area.y + row, &line, area.width);
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 {
        noun.to_owned()
    } else {
        format!("{noun}s")
    }
}

/// Below this size, in columns and rows, there is nothing to see.
const LEAST: (u16, u16) = (20, 5);
