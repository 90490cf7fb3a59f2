//! Any bytes, of any length.

use std::{fs, io::Write};

use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Map, Value, json};

use crate::{
    hosts::{ALL, Call, Host, check},
    rig::{Rig, answer},
};

/// The members that the hosts send, and some that they do not.
const NAMES: [&str; 24] = [
    "hook_event_name",
    "event",
    "hookName",
    "session_id",
    "sessionId",
    "conversation_id",
    "agent_id",
    "tool_name",
    "toolName",
    "tool_input",
    "toolArgs",
    "tool_response",
    "tool_output",
    "tool_result",
    "tool_call",
    "error",
    "prompt",
    "cwd",
    "tool_use_id",
    "tool_call_id",
    "source",
    "is_interrupt",
    "duration_ms",
    "strange",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "PreToolUse",
            "PostToolUse",
            "tool_call",
            "s",
            "Bash",
            "/",
            "compact"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(
                (
                    prop_oneof![Just("id".to_owned()), Just("name".into()), ".{0,6}"],
                    inner
                ),
                0..4
            )
            .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A document of that host with some members replaced, cut off or followed by something.
fn stdin() -> impl Strategy<Value = Vec<u8>> {
    let members = prop::collection::vec((prop::sample::select(&NAMES[..]), any_json()), 0..6);
    (members, any::<bool>(), any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..20), 0..4u8).prop_map(
        |(members, is_call, cut, noise, how)| {
            let mut document = Map::new();
            if is_call {
                let call = json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}});
                document.extend(call.as_object().unwrap().clone());
            }
            document.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
            let mut bytes = Value::Object(document).to_string().into_bytes();
            match how {
                0 => bytes.truncate(cut.index(bytes.len())),
                1 => bytes.extend(noise),
                2 => {
                    let at = cut.index(bytes.len());
                    bytes.splice(at..at, noise);
                }
                _ => {}
            }
            bytes
        },
    )
}

/// Whatever comes: exit code 0, nothing on standard error, and an answer that the host understands.
#[test]
fn any_bytes_for_each_host() {
    let rig = Rig::new();
    for name in ALL {
        let config = ProptestConfig {
            cases: 48,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        TestRunner::new(config)
            .run(&stdin(), |bytes| {
                let event = if name == "cursor" { "preToolUse" } else { "" };
                let said = rig.tell(name, event, &bytes);
                prop_assert!(
                    said.is_empty() || serde_json::from_str::<Value>(&said).is_ok(),
                    "{}",
                    said
                );
                Ok(())
            })
            .unwrap();
    }
    // The state is whole after all that.
    let host = Host {
        rig: &rig,
        name: "claude",
    };
    let call = Call {
        session: "after",
        ..Call::new("c1", "ls")
    };
    assert_eq!(host.make(&call, "x"), ["", ""]);
    assert_eq!(rig.outcomes("after"), ["ok"]);
    check("claude", "PreToolUse", "");
}

/// A loop whose results are long is found, and one whose long results differ is none.
#[test]
fn long_results_count_as_a_whole() {
    let long = |n: usize, end: &str| format!("{}{end}", "line of output\n".repeat(n));
    for (sizes, is_loop) in [([400_000, 400_000], true), ([400_000, 400_001], false)] {
        let rig = Rig::new();
        let host = Host {
            rig: &rig,
            name: "codex",
        };
        let refused = (1..=12).find(|n| {
            let id = format!("c{n}");
            let call = Call::new(&id, "cat big");
            let answer = host.before(&call);
            let size = if is_loop { sizes[0] } else { sizes[1] + n };
            host.after(&call, &long(size, "the end"), false);
            answer.contains("Loop protection")
        });
        assert_eq!(refused, is_loop.then_some(12));
    }
}

/// Arguments of more than 4 MiB count as not supplied: they can at most be warned about.
#[test]
fn long_arguments_are_not_supplied() {
    for (length, is_refused) in [((4 << 20) - 100, true), (4 << 20, false)] {
        let rig = Rig::new();
        rig.options(
            &json!({"loopThresholdWarn": 1, "loopThresholdEscalate": 2, "loopThresholdBlock": 3}),
        );
        let host = Host {
            rig: &rig,
            name: "kimi",
        };
        let answers: Vec<String> = (0..4)
            .map(|n| host.before(&Call::new(&format!("c{n}"), &"x".repeat(length))))
            .collect();
        assert_eq!(
            answers.iter().any(|answer| answer.contains("deny")),
            is_refused,
            "{length}"
        );
    }
}

/// 400 MB in, a few MB held.
#[cfg(target_os = "linux")]
#[test]
fn a_result_of_any_length_in_bounded_memory() {
    let rig = Rig::new();
    let mut child = rig.command(&["--harness", "codex"]).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let head = br#"{"hook_event_name":"PostToolUse","session_id":"s","turn_id":"t","model":"m","tool_name":"Bash","tool_input":{"command":"x"},"tool_use_id":"c","other":""#;
    input.write_all(head).unwrap();
    let piece = "\\u00e9 \\\"quoted\\\" text \\n".repeat(40_000);
    for member in [r#"","tool_response":""#, r#"","again":""#] {
        (0..200).for_each(|_| input.write_all(piece.as_bytes()).unwrap());
        input.write_all(member.as_bytes()).unwrap();
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    input.write_all(b"\"}").unwrap();
    drop(input);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(rig.outcomes("s"), ["ok"]);
    assert!(peak < 32 << 10, "{peak} kB");
}

/// What follows the document is read to its end: the host never meets a closed pipe.
#[test]
fn the_rest_is_drained() {
    let rig = Rig::new();
    let mut bytes =
        br#"{"hook_event_name":"preToolUse","session_id":"s","tool_name":"x","tool_input":{}}"#
            .to_vec();
    bytes.resize(50 << 20, b' ');
    let command = rig.command(&["--harness", "cursor", "--event", "preToolUse"]);
    assert_eq!(answer(command, &bytes), r#"{"permission":"allow"}"#);
}
