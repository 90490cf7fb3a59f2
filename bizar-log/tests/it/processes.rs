//! Several processes on one session, and processes that die.

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use bizar_log::{Entry, ParseError, Reader, SessionLog, Warning};

use crate::{entry, number_of};

/// Runs this test binary again as a process that does nothing but append.
pub(crate) struct Writer<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) rotation_bytes: u64,
    pub(crate) kept: u32,
}

impl Writer<'_> {
    pub(crate) fn arguments() -> [&'static str; 3] {
        [
            "--exact",
            "processes::a_writer_appends_what_it_is_told",
            "--nocapture",
        ]
    }

    pub(crate) fn configure<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let Self {
            directory,
            first,
            count,
            rotation_bytes,
            kept,
        } = self;
        let task = format!(
            "{first} {count} {rotation_bytes} {kept} {}",
            directory.display()
        );
        command
            .args(Self::arguments())
            .env(TASK, task)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
    }

    fn spawn(&self) -> Child {
        self.configure(&mut Command::new(env::current_exe().unwrap()))
            .spawn()
            .unwrap()
    }
}

/// What a writer says: the numbers of the lines it was told are written, and those it was told are not.
pub(crate) fn reports(child: &mut Child) -> (Vec<u64>, Vec<u64>, Vec<String>) {
    let (mut written, mut lost, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        match line.unwrap().split_once(": ") {
            Some(("written", number)) => written.push(number.parse().unwrap()),
            Some(("lost", number)) => lost.push(number.parse().unwrap()),
            Some(("warning", text)) => warnings.push(text.to_owned()),
            _ => {}
        }
    }
    (written, lost, warnings)
}

#[test]
fn a_writer_appends_what_it_is_told() {
    let own = tempfile::tempdir().unwrap();
    let task = env::var(TASK).unwrap_or_else(|_| format!("0 10 300 9 {}", own.path().display()));
    let fields: Vec<&str> = task.splitn(5, ' ').collect();
    let number = |at: usize| fields[at].parse::<u64>().unwrap();
    let kept = u32::try_from(number(3)).unwrap();
    let mut log = SessionLog::open(fields[4], "s", number(2)).kept(kept);
    let mut written = 0;
    for at in number(0)..number(0) + number(1) {
        let appended = log.append(&entry("s", at));
        written += u64::from(appended.is_written());
        if let Some(warning) = appended.warning() {
            println!("\nwarning: {warning}");
        }
        println!(
            "{}: {at}",
            if appended.is_written() {
                "written"
            } else {
                "lost"
            }
        );
    }
    assert!(written == number(1) || env::var(TASK).is_ok());
}

#[test]
fn log_08_four_processes_lose_and_tear_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut writers: Vec<Child> = (0..4)
        .map(|writer| {
            let first = writer * 20_000;
            let (rotation_bytes, kept) = (256 << 10, 1_000);
            Writer {
                directory: directory.path(),
                first,
                count: 20_000,
                rotation_bytes,
                kept,
            }
            .spawn()
        })
        .collect();
    thread::scope(|scope| {
        for child in &mut writers {
            scope.spawn(|| {
                let (written, lost, _) = reports(child);
                assert_eq!((written.len(), lost.len()), (20_000, 0));
                assert!(child.wait().unwrap().success());
            });
        }
    });
    let found: Vec<u64> = read(directory.path())
        .iter()
        .map(|line| number_of(&line.as_ref().unwrap().to_string()))
        .collect();
    assert_eq!(found.len(), 80_000);
    assert_eq!(
        found.into_iter().collect::<BTreeSet<_>>(),
        (0..80_000).collect()
    );
    assert!(crate::files(directory.path()).len() > 20);
}

#[test]
fn four_processes_delete_only_the_oldest() {
    let directory = tempfile::tempdir().unwrap();
    let writers: Vec<Child> = (0..4)
        .map(|writer| {
            let (first, count) = (writer * 1_000_000, 4_000);
            Writer {
                directory: directory.path(),
                first,
                count,
                rotation_bytes: 32 << 10,
                kept: 3,
            }
            .spawn()
        })
        .collect();
    for mut child in writers {
        assert_eq!(reports(&mut child).0.len(), 4_000);
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(
        crate::files(directory.path()),
        ["s.1.log", "s.2.log", "s.3.log", "s.log"]
    );
    let lines = read(directory.path());
    let numbers: Vec<u64> = lines
        .iter()
        .map(|line| number_of(&line.as_ref().unwrap().to_string()))
        .collect();
    // What is left of each writer is the end of what it wrote, without a hole.
    for writer in 0..4 {
        let mut left: Vec<u64> = numbers
            .iter()
            .copied()
            .filter(|number| number / 1_000_000 == writer)
            .collect();
        left.sort_unstable();
        let end = writer * 1_000_000 + 4_000;
        assert_eq!(left, (end - left.len() as u64..end).collect::<Vec<_>>());
    }
    assert!(numbers.len() > 800);
}

#[test]
fn what_was_acknowledged_survives_sigkill() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeSet::new();
    for run in 0..10 {
        let first = run * 10_000_000;
        let (count, rotation_bytes, kept) = (9_000_000, 4_000, 100_000);
        let mut child = Writer {
            directory: directory.path(),
            first,
            count,
            rotation_bytes,
            kept,
        }
        .spawn();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        while seen < 50 + 37 * run {
            if let Some(number) = lines.next().unwrap().unwrap().strip_prefix("written: ") {
                acknowledged.insert(number.parse::<u64>().unwrap());
                seen += 1;
            }
        }
        child.kill().unwrap();
        // What it said before it died, unless it died while saying it.
        for line in lines.map_while(Result::ok) {
            let number = line
                .strip_prefix("written: ")
                .and_then(|number| number.parse().ok());
            acknowledged.extend(number.filter(|number: &u64| *number >= first));
        }
        assert!(!child.wait().unwrap().success());
    }
    let found: BTreeSet<u64> = read(directory.path())
        .iter()
        .flatten()
        .map(|entry| number_of(&entry.to_string()))
        .collect();
    let missing: Vec<_> = acknowledged.difference(&found).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_lock_that_is_never_released_costs_little_and_no_line() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = SessionLog::open(directory.path(), "s", 1);
    assert!(log.append(&entry("s", 0)).is_written());

    let holder = std::fs::File::open(directory.path().join("s.log")).unwrap();
    holder.lock().unwrap();
    let start = std::time::Instant::now();
    let appended = log.append(&entry("s", 1));
    assert!(start.elapsed() >= SessionLog::PATIENCE);
    assert!(appended.is_written() && !appended.is_rotated());
    assert_eq!(appended.warning(), Some(&Warning::LockTimedOut));

    let start = std::time::Instant::now();
    for number in 2..42 {
        let appended = log.append(&entry("s", number));
        assert!(appended.is_written() && appended.warning().is_none());
    }
    assert!(start.elapsed() < SessionLog::PATIENCE * 40);

    holder.unlock().unwrap();
    assert!(log.append(&entry("s", 42)).is_rotated());
    assert_eq!(
        crate::numbers(&directory.path().join("s.1.log")),
        (0..42).collect::<Vec<_>>()
    );
}

#[test]
fn two_logs_of_one_session_in_one_process() {
    let directory = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for thread in 0..2 {
            let path = directory.path();
            scope.spawn(move || {
                let mut log = SessionLog::open(path, "s", 5_000).kept(1_000);
                for number in 0..1_000 {
                    assert!(
                        log.append(&entry("s", thread * 1_000 + number))
                            .is_written()
                    );
                }
            });
        }
    });
    let found: BTreeSet<u64> = read(directory.path())
        .iter()
        .flatten()
        .map(|entry| number_of(&entry.to_string()))
        .collect();
    assert_eq!(found, (0..2_000).collect());
}

fn read(directory: &Path) -> Vec<Result<Entry, ParseError>> {
    Reader::new(directory, "s").read().unwrap()
}

/// Given to the child alone: first number, count, rotation bytes, kept files, directory.
const TASK: &str = "BIZAR_LOG_TEST_WRITER";
