//! Verdicts for people: a line a session, and each verdict with the calls that led to it.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::rc::Rc;

use bizar_window::{Kind, Verdict};

use crate::in_order::InOrder;
use crate::judge::Judged;
use crate::record::Event;
use crate::replay::{Output, Seen, Summary, count_of};

/// How the text looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// ANSI colours.
    pub colours: bool,
    /// Show the arguments of calls: they may hold secrets.
    pub show_args: bool,
}

/// Writes text for people.
#[derive(Debug)]
pub struct Text<W> {
    out: W,
    style: Style,
    /// Sessions of the current file, in the order they appeared.
    stories: InOrder<Story>,
}

/// What happened in one session so far.
#[derive(Debug)]
struct Story {
    session: Rc<str>,
    calls: u64,
    turns: u64,
    seconds: Option<f64>,
    repeats: u64,
    verdicts: [u64; 6],
    /// The verdict of every call.
    strip: Vec<Verdict>,
    /// The last calls: what a verdict is explained with.
    recent: VecDeque<Recent>,
    text: String,
    /// The last verdict that was written out, and the call it was for.
    told: Option<(Judged, u64)>,
    /// Calls after it with the same verdict.
    more: Option<(u64, u64)>,
    /// Fingerprints that were listed for it; their place is their letter.
    listed: Vec<String>,
}

#[derive(Clone, Debug)]
struct Recent {
    tool: String,
    fingerprint: String,
    args: Option<String>,
}

impl<W: Write> Text<W> {
    /// Writes to `out`.
    pub fn new(out: W, style: Style) -> Self {
        Self {
            out,
            style,
            stories: InOrder::default(),
        }
    }

    /// Writes the last lines.
    ///
    /// # Errors
    /// What writing fails with.
    pub fn finish(mut self, summary: &Summary) -> io::Result<()> {
        let counts = summary.verdicts.first().copied().unwrap_or_default();
        let mut text = String::from("\n");
        let _ = write!(
            text,
            "{}, {}",
            plural(summary.sessions, "session"),
            plural(summary.calls, "call")
        );
        if summary.skipped > 0 {
            let _ = write!(text, ", {} skipped", plural(summary.skipped, "line"));
        }
        text.push_str(": ");
        let mut any = false;
        for verdict in LOUD {
            let count = count_of(&counts, verdict);
            if count > 0 {
                let word = self.style.paint(verdict, &format!("{count} {verdict}"));
                let _ = write!(text, "{}{word}", if any { ", " } else { "" });
                any = true;
            }
        }
        text.push_str(if any { "\n" } else { "nothing to say\n" });
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Output for Text<W> {
    fn call(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        let Some(judged) = seen.judged.first() else {
            return Ok(());
        };
        let style = self.style;
        let name = &seen.call.session;
        self.stories
            .of(name, || Story::new(name.clone()))
            .call(seen, judged, style);
        Ok(())
    }

    fn event(&mut self, session: &str, event: Event) -> io::Result<()> {
        if event == Event::Deleted
            && let Some(story) = self.stories.get_mut(session)
        {
            story.recent.clear();
        }
        Ok(())
    }

    fn end_of_file(&mut self, _: &str) -> io::Result<()> {
        for mut story in self.stories.take() {
            story.end_of_repeats(self.style);
            self.out.write_all(story.line(self.style).as_bytes())?;
            self.out.write_all(story.text.as_bytes())?;
        }
        Ok(())
    }
}

impl Story {
    fn new(session: Rc<str>) -> Self {
        Self {
            session,
            calls: 0,
            turns: 0,
            seconds: None,
            repeats: 0,
            verdicts: [0; 6],
            strip: Vec::new(),
            recent: VecDeque::new(),
            text: String::new(),
            told: None,
            more: None,
            listed: Vec::new(),
        }
    }

    fn call(&mut self, seen: &Seen<'_>, judged: &Judged, style: Style) {
        self.calls += 1;
        self.turns += u64::from(seen.new_turn);
        // Waiting brings nothing new and is no waste.
        self.repeats += u64::from(seen.repeats.is_some() && seen.kind != Kind::Poll);
        if let Some(at) = seen.call.at {
            let end = at + seen.call.took.unwrap_or(0.0) / 1000.0;
            self.seconds = Some(self.seconds.map_or(end, |seconds| seconds.max(end)));
        }
        if let Some(count) = self.verdicts.get_mut(judged.verdict as usize) {
            *count += 1;
        }
        self.strip.push(judged.verdict);
        self.recent.push_back(Recent {
            tool: clean(&seen.call.tool, 32),
            fingerprint: seen.fingerprint.short().to_string(),
            args: seen
                .call
                .args
                .as_deref()
                .filter(|_| style.show_args)
                .map(|args| clean(args.get(), 100)),
        });
        if self.recent.len() > EXPLAINED {
            self.recent.pop_front();
        }
        if judged.verdict > Verdict::Allow {
            self.verdict(seen.index, judged, style);
        }
    }

    /// Writes a verdict out, unless it only repeats the one before.
    fn verdict(&mut self, index: u64, judged: &Judged, style: Style) {
        let follows = self
            .last_told()
            .is_some_and(|last| index <= last + u64::from(judged.period.max(1)));
        if let Some((told, _)) = self.told
            && (told.verdict, told.rule) == (judged.verdict, judged.rule)
            && follows
        {
            let first = self.more.map_or(index, |(first, _)| first);
            self.more = Some((first, index));
            return;
        }
        self.end_of_repeats(style);
        if !follows {
            self.listed.clear();
        }
        self.told = Some((*judged, index));
        let word = format!("{} {:<8}", mark(judged.verdict), judged.verdict.as_str());
        let mark = style.paint(judged.verdict, &word);
        let _ = writeln!(self.text, "  {mark}  call {index:<4}  {}", reason(judged));
        if judged.verdict >= Verdict::Warn {
            self.explain(judged, style);
        }
    }

    /// The calls that led to a verdict: each different one once, with the order they came in. What was listed for the verdict
    /// before this one is not listed again.
    fn explain(&mut self, judged: &Judged, style: Style) {
        let wanted = (judged.count as usize).clamp(2, EXPLAINED);
        let skipped = self.recent.len().saturating_sub(wanted);
        let led: Vec<&Recent> = self.recent.iter().skip(skipped).collect();
        let known = self.listed.len();
        let mut order = String::new();
        for call in &led {
            let at = self
                .listed
                .iter()
                .position(|listed| *listed == call.fingerprint);
            let at = at.unwrap_or_else(|| {
                self.listed.push(call.fingerprint.clone());
                self.listed.len() - 1
            });
            let _ = write!(order, "{} ", letter(at));
        }
        for (at, fingerprint) in self.listed.iter().enumerate().skip(known).take(LISTED) {
            let mut calls = led.iter().filter(|call| call.fingerprint == *fingerprint);
            let Some(call) = calls.next() else {
                continue;
            };
            let times = format!("×{}", 1 + calls.count());
            let letter = style.bold(&letter(at));
            let fingerprint = style.dim(fingerprint);
            let _ = write!(
                self.text,
                "       {letter}  {:<16} {fingerprint}  {times:<4}",
                call.tool
            );
            if let Some(args) = &call.args {
                let _ = write!(self.text, " {args}");
            }
            self.text.truncate(self.text.trim_end().len());
            self.text.push('\n');
        }
        if self.listed.len() - known > LISTED {
            let _ = writeln!(
                self.text,
                "       … and {} more",
                self.listed.len() - known - LISTED
            );
        }
        if self.listed.len() > 1 {
            let _ = writeln!(self.text, "       {}", style.dim(order.trim_end()));
        }
    }

    /// Says which calls repeated the last verdict.
    fn end_of_repeats(&mut self, style: Style) {
        if let (Some((first, last)), Some((told, _))) = (self.more.take(), self.told) {
            let calls = if first == last {
                format!("call {last}")
            } else {
                format!("calls {first} to {last}")
            };
            let text = format!("{} again: {calls}", told.verdict.as_str());
            let _ = writeln!(self.text, "       {}", style.dim(&text));
        }
    }

    fn last_told(&self) -> Option<u64> {
        self.more
            .map(|(_, last)| last)
            .or_else(|| self.told.map(|(_, index)| index))
    }

    /// The line of the session.
    fn line(&self, style: Style) -> String {
        let worst = self.strip.iter().copied().max().unwrap_or_default();
        let dot = style.paint(
            worst,
            if worst > Verdict::Notice {
                "●"
            } else {
                "○"
            },
        );
        let name = style.bold(&clean(&self.session, 72));
        let mut facts = vec![plural(self.calls, "call")];
        if self.turns > 1 {
            facts.push(plural(self.turns, "turn"));
        }
        let sane = |seconds: &f64| (1.0..LONGEST_SESSION).contains(seconds);
        facts.extend(self.seconds.filter(sane).map(duration));
        if self.repeats > 0 {
            facts.push(format!("{} brought nothing new", self.repeats));
        }
        format!(
            "\n{dot} {name}\n  {}  {}\n",
            self.picture(style),
            style.dim(&facts.join(" · "))
        )
    }

    /// The whole session in a row of marks, each the worst verdict of its share of the calls.
    fn picture(&self, style: Style) -> String {
        let cells = self.strip.len().min(STRIP);
        let mut text = String::new();
        for cell in 0..cells {
            let from = cell * self.strip.len() / cells;
            let to = (cell + 1) * self.strip.len() / cells;
            let worst = self
                .strip
                .get(from..to)
                .into_iter()
                .flatten()
                .copied()
                .max()
                .unwrap_or_default();
            text.push_str(&style.paint(worst, bar(worst)));
        }
        text
    }
}

/// Why, in words.
fn reason(judged: &Judged) -> String {
    let Judged {
        count,
        period,
        rule,
        ..
    } = *judged;
    let circle = if period > 1 {
        format!(": a circle of {period}")
    } else {
        String::new()
    };
    match rule.unwrap_or_default() {
        "stale" => format!("{count} calls and nothing new{circle}"),
        "cycle" => format!(
            "a pattern of {} came round for the third time",
            plural(period.into(), "call")
        ),
        "run" => format!("the same call {count} times in a row"),
        "fanout" => format!("{count} equal calls in one message"),
        "poll" => format!("{count} polls heard nothing new"),
        "error" => format!("the tool failed the same way {count} times"),
        "repetition" => format!("the same call {count} times among the last ones"),
        "halt" => format!("{count} refused calls and no progress: the run would end here"),
        "opencode" => format!("opencode: the same call {count} times in a row"),
        "gemini" => format!(
            "gemini: a pattern of {} came round {count} times",
            plural(period.into(), "call")
        ),
        "openhands" if period == 2 => {
            "openhands: two calls alternate with equal results".to_owned()
        }
        "openhands" => format!("openhands: the same call and result {count} times"),
        other => other.to_owned(),
    }
}

impl Style {
    fn paint(self, verdict: Verdict, text: &str) -> String {
        let code = match verdict {
            Verdict::Allow => "2",
            Verdict::Notice => "36",
            Verdict::Warn => "33",
            Verdict::Escalate => "38;5;208",
            Verdict::Block => "1;31",
            Verdict::Halt => "1;35",
        };
        self.code(code, text)
    }

    fn bold(self, text: &str) -> String {
        self.code("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.code("2", text)
    }

    fn code(self, code: &str, text: &str) -> String {
        if self.colours {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Makes recorded text safe and short for a terminal: one line, no control characters, nothing that turns the writing direction.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let mut clean: String = text
        .chars()
        .take(most + 1)
        .map(|c| if is_unsafe(c) { '\u{fffd}' } else { c })
        .collect();
    if clean.chars().count() > most {
        clean = clean
            .chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect();
    }
    clean
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

pub(crate) fn plural(count: u64, noun: &str) -> String {
    let mut digits = count.to_string();
    let mut at = digits.len();
    while at > 3 {
        at -= 3;
        digits.insert(at, ',');
    }
    format!("{digits} {noun}{}", if count == 1 { "" } else { "s" })
}

fn duration(seconds: f64) -> String {
    let whole = seconds.round();
    let (hours, minutes) = ((whole / 3600.0).floor(), ((whole % 3600.0) / 60.0).floor());
    if hours > 0.0 {
        format!("{hours:.0} h {minutes:.0} min")
    } else if minutes > 0.0 {
        format!("{minutes:.0} min {:.0} s", whole % 60.0)
    } else {
        format!("{whole:.0} s")
    }
}

fn letter(number: usize) -> String {
    let letter = u8::try_from(number)
        .ok()
        .filter(|number| *number < 26)
        .map(|number| char::from(b'A' + number));
    letter.map_or_else(|| format!("{}", number + 1), String::from)
}

fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "·",
        Verdict::Notice => "·",
        Verdict::Warn => "▲",
        Verdict::Escalate => "▲",
        Verdict::Block => "■",
        Verdict::Halt => "✖",
    }
}

fn bar(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "▁",
        Verdict::Notice => "▂",
        Verdict::Warn => "▄",
        Verdict::Escalate => "▆",
        Verdict::Block => "█",
        Verdict::Halt => "✖",
    }
}

/// 30 years, in seconds. What lasts longer has wrong times.
const LONGEST_SESSION: f64 = 30.0 * 365.0 * 86_400.0;

const LOUD: [Verdict; 5] = [
    Verdict::Halt,
    Verdict::Block,
    Verdict::Escalate,
    Verdict::Warn,
    Verdict::Notice,
];
/// Marks in the picture of a session.
const STRIP: usize = 60;
/// So many calls before a verdict can be shown.
const EXPLAINED: usize = 24;
/// So many different ones are listed.
const LISTED: usize = 8;
