//! Options and environment variables that switch things.

use std::{fs, path::Path};

use bizar_guard::{Delivery, Form, Guard, Setup, Verdict};
use serde_json::json;

use crate::rig::{Rig, child, make, repeat, said};

#[test]
fn disable_does_nothing_at_all() {
    for form in [Form::Resident, Form::ONE_CALL] {
        let rig = Rig::new();
        let options = json!({"fingerprintKeyFile": "~/key"});
        let guard = Guard::new(rig.setup(form, &options, &[("BIZAR_DISABLE", "1")]));
        guard.user_message("s", Some("odin"));
        assert!(
            repeat(&guard, "s", 20)
                .iter()
                .all(|decision| decision.verdict == Verdict::Allow && !decision.skipped)
        );
        assert_eq!(guard.request("s", Delivery::Forgets), None);
        guard.idle("s");
        guard.deleted("s");
        assert_eq!(guard.sweep(None), 0);
        drop(guard);
        assert_eq!(fs::read_dir(rig.home()).unwrap().count(), 0);
    }
}

#[test]
fn disable_loop_logs_all_the_same() {
    let rig = Rig::new();
    let guard = Guard::new(rig.setup(Form::Resident, &json!({}), &[("BIZAR_DISABLE_LOOP", "1")]));
    assert!(
        repeat(&guard, "s", 20)
            .iter()
            .all(|decision| decision.verdict == Verdict::Allow)
    );
    assert_eq!(guard.request("s", Delivery::Forgets), None);
    guard.idle("s");
    assert_eq!(rig.log("s").lines().count(), 20);
    assert_eq!(rig.state("s").unwrap().tool_calls().len(), 20);
}

#[test]
fn disable_log_judges_all_the_same() {
    let rig = Rig::new();
    let guard = Guard::new(rig.setup(Form::Resident, &json!({}), &[("BIZAR_DISABLE_LOG", "1")]));
    assert!(repeat(&guard, "s", 12)[11].refused);
    assert!(!rig.log_dir().exists());
}

#[test]
fn observe_only_reports_and_does_nothing_else() {
    let rig = Rig::new();
    let guard = rig.resident(json!({"loopObserveOnly": true}));
    let decisions = repeat(&guard, "s", 20);
    assert_eq!(decisions[11].verdict, Verdict::Block);
    assert!(
        decisions
            .iter()
            .all(|decision| !decision.refused && !decision.halted && decision.text.is_none())
    );
    assert_eq!(guard.request("s", Delivery::Forgets), None);
    guard.idle("s");
    let state = rig.state("s").unwrap();
    assert_eq!((state.blocks_triggered, state.warnings_issued), (0, 0));
    assert!(rig.log("s").lines().all(|line| line.contains("outcome=ok")));
}

#[test]
fn exempt_tools_are_never_judged_and_always_logged() {
    let rig = Rig::new();
    let guard = rig.resident(json!({"loopExemptTools": ["re*"]}));
    assert!(
        repeat(&guard, "s", 30)
            .iter()
            .all(|decision| decision.verdict == Verdict::Allow)
    );
    assert_eq!(rig.log("s").lines().count(), 30);
}

#[test]
fn the_first_glob_that_matches_has_the_thresholds() {
    let rig = Rig::new();
    let resolved = bizar_guard::resolve(bizar_guard::Sources {
        home: Some(rig.home()),
        file: Some(
            r#"{"loopToolThresholds": {"rea*": {"warn": 1, "escalate": 2, "block": 3}, "read": {"block": 40}, "*": {"block": 20}}}"#,
        ),
        ..bizar_guard::Sources::default()
    });
    let guard = Guard::new(Setup::new("test", resolved));
    let decisions = repeat(&guard, "s", 3);
    assert_eq!(
        decisions
            .iter()
            .map(|decision| decision.verdict)
            .collect::<Vec<_>>(),
        [Verdict::Warn, Verdict::Escalate, Verdict::Block]
    );
    let other: Vec<_> = (0..13)
        .map(|_| make(&guard, "t", "grep", &json!({}), "x"))
        .collect();
    assert_eq!(other[12].verdict, Verdict::Escalate);
}

#[test]
fn ignored_arguments_do_not_make_another_call() {
    let rig = Rig::new();
    let guard = rig.resident(json!({"loopIgnoreArgs": {"read*": ["nonce"]}}));
    let of = |tool: &str, nonce: u32| {
        guard
            .before(&bizar_guard::Call::new(
                "s",
                tool,
                &json!({"path": "a", "nonce": nonce}),
            ))
            .fingerprint
    };
    assert_eq!(of("read_file", 1), of("read_file", 2));
    assert_ne!(of("write_file", 1), of("write_file", 2));
}

#[test]
fn the_key_is_made_once_and_kept_private() {
    let rig = Rig::new();
    let options = json!({"fingerprintKeyFile": "~/keys/key"});
    let of = |options: &serde_json::Value| {
        let guard = rig.resident(options.clone());
        let decision = guard.before(&bizar_guard::Call::new("s", "read", &json!({"path": "a"})));
        assert_eq!(guard.notes(), [""; 0]);
        decision.fingerprint
    };
    let keyed = of(&options);
    assert_eq!(of(&options), keyed);
    assert_ne!(of(&json!({})), keyed);
    let key = rig.home().join("keys/key");
    assert_eq!(fs::read(&key).unwrap().len(), 32);
    assert_eq!(fs::read_dir(rig.home().join("keys")).unwrap().count(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            fs::metadata(&key).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

#[test]
fn an_unusable_key_is_a_note_and_no_key() {
    let rig = Rig::new();
    let plain = rig
        .resident(json!({}))
        .before(&bizar_guard::Call::new("s", "t", "{}"))
        .fingerprint;
    for (name, content) in [
        ("short", "hunter2"),
        ("long", "0123456789012345678901234567890123456789"),
        ("empty", ""),
    ] {
        fs::write(rig.home().join(name), content).unwrap();
        let guard = rig.resident(json!({"fingerprintKeyFile": format!("~/{name}")}));
        let notes = guard.notes();
        assert_eq!(
            notes,
            ["fingerprintKeyFile: is not 32 bytes long: fingerprints have no key"]
        );
        assert_eq!(
            guard
                .before(&bizar_guard::Call::new("s", "t", "{}"))
                .fingerprint,
            plain
        );
        assert_eq!(fs::read_to_string(rig.home().join(name)).unwrap(), content);
    }
    fs::create_dir(rig.home().join("directory")).unwrap();
    for path in ["~/directory", "~/short/key"] {
        assert_eq!(
            rig.resident(json!({ "fingerprintKeyFile": path }))
                .notes()
                .len(),
            1
        );
    }
}

#[test]
fn processes_agree_on_a_new_key() {
    let rig = Rig::new();
    let options = json!({"fingerprintKeyFile": "~/key"});
    let keys: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    rig.resident(options.clone())
                        .before(&bizar_guard::Call::new("s", "t", "{}"))
                        .fingerprint
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
}

/// The role of a child with a home and variables of its own.
pub(crate) fn say_what_the_user_set() {
    let defaults = r#"{"loopThresholdWarn": 2, "loopThresholdEscalate": 3}"#;
    let setup = Setup::of_user(
        "gemini",
        Some(defaults.into()),
        Some(r#"{"verdictTimeoutMs": 300}"#.into()),
    );
    let guard = Guard::new(setup);
    let options = guard.options();
    let thresholds = options.thresholds;
    println!(
        "say {} {} {}",
        thresholds.warn(),
        thresholds.escalate(),
        thresholds.block()
    );
    println!(
        "say {} {}",
        options.verdict_timeout_ms, options.max_concurrent_instances
    );
    println!(
        "say {}",
        guard
            .before(&bizar_guard::Call::new("s", "t", "{}"))
            .fingerprint
            .is_some()
    );
    guard
        .notes()
        .iter()
        .for_each(|note| println!("say note {note}"));
}

fn of_user(home: &Path, variables: &[(&str, &str)]) -> Vec<String> {
    let home_variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    let mut child = child(&[], "user", home);
    said(
        &child
            .env(home_variable, home)
            .envs(variables.iter().copied())
            .output()
            .unwrap()
            .stdout,
    )
}

#[test]
fn the_setup_of_a_user() {
    let rig = Rig::new();
    assert_eq!(of_user(rig.home(), &[]), ["2 3 12", "300 8", "true"]);
    let directory = rig.home().join(".config/bizarharness");
    fs::create_dir_all(&directory).unwrap();
    let write = |text: &str| fs::write(directory.join("options.json"), text).unwrap();
    write(r#"{"loopThresholdWarn": 4, "hosts": {"gemini": {"loopThresholdBlock": 9}}}"#);
    let variables = [
        ("BIZAR_MAX_CONCURRENT_INSTANCES", "3"),
        ("BIZAR_DISABLE", "1"),
    ];
    assert_eq!(of_user(rig.home(), &variables), ["4 5 9", "300 3", "false"]);
    write("{");
    assert_eq!(
        of_user(rig.home(), &[]).pop().unwrap(),
        "note options file: not valid JSON at line 1 column 1: not used"
    );
    fs::remove_file(directory.join("options.json")).unwrap();
    fs::create_dir(directory.join("options.json")).unwrap();
    assert_eq!(
        of_user(rig.home(), &[]).pop().unwrap(),
        "note .config/bizarharness/options.json: could not be read: is a directory"
    );
}

/// Nobody writes into the pipe: opening it would wait for ever.
#[cfg(unix)]
#[test]
fn options_that_are_a_pipe_are_not_waited_for() {
    let rig = Rig::new();
    let directory = rig.home().join(".config/bizarharness");
    fs::create_dir_all(&directory).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(directory.join("options.json"))
        .status();
    assert!(made.unwrap().success());
    assert_eq!(
        of_user(rig.home(), &[]).pop().unwrap(),
        "note .config/bizarharness/options.json: could not be read: is not a file"
    );
}

/// A clone must not switch the guard off.
#[test]
fn a_project_is_not_taken_for_a_home() {
    let rig = Rig::new();
    let project = rig.home().join(".config/bizarharness");
    fs::create_dir_all(&project).unwrap();
    fs::write(
        project.join("options.json"),
        r#"{"loopThresholdBlock": 1000}"#,
    )
    .unwrap();
    for home in ["", "."] {
        let mut child = child(&[], "user", rig.home());
        let child = child.current_dir(rig.home()).env("HOME", home);
        let said = said(&child.env("USERPROFILE", home).output().unwrap().stdout);
        assert_eq!(said[0], "2 3 12", "{said:?}");
    }
}

#[test]
fn no_other_place_reads_a_variable() {
    let readers: Vec<_> = crate::network::sources()
        .into_iter()
        .filter(|(_, text)| {
            text.lines()
                .any(|line| line.contains("env::") && !line.trim_start().starts_with("//"))
        })
        .map(|(file, text)| {
            (
                file.file_name().unwrap().to_owned(),
                text.matches("env::var_os(").count(),
            )
        })
        .collect();
    assert_eq!(readers, [("setup.rs".into(), 2)]);
}
