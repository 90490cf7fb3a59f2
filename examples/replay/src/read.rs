//! Readers: one file for each harness. They know shapes, not verdicts.

mod claude;
mod cline;
mod codex;
mod copilot;
mod droid;
mod gemini;
mod kimi;
mod opencode;
mod own;
mod qwen;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::format::Format;
use crate::record::Item;

/// Turns the lines of one file into items.
pub(crate) trait Reader {
    /// Reads one line that is not empty.
    fn line(&mut self, line: &str, out: &mut Vec<Item>) -> Result<(), BadLine>;

    /// The file has ended.
    fn end(&mut self, out: &mut Vec<Item>);
}

/// Why a line cannot be used. Never quotes the line: it may hold what nobody should see.
#[derive(Debug)]
pub(crate) enum BadLine {
    /// JSON of another shape.
    Shape,
    /// Not JSON; line and column of the text where that shows, from 1.
    Syntax { line: usize, column: usize },
    /// A call line without this field.
    Without(&'static str),
    /// This field has a value of the wrong type.
    Wrong(&'static str),
}

impl std::fmt::Display for BadLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shape => f.write_str("not the shape this format has"),
            Self::Syntax { line: 1, column } => write!(f, "not JSON (column {column})"),
            Self::Syntax { line, column } => write!(f, "not JSON (line {line}, column {column})"),
            Self::Without(field) => write!(f, "no `{field}`"),
            Self::Wrong(field) => write!(f, "`{field}` has the wrong type"),
        }
    }
}

impl From<serde_json::Error> for BadLine {
    fn from(error: serde_json::Error) -> Self {
        if error.is_data() {
            Self::Shape
        } else {
            Self::Syntax {
                line: error.line(),
                column: error.column(),
            }
        }
    }
}

/// The reader of a format. `name` is the session's name where the file does not say it.
pub(crate) fn reader(format: Format, name: &str) -> Box<dyn Reader> {
    match format {
        Format::Claude => Box::new(claude::Claude::default()),
        Format::Cline => Box::new(Document::new(cline::read)),
        Format::Codex => Box::new(codex::Codex::new(name)),
        Format::Copilot => Box::new(copilot::Copilot::new(name)),
        Format::Droid => Box::new(droid::Droid::new(name)),
        Format::Gemini => Box::new(gemini::Gemini::new(name)),
        Format::GeminiDocument => Box::new(Document::new(gemini::read)),
        Format::Kimi => Box::new(kimi::Kimi::new(name)),
        Format::Opencode => Box::new(Document::new(opencode::read)),
        Format::Own => Box::new(own::Own::default()),
        Format::Qwen => Box::new(qwen::Qwen::new(name)),
    }
}

/// A format that is one JSON document: the whole file arrives as one line.
struct Document {
    read: fn(&str, &mut Vec<Item>) -> Result<(), BadLine>,
}

impl Document {
    fn new(read: fn(&str, &mut Vec<Item>) -> Result<(), BadLine>) -> Self {
        Self { read }
    }
}

impl Reader for Document {
    fn line(&mut self, line: &str, out: &mut Vec<Item>) -> Result<(), BadLine> {
        (self.read)(line, out)
    }

    fn end(&mut self, _: &mut Vec<Item>) {}
}

/// Reads one value from a raw part of a line; where in the line that is has been forgotten.
fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Result<T, BadLine> {
    serde_json::from_str(raw.get()).map_err(|_| BadLine::Shape)
}

/// Milliseconds since the epoch of an ISO 8601 time.
fn millis(time: Option<&str>) -> Option<f64> {
    let time: jiff::Timestamp = time?.parse().ok()?;
    Some(time.as_second() as f64 * 1000.0 + f64::from(time.subsec_nanosecond()) / 1e6)
}

/// The number after `label`, if the text has it at the start of a line.
fn number_after(text: &str, label: &str) -> Option<i64> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(label)?.trim_start();
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '-')
            .unwrap_or(rest.len());
        rest.get(..end)?.parse().ok()
    })
}
