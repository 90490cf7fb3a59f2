//! Several rules on one input, in one table; with labels, who was right.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read};

use bizar_window::Verdict;
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;

use crate::judge::Mode;
use crate::replay::{Output, Seen, Summary, count_of};

/// Places of recorded sessions that someone looked at.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    sessions: HashMap<Box<str>, Vec<Place>>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    first: u64,
    last: u64,
    is_loop: bool,
}

#[derive(Deserialize)]
struct Row {
    session: String,
    i: u64,
    end: Option<u64>,
    label: String,
}

/// Whether a firing was right.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Truth {
    False,
    True,
    Unlabelled,
}

impl Labels {
    /// Reads labels, one JSON object a line, plain or gzipped: `{"session","i","end","label"}`. `true_loop` is a loop, `legit_…` is
    /// none; other labels say nothing.
    ///
    /// # Errors
    /// What reading fails with; a line of another shape.
    pub fn read(input: impl Read) -> io::Result<Self> {
        let mut input = BufReader::new(input);
        if input.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
            Self::lines(BufReader::new(MultiGzDecoder::new(input)))
        } else {
            Self::lines(input)
        }
    }

    fn lines(input: impl BufRead) -> io::Result<Self> {
        let mut labels = Self::default();
        for (number, line) in (1_u64..).zip(input.lines()) {
            let line = line?;
            if line.trim().is_empty() {
                continue;
            }
            let row: Row = serde_json::from_str(&line).map_err(|_| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("line {number} is no label"),
                )
            })?;
            let is_loop = row.label == "true_loop";
            if is_loop || row.label.starts_with("legit_") {
                let place = Place {
                    first: row.i,
                    last: row.end.unwrap_or(row.i),
                    is_loop,
                };
                labels
                    .sessions
                    .entry(row.session.into())
                    .or_default()
                    .push(place);
            }
        }
        Ok(labels)
    }

    fn has_loop(&self, session: &str) -> bool {
        self.sessions
            .get(session)
            .is_some_and(|places| places.iter().any(|place| place.is_loop))
    }

    /// A firing is right if a labelled loop of its session is near, and wrong if only places without a loop are.
    fn truth(&self, session: &str, index: u64) -> Truth {
        let places = self
            .sessions
            .get(session)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let mut truth = Truth::Unlabelled;
        for place in places
            .iter()
            .filter(|place| index + NEAR >= place.first && index <= place.last + NEAR)
        {
            if place.is_loop {
                return Truth::True;
            }
            truth = Truth::False;
        }
        truth
    }
}

/// Counts what each rule does.
#[derive(Debug)]
pub struct Comparison {
    modes: Vec<Mode>,
    labels: Option<Labels>,
    tallies: Vec<Tally>,
    /// Sessions with a labelled loop that were read.
    looping: HashSet<Box<str>>,
}

/// What one rule did.
#[derive(Clone, Debug, Default)]
struct Tally {
    /// Sessions with a firing.
    fired: HashSet<(Box<str>, Box<str>)>,
    /// Sessions with a firing and a labelled loop.
    found: HashSet<Box<str>>,
    right: u64,
    wrong: u64,
    unlabelled: u64,
}

impl Comparison {
    /// Compares these modes; the replay must be of the same ones.
    pub fn new(modes: &[Mode], labels: Option<Labels>) -> Self {
        let tallies = vec![Tally::default(); modes.len()];
        Self {
            modes: modes.to_vec(),
            labels,
            tallies,
            looping: HashSet::new(),
        }
    }

    /// The table, as text. A firing is a call that got warn or more.
    pub fn table(&self, summary: &Summary) -> String {
        let mut rows = vec![self.heading()];
        for ((mode, tally), counts) in self.modes.iter().zip(&self.tallies).zip(&summary.verdicts) {
            rows.push(self.row(*mode, tally, counts, summary));
        }
        let mut widths: Vec<usize> = Vec::new();
        for row in &rows {
            widths.resize(row.len(), 0);
            for (cell, width) in row.iter().zip(&mut widths) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for row in &rows {
            for (number, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let _ = if number == 0 {
                    write!(text, "{cell:width$}")
                } else {
                    write!(text, "  {cell:>width$}")
                };
            }
            text.push('\n');
        }
        text
    }

    fn heading(&self) -> Vec<String> {
        let mut cells = vec!["rule", "sessions", "calls"];
        cells.extend([
            "notice/1k",
            "warn/1k",
            "escalate/1k",
            "block/1k",
            "halt/1k",
            "sessions fired",
        ]);
        if self.labels.is_some() {
            cells.extend(["loops found", "true", "false", "unlabelled"]);
        }
        cells.into_iter().map(str::to_owned).collect()
    }

    fn row(&self, mode: Mode, tally: &Tally, counts: &[u64; 6], summary: &Summary) -> Vec<String> {
        let mut cells = vec![
            mode.as_str().to_owned(),
            summary.sessions.to_string(),
            summary.calls.to_string(),
        ];
        for verdict in [
            Verdict::Notice,
            Verdict::Warn,
            Verdict::Escalate,
            Verdict::Block,
            Verdict::Halt,
        ] {
            let count = count_of(counts, verdict);
            let rate = count as f64 * 1000.0 / summary.calls.max(1) as f64;
            cells.push(if count == 0 {
                "0".to_owned()
            } else {
                format!("{rate:.2}")
            });
        }
        cells.push(tally.fired.len().to_string());
        if self.labels.is_some() {
            cells.push(format!("{}/{}", tally.found.len(), self.looping.len()));
            cells.extend(
                [tally.right, tally.wrong, tally.unlabelled].map(|count| count.to_string()),
            );
        }
        cells
    }
}

impl Output for Comparison {
    fn call(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        let session: &str = &seen.call.session;
        let loops = self
            .labels
            .as_ref()
            .is_some_and(|labels| labels.has_loop(session));
        if loops && !self.looping.contains(session) {
            self.looping.insert(session.into());
        }
        for (judged, tally) in seen.judged.iter().zip(&mut self.tallies) {
            if judged.verdict < Verdict::Warn {
                continue;
            }
            tally.fired.insert((seen.file.into(), session.into()));
            if loops {
                tally.found.insert(session.into());
            }
            match self
                .labels
                .as_ref()
                .map(|labels| labels.truth(session, seen.index))
            {
                Some(Truth::True) => tally.right += 1,
                Some(Truth::False) => tally.wrong += 1,
                Some(Truth::Unlabelled) | None => tally.unlabelled += 1,
            }
        }
        Ok(())
    }
}

/// A label may begin or end so many calls away from a firing that it explains.
const NEAR: u64 = 12;
