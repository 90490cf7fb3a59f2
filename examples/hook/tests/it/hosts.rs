//! How each harness tells of its events, and what it lets itself be told.

use serde_json::{Map, Value, json};

use crate::rig::Rig;

pub(crate) const ALL: [&str; 10] = [
    "claude", "codex", "gemini", "qwen", "copilot", "kimi", "droid", "cursor", "goose", "cline",
];

/// One call, as far as a host tells of it.
#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) session: &'a str,
    pub(crate) agent: Option<&'a str>,
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) args: Value,
}

impl<'a> Call<'a> {
    pub(crate) fn new(id: &'a str, command: &str) -> Self {
        Self {
            session: "s1",
            agent: None,
            id,
            tool: "Bash",
            args: json!({"command": command}),
        }
    }
}

/// A harness with its hook.
pub(crate) struct Host<'a> {
    pub(crate) rig: &'a Rig,
    pub(crate) name: &'static str,
}

impl Host<'_> {
    /// Tells of a call that is about to be made.
    pub(crate) fn before(&self, call: &Call<'_>) -> String {
        let event = match self.name {
            "gemini" => "BeforeTool",
            "cursor" => "preToolUse",
            _ => "PreToolUse",
        };
        self.tell(event, self.of_call(event, call, None))
    }

    /// Tells of its end; `failed` as far as the host does.
    pub(crate) fn after(&self, call: &Call<'_>, result: &str, failed: bool) -> String {
        let event = match (self.name, failed) {
            ("droid", true) => return String::new(),
            ("gemini", _) => "AfterTool",
            ("codex" | "cline", _) | (_, false) if self.name != "cursor" => "PostToolUse",
            ("cursor", false) => "postToolUse",
            ("cursor", true) => "postToolUseFailure",
            _ => "PostToolUseFailure",
        };
        self.tell(event, self.of_call(event, call, Some((result, failed))))
    }

    /// A call that is made and answers the same as ever.
    pub(crate) fn make(&self, call: &Call<'_>, result: &str) -> [String; 2] {
        let before = self.before(call);
        let is_refused = ["deny", "\"block\"", "\"cancel\":true"]
            .iter()
            .any(|word| before.contains(word));
        let after = if is_refused {
            String::new()
        } else {
            self.after(call, result, false)
        };
        [before, after]
    }

    pub(crate) fn prompt(&self, session: &str, agent: Option<&str>, text: &str) -> String {
        let (event, mut said) = match self.name {
            "gemini" => ("BeforeAgent", json!({"prompt": text})),
            "cursor" => ("beforeSubmitPrompt", json!({"prompt": text})),
            "cline" => ("TaskStart", json!({})),
            "kimi" => (
                "UserPromptSubmit",
                json!({"prompt": [{"type": "text", "text": text}]}),
            ),
            "goose" => ("UserPromptSubmit", json!({"message": text})),
            _ => ("UserPromptSubmit", json!({"prompt": text})),
        };
        self.identify(&mut said, event, session, agent);
        self.tell(event, said)
    }

    /// Any other event.
    pub(crate) fn event(&self, event: &str, session: &str, mut members: Value) -> String {
        self.identify(&mut members, event, session, None);
        self.tell(event, members)
    }

    fn tell(&self, event: &str, document: Value) -> String {
        let answer = self
            .rig
            .tell(self.name, event, document.to_string().as_bytes());
        check(self.name, event, &answer);
        answer
    }

    /// The members that each event of a host has.
    fn identify(&self, members: &mut Value, event: &str, session: &str, agent: Option<&str>) {
        let cwd = self.rig.project().to_str().unwrap().to_owned();
        let more = match self.name {
            "claude" => json!({"hook_event_name": event, "session_id": session, "prompt_id": "p"}),
            "codex" => {
                json!({"hook_event_name": event, "session_id": session, "turn_id": "t", "model": "m"})
            }
            "qwen" => {
                json!({"hook_event_name": event, "session_id": session, "prompt_id": "p", "timestamp": "2026-01-01T00:00:00Z"})
            }
            "copilot" if event == "PostToolUseFailure" => {
                json!({"sessionId": session, "timestamp": 1})
            }
            "copilot" => {
                json!({"hook_event_name": event, "session_id": session, "timestamp": "2026-01-01T00:00:00Z"})
            }
            "kimi" => {
                json!({"hook_event_name": event, "session_id": session, "client_type": "kimi_code_cli"})
            }
            "cursor" => json!({
                "hook_event_name": event, "conversation_id": session, "session_id": session, "cursor_version": "3.9",
                "generation_id": "g", "workspace_roots": [cwd],
            }),
            "goose" => json!({"event": event, "session_id": session, "matcher_context": "x"}),
            "cline" => json!({
                "taskId": "t", "sessionContext": {"rootSessionId": session}, "workspaceRoots": [cwd],
                "agent_id": agent.unwrap_or("main"), "parent_agent_id": agent.map(|_| "main"),
                "hookName": match event {
                    "PreToolUse" => "tool_call", "PostToolUse" => "tool_result", "TaskStart" => "agent_start",
                    "TaskComplete" => "agent_end", other => other,
                },
            }),
            _ => json!({"hook_event_name": event, "session_id": session}),
        };
        let members = members.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        match self.name {
            "goose" => members.insert("working_dir".to_owned(), json!(cwd)),
            "cline" | "cursor" => None,
            _ => members.insert("cwd".to_owned(), json!(cwd)),
        };
        if let Some(agent) = agent
            && self.name != "cline"
        {
            members.insert("agent_id".to_owned(), json!(agent));
        }
    }

    fn of_call(&self, event: &str, call: &Call<'_>, end: Option<(&str, bool)>) -> Value {
        let Call {
            session,
            agent,
            id,
            tool,
            args,
        } = call;
        let mut members = match self.name {
            "cline" if end.is_none() => {
                json!({"tool_call": {"id": id, "name": tool, "input": args}})
            }
            "cline" => {
                let (result, failed) = end.unwrap();
                let output = json!([{"query": "q", "result": result, "success": !failed}]);
                json!({
                    "tool_result": {"id": id, "name": tool, "input": args, "output": output, "durationMs": 5},
                    "postToolUse": {"success": true},
                })
            }
            "copilot" if event == "PostToolUseFailure" => {
                let tool = if *tool == "Bash" { "bash" } else { tool };
                json!({"toolName": tool, "toolArgs": args})
            }
            _ => json!({"tool_name": tool, "tool_input": args}),
        };
        let more = match self.name {
            "claude" | "codex" | "cursor" => json!({"tool_use_id": id}),
            "qwen" => json!({"tool_use_id": format!("toolu_{id}"), "tool_call_id": id}),
            "kimi" | "goose" => json!({"tool_call_id": id}),
            _ => json!({}),
        };
        extend(&mut members, more);
        if let Some((result, failed)) = end {
            extend(&mut members, self.result(result, failed));
        }
        self.identify(&mut members, event, session, *agent);
        members
    }

    fn result(&self, result: &str, failed: bool) -> Value {
        match (self.name, failed) {
            ("claude", false) => {
                json!({"tool_response": {"stdout": result, "stderr": "", "interrupted": false}, "duration_ms": 7})
            }
            ("claude" | "qwen", true) => {
                json!({"error": result, "is_interrupt": false, "duration_ms": 7})
            }
            ("codex" | "droid", _) => json!({"tool_response": result}),
            ("gemini", false) => {
                json!({"tool_response": {"llmContent": format!("Output: {result}\nProcess Group PGID: 12"), "returnDisplay": result}})
            }
            ("gemini", true) => {
                json!({"tool_response": {"llmContent": result, "returnDisplay": "", "error": {"message": result}}})
            }
            ("qwen", false) => {
                json!({"tool_response": {"llmContent": result, "returnDisplay": result}, "duration_ms": 7})
            }
            ("copilot", false) => {
                json!({"tool_result": {"result_type": "success", "text_result_for_llm": result}})
            }
            ("kimi", false) => json!({"tool_output": result}),
            ("kimi", true) => {
                json!({"error": {"code": "internal", "message": result, "retryable": false}})
            }
            ("cursor", false) => {
                json!({"tool_output": json!({"output": result, "exitCode": 0}).to_string(), "duration": 7})
            }
            ("cursor", true) => json!({"error_message": result, "failure_type": "error"}),
            (_, true) => json!({"error": result}),
            _ => json!({}),
        }
    }
}

fn extend(members: &mut Value, more: Value) {
    let Value::Object(more) = more else {
        unreachable!()
    };
    members.as_object_mut().unwrap().extend(more);
}

/// What a host's schema says of an answer. All that are seen here are checked.
pub(crate) fn check(host: &str, event: &str, answer: &str) {
    if answer.is_empty() {
        assert!(
            host != "cursor" || event != "preToolUse",
            "Cursor wants to hear that a call is allowed"
        );
        return;
    }
    let value: Value = serde_json::from_str(answer).unwrap();
    let value = value.as_object().unwrap();
    match host {
        // Codex refuses an answer with a member that it does not know.
        "claude" | "codex" | "qwen" | "kimi" | "droid" => claude_like(value, event),
        "copilot" if event != "PostToolUseFailure" => claude_like(value, event),
        "gemini" => {
            only(
                value,
                &[
                    "continue",
                    "stopReason",
                    "decision",
                    "reason",
                    "hookSpecificOutput",
                ],
            );
            if let Some(own) = value.get("hookSpecificOutput") {
                assert_eq!(event, "AfterTool", "before a call it is not delivered");
                specific(own, event, &["additionalContext"]);
            } else {
                assert_eq!(value["decision"], "deny");
                assert!(value["reason"].is_string());
            }
        }
        "cursor" => match event {
            "preToolUse" => only(value, &["permission", "user_message", "agent_message"]),
            "postToolUse" => only(value, &["additional_context"]),
            "beforeSubmitPrompt" => only(value, &["continue"]),
            other => panic!("{other} has no answer"),
        },
        "goose" => {
            assert_eq!(event, "PreToolUse");
            only(value, &["decision", "reason"]);
            assert_eq!(value["decision"], "block");
        }
        "cline" => only(value, &["cancel", "errorMessage", "contextModification"]),
        other => panic!("{other} {event}: {answer}"),
    }
}

fn claude_like(value: &Map<String, Value>, event: &str) {
    only(value, &["continue", "stopReason", "hookSpecificOutput"]);
    if value.contains_key("continue") {
        assert_eq!(value["continue"], false);
        assert!(value["stopReason"].is_string());
    }
    let members = match event {
        "PreToolUse" => &[
            "permissionDecision",
            "permissionDecisionReason",
            "additionalContext",
        ][..],
        _ => &["additionalContext"],
    };
    specific(&value["hookSpecificOutput"], event, members);
}

fn specific(own: &Value, event: &str, members: &[&str]) {
    let own = own.as_object().unwrap();
    only(own, &[members, &["hookEventName"]].concat());
    assert_eq!(own["hookEventName"], event);
    if let Some(decision) = own.get("permissionDecision") {
        assert_eq!(decision, "deny");
    }
    assert!(own.values().all(Value::is_string));
}

fn only(value: &Map<String, Value>, members: &[&str]) {
    for name in value.keys() {
        assert!(members.contains(&name.as_str()), "{name}");
    }
}
