//! What a viewer sees.

use std::{fs, io::Write as _};

use bizar_log::{Reader, SessionLog, list};

use crate::{entry, line_len, number_of};

#[test]
fn logs_are_listed_by_session() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(list(&directory.path().join("absent")).unwrap(), []);
    for (session, lines) in [("a", 1), ("b.1", 5)] {
        let mut log = SessionLog::open(directory.path(), session, 1);
        for number in 0..lines {
            log.append(&entry(session, number));
        }
    }
    for other in [
        "a.json",
        "a.x.log",
        "a.0.log",
        "a.01.log",
        "a.1.2.log",
        ".log",
        "log",
        "a.+1.log",
    ] {
        fs::write(directory.path().join(other), "x").unwrap();
    }
    fs::create_dir(directory.path().join("c.log")).unwrap();
    let listed: Vec<_> = list(directory.path())
        .unwrap()
        .into_iter()
        .map(|listed| (listed.name, listed.bytes, listed.oldest))
        .collect();
    let [a, b] = ["a", "b.1"].map(|session| line_len(&entry(session, 0)));
    assert_eq!(
        listed,
        [("a".to_owned(), a, 0), ("b%2E1".to_owned(), 4 * b, 3)]
    );
}

#[test]
fn entries_come_in_order_and_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut reader = Reader::new(directory.path(), "s");
    assert_eq!(read(&mut reader), []);
    let mut log = SessionLog::open(directory.path(), "s", 2 * line_len(&entry("s", 0)));
    for number in 0..5 {
        log.append(&entry("s", number));
    }
    assert_eq!(read(&mut reader), [0, 1, 2, 3, 4]);
    assert_eq!(read(&mut reader), []);
    // Two rotations between two looks.
    for number in 5..9 {
        log.append(&entry("s", number));
    }
    assert_eq!(read(&mut reader), [5, 6, 7, 8]);
    // More than is kept: the oldest are missing, nothing comes twice.
    for number in 0..20 {
        log.append(&entry("s", number % 10));
    }
    assert_eq!(read(&mut reader), [3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(
        read(&mut Reader::new(directory.path(), "s")),
        [3, 4, 5, 6, 7, 8, 9]
    );
}

#[test]
fn an_unfinished_line_waits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.log");
    let whole = entry("s", 1).to_string();
    let mut file = fs::File::create(&path).unwrap();
    let mut reader = Reader::new(directory.path(), "s");
    write!(file, "{whole}\n{}", &whole[..40]).unwrap();
    assert_eq!(read(&mut reader), [1]);
    assert_eq!(read(&mut reader), []);
    writeln!(file, "{}", &whole[40..]).unwrap();
    assert_eq!(read(&mut reader), [1]);
}

#[test]
fn other_lines_are_reported_in_their_place_and_empty_ones_are_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let line = entry("s", 1).to_string();
    let mut bytes = format!("{line}\n\nnonsense\n").into_bytes();
    bytes.extend(b"\xff\xfe\n");
    bytes.extend(format!("{line}\n").bytes());
    fs::write(directory.path().join("s.log"), bytes).unwrap();
    let found = Reader::new(directory.path(), "s").read().unwrap();
    assert_eq!(
        found.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [true, false, false, true]
    );
}

#[test]
fn a_deleted_log_starts_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = SessionLog::open(directory.path(), "s", 1 << 20);
    let mut reader = Reader::new(directory.path(), "s");
    for number in 0..3 {
        log.append(&entry("s", number));
        assert_eq!(read(&mut reader), [number]);
        fs::remove_file(directory.path().join("s.log")).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn links_are_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let outside = directory.path().join("outside");
    fs::write(&outside, format!("{}\n", entry("s", 1))).unwrap();
    std::os::unix::fs::symlink(&outside, directory.path().join("s.log")).unwrap();
    assert_eq!(list(directory.path()).unwrap(), []);
    assert_eq!(read(&mut Reader::new(directory.path(), "s")), []);
    assert_eq!(read(&mut Reader::new(directory.path(), "../outside")), []);
}

fn read(reader: &mut Reader) -> Vec<u64> {
    reader
        .read()
        .unwrap()
        .iter()
        .map(|entry| number_of(&entry.as_ref().unwrap().to_string()))
        .collect()
}
