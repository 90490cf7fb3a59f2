//! Whose calls, which turn, which round.

use serde_json::json;

use crate::{
    hosts::{Call, Host},
    rig::Rig,
};

fn refused_at(host: &Host<'_>, call: impl Fn(&str) -> Call<'static>, most: usize) -> Option<usize> {
    (1..=most).find(|n| {
        let id = format!("x{n}");
        let mut call = call(&id);
        let id = id.clone();
        call.id = &*Box::leak(id.into_boxed_str());
        host.make(&call, "same")[0].contains("Loop protection")
    })
}

fn plain(_: &str) -> Call<'static> {
    Call::new("", "cat a.txt")
}

#[test]
fn agents_of_one_session_are_told_apart() {
    for name in ["claude", "codex", "qwen", "copilot", "cline"] {
        let rig = Rig::new();
        let host = Host { rig: &rig, name };
        let of = |agent| move |_: &str| Call { agent, ..plain("") };
        assert_eq!(refused_at(&host, of(None), 11), None, "{name}");
        assert_eq!(refused_at(&host, of(Some("a")), 11), None, "{name}");
        assert_eq!(refused_at(&host, of(Some("b")), 12), Some(12), "{name}");
        assert_eq!(
            refused_at(&host, of(None), 1),
            Some(1),
            "{name}: the parent's twelfth"
        );
        // With an agent's id only that agent has a new turn.
        host.prompt("s1", Some("b"), "go on");
        assert_eq!(refused_at(&host, of(Some("b")), 11), None, "{name}");
        assert_eq!(refused_at(&host, of(Some("a")), 1), Some(1), "{name}");
    }
}

/// Gemini and Kimi do not say which agent it is.
#[test]
fn agents_that_cannot_be_told_apart_share_a_count() {
    for name in ["gemini", "kimi"] {
        let rig = Rig::new();
        let host = Host { rig: &rig, name };
        let parent = Call {
            tool: "Agent",
            args: json!({"prompt": "x"}),
            ..Call::new("p", "")
        };
        host.before(&parent);
        host.event("PreCompress", "s1", json!({}));
        assert_eq!(
            refused_at(
                &host,
                |_| {
                    host.event("PreCompress", "s1", json!({}));
                    plain("")
                },
                12
            ),
            Some(12),
            "{name}"
        );
    }
}

#[test]
fn a_child_of_copilot_is_the_same_in_all_its_events() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "copilot",
    };
    for n in 1..=4 {
        let id = format!("c{n}");
        // Events of a failure name the parent's session, and other tool names.
        let call = Call {
            session: "child",
            agent: Some("child"),
            ..Call::new(&id, "nope")
        };
        host.before(&call);
        host.after(
            &Call {
                session: "s1",
                ..call
            },
            "no such file",
            true,
        );
    }
    assert_eq!(rig.outcomes("child"), ["error"; 4]);
    assert_eq!(rig.outcomes("s1"), [""; 0]);
    assert!(
        rig.state("child")["detector"]["open"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_prompt_with_text_is_a_turn() {
    for name in crate::hosts::ALL {
        let rig = Rig::new();
        let host = Host { rig: &rig, name };
        assert_eq!(refused_at(&host, plain, 11), None, "{name}");
        host.prompt("s1", None, "try something else");
        assert_eq!(
            refused_at(&host, plain, 12),
            Some(12),
            "{name}: counted anew"
        );
        assert_eq!(rig.state("s1")["turnCount"], 1, "{name}");
    }
}

/// Qwen sends one after each round of tools.
#[test]
fn an_empty_prompt_is_none() {
    for name in [
        "claude", "codex", "gemini", "qwen", "copilot", "kimi", "droid", "cursor", "goose",
    ] {
        let rig = Rig::new();
        let host = Host { rig: &rig, name };
        let refused = refused_at(
            &host,
            |_| {
                host.prompt("s1", None, " \n");
                plain("")
            },
            12,
        );
        assert_eq!(refused, Some(12), "{name}");
    }
}

#[test]
fn a_prompt_too_long_to_keep_is_one() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "claude",
    };
    host.before(&Call::new("c1", "ls"));
    host.prompt("s1", None, &"x".repeat(1 << 20));
    assert_eq!(rig.state("s1")["turnCount"], 1);
}

#[test]
fn the_start_and_stop_of_a_droid_are_turns() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "droid",
    };
    host.event("SessionStart", "s1", json!({"source": "startup"}));
    assert_eq!(refused_at(&host, plain, 11), None);
    host.event("Stop", "s1", json!({}));
    assert_eq!(refused_at(&host, plain, 11), None);
    // What is left of a conversation goes on; a child's beginning is none of its parent's.
    host.event("SessionStart", "s1", json!({"source": "compact"}));
    host.event("SessionStart", "child", json!({"calling_session_id": "s1"}));
    assert_eq!(refused_at(&host, plain, 1), Some(1));
    assert_eq!(rig.state("s1")["turnCount"], 2);
}

#[test]
fn compaction_and_the_end_of_a_turn_clear_nothing() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "codex",
    };
    let refused = refused_at(
        &host,
        |_| {
            host.event("PreCompact", "s1", json!({}));
            host.event("Stop", "s1", json!({}));
            host.event("SessionStart", "s1", json!({"source": "resume"}));
            plain("")
        },
        12,
    );
    assert_eq!(refused, Some(12));
}

#[test]
fn copies_of_one_round_count_once() {
    for name in [
        "claude", "codex", "gemini", "qwen", "copilot", "cursor", "goose",
    ] {
        let rig = Rig::new();
        let host = Host { rig: &rig, name };
        let ids: Vec<String> = (0..33).map(|n| format!("c{n}")).collect();
        // Eleven rounds of three.
        for round in ids.chunks(3) {
            let calls: Vec<Call<'_>> = round.iter().map(|id| Call::new(id, "cat a")).collect();
            for call in &calls {
                let answer = host.before(call);
                assert!(!answer.contains("Loop protection"), "{name} {}", call.id);
            }
            for call in &calls {
                host.after(call, "a", false);
            }
            match name {
                "claude" | "qwen" => {
                    host.event("PostToolBatch", "s1", json!({"tool_calls": []}));
                }
                "gemini" => {
                    host.event("PreCompress", "s1", json!({"trigger": "auto"}));
                }
                _ => {}
            }
        }
        let answer = host.before(&Call::new("last", "cat a"));
        assert!(
            answer.contains("Loop protection: 12 identical calls"),
            "{name}: {answer}"
        );
    }
}

/// Somebody else refused the call, so its end never comes: the end of the round does.
#[test]
fn the_end_of_a_round_closes_it() {
    for (name, event) in [
        ("claude", "PostToolBatch"),
        ("qwen", "PostToolBatch"),
        ("gemini", "PreCompress"),
    ] {
        let rig = Rig::new();
        let host = Host { rig: &rig, name };
        let refused = (1..=12).find(|n| {
            let id = format!("c{n}");
            let answer = host.before(&Call::new(&id, "rm a"));
            host.event(event, "s1", json!({}));
            answer.contains("Loop protection")
        });
        assert_eq!(refused, Some(12), "{name}");
    }
}

/// A server that runs on has no end; what is called meanwhile is not of its round.
#[test]
fn a_call_that_never_ends_hides_no_loop() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "codex",
    };
    host.before(&Call::new("server", "npm start"));
    assert_eq!(refused_at(&host, plain, 12), Some(12));
}

#[test]
fn calls_without_an_id_are_paired_by_what_they_are() {
    for name in ["gemini", "copilot", "droid"] {
        let rig = Rig::new();
        let host = Host { rig: &rig, name };
        let calls = ["a", "b", "c"].map(|command| Call::new("", command));
        for call in &calls {
            host.before(call);
        }
        for call in calls.iter().rev() {
            host.after(call, "done", false);
        }
        assert_eq!(rig.outcomes("s1"), ["ok"; 3], "{name}");
        assert!(
            rig.state("s1")["detector"]["open"]
                .as_array()
                .unwrap()
                .is_empty(),
            "{name}"
        );
    }
}

/// Copilot numbers its shells in the results.
#[test]
fn the_number_of_a_shell_is_no_news() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "copilot",
    };
    let refused = (1..=12).find(|n| {
        let call = Call::new("", "cat a");
        let answer = host.before(&call);
        host.after(
            &call,
            &format!("a\n<shellId: {n} completed with exit code 0>"),
            false,
        );
        answer.contains("Loop protection")
    });
    assert_eq!(refused, Some(12));
}

/// Kimi loses events after calls.
#[test]
fn a_lost_end_hides_no_loop() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "kimi",
    };
    let refused = (1..=14).find(|n| {
        let id = format!("c{n}");
        let call = Call::new(&id, "cat a");
        let answer = host.before(&call);
        if n % 3 == 0 {
            host.after(&call, "a", false);
        }
        answer.contains("Loop protection")
    });
    // The first result that comes is news.
    assert_eq!(refused, Some(14));
}

#[test]
fn without_a_word_on_the_command_line_the_host_is_known_by_its_json() {
    let anonymous = |document: serde_json::Value| {
        let rig = Rig::new();
        let mut answer = String::new();
        for n in 0..12 {
            let mut document = document.clone();
            for (object, id) in [
                ("", "tool_use_id"),
                ("", "tool_call_id"),
                ("tool_call", "id"),
            ] {
                let object = if object.is_empty() {
                    Some(&mut document)
                } else {
                    document.get_mut(object)
                };
                if let Some(value) = object.and_then(|object| object.get_mut(id)) {
                    *value = json!(format!("{id}{n}"));
                }
            }
            let command = rig.command(&["--event", "preToolUse"]);
            answer = crate::rig::answer(command, document.to_string().as_bytes());
            // Without rounds there is nothing to close; here each call is abandoned.
            let session = ["session_id", "sessionId"]
                .iter()
                .find_map(|name| document.get(*name))
                .cloned();
            let close = json!({"hook_event_name": "PostToolBatch", "session_id": session, "prompt_id": "p"});
            crate::rig::answer(rig.command(&[]), close.to_string().as_bytes());
            let stop = json!({"hook_event_name": "Stop", "session_id": session, "turn_id": "t", "model": "m"});
            crate::rig::answer(rig.command(&[]), stop.to_string().as_bytes());
        }
        answer
    };
    let args = json!({"command": "ls"});
    let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny""#;
    let pre = "PreToolUse";
    for (document, starts) in [
        (
            json!({"hook_event_name": pre, "session_id": "s", "prompt_id": "p", "tool_name": "Bash", "tool_input": args, "tool_use_id": ""}),
            deny,
        ),
        (
            json!({"hook_event_name": pre, "session_id": "s", "turn_id": "t", "model": "m", "tool_name": "Bash", "tool_input": args, "tool_use_id": ""}),
            deny,
        ),
        (
            json!({"hook_event_name": "BeforeTool", "session_id": "s", "timestamp": "t", "tool_name": "ls", "tool_input": args}),
            r#"{"decision":"deny","reason":"#,
        ),
        (
            json!({"hook_event_name": pre, "session_id": "s", "prompt_id": "p", "timestamp": "t", "tool_name": "ls", "tool_input": args, "tool_use_id": "", "tool_call_id": ""}),
            deny,
        ),
        (
            json!({"hook_event_name": pre, "session_id": "s", "timestamp": "t", "tool_name": "Bash", "tool_input": args}),
            deny,
        ),
        (
            json!({"sessionId": "s", "timestamp": 1, "toolName": "bash", "toolArgs": args}),
            r#"{"permissionDecision":"deny""#,
        ),
        (
            json!({"hook_event_name": pre, "session_id": "s", "client_type": "kimi_code_cli", "tool_name": "Bash", "tool_input": args, "tool_call_id": ""}),
            deny,
        ),
        (
            json!({"hook_event_name": pre, "session_id": "s", "tool_name": "Execute", "tool_input": args}),
            deny,
        ),
        (
            json!({"hook_event_name": "preToolUse", "session_id": "s", "conversation_id": "s", "cursor_version": "3", "tool_name": "Shell", "tool_input": args, "tool_use_id": ""}),
            r#"{"permission":"deny""#,
        ),
        (
            json!({"event": pre, "session_id": "s", "matcher_context": "x", "tool_name": "developer__shell", "tool_input": args, "tool_call_id": ""}),
            r#"{"decision":"block""#,
        ),
        (
            json!({"hookName": "tool_call", "taskId": "t", "sessionContext": {"rootSessionId": "s"}, "session_id": "s", "agent_id": "a", "parent_agent_id": null, "tool_call": {"id": "", "name": "run", "input": args}}),
            r#"{"cancel":false,"contextModification":"Loop protection"#,
        ),
    ] {
        let answer = anonymous(document.clone());
        assert!(answer.starts_with(starts), "{document}: {answer}");
    }
}
