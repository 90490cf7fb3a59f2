//! Logs are read from their end, and followed across rotations.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use bizar_log::{Outcome, SessionLog};
use bizar_top::{
    model::Model,
    source::{News, Place, Source},
};

use crate::rig::{NOW, line};

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// The tools of the lines that are new.
fn tools(source: &mut Source, name: &str) -> Vec<String> {
    match source.look(Place::Logs, name) {
        Some(News::Lines { entries, .. }) => entries
            .iter()
            .map(|entry| entry.tool().to_owned())
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_line_is_seen_once_and_a_half_line_waits() {
    let logs = tempfile::tempdir().unwrap();
    let path = logs.path().join("s.log");
    let mut source = Source::new(Some(logs.path().to_owned()), None);
    append(&path, &line(NOW, "s", "a", Outcome::Ok));
    assert_eq!(tools(&mut source, "s"), ["a"]);
    assert_eq!(tools(&mut source, "s"), Vec::<String>::new());
    let b = line(NOW, "s", "b", Outcome::Ok);
    append(&path, &b[..20]);
    assert_eq!(tools(&mut source, "s"), Vec::<String>::new());
    append(&path, &b[20..]);
    append(&path, &line(NOW, "s", "c", Outcome::Error));
    assert_eq!(tools(&mut source, "s"), ["b", "c"]);
    fs::remove_file(&path).unwrap();
    assert!(matches!(
        source.look(Place::Logs, "s"),
        Some(News::Gone { .. })
    ));
    append(&path, &line(NOW, "s", "d", Outcome::Ok));
    assert_eq!(tools(&mut source, "s"), ["d"]);
}

#[test]
fn no_line_is_lost_when_the_real_log_rotates() {
    let logs = tempfile::tempdir().unwrap();
    let mut log = SessionLog::open(logs.path(), "s", 1024);
    let mut source = Source::new(Some(logs.path().to_owned()), None);
    let mut seen = Vec::new();
    for number in 0..200 {
        let text = line(NOW + number, "s", &format!("tool{number}"), Outcome::Ok);
        let entry = text.trim_end().parse().unwrap();
        assert!(log.append(&entry).is_written());
        if number % 3 == 0 {
            seen.extend(tools(&mut source, "s"));
        }
    }
    seen.extend(tools(&mut source, "s"));
    assert!(logs.path().join("s.3.log").exists(), "it has rotated");
    let all: Vec<String> = (0..200).map(|number| format!("tool{number}")).collect();
    assert_eq!(seen, all);
}

#[test]
fn of_a_long_log_only_the_end_is_read() {
    let logs = tempfile::tempdir().unwrap();
    let path = logs.path().join("s.log");
    let text: String = (0..30_000)
        .map(|number| line(NOW + number, "s", &format!("t{number}"), Outcome::Ok))
        .collect();
    assert!(text.len() > 2_000_000);
    append(&path, &text);
    let mut source = Source::new(Some(logs.path().to_owned()), None);
    let Some(News::Lines {
        entries, bad_lines, ..
    }) = source.look(Place::Logs, "s")
    else {
        panic!("no lines");
    };
    assert_eq!(bad_lines, 0, "the line that was cut is not counted");
    assert!((100..1000).contains(&entries.len()), "{}", entries.len());
    assert_eq!(entries.last().unwrap().tool(), "t29999");
    // So far behind, only the end is read again.
    append(&path, &text);
    let Some(News::Lines {
        entries, bad_lines, ..
    }) = source.look(Place::Logs, "s")
    else {
        panic!("no lines");
    };
    assert!(bad_lines == 0 && entries.len() < 1000);
}

#[test]
fn a_log_without_line_feeds_does_not_fill_the_memory() {
    let logs = tempfile::tempdir().unwrap();
    let path = logs.path().join("s.log");
    let mut source = Source::new(Some(logs.path().to_owned()), None);
    let mut model = Model::default();
    for _ in 0..5 {
        append(&path, &"\0".repeat(3_000_000));
        model.tell(source.look(Place::Logs, "s"));
    }
    append(&path, "\n");
    append(&path, &line(NOW, "s", "read", Outcome::Ok));
    model.tell(source.look(Place::Logs, "s"));
    let session = model.session("s").unwrap();
    assert_eq!(session.tool(), Some("read"));
    assert!(
        model.notes()[0].contains("lines are no entries"),
        "{:?}",
        model.notes()
    );
}

#[test]
fn a_rate_is_counted_over_the_last_minute() {
    let logs = tempfile::tempdir().unwrap();
    let path = logs.path().join("s.log");
    for ago in [200_000, 60_001, 60_000, 59_999, 30_000, 1_000, 0] {
        append(&path, &line(NOW - ago, "s", "read", Outcome::Ok));
    }
    let mut model = Model::default();
    model.tell(Source::new(Some(logs.path().to_owned()), None).scan());
    let session = model.session("s").unwrap();
    assert_eq!(session.calls_a_minute(NOW), 4);
    assert_eq!(session.calls_a_minute(NOW + 40_000), 2);
    assert_eq!(session.calls_a_minute(NOW + 60_000), 0);
    assert_eq!(session.started_at(), Some(NOW - 200_000));
    assert_eq!(session.last_activity_at(), Some(NOW));
}
