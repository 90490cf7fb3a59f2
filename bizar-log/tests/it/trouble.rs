//! Nothing that is wrong with the disk costs a call, and it is said once.

use std::{fs, io};

use bizar_log::{SessionLog, Warning};

use crate::{entry, files, numbers};

#[test]
fn log_04_a_deleted_directory_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("a/b");
    for rotation_bytes in [100, 250, 1 << 20] {
        let mut log = SessionLog::open(&inner, "s", rotation_bytes);
        for number in 0..6 {
            if number % 2 == 0 {
                let _ = fs::remove_dir_all(directory.path().join("a"));
            }
            let appended = log.append(&entry("s", number));
            assert!(appended.is_written() && appended.warning().is_none());
        }
        assert_eq!(*numbers(&inner.join("s.log")).last().unwrap(), 5);
    }
}

#[test]
fn a_deleted_live_file_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let live = directory.path().join("s.log");
    let mut log = SessionLog::open(directory.path(), "s", 1 << 20);
    for number in 0..3 {
        assert!(log.append(&entry("s", number)).is_written());
        assert_eq!(numbers(&live), [number]);
        fs::remove_file(&live).unwrap();
    }
}

#[test]
fn a_live_file_that_was_renamed_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let [live, moved] = ["s.log", "moved"].map(|name| directory.path().join(name));
    // Near the limit at once, far from it soon, and never with a loss.
    for rotation_bytes in [1_000, 1 << 40] {
        let mut log = SessionLog::open(directory.path(), "s", rotation_bytes);
        assert!(log.append(&entry("s", 0)).is_written());
        fs::rename(&live, &moved).unwrap();
        let mut number = 0;
        while !live.exists() {
            number += 1;
            assert!(log.append(&entry("s", number)).is_written());
        }
        assert_eq!(numbers(&live), [number]);
        assert_eq!(numbers(&moved), (0..number).collect::<Vec<_>>());
        fs::remove_file(&live).unwrap();
    }
}

#[test]
fn a_torn_line_spoils_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let live = directory.path().join("s.log");
    let mut log = SessionLog::open(directory.path(), "s", 1 << 20);
    assert!(log.append(&entry("s", 0)).is_written());
    let torn = format!("{}\n2026-06-17T14:3", entry("s", 0));
    fs::write(&live, &torn).unwrap();
    assert!(log.append(&entry("s", 1)).is_written());
    assert!(log.append(&entry("s", 2)).is_written());
    let expected = format!("{torn}\n{}\n{}\n", entry("s", 1), entry("s", 2));
    assert_eq!(fs::read_to_string(&live).unwrap(), expected);
}

#[test]
fn a_file_in_place_of_the_directory_is_said_once() {
    let directory = tempfile::tempdir().unwrap();
    let blocked = directory.path().join("file");
    fs::write(&blocked, "kept").unwrap();
    for path in [blocked.clone(), blocked.join("logs")] {
        let mut log = SessionLog::open(path, "Session", 100);
        let first = log.append(&entry("Session", 0));
        assert!(!first.is_written());
        assert!(
            matches!(first.warning(), Some(Warning::NotWritten(_))),
            "{first:?}"
        );
        let second = log.append(&entry("Session", 1));
        assert!(!second.is_written() && second.warning().is_none());
    }
    assert_eq!(fs::read_to_string(&blocked).unwrap(), "kept");
    // It recovers when the cause is gone.
    let mut log = SessionLog::open(&blocked, "s", 100);
    assert!(!log.append(&entry("s", 0)).is_written());
    fs::remove_file(&blocked).unwrap();
    assert!(log.append(&entry("s", 1)).is_written());
}

#[test]
fn a_directory_in_place_of_the_log_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("s.log")).unwrap();
    let mut log = SessionLog::open(directory.path(), "s", 100);
    let appended = log.append(&entry("s", 0));
    assert_eq!(appended.warning(), Some(&Warning::NotAFile));
    assert!(!appended.is_written());
    assert_eq!(files(directory.path()), ["s.log"]);
}

#[test]
fn a_failed_rename_costs_no_line_and_overwrites_nothing() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("s.3.log")).unwrap();
    let mut log = SessionLog::open(directory.path(), "s", 1);
    let appended: Vec<_> = (0..6)
        .map(|number| log.append(&entry("s", number)))
        .collect();
    assert!(appended.iter().all(bizar_log::Appended::is_written));
    let warned: Vec<_> = appended
        .iter()
        .map(|appended| appended.warning().is_some())
        .collect();
    assert_eq!(warned, [false, false, false, true, false, false]);
    assert!(matches!(
        appended[3].warning(),
        Some(Warning::NotRotated(_))
    ));
    let read = |name| numbers(&directory.path().join(name));
    assert_eq!(
        [read("s.2.log"), read("s.1.log"), read("s.log")],
        [vec![0], vec![1], vec![2, 3, 4, 5]]
    );
}

#[test]
fn warnings_name_nothing_of_the_session() {
    let texts = [
        Warning::LockTimedOut,
        Warning::NotAFile,
        Warning::NotRotated(io::ErrorKind::IsADirectory),
        Warning::NotWritten(io::ErrorKind::StorageFull),
    ]
    .map(|warning| warning.to_string());
    assert_eq!(
        texts,
        [
            "log is locked by another process, writing without rotation",
            "log line dropped: something that is no regular file is in its place",
            "log not rotated, it will outgrow its limit: is a directory",
            "log line dropped: no storage space",
        ]
    );
}

#[cfg(unix)]
mod unix {
    use std::{
        env, fs,
        os::unix::{
            fs::{MetadataExt as _, PermissionsExt as _, symlink},
            process::CommandExt as _,
        },
        path::Path,
        process::Command,
    };

    use bizar_log::{SessionLog, Warning};

    use crate::{
        entry, files, numbers,
        processes::{Writer, reports},
    };

    #[test]
    fn files_and_directories_are_private() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("a/b");
        let mut log = SessionLog::open(&inner, "s", 1);
        for number in 0..3 {
            log.append(&entry("s", number));
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            [mode(&directory.path().join("a")), mode(&inner)],
            [0o700; 2]
        );
        assert_eq!(
            ["s.log", "s.1.log", "s.2.log"].map(|name| mode(&inner.join(name))),
            [0o600; 3]
        );
    }

    #[test]
    fn a_link_in_place_of_the_log_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let [logs, outside, absent] =
            ["logs", "outside", "absent"].map(|name| directory.path().join(name));
        fs::create_dir(&logs).unwrap();
        fs::write(&outside, "kept").unwrap();
        for target in [&outside, &absent] {
            symlink(target, logs.join("s.log")).unwrap();
            let appended = SessionLog::open(&logs, "s", 100).append(&entry("s", 0));
            assert_eq!(appended.warning(), Some(&Warning::NotAFile));
            fs::remove_file(logs.join("s.log")).unwrap();
        }
        assert_eq!(files(directory.path()), ["logs", "outside"]);
        assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
    }

    #[test]
    fn a_link_that_comes_later_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let [logs, outside] = ["logs", "outside"].map(|name| directory.path().join(name));
        fs::write(&outside, "kept").unwrap();
        let mut log = SessionLog::open(&logs, "s", 1 << 20);
        log.append(&entry("s", 0));
        fs::remove_file(logs.join("s.log")).unwrap();
        symlink(&outside, logs.join("s.log")).unwrap();
        assert_eq!(
            log.append(&entry("s", 1)).warning(),
            Some(&Warning::NotAFile)
        );

        // In place of a rotated file: moved and replaced as a link, its target untouched.
        let mut log = SessionLog::open(&logs, "t", 1);
        symlink(&outside, logs.join("t.1.log")).unwrap();
        assert!((0..9).all(|number| log.append(&entry("t", number)).is_written()));
        assert_eq!(numbers(&logs.join("t.3.log")), [5]);
        assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
    }

    #[test]
    fn a_full_disk_leaves_no_part_of_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let writer = Writer {
            directory: directory.path(),
            first: 0,
            count: 30,
            rotation_bytes: 1 << 20,
            kept: 3,
        };
        let mut shell = Command::new("sh");
        // A limit of the shell's on the size of files: the last write is cut short, later ones fail.
        shell
            .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
            .arg(env::current_exe().unwrap());
        let mut child = writer.configure(&mut shell).spawn().unwrap();
        let (written, lost, warnings) = reports(&mut child);
        assert!(child.wait().unwrap().success());
        assert!((2..15).contains(&written.len()), "{written:?}");
        assert_eq!(written.len() + lost.len(), 30);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(numbers(&directory.path().join("s.log")), written);

        // Room again: the log goes on.
        assert!(
            SessionLog::open(directory.path(), "s", 1 << 20)
                .append(&entry("s", 99))
                .is_written()
        );
        assert_eq!(
            numbers(&directory.path().join("s.log")).len(),
            written.len() + 1
        );
    }

    #[test]
    fn what_may_not_be_written_is_said_once() {
        let directory = tempfile::tempdir().unwrap();
        let logs = directory.path().join("logs");
        fs::create_dir(&logs).unwrap();
        let program = directory.path().join("program");
        fs::copy(env::current_exe().unwrap(), &program).unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();

        // First a directory that takes no files, then a file that takes no lines.
        for mode in [0o555, 0o755] {
            let is_file = mode == 0o755;
            if is_file {
                fs::write(logs.join("s.log"), "").unwrap();
                fs::set_permissions(logs.join("s.log"), fs::Permissions::from_mode(0o444)).unwrap();
            }
            fs::set_permissions(&logs, fs::Permissions::from_mode(mode)).unwrap();
            let mut command = Command::new(&program);
            // Permissions do not hold for root.
            if fs::metadata(&logs).unwrap().uid() == 0 {
                command.uid(65534).gid(65534);
            }
            let writer = Writer {
                directory: &logs,
                first: 0,
                count: 3,
                rotation_bytes: 100,
                kept: 3,
            };
            let mut child = writer.configure(&mut command).spawn().unwrap();
            let (written, lost, warnings) = reports(&mut child);
            assert!(child.wait().unwrap().success());
            assert_eq!((written, lost), (vec![], vec![0, 1, 2]));
            assert_eq!(warnings, ["log line dropped: permission denied"]);
            assert_eq!(files(&logs).len(), usize::from(is_file));
        }
    }
}
