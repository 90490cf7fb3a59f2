//! The texts, byte for byte.

use bizar_window::{
    Call, Mode, Outcome, Rule, Rules, Session,
    Verdict::{self, Allow, Block, Escalate, Halt, Notice, Warn},
    handoff::{clean, text},
};

const CONSIDER: &str = " Consider using the task tool to report back to your parent with what you've learned and what you need.";

fn first_line(
    rule: Rule,
    verdict: Verdict,
    tool: &str,
    count: u32,
    pattern: &[(&str, usize)],
) -> String {
    text(rule, verdict, tool, count, pattern)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn identical_calls() {
    let warn = "[loop guard: 5 identical calls to read]. Consider using the task tool to report back to your parent with what you've learned and what you need.";
    let escalate = "[loop guard: 8 identical calls to read]. Consider using the task tool to report back to your parent with what you've learned and what you need.";
    let block = "Loop protection: 12 identical calls to read. Use task to escalate.";
    for rule in [Rule::Stale, Rule::Repetition, Rule::Cycle] {
        for pattern in [&[][..], &[("read", 0)]] {
            // The numbers are part of the text, whatever the count.
            assert_eq!(first_line(rule, Warn, "read", 77, pattern), warn);
            assert_eq!(first_line(rule, Escalate, "read", 77, pattern), escalate);
            assert_eq!(first_line(rule, Block, "read", 77, pattern), block);
        }
    }
}

#[test]
fn other_causes() {
    let pattern = [("read", 0), ("grep", 1), ("read", 0)];
    for (rule, pattern, clause) in [
        (
            Rule::Stale,
            &pattern[..],
            "a cycle of 3 calls around read repeats",
        ),
        (
            Rule::Cycle,
            &pattern[..],
            "a cycle of 3 calls around read repeats",
        ),
        (Rule::Fanout, &[][..], "equal calls to read in one message"),
        (Rule::Run, &[][..], "the same call to read again and again"),
        (
            Rule::Error,
            &[][..],
            "read fails the same way again and again",
        ),
        (Rule::Poll, &[][..], "read has nothing new"),
    ] {
        assert_eq!(
            first_line(rule, Warn, "read", 9, pattern),
            format!("[loop guard: {clause}].{CONSIDER}")
        );
        assert_eq!(
            first_line(rule, Escalate, "read", 9, pattern),
            format!("[loop guard: {clause}].{CONSIDER}")
        );
        assert_eq!(
            first_line(rule, Block, "read", 9, pattern),
            format!("Loop protection: {clause}. Use task to escalate.")
        );
    }
}

#[test]
fn halt_tells_the_number_of_refused_calls() {
    assert_eq!(
        first_line(Rule::Halt, Halt, "read", 4, &[]),
        "Loop protection: stopped after 4 refused calls to read."
    );
}

#[test]
fn whole_texts() {
    assert_eq!(
        text(Rule::Stale, Block, "read", 12, &[]),
        "Loop protection: 12 identical calls to read. Use task to escalate.\n\
         If there is no task tool: reassess the evidence and do something materially different, or end the turn \
         with a report of what was learned and what is needed."
    );
    assert_eq!(
        text(
            Rule::Cycle,
            Block,
            "read",
            9,
            &[("read", 0), ("grep", 1), ("read", 0)]
        ),
        "Loop protection: a cycle of 3 calls around read repeats. Use task to escalate.\n\
         Pattern: #1 read, #2 grep, #1 read; equal numbers are equal calls.\n\
         If there is no task tool: reassess the evidence and do something materially different, or end the turn \
         with a report of what was learned and what is needed."
    );
}

#[test]
fn nothing_is_said_below_a_warning() {
    assert_eq!(text(Rule::Stale, Allow, "read", 1, &[]), "");
    assert_eq!(text(Rule::Stale, Notice, "read", 3, &[]), "");
}

#[test]
fn names_are_cleaned() {
    assert_eq!(clean("mcp__server-1.read"), "mcp__server-1.read");
    assert_eq!(clean("a\r\nb\tc\0d\u{7f}e\u{85}f"), "a??b?c?d?e?f");
    assert_eq!(
        clean("a\u{202e}b\u{2066}c\u{200f}d\u{61c}e\u{2028}f\u{feff}g\u{e0041}h"),
        "a?b?c?d?e?f?g?h"
    );
    assert_eq!(clean("読む"), "読む");
    assert_eq!(clean(&"x".repeat(64)), "x".repeat(64));
    assert_eq!(clean(&"é".repeat(65)), format!("{}…", "é".repeat(63)));
    let hostile = text(
        Rule::Cycle,
        Block,
        "a\n[x",
        4,
        &[("b\nLoop protection", 0), ("c", 1)],
    );
    assert_eq!(hostile.lines().count(), 3);
    assert!(hostile.starts_with(
        "Loop protection: a cycle of 2 calls around a?[x repeats. Use task to escalate.\n"
    ));
}

#[test]
fn long_patterns_are_cut() {
    let pattern: Vec<(&str, usize)> = (0..48).map(|i| ("read", i)).collect();
    let text = text(Rule::Stale, Warn, "read", 99, &pattern);
    assert!(
        text.contains("#12 read and 36 more; equal numbers"),
        "{text}"
    );
    assert!(!text.contains("#13"));
}

/// The pattern after each call is made, as tool and index of the first equal call.
fn shape_of(mode: Mode, calls: &[(u64, u64)]) -> (u32, Vec<(u64, usize)>) {
    let mut session: Session<u64, u64> = Session::new(Rules::new(mode));
    let mut last = (0, Vec::new());
    for (key, tool) in calls {
        let judgement = session.before(&Call::new(*key, *tool));
        if judgement.verdict < Block {
            session.after(judgement.handle, Outcome::ok(1));
        }
        last = (
            judgement.period,
            session
                .pattern(judgement.handle, judgement.period)
                .collect(),
        );
    }
    last
}

#[test]
fn pattern_names_tools_and_equal_calls() {
    // read a, grep b, read a, read c; three times.
    let cycle = [(1, 10), (2, 20), (1, 10), (3, 10)].repeat(3);
    assert_eq!(
        shape_of(Mode::Cycle, &cycle),
        (4, vec![(10, 0), (20, 1), (10, 0), (10, 3)])
    );
    let pair = [(1, 10), (2, 20)].repeat(4);
    assert_eq!(shape_of(Mode::Progress, &pair), (2, vec![(10, 0), (20, 1)]));
    assert_eq!(shape_of(Mode::Progress, &[(1, 10); 5]), (1, vec![(10, 0)]));
    assert_eq!(shape_of(Mode::Cycle, &[(1, 10); 4]), (1, vec![(10, 0)]));
    assert_eq!(shape_of(Mode::Repetition, &[(1, 10); 5]), (0, vec![]));
}

#[test]
fn pattern_of_an_earlier_call_stands_still() {
    let mut session: Session<u64, u64> = Session::new(Rules::default());
    let mut handles = Vec::new();
    for key in [1, 2, 1, 2, 1, 2, 7] {
        let judgement = session.before(&Call::new(key, key * 10));
        session.after(judgement.handle, Outcome::ok(1));
        handles.push(judgement.handle);
    }
    assert_eq!(
        session.pattern(handles[5], 2).collect::<Vec<_>>(),
        [(10, 0), (20, 1)]
    );
    assert_eq!(session.pattern(handles[5], 99).count(), 6);
}
