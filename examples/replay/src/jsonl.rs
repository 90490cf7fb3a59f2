//! Verdicts as JSON Lines: what other tools read.

use std::io::{self, Write};

use bizar_window::Verdict;
use serde::Serialize;

use crate::replay::{Output, Seen, Summary, count_of};

/// Writes a line for each call above allow, and the summary as the last.
#[derive(Debug)]
pub struct JsonLines<W> {
    out: W,
}

#[derive(Serialize)]
struct Line<'a> {
    session: &'a str,
    i: u64,
    tool: &'a str,
    fingerprint: bizar_fingerprint::Fingerprint,
    count: u32,
    verdict: &'static str,
    rule: Option<&'static str>,
}

#[derive(Serialize)]
struct Last {
    summary: Counts,
}

#[derive(Serialize)]
struct Counts {
    sessions: u64,
    calls: u64,
    skipped: u64,
    notice: u64,
    warn: u64,
    escalate: u64,
    block: u64,
    halt: u64,
}

impl<W: Write> JsonLines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Writes the last line.
    ///
    /// # Errors
    /// What writing fails with.
    pub fn finish(mut self, summary: &Summary) -> io::Result<()> {
        let counts = summary.verdicts.first().copied().unwrap_or_default();
        let of = |verdict| count_of(&counts, verdict);
        let last = Last {
            summary: Counts {
                sessions: summary.sessions,
                calls: summary.calls,
                skipped: summary.skipped,
                notice: of(Verdict::Notice),
                warn: of(Verdict::Warn),
                escalate: of(Verdict::Escalate),
                block: of(Verdict::Block),
                halt: of(Verdict::Halt),
            },
        };
        self.line(&last)?;
        self.out.flush()
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }
}

impl<W: Write> Output for JsonLines<W> {
    fn call(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        match seen.judged.first() {
            Some(judged) if judged.verdict > Verdict::Allow => self.line(&Line {
                session: &seen.call.session,
                i: seen.index,
                tool: &seen.call.tool,
                fingerprint: seen.fingerprint,
                count: judged.count,
                verdict: judged.verdict.as_str(),
                rule: judged.rule,
            }),
            _ => Ok(()),
        }
    }
}
