//! A loop, told by each harness, against the library's verdicts; and what is no loop.

use bizar_guard::{End, Ended, Environment, Guard, Round, Setup, Sources, resolve};
use serde_json::json;

use crate::{
    hosts::{ALL, Call, Host},
    rig::Rig,
};

/// What a host can do with a text, and with the end of a run.
struct Can {
    context: Option<&'static str>,
    halt: bool,
    warns_early: bool,
}

fn can(host: &str) -> Can {
    let (context, halt, warns_early) = match host {
        "claude" => (Some("before"), true, false),
        "codex" | "copilot" => (Some("before"), false, false),
        "gemini" | "qwen" => (Some("after"), true, true),
        "droid" => (Some("after"), false, true),
        "cursor" => (Some("after"), false, false),
        "kimi" => (None, false, true),
        "goose" => (None, false, false),
        "cline" => (Some("before"), true, true),
        other => panic!("{other}"),
    };
    Can {
        context,
        halt,
        warns_early,
    }
}

/// The answer that a host is to get, to the byte.
fn refusal(host: &str, text: &str, halts: bool) -> String {
    let text = json!(text).to_string();
    match (host, halts) {
        ("gemini", false) => format!(r#"{{"decision":"deny","reason":{text}}}"#),
        ("gemini", true) => {
            format!(r#"{{"continue":false,"stopReason":{text},"decision":"deny","reason":{text}}}"#)
        }
        ("cursor", _) => {
            format!(r#"{{"permission":"deny","user_message":{text},"agent_message":{text}}}"#)
        }
        ("goose", _) => format!(r#"{{"decision":"block","reason":{text}}}"#),
        ("cline", false) => format!(r#"{{"cancel":false,"contextModification":{text}}}"#),
        ("cline", true) => format!(r#"{{"cancel":true,"errorMessage":{text}}}"#),
        (_, halts) => {
            let stop = if halts {
                format!(r#""continue":false,"stopReason":{text},"#)
            } else {
                String::new()
            };
            format!(
                r#"{{{stop}"hookSpecificOutput":{{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":{text}}}}}"#
            )
        }
    }
}

fn context(host: &str, is_before: bool, text: &str) -> String {
    let text = json!(text).to_string();
    match host {
        "cline" => format!(r#"{{"cancel":false,"contextModification":{text}}}"#),
        "cursor" => format!(r#"{{"additional_context":{text}}}"#),
        _ => {
            let event = match (host, is_before) {
                (_, true) => "PreToolUse",
                ("gemini", _) => "AfterTool",
                _ => "PostToolUse",
            };
            format!(
                r#"{{"hookSpecificOutput":{{"hookEventName":"{event}","additionalContext":{text}}}}}"#
            )
        }
    }
}

/// Seventeen identical calls: each answer is the one that the library's decision becomes on that host.
fn seventeen_identical_calls(name: &'static str) {
    let rig = Rig::new();
    let host = Host { rig: &rig, name };
    let can = can(name);
    let early = r#"{"loopThresholdWarn":2,"loopThresholdEscalate":3,"loopThresholdBlock":12}"#;
    let library = Guard::new(Setup::new(
        name,
        resolve(Sources {
            host_defaults: can.warns_early.then(|| early.into()),
            env: Environment::default(),
            ..Sources::default()
        }),
    ));
    let nothing = if name == "cursor" {
        r#"{"permission":"allow"}"#
    } else {
        ""
    };
    host.prompt("s1", None, "go");
    let mut seen = Vec::new();
    for n in 1..=17 {
        let id = format!("c{n}");
        let call = Call::new(&id, "cat a.txt");
        let args = call.args.clone();
        let decision = library.before(
            &bizar_guard::Call::new("s1", "Bash", &args)
                .id(&id)
                .round(Round::Own),
        );
        let [before, after] = host.make(&call, "the same");
        let text = decision.text.clone().unwrap_or_default();
        if decision.refused {
            assert_eq!(
                before,
                refusal(name, &text, decision.halted && can.halt),
                "call {n}"
            );
            seen.push((n, if decision.halted { "halt" } else { "block" }));
            continue;
        }
        library.after(&End::new("s1", "Bash", &args, Ended::ok("the same")).id(&id));
        let (at_before, at_after) = match (text.is_empty(), can.context) {
            (false, Some("before")) => (context(name, true, &text), String::new()),
            (false, Some(_)) => (nothing.to_owned(), context(name, false, &text)),
            _ => (nothing.to_owned(), String::new()),
        };
        assert_eq!((before, after), (at_before, at_after), "call {n}");
        if !text.is_empty() {
            seen.push((n, "warn"));
        }
    }
    let warns = if can.warns_early { [2, 3] } else { [5, 8] };
    let expected: Vec<(i32, &str)> = warns
        .map(|n| (n, "warn"))
        .into_iter()
        .chain([12, 13, 14].map(|n| (n, "block")))
        .chain([15, 16, 17].map(|n| (n, "halt")))
        .collect();
    assert_eq!(seen, expected, "the levels are where they should be");
}

macro_rules! for_each_host {
    ($check:ident: $($test:ident $name:literal),*) => {
        $(#[test]
        fn $test() {
            $check($name);
        })*
    };
}

for_each_host!(seventeen_identical_calls:
    claude_loops "claude", codex_loops "codex", gemini_loops "gemini", qwen_loops "qwen",
    copilot_loops "copilot", kimi_loops "kimi", droid_loops "droid", cursor_loops "cursor",
    cline_loops "cline"
);

/// Goose tells no results, which then are all the same.
#[test]
fn goose_loops() {
    seventeen_identical_calls("goose");
}

#[test]
fn edit_and_test_is_no_loop() {
    for name in ALL {
        // Goose tells no results: there only other arguments are news.
        let rig = Rig::new();
        let host = Host { rig: &rig, name };
        host.prompt("s1", None, "mend it");
        for n in 0..16 {
            let ids = [format!("t{n}"), format!("e{n}")];
            let test = Call::new(&ids[0], "cargo test");
            let edit = Call {
                tool: "Edit",
                args: json!({"file": "a.rs", "new": format!("version {n}")}),
                ..Call::new(&ids[1], "")
            };
            let answers = [
                host.make(&test, &format!("test {n} failed")),
                host.make(&edit, "done"),
            ];
            for answer in answers.as_flattened() {
                // Cline has to be warned before the second call, when nobody knows what it brings.
                let is_note = name == "cline" && answer.contains("[loop guard: ");
                let is_silent = answer.is_empty() || answer == r#"{"permission":"allow"}"#;
                assert!(is_silent || is_note, "{name}: {answer}");
            }
        }
    }
}

#[test]
fn thresholds_of_the_user_beat_those_of_the_host() {
    let rig = Rig::new();
    rig.options(
        &json!({"loopThresholdWarn": 6, "loopThresholdEscalate": 7, "loopThresholdBlock": 8}),
    );
    let host = Host {
        rig: &rig,
        name: "gemini",
    };
    let answers: Vec<bool> = (1..=8)
        .map(|n| {
            !host
                .make(&Call::new(&format!("c{n}"), "ls"), "a")
                .concat()
                .is_empty()
        })
        .collect();
    assert_eq!(
        answers,
        [false, false, false, false, false, true, true, true]
    );
}

#[test]
fn a_host_of_its_own_in_the_options() {
    let rig = Rig::new();
    rig.options(&json!({"hosts": {"codex": {"loopThresholdWarn": 1, "loopThresholdEscalate": 2, "loopThresholdBlock": 3}}}));
    let third = |name| {
        let host = Host { rig: &rig, name };
        let answers: Vec<_> = (1..=3)
            .map(|n| {
                host.make(
                    &Call {
                        session: name,
                        ..Call::new(&format!("c{n}"), "ls")
                    },
                    "a",
                )
            })
            .collect();
        answers.last().unwrap()[0].clone()
    };
    assert!(third("codex").contains("deny"));
    assert_eq!(third("claude"), "");
}

#[test]
fn copilot_in_camel_case_is_answered_so() {
    let rig = Rig::new();
    let call = json!({"sessionId": "s1", "timestamp": 1, "cwd": "/w", "toolName": "bash", "toolArgs": {"command": "ls"}});
    let end = json!({
        "sessionId": "s1", "timestamp": 1, "cwd": "/w", "toolName": "bash", "toolArgs": {"command": "ls"},
        "toolResult": {"resultType": "success", "textResultForLlm": "a"},
    });
    let mut answers = Vec::new();
    for _ in 1..=12 {
        answers.push(rig.tell("copilot", "preToolUse", call.to_string().as_bytes()));
        rig.tell("copilot", "postToolUse", end.to_string().as_bytes());
    }
    assert!(
        answers[4].starts_with(r#"{"additionalContext":"[loop guard: 5 identical calls to Bash]."#)
    );
    assert!(answers[11].starts_with(
        r#"{"permissionDecision":"deny","permissionDecisionReason":"Loop protection: 12 identical calls to Bash."#
    ));
}
