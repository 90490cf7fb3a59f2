//! What each host tells of a call that failed.

use serde_json::json;

use crate::{
    hosts::{Call, Host},
    rig::Rig,
};

#[test]
fn an_event_or_a_mark_of_failure_is_one() {
    for name in [
        "claude", "gemini", "qwen", "copilot", "kimi", "cursor", "goose", "cline",
    ] {
        let rig = Rig::new();
        let host = Host { rig: &rig, name };
        let call = Call::new("c1", "exit 3");
        host.before(&call);
        host.after(&call, "Exit code 3", true);
        let call = Call::new("c2", "true");
        host.before(&call);
        host.after(&call, "", false);
        assert_eq!(rig.outcomes("s1"), ["error", "ok"], "{name}");
    }
}

#[test]
fn the_exit_code_of_a_shell_counts_where_it_is_told() {
    let rig = Rig::new();
    let end = |host: &str, event: &str, more: serde_json::Value| {
        let mut document = json!({
            "hook_event_name": event, "session_id": host, "conversation_id": host, "cwd": "/w",
            "tool_name": "Shell", "tool_input": {"command": "x"}, "tool_use_id": "c",
        });
        document
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        rig.tell(host, event, document.to_string().as_bytes());
    };
    for code in [0, 3] {
        let gemini =
            format!("<untrusted_context>\nOutput: x\nExit Code: {code}\n</untrusted_context>");
        end(
            "gemini",
            "AfterTool",
            json!({"tool_response": {"llmContent": gemini, "returnDisplay": "x"}}),
        );
        let copilot = format!("x\n<shellId: 7 completed with exit code {code}>");
        end(
            "copilot",
            "PostToolUse",
            json!({"tool_result": {"result_type": "success", "text_result_for_llm": copilot}}),
        );
        end(
            "cursor",
            "postToolUse",
            json!({"tool_output": json!({"output": "x", "exitCode": code}).to_string()}),
        );
    }
    for host in ["gemini", "copilot", "cursor"] {
        assert_eq!(rig.outcomes(host), ["ok", "error"], "{host}");
    }
    end(
        "copilot",
        "PostToolUse",
        json!({"tool_result": {"result_type": "denied", "text_result_for_llm": "no"}}),
    );
    assert_eq!(
        rig.outcomes("copilot"),
        ["ok", "error", "blocked"],
        "the user refused it"
    );
}

/// The hook gets the output and no exit code: nothing is taken for a failure, and nothing for a success.
#[test]
fn codex_does_not_tell() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "codex",
    };
    let warned = (1..=14).find(|n| {
        let id = format!("c{n}");
        let call = Call::new(&id, &format!("make target{n}"));
        host.before(&call);
        !host.after(&call, "no rule", true).is_empty()
    });
    assert_eq!(
        warned, None,
        "the family of errors needs to know that they are errors"
    );
}

#[test]
fn errors_of_one_tool_that_are_all_the_same_are_warned_about() {
    for name in ["claude", "copilot"] {
        let rig = Rig::new();
        let host = Host { rig: &rig, name };
        let warned = (1..=8).find(|n| {
            let id = format!("c{n}");
            let call = Call {
                tool: "Read",
                args: json!({"path": format!("f{n}")}),
                ..Call::new(&id, "")
            };
            let answer = host.before(&call);
            host.after(&call, "no such file", true);
            answer.contains("[loop guard: Read fails the same way again and again].")
        });
        assert_eq!(warned, Some(5), "{name}");
    }
}

/// droid: no event after a failure. Open until Stop, and failed only then.
#[test]
fn a_call_without_an_end_failed_at_stop() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "droid",
    };
    for n in 1..=3 {
        let call = Call::new("", &format!("exit {n}"));
        host.before(&call);
        host.after(&call, "", true);
    }
    let late = Call::new("", "sleep 1");
    host.before(&late);
    host.before(&Call::new("", "ls"));
    host.after(&late, "", false);
    assert_eq!(
        rig.outcomes("s1"),
        ["ok"],
        "nothing is known of the others yet"
    );
    host.event("Stop", "s1", json!({}));
    assert_eq!(
        rig.outcomes("s1"),
        ["ok", "error", "error", "error", "error"]
    );
    assert!(
        rig.state("s1")["detector"]["open"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_failing_loop_of_a_droid_is_blocked() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "droid",
    };
    let call = Call::new("", "make");
    let refused = (1..=12).find(|_| {
        let [before, _] = [host.before(&call), host.after(&call, "", true)];
        before.contains("Loop protection")
    });
    assert_eq!(refused, Some(12));
}

#[test]
fn an_interrupted_call_was_aborted() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "claude",
    };
    host.before(&Call::new("c1", "sleep 1"));
    host.event(
        "PostToolUseFailure",
        "s1",
        json!({"tool_name": "Bash", "tool_input": {"command": "sleep 1"}, "tool_use_id": "c1", "error": "x", "is_interrupt": true}),
    );
    host.before(&Call::new("c2", "ls"));
    host.event("Stop", "s1", json!({}));
    assert_eq!(rig.outcomes("s1"), ["aborted", "aborted"]);
}

/// A call that Cline made although it was refused is not news.
#[test]
fn cline_makes_refused_calls_all_the_same() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "cline",
    };
    let mut last = String::new();
    for n in 1..=15 {
        let id = format!("c{n}");
        let call = Call::new(&id, "cat a");
        last = host.before(&call);
        host.after(&call, "a", false);
    }
    assert!(
        last.starts_with(
            r#"{"cancel":true,"errorMessage":"Loop protection: stopped after 4 refused calls"#
        ),
        "{last}"
    );
    let outcomes = rig.outcomes("s1");
    assert_eq!(
        (outcomes.len(), &outcomes[11..]),
        (
            15,
            &[
                "blocked".to_owned(),
                "blocked".into(),
                "blocked".into(),
                "blocked".into()
            ][..]
        )
    );
}
