//! What may go, and what may not.

use std::collections::HashSet;
use std::fs;

use bizar_state::{Durability, FileStore, SessionState, Store, Sweep};

use crate::counter::{Counter, add_one, files, store};

type Sessions = FileStore<SessionState<()>>;

const HOUR: i64 = 60 * 60 * 1000;
const DAY: i64 = 24 * HOUR;

fn sessions(directory: &std::path::Path, last_activity: &[(&str, i64)]) -> Sessions {
    let store = Sessions::new(directory, Durability::Process);
    for (id, at) in last_activity {
        store
            .save(SessionState::new(*id, "opencode", "5f2c", *at))
            .unwrap();
    }
    store
}

fn swept(store: &Sessions, known: Option<&[&str]>, now: i64) -> Vec<String> {
    let known = known.map(|ids| ids.iter().map(|&id| id.to_owned()).collect::<HashSet<_>>());
    let sweep = Sweep {
        host: "opencode",
        scope: "5f2c",
        known: known.as_ref(),
        now,
    };
    let report = store.sweep(|session| sweep.is_stale(session)).unwrap();
    assert!(report.errors.is_empty(), "{report:?}");
    report.removed
}

#[test]
fn state_11_known_sessions_stay_whatever_their_age() {
    let directory = tempfile::tempdir().unwrap();
    let now = 400 * DAY;
    let store = sessions(
        directory.path(),
        &[
            ("known", 0),
            ("old", now - HOUR - 1),
            ("recent", now - HOUR),
        ],
    );
    // The age is in the document; the times of the file say nothing.
    assert_eq!(swept(&store, Some(&["known"]), now), ["old"]);
    assert_eq!(swept(&store, Some(&["known"]), now + 1), ["recent"]);
    assert_eq!(swept(&store, Some(&["known"]), now + 400 * DAY), [""; 0]);
    assert!(store.load("known").unwrap().document.is_some());
}

#[test]
fn state_11_without_an_answer_only_what_is_older_than_7_days() {
    let directory = tempfile::tempdir().unwrap();
    let now = 400 * DAY;
    let store = sessions(
        directory.path(),
        &[("a", now - 7 * DAY - 1), ("b", now - 7 * DAY)],
    );
    assert_eq!(swept(&store, None, now), ["a"]);
    assert_eq!(swept(&store, None, now), [""; 0]);
}

#[test]
fn a_clock_that_went_back_removes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = sessions(
        directory.path(),
        &[("a", 400 * DAY), ("b", i64::MAX), ("c", 5)],
    );
    assert_eq!(swept(&store, Some(&[]), 10), [""; 0]);
    assert_eq!(swept(&store, None, i64::MIN), [""; 0]);
}

#[test]
fn a_sweep_touches_only_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let store = sessions(directory.path(), &[("own", 0)]);
    store
        .save(SessionState::new("other-host", "claude", "5f2c", 0))
        .unwrap();
    store
        .save(SessionState::new("other-scope", "opencode", "77aa", 0))
        .unwrap();
    let own = fs::read_to_string(store.path("own")).unwrap();
    let foreign = [
        ("options.json", r#"{"loopMode":"cycle"}"#.to_owned()),
        ("corrupt.json", own[..40].to_owned()),
        ("copy-of-own.json", own.clone()),
        ("own.json.bak", own.clone()),
        ("own.kept-1", own.clone()),
        (
            "later.json",
            own.replace(r#""version":1"#, r#""version":2"#)
                .replace("own", "later"),
        ),
        (
            "kind.json",
            own.replace("bizar.session", "bizar.background")
                .replace("own", "kind"),
        ),
        (".editor.tmp", "x".to_owned()),
    ];
    for (name, text) in &foreign {
        fs::write(directory.path().join(name), text).unwrap();
    }
    fs::create_dir(directory.path().join("logs")).unwrap();
    fs::create_dir(directory.path().join("dir.json")).unwrap();
    let mut expected = files(directory.path());
    expected.remove("own.json").unwrap();

    let now = 400 * DAY;
    let nobody = HashSet::new();
    let sweep = Sweep {
        host: "opencode",
        scope: "5f2c",
        known: Some(&nobody),
        now,
    };
    let report = store.sweep(|session| sweep.is_stale(session)).unwrap();
    assert_eq!(report.removed, ["own"]);
    assert_eq!(
        (report.kept, report.temporaries, report.errors.len()),
        (2, 0, 0)
    );
    assert_eq!(report.unusable.len(), 6);
    assert_eq!(files(directory.path()), expected);
}

#[test]
fn what_was_written_meanwhile_stays() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    store.save(Counter::new("c", 0)).unwrap();
    // The first look takes no lock, so the session can come to life right after it.
    let report = store.sweep(|counter| counter.count == 0 && add_one(&store, "c").is_ok());
    let report = report.unwrap();
    assert_eq!((report.removed.len(), report.kept), (0, 1));
    assert_eq!(store.load("c").unwrap().document.unwrap().count, 1);
}

#[test]
fn temporaries_of_the_dead_go_and_those_of_the_living_stay() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    store.save(Counter::new("c", 0)).unwrap();
    let slot = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find_map(|name| name.strip_prefix(".lock-").map(str::to_owned))
        .unwrap();
    let temporary = directory.path().join(format!(".{slot}.Ab3dE9.bizar-tmp"));
    fs::write(&temporary, "{").unwrap();
    // A living writer holds the lock that the temporary file is named after.
    store
        .update("c", |_| {
            let report = store.sweep(|_| true).unwrap();
            assert_eq!((report.temporaries, report.removed.len()), (0, 0));
            assert_eq!(report.errors.len(), 2);
        })
        .unwrap();
    assert!(temporary.exists());
    let report = store.sweep(|_| false).unwrap();
    assert_eq!(
        (report.temporaries, report.kept, report.errors.len()),
        (1, 1, 0)
    );
    assert!(!temporary.exists());
}
