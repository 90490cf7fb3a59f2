//! Arguments are left out by tool and name only; empty arguments are one identity.

use bizar_fingerprint::{ErrorKind, Fingerprinter, IgnoredArgs, glob_matches};
use serde_json::json;

fn document(fingerprinter: &Fingerprinter, tool: &str, args: &str) -> String {
    String::from_utf8(fingerprinter.clone().canonical_text(tool, args).unwrap()).unwrap()
}

#[test]
fn the_default_table_drops_commentary_of_the_tools_it_names() {
    let fingerprinter = Fingerprinter::new();
    let args = r#"{"thought":"b","description":"Lists files","command":"ls","task_progress":"-"}"#;
    assert_eq!(
        document(&fingerprinter, "bash", args),
        r#"{"args":{"command":"ls","task_progress":"-"},"tool":"bash"}"#
    );
    assert_eq!(
        document(&fingerprinter, "read_file", args),
        r#"{"args":{"command":"ls","description":"Lists files","thought":"b"},"tool":"read_file"}"#
    );
    for tool in ["task", "BASH", "bash2", ""] {
        assert!(
            document(&fingerprinter, tool, args).contains("Lists files"),
            "{tool}"
        );
    }
}

#[test]
fn only_arguments_themselves_are_dropped() {
    let nested = r#"{"description":{"description":1},"x":{"description":1},"y":[{"thought":2}]}"#;
    assert_eq!(
        document(&Fingerprinter::new(), "bash", nested),
        r#"{"args":{"x":{"description":1},"y":[{"thought":2}]},"tool":"bash"}"#
    );
    assert_eq!(
        document(&Fingerprinter::new(), "bash", r#"[{"description":1}]"#),
        r#"{"args":[{"description":1}],"tool":"bash"}"#
    );
}

#[test]
fn no_name_is_ignored_everywhere() {
    let mut fingerprinter = Fingerprinter::new();
    for name in [
        "id",
        "cwd",
        "created",
        "updated_text",
        "timestamp",
        "call_id",
        "durationMs",
    ] {
        let [one, two] = [1, 2].map(|n| fingerprinter.of_value("bash", &json!({name: n})).unwrap());
        assert_ne!(one, two, "{name}");
    }
}

#[test]
fn a_table_can_be_extended_or_empty() {
    let mut ignored = IgnoredArgs::default();
    ignored
        .add("mcp__*", ["requestId", "a\"b"])
        .add("x", [String::from("y")]);
    let fingerprinter = Fingerprinter::new().ignored(ignored);
    assert_eq!(
        document(
            &fingerprinter,
            "mcp__a__b",
            r#"{"requestId":1,"a\u0022b":2,"q":3}"#
        ),
        r#"{"args":{"q":3},"tool":"mcp__a__b"}"#
    );
    assert_eq!(
        document(&fingerprinter, "x", r#"{"y":1}"#),
        r#"{"args":{},"tool":"x"}"#
    );
    assert_eq!(
        document(&fingerprinter, "bash", r#"{"description":1}"#),
        r#"{"args":{},"tool":"bash"}"#
    );
    let none = Fingerprinter::new().ignored(IgnoredArgs::none());
    assert_eq!(
        document(&none, "bash", r#"{"description":1}"#),
        r#"{"args":{"description":1},"tool":"bash"}"#
    );
}

#[test]
fn a_fault_in_an_ignored_argument_is_a_fault() {
    let mut fingerprinter = Fingerprinter::new();
    for (args, kind, offset) in [
        (
            r#"{"description":1,"x":2,"description":3}"#,
            ErrorKind::DuplicateKey,
            23,
        ),
        (
            r#"{"description":[1,"\ud800"]}"#,
            ErrorKind::LoneSurrogate,
            19,
        ),
    ] {
        let error = fingerprinter.of_text("bash", args).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (kind, Some(offset)));
    }
}

#[test]
fn fp_15_null_and_empty_and_absent_arguments_are_one() {
    let mut fingerprinter = Fingerprinter::new();
    let absent = fingerprinter.of_absent("t");
    assert_eq!(
        fingerprinter.canonical_absent("t"),
        br#"{"args":{},"tool":"t"}"#
    );
    assert_eq!(fingerprinter.of_text("t", " {} ").unwrap(), absent);
    assert_eq!(fingerprinter.of_text("t", "null").unwrap(), absent);
    assert_eq!(fingerprinter.of_value("t", &json!(null)).unwrap(), absent);
    assert_eq!(fingerprinter.of_serialize("t", &()).unwrap(), absent);
    for other in [
        r#""""#,
        r#""{}""#,
        "[]",
        "[null]",
        "0",
        "false",
        r#"{"a":null}"#,
    ] {
        assert_ne!(
            fingerprinter.of_text("t", other).unwrap(),
            absent,
            "{other}"
        );
    }
    assert_ne!(fingerprinter.of_absent("u"), absent);
    // Arguments that are not JSON are an error of the text path; as a string they have their own identity.
    assert!(fingerprinter.of_text("t", "{broken").is_err());
    assert_ne!(
        fingerprinter.of_value("t", &json!("{broken")).unwrap(),
        absent
    );
}

#[test]
fn tool_and_arguments_cannot_be_confused() {
    let mut fingerprinter = Fingerprinter::new();
    let a = fingerprinter.of_value("a\",\"x\":\"", &json!({})).unwrap();
    let b = fingerprinter.of_value("a", &json!({"x": ""})).unwrap();
    assert_ne!(a, b);
}

#[test]
fn globs_know_the_star_only() {
    for (glob, name) in [
        ("*", ""),
        ("*", "x"),
        ("a*", "a"),
        ("*a", "ba"),
        ("a*c", "abc"),
        ("a*b*c", "axbxc"),
        ("**", "x"),
        ("a**b", "ab"),
        ("*_wait", "x_wait"),
        ("?", "?"),
        ("a*a*a", "aaa"),
    ] {
        assert!(glob_matches(glob, name), "{glob} {name}");
    }
    for (glob, name) in [
        ("", "x"),
        ("a", "A"),
        ("a*", "ba"),
        ("a*a", "a"),
        ("*ab*ab", "ab"),
        ("a*b*c", "acb"),
        ("?", "x"),
        ("*_wait", "wait"),
        ("a*a*a", "aa"),
    ] {
        assert!(!glob_matches(glob, name), "{glob} {name}");
    }
}
