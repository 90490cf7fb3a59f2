//! What the person at the terminal is looking at, and what the keys do. Pure, as the model is.

use std::cmp::Reverse;

use bizar_window::Verdict;
use ratatui::{
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    layout::{Position, Rect},
};

use crate::{
    document::Instance,
    model::{Model, Session},
    source::News,
};

/// The model, and how it is looked at.
#[derive(Debug)]
pub struct App {
    /// What is known.
    pub model: Model,
    /// The time, in milliseconds since 1970. It stands while paused.
    pub now: i64,
    /// How changes are heard of, for the title.
    pub watching: &'static str,
    /// Nothing is shown that came later.
    pub is_paused: bool,
    /// What is on the screen.
    pub page: Page,
    /// The table that the keys move in.
    pub focus: Table,
    /// The order of the sessions.
    pub sort: Sort,
    /// The order is the other way round.
    pub is_reversed: bool,
    /// Only rows with this text in them are shown.
    pub filter: String,
    /// The filter is being typed.
    pub is_typing: bool,
    /// The rows that are selected and come first.
    pub sessions: Cursor,
    /// The same of background agents.
    pub instances: Cursor,
    /// The first line of a page of text.
    pub scroll: usize,
}

/// What is on the screen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Page {
    /// Everything of one session or instance.
    Details,
    /// The keys and columns.
    Help,
    /// The tables.
    Tables,
}

/// One of the tables.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Table {
    /// Background agents.
    Instances,
    /// Sessions.
    Sessions,
}

/// An order of sessions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sort {
    /// Active ones first, the highest verdict and count first; then the others by activity.
    Trouble,
    /// The last that did something first.
    Activity,
    /// The most calls a minute first.
    Rate,
    /// The youngest first.
    Age,
    /// By id.
    Name,
}

impl Sort {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trouble => "trouble",
            Self::Activity => "activity",
            Self::Rate => "rate",
            Self::Age => "age",
            Self::Name => "name",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Trouble => Self::Activity,
            Self::Activity => Self::Rate,
            Self::Rate => Self::Age,
            Self::Age => Self::Name,
            Self::Name => Self::Trouble,
        }
    }
}

/// A place in a table: it stays with its row when the order changes.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    /// The selected row, by name; `None` = the first.
    pub selected: Option<String>,
    /// The first row that is shown.
    pub first: usize,
    /// Where its rows were last drawn.
    pub area: Rect,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Flow {
    /// On.
    Continue,
    /// The user wants to leave.
    Quit,
}

impl App {
    /// Looks at all sessions, worst first.
    #[must_use]
    pub fn new(model: Model, now: i64) -> Self {
        Self {
            model,
            now,
            watching: "",
            is_paused: false,
            page: Page::Tables,
            focus: Table::Sessions,
            sort: Sort::Trouble,
            is_reversed: false,
            filter: String::new(),
            is_typing: false,
            sessions: Cursor::default(),
            instances: Cursor::default(),
            scroll: 0,
        }
    }

    /// Takes in what was read. Not while paused: the caller keeps it.
    pub fn tell(&mut self, news: impl IntoIterator<Item = News>) {
        self.model.tell(news);
    }

    /// It is later now.
    pub fn tick(&mut self, now: i64) {
        if !self.is_paused {
            self.now = now;
        }
    }

    /// A key was pressed.
    pub fn press(&mut self, key: KeyEvent) -> Flow {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Flow::Quit;
        }
        if self.is_typing {
            self.edit_filter(key.code, is_control);
            return Flow::Continue;
        }
        match key.code {
            KeyCode::Char('q') => return Flow::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.turn_to(match self.page {
                Page::Help => Page::Tables,
                Page::Details | Page::Tables => Page::Help,
            }),
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left if self.page != Page::Tables => {
                self.turn_to(Page::Tables);
            }
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('/') => {
                self.turn_to(Page::Tables);
                self.is_typing = true;
            }
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            KeyCode::Tab | KeyCode::BackTab if self.page == Page::Tables => self.change_focus(),
            KeyCode::Enter | KeyCode::Right if self.page == Page::Tables => self.open(),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::PageUp => self.step(-self.page_height()),
            KeyCode::PageDown => self.step(self.page_height()),
            KeyCode::Home | KeyCode::Char('g') => self.step(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.step(isize::MAX),
            _ => {}
        }
        Flow::Continue
    }

    /// The mouse was pressed there: that row is selected, or opened if it was selected.
    pub fn click(&mut self, at: Position) {
        if self.page != Page::Tables {
            return;
        }
        for table in [Table::Sessions, Table::Instances] {
            let cursor = self.cursor(table);
            if !cursor.area.contains(at) {
                continue;
            }
            let row = cursor.first + usize::from(at.y - cursor.area.y);
            let names = self.names(table);
            let Some(name) = names.get(row).map(|name| (*name).to_owned()) else {
                continue;
            };
            let is_again = self.focus == table && self.selected(&names, table) == Some(row);
            self.focus = table;
            self.cursor_mut(table).selected = Some(name);
            if is_again {
                self.open();
            }
        }
    }

    /// Moves the selection, or the text, by so many rows.
    pub fn step(&mut self, by: isize) {
        if self.page != Page::Tables {
            // The view knows where the text ends.
            self.scroll = self.scroll.saturating_add_signed(by);
            return;
        }
        let table = self.focus;
        let names = self.names(table);
        let row = self.selected(&names, table).unwrap_or(0);
        let row = row
            .saturating_add_signed(by)
            .min(names.len().saturating_sub(1));
        let name = names.get(row).map(|name| (*name).to_owned());
        self.cursor_mut(table).selected = name;
    }

    /// The sessions that are shown, in order.
    #[must_use]
    pub fn shown_sessions(&self) -> Vec<&Session> {
        let now = self.now;
        let wanted = self.filter.to_lowercase();
        let mut shown: Vec<&Session> = self
            .model
            .sessions()
            .filter(|session| wanted.is_empty() || mentions(session, &wanted))
            .collect();
        let activity = |session: &Session| session.last_activity_at().unwrap_or(i64::MIN);
        let started = |session: &Session| session.started_at().unwrap_or(i64::MIN);
        match self.sort {
            Sort::Trouble => shown.sort_by_cached_key(|session| {
                let trouble = session
                    .is_active(now)
                    .then(|| (session.verdict(), session.count()));
                let age = match trouble {
                    Some(_) => started(session),
                    None => activity(session),
                };
                Reverse((trouble, age))
            }),
            Sort::Activity => shown.sort_by_cached_key(|session| Reverse(activity(session))),
            Sort::Rate => {
                shown.sort_by_cached_key(|session| Reverse(session.calls_a_minute(now)));
            }
            Sort::Age => shown.sort_by_cached_key(|session| Reverse(started(session))),
            Sort::Name => shown.sort_by(|a, b| a.id().cmp(b.id())),
        }
        if self.is_reversed {
            shown.reverse();
        }
        shown
    }

    /// The background agents that are shown: live ones first, the newest first.
    #[must_use]
    pub fn shown_instances(&self) -> Vec<&Instance> {
        let wanted = self.filter.to_lowercase();
        let mut shown: Vec<&Instance> = self
            .model
            .instances()
            .filter(|instance| {
                let texts = [&instance.instance_id, &instance.agent, &instance.status];
                wanted.is_empty()
                    || texts
                        .iter()
                        .any(|text| text.to_lowercase().contains(&wanted))
            })
            .collect();
        shown.sort_by_key(|instance| Reverse((instance.is_live(), instance.started_at)));
        shown
    }

    /// The row of a table that is selected, among rows of these names.
    #[must_use]
    pub fn selected(&self, names: &[&str], table: Table) -> Option<usize> {
        let selected = self.cursor(table).selected.as_deref();
        let row = selected.and_then(|name| names.iter().position(|other| *other == name));
        row.or_else(|| (!names.is_empty()).then_some(0))
    }

    /// What the rows of a table are called, in order.
    #[must_use]
    pub fn names(&self, table: Table) -> Vec<&str> {
        match table {
            Table::Sessions => {
                let shown = self.shown_sessions();
                shown.into_iter().map(Session::name).collect()
            }
            Table::Instances => {
                let shown = self.shown_instances();
                let ids = shown.into_iter().map(|shown| shown.instance_id.as_str());
                ids.collect()
            }
        }
    }

    /// The place in a table.
    #[must_use]
    pub fn cursor(&self, table: Table) -> &Cursor {
        match table {
            Table::Sessions => &self.sessions,
            Table::Instances => &self.instances,
        }
    }

    /// How many sessions there are; are active; and of these, were warned or worse.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let active = || {
            let sessions = self.model.sessions();
            sessions.filter(|session| session.is_active(self.now))
        };
        let looping = active().filter(|session| session.verdict() >= Verdict::Warn);
        (
            self.model.sessions().count(),
            active().count(),
            looping.count(),
        )
    }

    fn cursor_mut(&mut self, table: Table) -> &mut Cursor {
        match table {
            Table::Sessions => &mut self.sessions,
            Table::Instances => &mut self.instances,
        }
    }

    fn edit_filter(&mut self, code: KeyCode, is_control: bool) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char('u') if is_control => self.filter.clear(),
            KeyCode::Char(c) if !is_control && self.filter.chars().count() < MOST_FILTER => {
                self.filter.push(c);
            }
            _ => {}
        }
    }

    fn turn_to(&mut self, page: Page) {
        self.page = page;
        self.scroll = 0;
    }

    fn change_focus(&mut self) {
        self.focus = match self.focus {
            Table::Sessions if self.model.instances().next().is_some() => Table::Instances,
            Table::Sessions | Table::Instances => Table::Sessions,
        };
    }

    /// Opens the details of the row that is selected, and stays with it.
    fn open(&mut self) {
        let names = self.names(self.focus);
        if let Some(row) = self.selected(&names, self.focus) {
            let name = names.get(row).map(|name| (*name).to_owned());
            self.cursor_mut(self.focus).selected = name;
            self.turn_to(Page::Details);
        }
    }

    fn page_height(&self) -> isize {
        let rows = self.cursor(self.focus).area.height.max(2) - 1;
        isize::try_from(rows).unwrap_or(1)
    }
}

fn mentions(session: &Session, wanted: &str) -> bool {
    let state = session.state();
    let texts = [
        Some(session.id()),
        session.tool(),
        Some(session.verdict().as_str()),
        state.map(|state| state.host()),
        state.and_then(|state| state.parent_agent()),
    ];
    texts
        .into_iter()
        .flatten()
        .any(|text| text.to_lowercase().contains(wanted))
}

const MOST_FILTER: usize = 100;
