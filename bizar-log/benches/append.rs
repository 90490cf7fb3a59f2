//! Lines a second of one process, beside opening, locking, writing and closing for every line.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a bench prints, and stops when it cannot measure"
)]

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use bizar_log::{DEFAULT_ROTATION_BYTES, Entry, Outcome, SessionLog, ShortFingerprint};

fn main() {
    let root = tempfile::tempdir().expect("a temporary directory");
    // As deep as where logs are kept: opening a file costs more the longer its path is.
    let directory = root.path().join(".cache/bizarharness/logs");
    fs::create_dir_all(&directory).expect("a directory");
    let mut ours = Vec::new();
    let mut plain = Vec::new();
    let mut log = SessionLog::open(&directory, "ours", DEFAULT_ROTATION_BYTES);
    for _ in 0..ROUNDS {
        ours.push(session_log(&mut log));
        plain.push(open_lock_append_close(&directory.join("peer.log")));
    }
    let mut format = Vec::new();
    for _ in 0..ROUNDS {
        format.push(line_alone());
    }
    report(("the line alone", format));
    let [ours, plain] = [
        ("SessionLog::append", ours),
        ("open, lock, append, close", plain),
    ]
    .map(report);
    println!(
        "ratio of the best: {:.2} (at least 2 is wanted)",
        ours / plain
    );
}

fn session_log(log: &mut SessionLog) -> Duration {
    let start = Instant::now();
    for number in 0..LINES {
        assert!(log.append(&entry("ours", number)).is_written());
    }
    start.elapsed()
}

/// The least that is safe for several processes, without rotation.
fn open_lock_append_close(path: &Path) -> Duration {
    let start = Instant::now();
    for number in 0..LINES {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .expect("opens");
        file.lock().expect("locks");
        file.write_all(format!("{}\n", entry("peer", number)).as_bytes())
            .expect("writes");
    }
    start.elapsed()
}

fn line_alone() -> Duration {
    let start = Instant::now();
    for number in 0..LINES {
        std::hint::black_box(entry("ours", number).to_string());
    }
    start.elapsed()
}

fn entry(session: &str, number: u64) -> Entry {
    let short = ShortFingerprint::from_bytes([0xab, 0x12, 0xcd, 0x34, 0xef, 0x56]);
    Entry::new(
        1_781_706_601_123,
        session,
        "read",
        short,
        Outcome::Ok,
        Duration::from_millis(number),
    )
}

fn report((name, mut times): (&str, Vec<Duration>)) -> f64 {
    times.sort();
    let per_second = |time: Duration| LINES as f64 / time.as_secs_f64();
    let best = per_second(times[0]);
    println!(
        "{name:<28} best {best:>9.0} lines/s, median {:>9.0}",
        per_second(times[times.len() / 2])
    );
    best
}

const LINES: u64 = 100;
const ROUNDS: usize = 2_001;
