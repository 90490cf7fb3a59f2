//! Broken directories never cost a call.

use std::{fs, path::Path, time::Duration};

use bizar_guard::{FileStore, Form, Guard, State, Store, Verdict};
use bizar_state::Durability;
use serde_json::json;

use crate::rig::{Rig, repeat};

/// Fifteen calls and everything else that a host does. Returns how many calls were refused.
fn use_it(guard: &Guard) -> usize {
    guard.user_message("s", None);
    let decisions = repeat(guard, "s", 14);
    let _ = guard.request("s", bizar_guard::Delivery::Forgets);
    guard.round_ended("s");
    guard.idle("s");
    let _ = guard.sweep(None);
    guard.flush();
    decisions.iter().filter(|decision| decision.refused).count()
}

fn assert_works(rig: &Rig, break_it: impl Fn(&Rig)) {
    for form in [Form::Resident, Form::ONE_CALL] {
        break_it(rig);
        let guard = Guard::new(rig.setup(form, &json!({}), &[]));
        let refused = use_it(&guard);
        let notes = guard.notes();
        match form {
            // What is in memory is judged all the same.
            Form::Resident => assert_eq!(refused, 3),
            Form::PerCall(_) => assert_eq!((refused, guard.skipped() >= 14), (0, true)),
        }
        assert!(!notes.is_empty() && notes.len() < 8, "{notes:?}");
        guard.deleted("s");
    }
}

#[test]
fn a_file_in_the_place_of_the_directory() {
    let rig = Rig::new();
    assert_works(&rig, |rig| {
        fs::write(rig.home().join(".cache"), "").unwrap()
    });
}

#[test]
fn no_home() {
    let setup = |form| bizar_guard::Setup::in_memory("test").form(form);
    assert_eq!(use_it(&Guard::new(setup(Form::Resident))), 3);
    let guard = Guard::new(setup(Form::ONE_CALL));
    assert_eq!(use_it(&guard), 0);
    assert!(guard.skipped() >= 14);
}

#[cfg(unix)]
#[test]
fn a_link_that_is_made_later() {
    let rig = Rig::new();
    fs::create_dir(rig.home().join(".ssh")).unwrap();
    for form in [Form::Resident, Form::ONE_CALL] {
        let guard = Guard::new(rig.setup(form, &json!({}), &[]));
        std::os::unix::fs::symlink(".ssh", rig.home().join(".cache")).unwrap();
        let refused = use_it(&guard);
        assert_eq!(refused, if form == Form::Resident { 3 } else { 0 });
        drop(guard);
        assert_eq!(fs::read_dir(rig.home().join(".ssh")).unwrap().count(), 0);
        fs::remove_file(rig.home().join(".cache")).unwrap();
    }
}

#[test]
fn a_corrupt_session_is_kept_and_starts_empty() {
    for content in [
        "",
        "{",
        "{\"kind\":\"bizar.session\",\"version\":1,\"sessionId\":\"s\"}",
        "\u{0}\u{0}",
    ] {
        for form in [Form::Resident, Form::ONE_CALL] {
            let rig = Rig::new();
            fs::create_dir_all(rig.state_dir()).unwrap();
            fs::write(rig.state_dir().join("s.json"), content).unwrap();
            let guard = Guard::new(rig.setup(form, &json!({}), &[]));
            assert_eq!(
                repeat(&guard, "s", 12)
                    .iter()
                    .filter(|decision| decision.refused)
                    .count(),
                1
            );
            assert_eq!(guard.notes().len(), 1);
            let kept: Vec<_> = fs::read_dir(rig.state_dir())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.to_string_lossy().contains("kept"))
                .collect();
            assert_eq!(kept.len(), 1);
            assert_eq!(fs::read_to_string(&kept[0]).unwrap(), content);
        }
    }
}

/// A detector's snapshot that makes no sense is a corrupt session, not a panic.
#[test]
fn a_snapshot_that_does_not_fit() {
    let rig = Rig::new();
    drop(repeat(&rig.one_call(json!({})), "s", 3));
    let mut document = rig.document("s");
    document["detector"]["session"] = json!({"rules": 5});
    fs::write(rig.state_dir().join("s.json"), document.to_string()).unwrap();
    let guard = rig.one_call(json!({}));
    assert_eq!(repeat(&guard, "s", 1)[0].count, 1);
    assert_eq!(guard.notes().len(), 1);
}

/// A store that cannot be read for a while costs the memory of that while, not what it holds.
#[test]
fn a_session_that_could_not_be_read_is_not_written_over() {
    let rig = Rig::new();
    drop(repeat(&rig.one_call(json!({})), "s", 6));
    let away = rig.home().join("away");
    fs::rename(rig.state_dir(), &away).unwrap();
    fs::write(rig.state_dir(), "a file").unwrap();
    let guard = rig.resident(json!({}));
    assert_eq!(repeat(&guard, "s", 1)[0].count, 1);
    fs::remove_file(rig.state_dir()).unwrap();
    fs::rename(&away, rig.state_dir()).unwrap();
    assert_eq!(repeat(&guard, "s", 1)[0].count, 2);
    drop(guard);
    assert_eq!(rig.document("s")["toolCalls"].as_array().unwrap().len(), 6);
}

#[test]
fn a_locked_session_is_skipped_after_a_bounded_wait() {
    let rig = Rig::new();
    drop(repeat(&rig.one_call(json!({})), "s", 11));
    let store = FileStore::<State>::new(rig.state_dir(), Durability::Process);
    let guard = rig.one_call(json!({}));
    let took = store
        .update("s", |_| {
            let start = std::time::Instant::now();
            let decision = &repeat(&guard, "s", 1)[0];
            assert_eq!((decision.verdict, decision.skipped), (Verdict::Allow, true));
            start.elapsed()
        })
        .unwrap()
        .value;
    assert!(
        took >= Duration::from_millis(100),
        "before and after wait 50 ms each"
    );
    assert!(took < Duration::from_secs(5));
    assert_eq!(guard.skipped(), 2);
    // The line is there all the same, and the next call is judged as the twelfth.
    assert_eq!(rig.log("s").lines().count(), 12);
    assert!(repeat(&guard, "s", 1)[0].refused);
}

#[test]
fn a_directory_that_is_removed_in_between_is_made_again() {
    for form in [Form::Resident, Form::ONE_CALL] {
        let rig = Rig::new();
        let guard = Guard::new(rig.setup(form, &json!({}), &[]));
        repeat(&guard, "s", 3);
        fs::remove_dir_all(rig.state_dir()).unwrap();
        assert!(
            repeat(&guard, "s", 3)
                .iter()
                .all(|decision| !decision.skipped)
        );
        guard.idle("s");
        assert!(rig.state("s").is_some());
        assert_eq!(rig.log("s").lines().count(), 3);
    }
}

#[test]
fn a_log_that_is_a_directory_costs_its_lines_only() {
    let rig = Rig::new();
    fs::create_dir_all(rig.log_dir().join("s.log")).unwrap();
    let guard = rig.resident(json!({}));
    assert_eq!(use_it(&guard), 3);
    assert_eq!(guard.notes().len(), 1);
}

#[test]
fn any_session_id_is_one_safe_file() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    let ids = [
        "",
        ".",
        "..",
        "../../x",
        "/abs",
        "a/b",
        "C:\\x",
        "NUL",
        "nul\u{0}x",
        "x\ny",
        &"long".repeat(100),
        "ä\u{202e}",
    ];
    for id in ids {
        assert_eq!(
            repeat(&guard, id, 12)
                .iter()
                .filter(|decision| decision.refused)
                .count(),
            1,
            "{id:?}"
        );
        guard.idle(id);
    }
    assert_eq!(guard.notes(), [""; 0]);
    let documents = fs::read_dir(rig.state_dir())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension() == Some("json".as_ref()));
    assert_eq!(documents.count(), ids.len());
    assert_eq!(fs::read_dir(rig.log_dir()).unwrap().count(), ids.len());
    let entries: Vec<_> = fs::read_dir(rig.home())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(entries, [Path::new(".cache").as_os_str()]);
}
