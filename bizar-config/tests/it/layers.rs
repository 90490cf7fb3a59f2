//! Sources in order, later wins.

use std::path::Path;

use bizar_config::{
    BackgroundPermissions, Environment, LoopMode, Origin, Resolved, Sources, resolve,
};
use serde_json::json;

const HOME: &str = "/no/such/home";

fn ladder(resolved: &Resolved) -> [u32; 3] {
    let thresholds = resolved.options.thresholds;
    [thresholds.warn(), thresholds.escalate(), thresholds.block()]
}

#[test]
fn later_sources_win_option_by_option() {
    let file = r#"{
        "$schema": "options.schema.json",
        "loopThresholdWarn": 3, "loopWindowSize": 20, "verdictTimeoutMs": 100, "maxConcurrentInstances": 2,
        "hosts": {"gemini": {"loopWindowSize": 30, "verdictTimeoutMs": 200}, "codex": {"loopWindowSize": 40}}
    }"#;
    let host_options = json!({"verdictTimeoutMs": 300});
    let resolved = resolve(Sources {
        home: Some(Path::new(HOME)),
        file: Some(file),
        host: Some("gemini"),
        host_options: Some((&host_options).into()),
        env: Environment::from_pairs([("BIZAR_MAX_CONCURRENT_INSTANCES", "5")]),
        ..Sources::default()
    });
    assert_eq!(resolved.notes, []);
    let options = &resolved.options;
    assert_eq!(options.thresholds.warn(), 3);
    assert_eq!(options.loop_window_size, 30);
    assert_eq!(options.verdict_timeout_ms, 300);
    assert_eq!(options.max_concurrent_instances, 5);
    let origins = [
        "loopMode",
        "loopThresholdWarn",
        "loopWindowSize",
        "verdictTimeoutMs",
        "maxConcurrentInstances",
    ];
    assert_eq!(
        origins.map(|option| resolved.origin(option)),
        [
            Origin::Default,
            Origin::File,
            Origin::FileHost,
            Origin::Host,
            Origin::Environment
        ]
    );
}

#[test]
fn an_unusable_value_leaves_what_was_said_before() {
    let host_options = json!({"loopMode": "fast", "loopThresholdWarn": {}});
    let resolved = resolve(Sources {
        home: Some(Path::new(HOME)),
        file: Some(r#"{"loopMode": "cycle", "loopThresholdWarn": 4}"#),
        host_options: Some((&host_options).into()),
        ..Sources::default()
    });
    assert_eq!(resolved.options.loop_mode, LoopMode::Cycle);
    assert_eq!(resolved.options.thresholds.warn(), 4);
    assert_eq!(resolved.origin("loopMode"), Origin::File);
    assert_eq!(resolved.notes.len(), 2);
}

#[test]
fn a_hosts_defaults_hold_only_where_the_user_set_none() {
    let defaults =
        r#"{"loopThresholdWarn": 2, "loopThresholdEscalate": 3, "loopThresholdBlock": 12}"#;
    let with = |file| {
        resolve(Sources {
            home: Some(Path::new(HOME)),
            host_defaults: Some(defaults.into()),
            file,
            ..Sources::default()
        })
    };
    assert_eq!(ladder(&with(None)), [2, 3, 12]);
    assert_eq!(with(None).origin("loopThresholdWarn"), Origin::HostDefault);
    assert_eq!(
        ladder(&with(Some(r#"{"loopThresholdBlock": 20}"#))),
        [2, 3, 20]
    );
    let own = with(Some(
        r#"{"loopThresholdWarn": 5, "loopThresholdEscalate": 8}"#,
    ));
    assert_eq!(ladder(&own), [5, 8, 12]);
    assert_eq!(own.origin("loopThresholdWarn"), Origin::File);
    // What makes room is no setting of the user's: no note.
    let roomy = with(Some(r#"{"loopThresholdWarn": 4}"#));
    assert_eq!((ladder(&roomy), roomy.notes.len()), ([4, 5, 12], 0));
}

#[test]
fn hosts_is_an_object_of_the_file_alone() {
    let host_options = json!({"hosts": {"gemini": {"loopMode": "cycle"}}});
    let resolved = resolve(Sources {
        home: Some(Path::new(HOME)),
        host: Some("gemini"),
        host_options: Some((&host_options).into()),
        ..Sources::default()
    });
    assert_eq!(resolved.options.loop_mode, LoopMode::Progress);
    assert_eq!(resolved.notes.len(), 1);
    for file in [r#"{"hosts": 5}"#, r#"{"hosts": {"gemini": 5}}"#] {
        let resolved = resolve(Sources {
            home: Some(Path::new(HOME)),
            file: Some(file),
            host: Some("gemini"),
            ..Sources::default()
        });
        assert_eq!(resolved.notes.len(), 1, "{file}");
    }
}

#[test]
fn a_slip_in_the_name_of_the_host_is_noted() {
    let with = |file| {
        let resolved = resolve(Sources {
            home: Some(Path::new(HOME)),
            file: Some(file),
            host: Some("gemini"),
            ..Sources::default()
        });
        resolved
            .notes
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let note = "hosts: gemnii is not this host; did you mean gemini?";
    assert_eq!(with(r#"{"hosts": {"gemnii": {}}}"#), [note]);
    assert_eq!(
        with(r#"{"hosts": {"codex": {}, "kimi": {}, "qwen": {}}}"#),
        [""; 0]
    );
}

#[test]
fn a_broken_file_is_one_note_with_a_place_and_no_content() {
    for file in [
        "",
        "{",
        "{\"loopMode\": \"hunter2\",}",
        "nonsense hunter2",
        "\u{feff}{]",
    ] {
        let resolved = resolve(Sources {
            home: Some(Path::new(HOME)),
            file: Some(file),
            ..Sources::default()
        });
        assert_eq!(resolved.notes.len(), 1, "{file}");
        let text = resolved.notes[0].to_string();
        assert!(text.contains("line 1") || file.is_empty(), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(ladder(&resolved), [5, 8, 12]);
    }
    let with_mark = resolve(Sources {
        home: Some(Path::new(HOME)),
        file: Some("\u{feff}{\"loopMode\": \"cycle\"}"),
        ..Sources::default()
    });
    assert_eq!(with_mark.options.loop_mode, LoopMode::Cycle);
}

#[test]
fn globs_keep_the_order_of_the_text() {
    let file = r#"{"loopToolThresholds": {"z*": {"warn": 2}, "bash": {"block": 30}, "*": {"escalate": 9}}}"#;
    let resolved = resolve(Sources {
        home: Some(Path::new(HOME)),
        file: Some(file),
        ..Sources::default()
    });
    let globs: Vec<_> = resolved
        .options
        .loop_tool_thresholds
        .iter()
        .map(|tool| tool.glob.as_str())
        .collect();
    assert_eq!(globs, ["z*", "bash", "*"]);
}

#[test]
fn tools_take_what_they_leave_out_from_the_main_thresholds() {
    let resolved = resolve(Sources {
        home: Some(Path::new(HOME)),
        file: Some(r#"{"loopToolThresholds": {"bash": {"warn": 9}}, "loopThresholdBlock": 30}"#),
        ..Sources::default()
    });
    let thresholds = resolved.options.loop_tool_thresholds[0].thresholds;
    assert_eq!(
        (thresholds.warn(), thresholds.escalate(), thresholds.block()),
        (9, 10, 30)
    );
}

#[test]
fn the_environment_has_the_last_word() {
    let resolved = resolve(Sources {
        home: Some(Path::new(HOME)),
        file: Some(r#"{"backgroundPermissions": "wait", "backgroundToolCallCap": 10}"#),
        env: Environment::from_pairs([
            ("BIZAR_BACKGROUND_SKIP_PERMISSIONS", "1"),
            ("BIZAR_BACKGROUND_TOOL_CALL_CAP", "99999"),
        ]),
        ..Sources::default()
    });
    assert_eq!(
        resolved.options.background_permissions,
        BackgroundPermissions::Allow
    );
    assert_eq!(resolved.options.background_tool_call_cap, 5000);
    assert_eq!(resolved.notes.len(), 1);
}

#[test]
fn without_a_home_nothing_is_written() {
    for home in [None, Some(Path::new("relative/home")), Some(Path::new(""))] {
        let resolved = resolve(Sources {
            home,
            ..Sources::default()
        });
        assert_eq!(resolved.options.log_dir, None);
        assert_eq!(resolved.options.state_dir, None);
        assert!(resolved.notes.len() >= 2);
    }
}
