//! Exactly the oldest lines go, and only when the limit is reached.

use std::fs;

use bizar_log::{Entry, Outcome, SessionLog};
use proptest::prelude::*;

use crate::{entry, files, line_len, numbers};

/// A limit of exactly `lines` lines with one-digit numbers.
fn limit(lines: u64) -> u64 {
    lines * line_len(&entry("s", 0))
}

#[test]
fn the_oldest_go_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = SessionLog::open(directory.path(), "s", limit(2));
    for number in 0..10 {
        let appended = log.append(&entry("s", number));
        assert!(appended.is_written() && appended.warning().is_none());
        assert_eq!(appended.is_rotated(), number > 0 && number % 2 == 0);
    }
    let read = |name| numbers(&directory.path().join(name));
    assert_eq!(
        files(directory.path()),
        ["s.1.log", "s.2.log", "s.3.log", "s.log"]
    );
    assert_eq!(read("s.log"), [8, 9]);
    assert_eq!(read("s.1.log"), [6, 7]);
    assert_eq!(read("s.2.log"), [4, 5]);
    assert_eq!(read("s.3.log"), [2, 3]);
}

#[test]
fn log_02_a_restart_appends_and_counts_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..3 {
        let mut log = SessionLog::open(directory.path(), "s", limit(2));
        assert!(log.append(&entry("s", number)).is_written());
    }
    assert_eq!(numbers(&directory.path().join("s.1.log")), [0, 1]);
    assert_eq!(numbers(&directory.path().join("s.log")), [2]);
}

#[test]
fn log_03_restarts_do_not_let_the_file_grow() {
    let directory = tempfile::tempdir().unwrap();
    for _run in 0..3 {
        let mut log = SessionLog::open(directory.path(), "s", limit(10));
        for number in 0..4 {
            assert!(log.append(&entry("s", number)).is_written());
            assert!(fs::metadata(directory.path().join("s.log")).unwrap().len() <= limit(10));
        }
    }
    assert_eq!(numbers(&directory.path().join("s.1.log")).len(), 10);
    assert_eq!(numbers(&directory.path().join("s.log")).len(), 2);
}

#[test]
fn log_06_a_restart_deletes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["s.1.log", "s.2.log", "s.3.log", "s.4.log", "s.log"];
    for name in names {
        fs::write(directory.path().join(name), format!("{}\n", entry("s", 7))).unwrap();
    }
    let mut log = SessionLog::open(directory.path(), "s", limit(10));
    assert!(log.append(&entry("s", 8)).is_written());
    assert_eq!(files(directory.path()), names);
    assert_eq!(numbers(&directory.path().join("s.log")), [7, 8]);
}

#[test]
fn log_07_a_session_is_no_prefix_of_another() {
    let directory = tempfile::tempdir().unwrap();
    let others = [
        "ses_1%2E1.log",
        "ses_10.1.log",
        "ses_10.2.log",
        "ses_10.log",
        "ses_1x.log",
        "ses_1.1.log.bak",
    ];
    for name in others {
        fs::write(directory.path().join(name), name).unwrap();
    }
    let mut log = SessionLog::open(directory.path(), "ses_1", limit(1));
    for number in 0..9 {
        assert!(log.append(&entry("ses_1", number)).is_written());
    }
    for name in others {
        assert_eq!(
            fs::read_to_string(directory.path().join(name)).unwrap(),
            name
        );
    }
    assert_eq!(numbers(&directory.path().join("ses_1.log")), [8]);
    assert_eq!(numbers(&directory.path().join("ses_1.3.log")), [5]);
}

#[test]
fn log_09_a_line_longer_than_the_limit_has_a_file_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let long = Entry::new(
        0,
        &"s".repeat(400),
        "t",
        entry("s", 0).fingerprint(),
        Outcome::Ok,
        entry("s", 2).duration(),
    );
    assert!(line_len(&long) > limit(2));
    let mut log = SessionLog::open(directory.path(), "s", limit(2));
    for entry in [entry("s", 1), long, entry("s", 3), entry("s", 4)] {
        assert!(log.append(&entry).is_written());
    }
    assert_eq!(numbers(&directory.path().join("s.2.log")), [1]);
    assert_eq!(numbers(&directory.path().join("s.1.log")), [2]);
    assert_eq!(numbers(&directory.path().join("s.log")), [3, 4]);
}

#[test]
fn a_limit_of_nothing_is_a_file_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = SessionLog::open(directory.path(), "s", 0).kept(0);
    for number in 0..3 {
        assert!(log.append(&entry("s", number)).is_written());
    }
    assert_eq!(files(directory.path()), ["s.1.log", "s.log"]);
    assert_eq!(numbers(&directory.path().join("s.1.log")), [1]);
    assert_eq!(numbers(&directory.path().join("s.log")), [2]);
}

#[test]
fn a_gap_is_filled_before_anything_is_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = SessionLog::open(directory.path(), "s", limit(1));
    for number in 0..4 {
        log.append(&entry("s", number));
    }
    fs::remove_file(directory.path().join("s.1.log")).unwrap();
    assert!(log.append(&entry("s", 4)).is_rotated());
    let read = |name| numbers(&directory.path().join(name));
    assert_eq!(
        [
            read("s.3.log"),
            read("s.2.log"),
            read("s.1.log"),
            read("s.log")
        ],
        [[0], [1], [3], [4]]
    );
}

#[test]
fn a_clock_that_goes_back_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = SessionLog::open(directory.path(), "s", limit(2));
    let short = entry("s", 0).fingerprint();
    for (at, number) in [(5_000, 1), (-9_000, 2), (0, 3)] {
        let entry = Entry::new(
            at,
            "s",
            "read",
            short,
            Outcome::Ok,
            entry("s", number).duration(),
        );
        assert!(log.append(&entry).is_written());
    }
    assert_eq!(numbers(&directory.path().join("s.1.log")), [1, 2]);
    assert_eq!(numbers(&directory.path().join("s.log")), [3]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against a list of lists, with lines of all lengths, restarts and any limit.
    #[test]
    fn files_are_what_a_model_says(
        limit in 50..600u64,
        kept in 1..5u32,
        calls in prop::collection::vec((0..120usize, any::<bool>()), 0..40),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut model: Vec<String> = vec![String::new()];
        let mut log = SessionLog::open(directory.path(), "s", limit).kept(kept);
        for (length, restart) in calls {
            if restart {
                log = SessionLog::open(directory.path(), "s", limit).kept(kept);
            }
            let short = entry("s", 0).fingerprint();
            let entry = Entry::new(0, "s", &"t".repeat(length), short, Outcome::Ok, entry("s", 1).duration());
            let line = format!("{entry}\n");
            if !model[0].is_empty() && (model[0].len() + line.len()) as u64 > limit {
                model.insert(0, String::new());
                model.truncate(kept as usize + 1);
            }
            model[0].push_str(&line);
            prop_assert!(log.append(&entry).is_written());
        }
        for (age, expected) in model.iter().enumerate() {
            let name = if age == 0 { "s.log".to_owned() } else { format!("s.{age}.log") };
            let found = fs::read_to_string(directory.path().join(name)).unwrap_or_default();
            prop_assert_eq!(&found, expected);
        }
        prop_assert!(files(directory.path()).len() <= model.len());
    }
}
