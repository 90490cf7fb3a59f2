//! Whether a call has succeeded, as each host lets it be seen, and what of its result counts.

use bizar_guard::Status;
use serde_json::Value;

use super::Outcome;
use crate::harness::Harness;

pub(super) fn plain_status(harness: Harness, is_failure: bool) -> Status {
    match harness.facts().default_ok {
        _ if is_failure => Status::Failed,
        Some(true) => Status::Ok,
        Some(false) => Status::Failed,
        None => Status::Unknown,
    }
}

/// What of a result counts, and whether it is a success.
pub(super) fn judge(
    harness: Harness,
    is_failure: bool,
    is_refused: bool,
    json: &[u8],
) -> (Outcome, Status) {
    let json = json.trim_ascii();
    let text: Option<String> = serde_json::from_slice(json).ok();
    let failed = match harness {
        Harness::Gemini | Harness::Cline => {
            serde_json::from_slice(json).is_ok_and(|result: Value| has_failed(harness, &result))
        }
        Harness::Cursor => text.as_deref().is_some_and(|text| {
            let result: Option<Value> = serde_json::from_str(text).ok();
            let code = result
                .as_ref()
                .and_then(|result| result.get("exitCode")?.as_i64());
            code.is_some_and(|code| code != 0)
        }),
        Harness::Copilot => text
            .as_deref()
            .and_then(shell_mark)
            .is_some_and(|mark| mark.code != "0"),
        _ => false,
    };
    let status = if is_refused {
        Status::Refused
    } else {
        plain_status(harness, is_failure || failed)
    };
    let result = match text {
        Some(text) if harness == Harness::Copilot => without_shell_id(&text),
        Some(text) => text.into_bytes(),
        None => json.to_vec(),
    };
    (Outcome::Text(result), status)
}

fn has_failed(harness: Harness, result: &Value) -> bool {
    match harness {
        Harness::Gemini => {
            result.get("error").is_some_and(|error| !error.is_null())
                || result
                    .get("llmContent")
                    .and_then(Value::as_str)
                    .is_some_and(|text| {
                        let mut codes = text
                            .lines()
                            .filter_map(|line| line.strip_prefix("Exit Code: "));
                        codes.next_back().is_some_and(|code| {
                            code.trim().parse().is_ok_and(|code: i64| code != 0)
                        })
                    })
        }
        // One of several is enough.
        _ => match result {
            Value::Array(parts) => parts.iter().any(|part| has_failed(harness, part)),
            part => part.get("success") == Some(&Value::Bool(false)),
        },
    }
}

/// The line that Copilot ends the output of a command with: `<shellId: 0 completed with exit code 3>`.
struct ShellMark<'t> {
    before: &'t str,
    code: &'t str,
}

fn shell_mark(text: &str) -> Option<ShellMark<'_>> {
    let (before, mark) = text.trim_end().rsplit_once("<shellId: ")?;
    let (_, code) = mark
        .strip_suffix('>')?
        .split_once(" completed with exit code ")?;
    Some(ShellMark { before, code })
}

/// The number of the shell is another in each answer.
fn without_shell_id(text: &str) -> Vec<u8> {
    match shell_mark(text) {
        Some(ShellMark { before, code }) => format!("{before}<exit code {code}>").into_bytes(),
        None => text.as_bytes().to_vec(),
    }
}
