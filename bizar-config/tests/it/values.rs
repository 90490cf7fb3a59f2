//! What becomes of the values of single options.

use std::path::Path;

use bizar_config::{
    BackgroundPermissions, DoomLoop, LoopMode, Options, Resolved, Sources, resolve,
};
use serde_json::{Value, json};

fn of(options: &Value) -> Resolved {
    resolve(Sources {
        home: Some(Path::new("/no/such/home")),
        host_options: Some(options.into()),
        ..Sources::default()
    })
}

fn ladder(options: &Options) -> [u32; 3] {
    let thresholds = options.thresholds;
    [thresholds.warn(), thresholds.escalate(), thresholds.block()]
}

#[test]
fn defaults() {
    let Resolved { options, notes, .. } = of(&json!({}));
    assert_eq!(notes, []);
    assert_eq!(ladder(&options), [5, 8, 12]);
    assert_eq!(options.loop_window_size, 10);
    assert_eq!(options.loop_mode, LoopMode::Progress);
    assert_eq!(options.loop_halt_after_blocks, 3);
    assert!(!options.loop_observe_only);
    assert_eq!(options.loop_poll_tools, None);
    assert!(options.loop_exempt_tools.is_empty());
    assert!(options.loop_tool_thresholds.is_empty());
    assert!(options.loop_ignore_args.is_empty());
    assert_eq!(
        options.log_dir.unwrap().as_path(),
        Path::new("/no/such/home/.cache/bizarharness/logs")
    );
    assert_eq!(
        options.state_dir.unwrap().as_path(),
        Path::new("/no/such/home/.cache/bizarharness")
    );
    assert_eq!(options.log_rotation_bytes, 10_485_760);
    assert_eq!(options.fingerprint_key_file, None);
    assert_eq!(options.verdict_timeout_ms, 250);
    assert_eq!(options.opencode_doom_loop, DoomLoop::Allow);
    assert_eq!(options.background_agents, ["odin"]);
    assert_eq!(
        options.background_permissions,
        BackgroundPermissions::Reject
    );
    assert!(!options.background_eager && !options.background_parent);
    assert_eq!(options.background_max_cost_usd, None);
    assert_eq!(options.background_max_tokens, None);
    assert_eq!(options.max_concurrent_instances, 8);
    assert_eq!(options.background_tool_call_cap, 500);
}

#[test]
fn thresholds_are_floored_clamped_and_put_in_order() {
    let cases = [
        (json!({"loopThresholdWarn": 0}), [1, 8, 12]),
        (json!({"loopThresholdWarn": -7}), [1, 8, 12]),
        (json!({"loopThresholdWarn": 3.9}), [3, 8, 12]),
        (json!({"loopThresholdWarn": 8}), [8, 9, 12]),
        (json!({"loopThresholdWarn": 20}), [20, 21, 22]),
        (json!({"loopThresholdEscalate": 5}), [5, 6, 12]),
        (json!({"loopThresholdEscalate": 12}), [5, 12, 13]),
        (json!({"loopThresholdBlock": 4}), [5, 8, 9]),
        (
            json!({"loopThresholdWarn": 1e300}),
            [999_998, 999_999, 1_000_000],
        ),
        (json!({"loopThresholdBlock": u64::MAX}), [5, 8, 1_000_000]),
        (json!({"loopThresholdBlock": i64::MIN}), [5, 8, 9]),
        (json!({"loopThresholdWarn": "6"}), [6, 8, 12]),
        (json!({"loopThresholdWarn": "6.7"}), [6, 8, 12]),
        (
            json!({"loopThresholdWarn": "9".repeat(400)}),
            [999_998, 999_999, 1_000_000],
        ),
        (json!({"loopThresholdWarn": "-3"}), [1, 8, 12]),
        (json!({"loopThresholdWarn": "six"}), [5, 8, 12]),
        (json!({"loopThresholdWarn": " 6"}), [5, 8, 12]),
        (json!({"loopThresholdWarn": "1e2"}), [5, 8, 12]),
        (json!({"loopThresholdWarn": "0x10"}), [5, 8, 12]),
        (json!({"loopThresholdWarn": "inf"}), [5, 8, 12]),
        (json!({"loopThresholdWarn": ""}), [5, 8, 12]),
        (json!({"loopThresholdWarn": "."}), [5, 8, 12]),
        (json!({"loopThresholdWarn": null}), [5, 8, 12]),
        (json!({"loopThresholdWarn": [6]}), [5, 8, 12]),
        (json!({"loopThresholdWarn": true}), [5, 8, 12]),
        (
            json!({"loopThresholdWarn": 2, "loopThresholdEscalate": 3, "loopThresholdBlock": 12}),
            [2, 3, 12],
        ),
    ];
    for (input, expected) in cases {
        assert_eq!(ladder(&of(&input).options), expected, "{input}");
    }
}

#[test]
fn every_change_has_a_note_and_nothing_else_has() {
    let silent = [
        json!({"loopThresholdWarn": 6}),
        json!({"loopThresholdWarn": 6.0}),
        json!({"loopThresholdWarn": 9}), // the others make room: they were not set
        json!({"loopHaltAfterBlocks": 0}),
        json!({"loopHaltAfterBlocks": -0.0}),
        json!({"backgroundMaxCostUsd": 0.25, "backgroundMaxTokens": 9_007_199_254_740_993_u64}),
        json!({"backgroundMaxCostUsd": null, "backgroundMaxTokens": null, "fingerprintKeyFile": null, "loopPollTools": null}),
        json!({"loopToolThresholds": {"bash": {"warn": 9}}}),
        json!(null),
    ];
    for input in silent {
        assert_eq!(of(&input).notes, [], "{input}");
    }
    let noted = [
        (json!({"loopThresholdWarn": "6"}), "loopThresholdWarn"),
        (json!({"loopThresholdWarn": 6.5}), "loopThresholdWarn"),
        (json!({"loopThresholdWarn": -1}), "loopThresholdWarn"),
        (json!({"loopThresholdEscalate": 2}), "loopThresholdEscalate"),
        (json!({"loopThresholdBlock": 2}), "loopThresholdBlock"),
        (json!({"loopWindowSize": 51}), "loopWindowSize"),
        (json!({"logDir": 5}), "logDir"),
        (json!({"logDir": ""}), "logDir"),
        (json!({"logDir": "a\u{0}b"}), "logDir"),
        (json!({"logRotationBytes": 5}), "logRotationBytes"),
        (json!({"loopMode": "fast"}), "loopMode"),
        (json!({"loopMode": "Progress"}), "loopMode"),
        (json!({"loopObserveOnly": "true"}), "loopObserveOnly"),
        (json!({"loopObserveOnly": 1}), "loopObserveOnly"),
        (json!({"loopPollTools": "wait"}), "loopPollTools"),
        (json!({"loopExemptTools": ["a", 5, ""]}), "loopExemptTools"),
        (json!({"loopToolThresholds": []}), "loopToolThresholds"),
        (
            json!({"loopToolThresholds": {"a": 5}}),
            "loopToolThresholds",
        ),
        (
            json!({"loopToolThresholds": {"": {}}}),
            "loopToolThresholds",
        ),
        (
            json!({"loopToolThresholds": {"a": {"warm": 5}}}),
            "loopToolThresholds",
        ),
        (
            json!({"loopToolThresholds": {"a": {"block": 2}}}),
            "loopToolThresholds",
        ),
        (json!({"loopIgnoreArgs": {"a": "b"}}), "loopIgnoreArgs"),
        (json!({"backgroundMaxCostUsd": -1}), "backgroundMaxCostUsd"),
        (json!({"backgroundMaxTokens": 0}), "backgroundMaxTokens"),
        (
            json!({"maxConcurrentInstances": 33}),
            "maxConcurrentInstances",
        ),
        (json!([]), ""),
        (json!("text"), ""),
    ];
    for (input, option) in noted {
        let notes = of(&input).notes;
        assert_eq!(notes.len(), 1, "{input}: {notes:?}");
        assert_eq!(notes[0].option, option, "{input}");
    }
}

#[test]
fn ranges() {
    let options = |value: Value| {
        let keys = [
            "loopWindowSize",
            "logRotationBytes",
            "loopHaltAfterBlocks",
            "verdictTimeoutMs",
            "maxConcurrentInstances",
            "backgroundToolCallCap",
        ];
        let object: serde_json::Map<_, _> = keys
            .map(|key| (key.to_owned(), value.clone()))
            .into_iter()
            .collect();
        let options = of(&Value::Object(object)).options;
        (
            options.loop_window_size,
            options.log_rotation_bytes,
            options.loop_halt_after_blocks,
            options.verdict_timeout_ms,
            options.max_concurrent_instances,
            options.background_tool_call_cap,
        )
    };
    assert_eq!(options(json!(-1e308)), (3, 1024, 0, 50, 1, 1));
    assert_eq!(options(json!(1e308)), (50, u64::MAX, 1000, 5000, 32, 5000));
    assert_eq!(options(json!(17.99)), (17, 1024, 17, 50, 17, 17));
    assert_eq!(options(json!("2000")), (50, 2000, 1000, 2000, 32, 2000));
}

#[test]
fn every_option_reaches_its_field() {
    let input = json!({
        "loopThresholdWarn": 2, "loopThresholdEscalate": 4, "loopThresholdBlock": 6,
        "loopWindowSize": 20, "logDir": "/srv/logs", "stateDir": "~/state",
        "logRotationBytes": 4096, "loopMode": "cycle", "loopHaltAfterBlocks": 7,
        "loopObserveOnly": true, "loopPollTools": ["*_wait"], "loopExemptTools": ["todo*"],
        "loopToolThresholds": {"bash": {"block": 40}}, "loopIgnoreArgs": {"edit": ["note"]},
        "fingerprintKeyFile": "~/key", "verdictTimeoutMs": 300, "opencodeDoomLoop": "leave",
        "backgroundAgents": ["thor"], "backgroundPermissions": "wait", "backgroundEager": true,
        "backgroundParent": true, "backgroundMaxCostUsd": 1.5, "backgroundMaxTokens": 1000,
        "maxConcurrentInstances": 4, "backgroundToolCallCap": 40,
    });
    let Resolved { options, notes, .. } = of(&input);
    assert_eq!(notes, []);
    assert_eq!(ladder(&options), [2, 4, 6]);
    assert_eq!(options.loop_window_size, 20);
    assert_eq!(options.log_dir.unwrap().as_path(), Path::new("/srv/logs"));
    assert_eq!(
        options.state_dir.unwrap().as_path(),
        Path::new("/no/such/home/state")
    );
    assert_eq!(options.log_rotation_bytes, 4096);
    assert_eq!(options.loop_mode, LoopMode::Cycle);
    assert_eq!(options.loop_halt_after_blocks, 7);
    assert!(options.loop_observe_only);
    assert_eq!(options.loop_poll_tools.unwrap(), ["*_wait"]);
    assert_eq!(options.loop_exempt_tools, ["todo*"]);
    assert_eq!(options.loop_tool_thresholds.len(), 1);
    let tool = &options.loop_tool_thresholds[0];
    assert_eq!((tool.glob.as_str(), tool.thresholds.warn()), ("bash", 2));
    assert_eq!(tool.thresholds.block(), 40);
    assert_eq!(
        options.loop_ignore_args,
        [("edit".to_owned(), vec!["note".to_owned()])]
    );
    assert_eq!(
        options.fingerprint_key_file.unwrap().as_path(),
        Path::new("/no/such/home/key")
    );
    assert_eq!(options.verdict_timeout_ms, 300);
    assert_eq!(options.opencode_doom_loop, DoomLoop::Leave);
    assert_eq!(options.background_agents, ["thor"]);
    assert_eq!(options.background_permissions, BackgroundPermissions::Wait);
    assert!(options.background_eager && options.background_parent);
    assert_eq!(options.background_max_cost_usd, Some(1.5));
    assert_eq!(options.background_max_tokens, Some(1000));
    assert_eq!(options.max_concurrent_instances, 4);
    assert_eq!(options.background_tool_call_cap, 40);
    // The input names every option there is.
    let known = bizar_config::json_schema()["$defs"]["host"]["properties"].clone();
    assert!(
        known
            .as_object()
            .unwrap()
            .keys()
            .eq(input.as_object().unwrap().keys())
    );
}

#[test]
fn unknown_keys_get_a_did_you_mean_note() {
    let cases = [
        ("loopTresholdWarn", "loopThresholdWarn"),
        ("LoopMode", "loopMode"),
        ("log_dir", "logDir"),
        ("stateDirectory", ""),
        ("maxConcurentInstances", "maxConcurrentInstances"),
        ("backgroundAgent", "backgroundAgents"),
        ("theme", ""),
    ];
    for (key, meant) in cases {
        let notes = of(&json!({ key: 1 })).notes;
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].option, key);
        let expected = if meant.is_empty() {
            "unknown option".to_owned()
        } else {
            format!("unknown option; did you mean {meant}?")
        };
        assert_eq!(notes[0].text, expected);
    }
}
