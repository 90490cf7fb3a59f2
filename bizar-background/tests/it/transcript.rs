//! What a session has said.

use bizar_background::{Text, Transcript};
use serde_json::json;

fn message(role: &str, parts: serde_json::Value) -> serde_json::Value {
    json!({"info": {"id": "m", "sessionID": "s", "role": role, "time": {"created": 1, "completed": 2}, "finish": "stop"},
        "parts": parts})
}

fn said(messages: serde_json::Value) -> Text {
    Transcript::parse(&messages.to_string())
        .unwrap()
        .text(1 << 20)
}

#[test]
fn parts_join_with_nothing_and_messages_with_a_blank_line() {
    let text = said(json!([
        message("user", json!([{"type": "text", "text": "the prompt"}])),
        message(
            "assistant",
            json!([
            {"type": "step-start"},
            {"type": "reasoning", "text": "hidden"},
            {"type": "text", "text": "one "},
            {"type": "tool", "tool": "bash", "callID": "c", "state": {"status": "completed", "output": "no"}},
            {"type": "text", "text": "two"},
            {"type": "step-finish", "reason": "tool-calls"}])
        ),
        message("assistant", json!([{"type": "text", "text": "three"}])),
    ]));
    assert_eq!(text.result, "one two\n\nthree");
    assert_eq!(text.final_text, "three");
    assert!(!text.is_truncated);
}

#[test]
fn synthetic_ignored_and_summary_texts_are_left_out() {
    let mut summary = message("assistant", json!([{"type": "text", "text": "a summary"}]));
    summary["info"]["summary"] = json!(true);
    let text = said(json!([
        summary,
        message(
            "assistant",
            json!([
            {"type": "text", "text": "kept"},
            {"type": "text", "text": "synthetic", "synthetic": true},
            {"type": "text", "text": "ignored", "ignored": true}])
        ),
    ]));
    assert_eq!(text.result, "kept");
}

#[test]
fn a_step_that_was_begun_again_is_not_said_twice() {
    let text = said(json!([message(
        "assistant",
        json!([
        {"type": "step-start"}, {"type": "text", "text": "Hel"},
        {"type": "step-start"}, {"type": "text", "text": "Hello"}, {"type": "step-finish"},
        {"type": "step-start"}, {"type": "text", "text": " world"}, {"type": "step-finish"}])
    )]));
    assert_eq!(text.result, "Hello world");
}

#[test]
fn a_long_text_is_cut_between_characters_and_marked() {
    let transcript = Transcript::parse(
        &json!([message(
            "assistant",
            json!([{"type": "text", "text": "äöü"}])
        )])
        .to_string(),
    )
    .unwrap();
    let text = transcript.text(3);
    assert_eq!(text.result, "ä\n[cut]");
    assert!(text.is_truncated);
}

#[test]
fn an_answer_without_text_is_an_empty_text() {
    let text = said(json!([message(
        "assistant",
        json!([{"type": "reasoning", "text": "hm"}])
    )]));
    assert_eq!(text, Text::default());
    assert_eq!(said(json!([])), Text::default());
}

#[test]
fn half_a_surrogate_pair_is_one_bad_letter_and_no_more() {
    let json = message("assistant", json!([{"type": "text", "text": "HALF"}])).to_string();
    let json = format!("[{}]", json.replace("HALF", "cut \\ud83d off"));
    let text = Transcript::parse(&json).unwrap().text(1 << 20);
    assert!(text.result.starts_with("cut \u{fffd}") && text.result.ends_with(" off"));
    let tool = json!({"type": "tool", "callID": "c", "tool": "bash", "state": {"status": "completed", "output": "HALF"}});
    let json = message("assistant", json!([tool, {"type": "text", "text": "ok"}])).to_string();
    let json = format!("[{}]", json.replace("HALF", "\\udc00"));
    assert_eq!(Transcript::parse(&json).unwrap().text(1 << 20).result, "ok");
}
