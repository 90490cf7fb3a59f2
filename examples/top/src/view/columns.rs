//! Tables of fixed columns, of which as many are shown as fit.

use ratatui::{
    style::Style,
    text::{Line, Span},
};

use crate::text::{self, Side};

/// The columns of a table at one width of the screen.
pub(super) struct Columns {
    /// Each with its number, by which a row's cell is found.
    shown: Vec<(usize, Column)>,
}

#[derive(Clone, Copy)]
struct Column {
    title: &'static str,
    /// 0 = what the others leave.
    width: usize,
    side: Side,
    /// Ids begin alike: they lose their middle.
    is_id: bool,
    /// The column goes when the screen is narrower than this.
    least: usize,
}

/// What stands in one column of a row.
pub(super) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// `text` may be anything: it is made safe when it is shown.
    pub(super) fn new(text: &str, style: Style) -> Self {
        Self {
            text: text.to_owned(),
            style,
        }
    }
}

impl Columns {
    pub(super) fn of_sessions(width: usize) -> Self {
        let tool = if width < 110 { 13 } else { 24 };
        Self::new(
            width,
            [
                Column::id("SESSION", 0),
                Column::words("HOST", 9, 96),
                Column::words("TOOL", tool, 30),
                Column::number("COUNT", 6, 0),
                Column::words("LADDER", 6, 96),
                Column::words("VERDICT", 8, 44),
                Column::number("WARN", 4, 62),
                Column::number("BLOCK", 5, 62),
                Column::number("/MIN", 4, 56),
                Column::number("IDLE", 4, 50),
                Column::number("AGE", 4, 70),
            ],
        )
    }

    pub(super) fn of_instances(width: usize) -> Self {
        let id = if width < 110 { 14 } else { 30 };
        Self::new(
            width,
            [
                Column::id("BACKGROUND", id),
                Column::words("AGENT", 11, 60),
                Column::words("STATUS", 9, 30),
                Column::number("CALLS", 5, 50),
                Column::number("COST", 7, 66),
                Column::number("LEFT", 7, 40),
                Column::words("WAITS FOR", 0, 0),
            ],
        )
    }

    fn new(width: usize, columns: impl IntoIterator<Item = Column>) -> Self {
        let mut shown: Vec<(usize, Column)> = (0..)
            .zip(columns)
            .filter(|(_, column)| column.least <= width)
            .collect();
        let taken: usize = shown.iter().map(|(_, column)| column.width).sum();
        let rest = width.saturating_sub(taken + shown.len().saturating_sub(1));
        for (_, column) in &mut shown {
            if column.width == 0 {
                column.width = rest;
            }
        }
        Self { shown }
    }

    pub(super) fn head(&self) -> String {
        let titles = self
            .shown
            .iter()
            .map(|(_, column)| column.fit(column.title));
        titles.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn line(&self, cells: &[Cell]) -> Line<'static> {
        let mut spans = Vec::new();
        for (number, column) in &self.shown {
            if !spans.is_empty() {
                spans.push(Span::raw(" "));
            }
            if let Some(cell) = cells.get(*number) {
                spans.push(Span::styled(column.fit(&cell.text), cell.style));
            }
        }
        Line::from(spans)
    }
}

impl Column {
    const fn id(title: &'static str, width: usize) -> Self {
        Self {
            is_id: true,
            ..Self::words(title, width, 0)
        }
    }

    const fn words(title: &'static str, width: usize, least: usize) -> Self {
        Self {
            title,
            width,
            side: Side::Left,
            is_id: false,
            least,
        }
    }

    const fn number(title: &'static str, width: usize, least: usize) -> Self {
        Self {
            side: Side::Right,
            ..Self::words(title, width, least)
        }
    }

    fn fit(&self, text: &str) -> String {
        let text = if self.is_id {
            text::cut_middle(text, self.width)
        } else {
            text::cut(text, self.width)
        };
        text::pad(&text, self.width, self.side)
    }
}
