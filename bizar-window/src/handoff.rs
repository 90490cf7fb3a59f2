//! The texts an agent is given with a verdict.

use crate::{Rule, Verdict};

/// No more characters of a tool's name than this go into a text.
pub const MAX_NAME: usize = 64;
/// No more calls of a pattern than this are spelled out.
const MAX_SHAPE: usize = 12;

const CONSIDER: &str = "Consider using the task tool to report back to your parent with what you've learned and what you need.";
const ESCALATE: &str = "Use task to escalate.";
const ADVICE: &str = "If there is no task tool: reassess the evidence and do something materially different, \
    or end the turn with a report of what was learned and what is needed.";

/// The text that goes to the agent with a verdict; empty below [`Verdict::Warn`].
///
/// The first line is what agents match on, byte for byte. `count` matters to a halt only: the
/// number of refused calls. The numbers 5, 8 and 12 of identical calls belong to the text and do
/// not follow the ladder. `pattern` holds, for each call of a cycle, the tool's name and the index
/// of the first call equal to it, as [`Session::pattern`](crate::Session::pattern) gives them; a
/// pattern of two or more calls makes it the text of a cycle.
///
/// ```
/// use bizar_window::{Rule, Verdict, handoff};
///
/// let text = handoff::text(Rule::Stale, Verdict::Block, "read", 12, &[]);
/// assert!(text.starts_with("Loop protection: 12 identical calls to read. Use task to escalate.\n"));
/// ```
#[must_use]
pub fn text(
    rule: Rule,
    verdict: Verdict,
    tool: &str,
    count: u32,
    pattern: &[(&str, usize)],
) -> String {
    let tool = clean(tool);
    let first = match verdict {
        Verdict::Allow | Verdict::Notice => return String::new(),
        Verdict::Warn => format!(
            "[loop guard: {}]. {CONSIDER}",
            clause(rule, "5", &tool, pattern)
        ),
        Verdict::Escalate => format!(
            "[loop guard: {}]. {CONSIDER}",
            clause(rule, "8", &tool, pattern)
        ),
        Verdict::Block => format!(
            "Loop protection: {}. {ESCALATE}",
            clause(rule, "12", &tool, pattern)
        ),
        Verdict::Halt => format!("Loop protection: stopped after {count} refused calls to {tool}."),
    };
    let shape = shape(rule, pattern);
    format!("{first}\n{shape}{ADVICE}")
}

/// A tool's name as it may stand in a text: one line, nothing invisible, at most [`MAX_NAME`] characters.
///
/// ```
/// assert_eq!(bizar_window::handoff::clean("re\u{202e}ad\nx"), "re?ad?x");
/// ```
#[must_use]
pub fn clean(name: &str) -> String {
    let shown = |c: char| if is_hidden(c) { '?' } else { c };
    if name.chars().nth(MAX_NAME).is_none() {
        return name.chars().map(shown).collect();
    }
    let mut cut: String = name.chars().take(MAX_NAME - 1).map(shown).collect();
    cut.push('…');
    cut
}

fn clause(rule: Rule, number: &str, tool: &str, pattern: &[(&str, usize)]) -> String {
    match rule {
        Rule::Stale | Rule::Cycle if pattern.len() > 1 => {
            format!("a cycle of {} calls around {tool} repeats", pattern.len())
        }
        Rule::Stale | Rule::Cycle | Rule::Repetition | Rule::Halt => {
            format!("{number} identical calls to {tool}")
        }
        Rule::Fanout => format!("equal calls to {tool} in one message"),
        Rule::Run => format!("the same call to {tool} again and again"),
        Rule::Error => format!("{tool} fails the same way again and again"),
        Rule::Poll => format!("{tool} has nothing new"),
    }
}

/// A line on which calls are in a pattern and which of them are equal; nothing without a pattern.
fn shape(rule: Rule, pattern: &[(&str, usize)]) -> String {
    if pattern.is_empty() || (pattern.len() == 1 && rule != Rule::Cycle) {
        return String::new();
    }
    let mut line = String::from("Pattern: ");
    for (index, (tool, equal)) in pattern.iter().take(MAX_SHAPE).enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        line.push_str(&format!("{comma}#{} {}", equal + 1, clean(tool)));
    }
    if let Some(more) = pattern
        .len()
        .checked_sub(MAX_SHAPE)
        .filter(|more| *more > 0)
    {
        line.push_str(&format!(" and {more} more"));
    }
    line.push_str("; equal numbers are equal calls.\n");
    line
}

/// Control characters, line and paragraph separators, and marks that hide or turn text around.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
