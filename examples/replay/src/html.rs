//! The report: one file that shows recorded sessions to people.
//!
//! Everything recorded goes into one block of JSON, in columns, and is put on the page as text by the script. The page's policy lets exactly
//! that script run and nothing be loaded.

use std::collections::HashMap;
use std::io::{self, Write};

use bizar_window::{Kind, Verdict};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::in_order::InOrder;
use crate::judge::{Judged, Mode};
use crate::replay::{Output, Seen, Summary};

/// Writes the report as it reads: only the sessions of the current file are kept.
#[derive(Debug)]
pub struct Html<W> {
    out: W,
    mode: Mode,
    show_args: bool,
    tools: Table,
    files: Table,
    sessions: InOrder<Session>,
    any: bool,
}

/// Names that are stored once.
#[derive(Debug, Default)]
struct Table {
    names: Vec<String>,
    index: HashMap<String, usize>,
}

/// One session, in columns: an entry for each call.
#[derive(Debug, Serialize)]
struct Session {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    file: usize,
    /// Distinct calls: fingerprint, tool and, if they are to be shown, arguments.
    prints: Vec<String>,
    tools: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    args: Vec<Option<String>>,
    /// Which distinct call it was.
    call: Vec<usize>,
    /// Verdict as a digit, rule as a letter (`-` = none), outcome as `+`, `-` or `?`, and `p` for polls.
    verdict: String,
    rule: String,
    ok: String,
    kind: String,
    count: Vec<u32>,
    period: Vec<u32>,
    /// How many calls ago the same call got the same answer; 0 = news.
    back: Vec<u64>,
    /// Duration in ms; -1 = not known.
    ms: Vec<i64>,
    /// Calls that begin a turn of the user.
    turns: Vec<u64>,
    #[serde(skip)]
    seen: HashMap<String, usize>,
    #[serde(skip)]
    at: Vec<Option<f64>>,
}

#[derive(Serialize)]
struct Tail<'a> {
    tools: &'a [String],
    files: &'a [String],
    mode: &'static str,
    skipped: u64,
    args: bool,
    version: &'static str,
}

impl<W: Write> Html<W> {
    /// Begins a report on `out`.
    ///
    /// # Errors
    /// What writing fails with.
    pub fn new(mut out: W, mode: Mode, show_args: bool) -> io::Result<Self> {
        let (head, _) = page();
        out.write_all(head.as_bytes())?;
        out.write_all(b"{\"sessions\":[")?;
        let (tools, files) = Default::default();
        Ok(Self {
            out,
            mode,
            show_args,
            tools,
            files,
            sessions: InOrder::default(),
            any: false,
        })
    }

    /// Ends the report.
    ///
    /// # Errors
    /// What writing fails with.
    pub fn finish(mut self, summary: &Summary) -> io::Result<()> {
        let tail = Tail {
            tools: &self.tools.names,
            files: &self.files.names,
            mode: self.mode.as_str(),
            skipped: summary.skipped,
            args: self.show_args,
            version: env!("CARGO_PKG_VERSION"),
        };
        let tail = embeddable(&tail)?;
        self.out.write_all(b"],")?;
        self.out
            .write_all(tail.trim_start_matches('{').as_bytes())?;
        let (_, rest) = page();
        self.out.write_all(rest.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Output for Html<W> {
    fn call(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        let Some(judged) = seen.judged.first() else {
            return Ok(());
        };
        let tool = self.tools.of(&seen.call.tool);
        let files = &mut self.files;
        let session = self.sessions.of(&seen.call.session, || {
            Session::new(seen, files.of(seen.file))
        });
        session.add(seen, judged, tool, self.show_args);
        Ok(())
    }

    fn end_of_file(&mut self, _: &str) -> io::Result<()> {
        for mut session in self.sessions.take() {
            session.fill_in_durations();
            if std::mem::replace(&mut self.any, true) {
                self.out.write_all(b",\n")?;
            }
            self.out.write_all(embeddable(&session)?.as_bytes())?;
        }
        Ok(())
    }
}

impl Table {
    fn of(&mut self, name: &str) -> usize {
        if let Some(at) = self.index.get(name) {
            return *at;
        }
        let at = self.names.len();
        self.names.push(cut(name));
        self.index.insert(name.to_owned(), at);
        at
    }
}

impl Session {
    fn new(seen: &Seen<'_>, file: usize) -> Self {
        Self {
            name: cut(&seen.call.session),
            parent: seen.call.parent.as_deref().map(cut),
            file,
            prints: Vec::new(),
            tools: Vec::new(),
            args: Vec::new(),
            call: Vec::new(),
            verdict: String::new(),
            rule: String::new(),
            ok: String::new(),
            kind: String::new(),
            count: Vec::new(),
            period: Vec::new(),
            back: Vec::new(),
            ms: Vec::new(),
            turns: Vec::new(),
            seen: HashMap::new(),
            at: Vec::new(),
        }
    }

    fn add(&mut self, seen: &Seen<'_>, judged: &Judged, tool: usize, show_args: bool) {
        let print = seen.fingerprint.short().to_string();
        let next = self.prints.len();
        let call = *self.seen.entry(print.clone()).or_insert(next);
        if call == next {
            self.prints.push(print);
            self.tools.push(tool);
            if show_args {
                self.args
                    .push(seen.call.args.as_deref().map(|args| cut(args.get())));
            }
        }
        self.call.push(call);
        self.verdict.push(char::from(b'0' + judged.verdict as u8));
        self.rule.push(letter(judged.rule));
        self.ok.push(match seen.call.ok {
            Some(true) => '+',
            Some(false) => '-',
            None => '?',
        });
        self.kind
            .push(if seen.kind == Kind::Poll { 'p' } else { '-' });
        self.count.push(judged.count);
        self.period.push(if judged.verdict > Verdict::Allow {
            judged.period
        } else {
            0
        });
        self.back
            .push(seen.repeats.map_or(0, |earlier| seen.index - earlier));
        self.ms.push(seen.call.took.map_or(-1, whole));
        self.at.push(seen.call.at);
        if seen.new_turn {
            self.turns.push(seen.index);
        }
    }

    /// Where a duration was not recorded, the time to the next call of the turn stands for it.
    fn fill_in_durations(&mut self) {
        for (index, ms) in self.ms.iter_mut().enumerate() {
            let next = index + 1;
            let ends_turn = self.turns.binary_search(&(next as u64)).is_ok();
            if let (true, Some(Some(from)), Some(Some(to))) =
                (*ms < 0 && !ends_turn, self.at.get(index), self.at.get(next))
            {
                *ms = whole((to - from) * 1000.0);
            }
        }
    }
}

/// A rule's letter in the data.
fn letter(rule: Option<&str>) -> char {
    match rule {
        None => '-',
        Some("stale") => 's',
        Some("cycle") => 'c',
        Some("run") => 'r',
        Some("fanout") => 'f',
        Some("poll") => 'p',
        Some("error") => 'e',
        Some("repetition") => 'w',
        Some("halt") => 'h',
        Some(_) => 'o',
    }
}

/// Milliseconds as a whole number that JavaScript holds exactly.
fn whole(ms: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "clamped to what fits")]
    let whole = ms.clamp(0.0, 9e15).round() as i64;
    whole
}

/// Recorded text of a length that a page can show.
fn cut(text: &str) -> String {
    if text.chars().nth(LONGEST_TEXT).is_none() {
        return text.to_owned();
    }
    let length = text.chars().count();
    text.chars()
        .take(LONGEST_TEXT)
        .chain(format!("… ({length} characters)").chars())
        .collect()
}

/// JSON that cannot end the element it stands in, nor begin another.
fn embeddable(value: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string(value)?.replace('<', "\\u003c"))
}

/// The page up to the data, and what follows it.
fn page() -> (String, String) {
    let script = [DATA, OVERVIEW, SESSIONS, TIMELINE, START].concat();
    let page = PAGE.replace("STYLE", STYLE).replace(
        "POLICY",
        &format!(
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'",
            base64(&Sha256::digest(&script))
        ),
    );
    let (head, rest) = page.split_once("DATA").unwrap_or((&page, ""));
    (head.to_owned(), rest.replace("SCRIPT", &script))
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| {
            bits << 8 | u32::from(group.get(at).copied().unwrap_or(0))
        });
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place) & 63) as usize;
            text.push(if place > group.len() {
                '='
            } else {
                BASE64.get(index).copied().map_or('=', char::from)
            });
        }
    }
    text
}

const PAGE: &str = include_str!("report/page.html");
const STYLE: &str = include_str!("report/style.css");
const DATA: &str = include_str!("report/data.js");
const OVERVIEW: &str = include_str!("report/overview.js");
const SESSIONS: &str = include_str!("report/sessions.js");
const TIMELINE: &str = include_str!("report/timeline.js");
const START: &str = include_str!("report/start.js");
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Longer names and arguments are cut: a page of them would be no help.
const LONGEST_TEXT: usize = 4000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_usual_one() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn nothing_recorded_can_leave_its_block() {
        assert_eq!(
            embeddable(&"</script><!--").unwrap(),
            r#""\u003c/script>\u003c!--""#
        );
    }

    #[test]
    fn the_page_without_data_is_small() {
        let (head, rest) = page();
        assert!(head.len() + rest.len() < 200_000);
        for text in [&head, &rest] {
            assert!(
                !text.contains("http://") && !text.contains("https://"),
                "nothing is loaded"
            );
        }
    }
}
