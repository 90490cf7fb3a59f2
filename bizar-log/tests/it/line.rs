//! One entry is one line, and the line is the entry.

use std::time::Duration;

use bizar_log::{Entry, Outcome, ShortFingerprint};
use proptest::prelude::*;

const SHORT: ShortFingerprint = ShortFingerprint::from_bytes([0xab, 0x12, 0xcd, 0x34, 0xef, 0x56]);

#[test]
fn the_line_to_the_byte() {
    let entry = Entry::new(
        1_781_706_601_123,
        "ses_01",
        "read",
        SHORT,
        Outcome::Ok,
        Duration::from_micros(45_999),
    );
    assert_eq!(
        entry.to_string(),
        "2026-06-17T14:30:01.123Z session=ses_01 tool=read fingerprint=ab12cd34ef56 outcome=ok duration=45ms"
    );
}

#[test]
fn every_outcome_has_its_word() {
    let words: Vec<String> = [
        Outcome::Ok,
        Outcome::Error,
        Outcome::Blocked,
        Outcome::Aborted,
    ]
    .iter()
    .map(|outcome| Entry::new(0, "s", "t", SHORT, *outcome, Duration::ZERO).to_string())
    .collect();
    let line = |word| {
        format!(
            "1970-01-01T00:00:00.000Z session=s tool=t fingerprint=ab12cd34ef56 outcome={word} duration=0ms"
        )
    };
    assert_eq!(words, ["ok", "error", "blocked", "aborted"].map(line));
}

#[test]
fn log_10_a_line_feed_forges_no_line() {
    let tool = "read\n2026-06-17T00:00:00.000Z session=x tool=bash outcome=ok";
    let entry = Entry::new(0, "a b=c", tool, SHORT, Outcome::Blocked, Duration::ZERO);
    let line = entry.to_string();
    assert_eq!(
        line,
        "1970-01-01T00:00:00.000Z session=a%20b%3Dc \
         tool=read%0A2026-06-17T00:00:00.000Z%20session%3Dx%20tool%3Dbash%20outcome%3Dok \
         fingerprint=ab12cd34ef56 outcome=blocked duration=0ms"
    );
    assert_eq!(line.parse(), Ok(entry));
}

#[test]
fn log_11_a_space_forges_no_field() {
    let tool = "read outcome=ok fingerprint=000000";
    let entry = Entry::new(0, "s", tool, SHORT, Outcome::Error, Duration::ZERO);
    let line = entry.to_string();
    assert_eq!(line.matches("outcome=").count(), 1);
    assert_eq!(line.split(' ').count(), 6);
    assert_eq!(line.parse(), Ok(entry));
}

#[test]
fn the_look_of_a_line_cannot_be_changed() {
    for mark in [
        "\u{202e}",
        "\u{200f}",
        "\u{2028}",
        "\u{1b}[2K",
        "\0",
        "\r",
        "\u{7f}",
        "\u{85}",
    ] {
        let entry = Entry::new(0, mark, mark, SHORT, Outcome::Ok, Duration::ZERO);
        let line = entry.to_string();
        assert!(
            line.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
            "{line:?}"
        );
        assert_eq!(line.parse(), Ok(entry));
    }
}

#[test]
fn times_outside_the_calendar_are_moved_into_it() {
    let at = |at| Entry::new(at, "s", "t", SHORT, Outcome::Ok, Duration::MAX);
    let first = at(i64::MIN).to_string();
    assert!(first.starts_with("0000-01-01T00:00:00.000Z "), "{first}");
    let last = at(i64::MAX).to_string();
    assert!(last.starts_with("9999-12-30T22:00:00.000Z "), "{last}");
    assert!(last.ends_with(" duration=18446744073709551615ms"), "{last}");
    for line in [first, last] {
        assert_eq!(line.parse::<Entry>().unwrap().to_string(), line);
    }
}

#[test]
fn a_long_tool_name_carries_no_content_to_the_log() {
    let secret = format!("{} the content of a file", "x".repeat(300));
    let entry = Entry::new(0, "s", &secret, SHORT, Outcome::Ok, Duration::ZERO);
    assert_eq!(entry.tool().len(), Entry::TOOL_BYTES);
    assert!(!entry.to_string().contains("content"));
    let other = Entry::new(0, "s", &"x".repeat(300), SHORT, Outcome::Ok, Duration::ZERO);
    assert_ne!(entry.tool(), other.tool());
}

#[test]
fn what_is_no_line_is_refused() {
    let good = "2026-06-17T14:30:01.123Z session=s tool=t fingerprint=ab12cd34ef56 outcome=ok duration=45ms";
    assert!(good.parse::<Entry>().is_ok());
    for (from, to) in [
        ("", ""),
        ("2026-06-17T14:30:01.123Z", "2026-06-17T14:30:01Z"),
        ("2026-06-17T14:30:01.123Z", "2026-06-17t14:30:01.123z"),
        ("2026-06-17T14:30:01.123Z", "2026-06-17T16:30:01.123+02:00"),
        ("2026-06-17", "2026-06-31"),
        ("2026-06-17T14:30:01.123Z", "9999-12-30T22:00:00.999Z"),
        ("2026-06-17T14:30:01.123Z", "-000001-06-17T14:30:01.123Z"),
        ("session=s", "session=%73"),
        ("session=s", "session=a%2fb"),
        ("session=s", "session=%FF"),
        ("session=s", "session=%2"),
        ("session=s", "session=ü"),
        ("session=s ", ""),
        ("tool=t", "tool=t user_id=999"),
        ("ab12cd34ef56", "ab12cd"),
        ("ab12cd34ef56", "AB12CD34EF56"),
        ("ab12cd34ef56", "+b12cd34ef56"),
        ("outcome=ok", "outcome=fine"),
        ("45ms", "45s"),
        ("45ms", "045ms"),
        ("45ms", "-1ms"),
        ("45ms", "18446744073709551616ms"),
        ("45ms", "45ms\n"),
        ("45ms", "45ms "),
    ] {
        let bad = if from.is_empty() {
            String::new()
        } else {
            good.replace(from, to)
        };
        assert_ne!(bad, good);
        assert!(bad.parse::<Entry>().is_err(), "{bad:?}");
    }
}

#[test]
fn a_parse_error_does_not_repeat_the_text() {
    let error = "hunter2".parse::<Entry>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a log line: time is missing or malformed"
    );
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Ok),
        Just(Outcome::Error),
        Just(Outcome::Blocked),
        Just(Outcome::Aborted)
    ]
}

/// Text of any characters, often hostile ones, up to well beyond what is kept.
fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z =%\n\r\0\u{202e}\u{2028}]{0,40}",
        "[a\u{10ffff}ü]{100,700}",
    ]
}

proptest! {
    #[test]
    fn a_printed_entry_is_read_back(
        at: i64, session in names(), tool in names(), bytes: [u8; 6], outcome in outcomes(), duration: Duration,
    ) {
        let short = ShortFingerprint::from_bytes(bytes);
        let entry = Entry::new(at, &session, &tool, short, outcome, duration);
        let line = entry.to_string();
        prop_assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        prop_assert!((line.len() as u64) < Entry::LINE_BYTES);
        prop_assert_eq!(line.split(' ').count(), 6);
        prop_assert_eq!(line.parse(), Ok(entry));
    }

    #[test]
    fn a_line_that_is_read_prints_the_same(
        line in "[0-9]{4}-0[1-9]-[0-2][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{3}Z \
                 session=[ -~]{0,9} tool=[!-~]{0,9} fingerprint=[0-9a-f]{12} outcome=(ok|error) duration=[0-9]{1,3}ms"
    ) {
        if let Ok(entry) = line.parse::<Entry>() {
            prop_assert_eq!(entry.to_string(), line);
        }
    }

    #[test]
    fn any_text_is_a_line_or_an_error(text: String) {
        prop_assert!(text.parse::<Entry>().is_err() || text.starts_with(|first: char| first.is_ascii_digit()));
    }

    #[test]
    fn different_long_names_stay_different(a in "[ab]{600,602}", b in "[ab]{600,602}") {
        prop_assume!(a != b);
        let of = |name: &str| Entry::new(0, name, name, SHORT, Outcome::Ok, Duration::ZERO);
        let (a, b) = (of(&a), of(&b));
        prop_assert_ne!(a.session(), b.session());
        prop_assert_ne!(a.tool(), b.tool());
    }
}
