//! What is JSON and what is not: strict, with the place of the fault.

use bizar_fingerprint::ErrorKind::{
    ByteOrderMark, DuplicateKey, LoneSurrogate, Syntax, TrailingData, UnexpectedEnd, Utf8,
};
use bizar_fingerprint::{ErrorKind, canonical_from_text};

#[track_caller]
fn refused(json: impl AsRef<[u8]>, kind: ErrorKind, offset: usize) {
    let error = canonical_from_text(json.as_ref()).unwrap_err();
    let shown = String::from_utf8_lossy(json.as_ref()).into_owned();
    assert_eq!(
        (error.kind(), error.offset()),
        (kind, Some(offset)),
        "{shown}"
    );
    // What is not JSON for us is not for serde_json; duplicates it keeps silently.
    if kind != DuplicateKey {
        assert!(
            serde_json::from_slice::<serde_json::Value>(json.as_ref()).is_err(),
            "{shown}"
        );
    }
}

#[test]
fn whole_documents_are_taken() {
    for json in [
        "[]",
        "{}",
        "null",
        "true",
        "false",
        "0",
        "-1",
        "\"\"",
        " [1] ",
        "[1\n]",
        "\t\r\n {} \n",
        "[[]   ]",
        "[null,1,\"1\",{}]",
        "{\"\":0}",
        "{\"a\":[]}",
        "[1E22]",
        "[0e+1]",
        "[0e1]",
        "[-0]",
        "[123.456e78]",
        "{\"foo\\u0000bar\":42}",
        "[\"\u{2064}\"]",
        "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]",
        "[\"\\uD801\\udc37\"]",
        "[\"\u{7f}\"]",
        "[\"a/*b*/c\"]",
    ] {
        assert!(canonical_from_text(json).is_ok(), "{json}");
    }
}

#[test]
fn broken_structure_is_refused() {
    for (json, offset) in [
        ("[1 true]", 3),
        ("[,1]", 1),
        ("[1,,2]", 3),
        ("[1,]", 3),
        ("[\"\":1]", 3),
        ("[1:2]", 2),
        ("[*]", 1),
        ("{[1:2]}", 1),
        ("{\"a\",1}", 4),
        ("{\"a\"::1}", 5),
        ("{:1}", 1),
        ("{\"a\" 1}", 5),
        ("{1:1}", 1),
        ("{null:null}", 1),
        ("{\"a\":1,}", 7),
        ("{'a':0}", 1),
        ("{a:1}", 1),
        ("{\"a\":1,,\"b\":2}", 7),
        ("{\"a\":1;}", 6),
        ("<null>", 0),
        ("[1}", 2),
        ("{\"a\":1]", 6),
        ("[\u{b}1]", 1),
        ("[\u{c}]", 1),
        ("\u{2060}[]", 0),
        ("[tru]", 4),
        ("[nul]", 4),
        ("[fals]", 5),
        ("True", 0),
        ("[False]", 1),
        ("*", 0),
        ("]", 0),
        ("\0", 0),
        ("[\u{a0}]", 1),
    ] {
        refused(json, Syntax, offset);
    }
}

#[test]
fn broken_numbers_are_refused() {
    for (json, offset) in [
        ("[-01]", 3),
        ("[012]", 2),
        ("[+1]", 1),
        ("[.5]", 1),
        ("[-]", 2),
        ("[2.]", 3),
        ("[2.e3]", 3),
        ("[0.3e]", 5),
        ("[0.3e+]", 6),
        ("[1e]", 3),
        ("[1eE2]", 3),
        ("[0x42]", 2),
        ("[1_000]", 2),
        ("[1 000]", 3),
        ("[0.1.2]", 4),
        ("[1e1.5]", 4),
        ("[-1.0.]", 5),
        ("[--1]", 2),
        ("[++1]", 1),
        ("[NaN]", 1),
        ("[-NaN]", 2),
        ("[Infinity]", 1),
        ("[-Infinity]", 2),
        ("[1+2]", 2),
        ("[-foo]", 2),
        ("[\u{ff11}]", 1),
        ("[1ea]", 3),
        ("[1.2a-3]", 4),
    ] {
        refused(json, Syntax, offset);
    }
}

#[test]
fn broken_strings_are_refused() {
    for (json, offset) in [
        ("[\"\\x00\"]", 3),
        ("[\"\\a\"]", 3),
        ("[\"\\\u{e9}\"]", 3),
        ("[\"\\u00Z9\"]", 6),
        ("[\"\\uqqqq\"]", 4),
        ("[\"a\nb\"]", 3),
        ("[\"\t\"]", 2),
        ("[\"a\0a\"]", 3),
        ("['single']", 1),
        ("[\u{e9}]", 1),
        ("[\\n]", 1),
        ("[\"\\uD800\\u1\"]", 11),
        ("[\"\\u 123\"]", 4),
    ] {
        refused(json, Syntax, offset);
    }
}

#[test]
fn the_end_inside_a_document_is_told_from_bad_syntax() {
    for json in [
        "",
        " ",
        "[",
        "[1",
        "[1,",
        "{",
        "{\"",
        "{\"a",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "\"abc",
        "\"\\",
        "\"\\u",
        "\"\\u00",
        "t",
        "tru",
        "-",
        "1.",
        "1e",
        "1e+",
        "[[",
        "[{\"a\":[",
        "\"\\uD800\\u",
    ] {
        refused(json, UnexpectedEnd, json.len());
    }
}

#[test]
fn data_after_the_document_is_refused() {
    for (json, offset) in [
        ("[]]", 2),
        ("{}}", 2),
        ("1 2", 2),
        ("[1]x", 3),
        ("{} #", 3),
        ("{}/**/", 2),
        ("nullx", 4),
        ("\"a\"b", 3),
        ("2@", 1),
        ("01", 1),
    ] {
        refused(json, TrailingData, offset);
    }
}

#[test]
fn lone_surrogates_are_refused() {
    for (json, offset) in [
        (r#""\uD800""#, 1),
        (r#"["a\udfaa"]"#, 3),
        (r#""\uD800\uD800""#, 1),
        (r#""\uD800\u0041""#, 1),
        (r#""\uDd1e\uD834""#, 1),
        (r#""\uD800\n""#, 1),
        (r#""\uD800x""#, 1),
        (r#"{"\uDC00":1}"#, 2),
    ] {
        refused(json, LoneSurrogate, offset);
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_refused() {
    for (json, offset) in [
        (&b"[\"\xff\"]"[..], 2),
        (b"[\"\xe9\"]", 2),
        (b"[\"\xc0\xaf\"]", 2),
        (b"[\"\xed\xa0\x80\"]", 2),
        (b"[\"\xf4\xbf\xbf\xbf\"]", 2),
        (b"[\"\x81\"]", 2),
        (b"[\"\xe0\xff\"]", 2),
        (b"\xff\xfe[\0]\0", 0),
        (b"[1]\xe5", 3),
    ] {
        refused(json, Utf8, offset);
    }
}

#[test]
fn a_byte_order_mark_is_refused() {
    refused("\u{feff}{}", ByteOrderMark, 0);
    refused("\u{feff}", ByteOrderMark, 0);
}

#[test]
fn a_duplicate_key_is_refused_at_its_second_place() {
    for (json, offset) in [
        (r#"{"a":1,"a":2}"#, 7),
        (r#"{"a":1,"a":1}"#, 7),
        (r#"{"b":1,"a":2,"b":3}"#, 13),
        (r#"{"a":1,"\u0061":2}"#, 7),
        (r#"[{"x":{"c":1,"b":2,"a":3,"b":4}}]"#, 25),
        (r#"{"a/":1,"a\/":2}"#, 8),
    ] {
        refused(json, DuplicateKey, offset);
    }
    // Composed and decomposed are two names.
    assert!(canonical_from_text("{\"\u{e9}\":1,\"e\u{301}\":2}").is_ok());
}
