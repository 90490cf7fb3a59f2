//! Options and environment variables that switch things.

use std::fs;

use bizar_guard::{Delivery, Form, Guard, Verdict};
use serde_json::json;

use crate::rig::{Rig, make, repeat};

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
    let guard = Guard::new(bizar_guard::Setup::new("test", resolved));
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
