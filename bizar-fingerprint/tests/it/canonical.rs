//! RFC 8785: member order, escapes, white space; the same bytes from text, value and serialize.

use bizar_fingerprint::{
    Canonicaliser, canonical_from_serialize, canonical_from_text, canonical_from_value,
};
use serde_json::Value;

/// Canonical text, the same from text, value and serialize, and its own canonical form.
#[track_caller]
fn canonical(json: &str) -> String {
    let value: Value = serde_json::from_str(json).unwrap();
    let text = canonical_from_text(json).unwrap();
    assert_eq!(text, canonical_from_value(&value).unwrap(), "as a value");
    assert_eq!(
        text,
        canonical_from_serialize(&value).unwrap(),
        "serialised"
    );
    assert_eq!(text, canonical_from_text(&text).unwrap(), "again");
    String::from_utf8(text).unwrap()
}

#[test]
fn nested_objects_are_sorted_and_white_space_goes() {
    assert_eq!(
        canonical("[ 56,\r\n\t{ \"d\": true, \"10\": null, \"1\": [ ] } ] "),
        r#"[56,{"1":[],"10":null,"d":true}]"#
    );
    assert_eq!(
        canonical(
            r#"{"1":{"f":{"f":"hi","F":5},"\n":56.0},"10":{},"":"empty","a":{},"111":[{"e":"yes","E":"no"}],"A":{}}"#
        ),
        r#"{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}"#
    );
    assert_eq!(
        canonical(r#"{"peach":1,"péché":2,"pêche":3,"sin":4}"#),
        r#"{"peach":1,"péché":2,"pêche":3,"sin":4}"#
    );
}

#[test]
fn strings_keep_their_characters_and_the_fewest_escapes() {
    assert_eq!(
        canonical(r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#),
        r#""€$\u000f\nA'B\"\\\\\"/""#
    );
    assert_eq!(
        canonical(r#""\b\t\n\f\r\u0000\u001f\u007f\u2028""#),
        "\"\\b\\t\\n\\f\\r\\u0000\\u001f\u{7f}\u{2028}\""
    );
    assert_eq!(canonical(r#""\uD834\udd1e""#), "\"\u{1d11e}\"");
    // No normalisation of Unicode: A and a ring stay two characters.
    assert_eq!(canonical(r#"{"k":"A\u030a"}"#), "{\"k\":\"A\u{30a}\"}");
    assert_eq!(
        canonical("\"\u{ffff}\u{10ffff}\""),
        "\"\u{ffff}\u{10ffff}\""
    );
}

#[test]
fn fp_01_an_emoji_sorts_before_a_presentation_form() {
    assert_eq!(
        canonical(r#"{"\uFB33":1,"\uD83D\uDE00":2}"#),
        "{\"\u{1f600}\":2,\"\u{fb33}\":1}"
    );
}

#[test]
fn fp_02_the_first_astral_character_sorts_before_the_private_use_area() {
    assert_eq!(
        canonical(r#"{"\uE000":1,"\uD800\uDC00":2}"#),
        "{\"\u{10000}\":2,\"\u{e000}\":1}"
    );
    assert_eq!(
        canonical(r#"{"x\uE000":1,"x\uDBFF\uDFFF":2,"x\uD7FF":3}"#),
        "{\"x\u{d7ff}\":3,\"x\u{10ffff}\":2,\"x\u{e000}\":1}"
    );
}

#[test]
fn fp_13_names_sort_by_what_they_are_not_by_their_escapes() {
    assert_eq!(
        canonical(
            r#"{"\u20ac":1,"\r":2,"\n":3,"1":4,"\u0080":5,"\ud83d\ude02":6,"\u00f6":7,"</script>":8,"\ufb33":9}"#
        ),
        "{\"\\n\":3,\"\\r\":2,\"1\":4,\"</script>\":8,\"\u{80}\":5,\"ö\":7,\"€\":1,\"😂\":6,\"\u{fb33}\":9}"
    );
    // As escaped text, `\"` (22) would sort after `A` (41), `\u0001` after `\b`, and `\\` (5c) after `a`.
    assert_eq!(
        canonical(r#"{"A":1,"\"":2,"!":3}"#),
        r#"{"!":3,"\"":2,"A":1}"#
    );
    assert_eq!(
        canonical(r#"{"\b":1,"\u0001":2,"\u001f":3,"\t":4}"#),
        r#"{"\u0001":2,"\b":1,"\t":4,"\u001f":3}"#
    );
    assert_eq!(
        canonical(r#"{"a":1,"\\":2,"]":3,"[":4}"#),
        r#"{"[":4,"\\":2,"]":3,"a":1}"#
    );
    assert_eq!(
        canonical(r#"{"a\\b":1,"a\b":2,"a\\":3,"a":4}"#),
        r#"{"a":4,"a\b":2,"a\\":3,"a\\b":1}"#
    );
}

#[test]
fn a_buffer_may_be_used_again_also_after_an_error() {
    let mut canonicaliser = Canonicaliser::default();
    assert!(canonicaliser.from_text(r#"{"b":{"a":1,"a":2}}"#).is_err());
    assert_eq!(
        canonicaliser.from_text(r#"{"b":[],"a":{}}"#).unwrap(),
        br#"{"a":{},"b":[]}"#
    );
    assert_eq!(canonicaliser.from_value(&Value::Null).unwrap(), b"null");
    assert_eq!(
        canonicaliser.from_serialize(&("x", 1)).unwrap(),
        br#"["x",1]"#
    );
}
