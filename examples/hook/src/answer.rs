//! What a host is answered. Nothing is said that its schema does not name: some refuse the whole
//! answer for one member more.

use serde_json::json;

use crate::{event::Event, harness::Harness};

/// Refuses a call, and ends the run if `halted` and the host can.
pub(crate) fn refusal(event: &Event, text: &str, halted: bool) -> String {
    let halts = halted && event.harness.facts().can_halt;
    match event.harness {
        Harness::Claude | Harness::Qwen if halts => format!(
            r#"{{"continue":false,"stopReason":{0},"hookSpecificOutput":{{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":{0}}}}}"#,
            json!(text)
        ),
        Harness::Gemini if halts => format!(
            r#"{{"continue":false,"stopReason":{0},"decision":"deny","reason":{0}}}"#,
            json!(text)
        ),
        Harness::Gemini => format!(r#"{{"decision":"deny","reason":{}}}"#, json!(text)),
        Harness::Copilot if event.is_camel => format!(
            r#"{{"permissionDecision":"deny","permissionDecisionReason":{}}}"#,
            json!(text)
        ),
        Harness::Cursor => format!(
            r#"{{"permission":"deny","user_message":{0},"agent_message":{0}}}"#,
            json!(text)
        ),
        Harness::Goose => format!(r#"{{"decision":"block","reason":{}}}"#, json!(text)),
        Harness::Cline if halts => format!(r#"{{"cancel":true,"errorMessage":{}}}"#, json!(text)),
        // It cannot refuse a call alone.
        Harness::Cline => context(event, text),
        _ => format!(
            r#"{{"hookSpecificOutput":{{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":{}}}}}"#,
            json!(text)
        ),
    }
}

/// A text for the model, and nothing refused.
pub(crate) fn context(event: &Event, text: &str) -> String {
    match event.harness {
        Harness::Cline => format!(
            r#"{{"cancel":false,"contextModification":{}}}"#,
            json!(text)
        ),
        Harness::Cursor => format!(r#"{{"additional_context":{}}}"#, json!(text)),
        Harness::Copilot if event.is_camel => {
            format!(r#"{{"additionalContext":{}}}"#, json!(text))
        }
        _ => format!(
            r#"{{"hookSpecificOutput":{{"hookEventName":{},"additionalContext":{}}}}}"#,
            json!(event.name),
            json!(text)
        ),
    }
}

/// Nothing to say: silence, but for hosts that want to hear it.
pub(crate) fn nothing(harness: Option<Harness>, event: &str) -> &'static str {
    match (harness, event) {
        (Some(Harness::Cursor), "beforeSubmitPrompt") => r#"{"continue":true}"#,
        (Some(Harness::Cursor), "preToolUse") => r#"{"permission":"allow"}"#,
        _ => "",
    }
}
