//! Lines a second of one process, and what is left of the lines of four, beside other rotating logs.

use std::{
    collections::BTreeSet,
    env, fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use bizar_log::{Entry, Outcome, SessionLog, ShortFingerprint};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [peer, directory, writer] => write(
            peer,
            Path::new(directory),
            writer.parse().expect("a number"),
        ),
        _ => compare(),
    }
}

fn compare() {
    println!(
        "{:<18} {:>12} {:>12} {:>8} {:>8} {:>8}",
        "", "best lines/s", "median", "ratio", "lost", "torn"
    );
    let rates: Vec<(f64, f64)> = PEERS.map(one_process).to_vec();
    for (peer, (best, median)) in PEERS.iter().zip(&rates) {
        let (lost, torn, failed) = four_processes(peer);
        let ratio = best / rates[0].0;
        let failed = if failed > 0 {
            format!("   {failed} of 4 processes failed")
        } else {
            String::new()
        };
        println!("{peer:<18} {best:>12.0} {median:>12.0} {ratio:>8.2} {lost:>8} {torn:>8}{failed}");
    }
}

/// Best and median lines a second, in files of 10 MiB.
fn one_process(peer: &str) -> (f64, f64) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = open(peer, directory.path(), 10 << 20, 3);
    let mut rates: Vec<f64> = (0..1_000)
        .map(|_| {
            let start = Instant::now();
            (0..100).for_each(|number| log(&entry(number)));
            100.0 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    (rates[rates.len() - 1], rates[rates.len() / 2])
}

/// Lines that are on no disk, lines that are not whole, and processes that gave up.
fn four_processes(peer: &str) -> (u64, u64, usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let children: Vec<_> = (0..4)
        .map(|writer| {
            Command::new(env::current_exe().expect("this program"))
                .args([
                    peer,
                    directory.path().to_str().expect("a plain path"),
                    &writer.to_string(),
                ])
                .stderr(Stdio::null())
                .spawn()
                .expect("a process")
        })
        .collect();
    let failed = children
        .into_iter()
        .filter_map(|mut child| child.wait().ok())
        .filter(|status| !status.success());
    let failed = failed.count();

    let (mut found, mut torn) = (BTreeSet::new(), 0);
    for file in fs::read_dir(directory.path()).expect("a directory") {
        for line in
            String::from_utf8_lossy(&fs::read(file.expect("a file").path()).expect("a file"))
                .lines()
                .filter(|line| !line.is_empty())
        {
            match line.parse::<Entry>() {
                Ok(entry) => _ = found.insert(entry.duration()),
                Err(_) => torn += 1,
            }
        }
    }
    (4 * LINES - found.len() as u64, torn, failed)
}

fn write(peer: &str, directory: &Path, writer: u64) {
    let mut log = open(peer, directory, 256 << 10, 1_000);
    (writer * LINES..(writer + 1) * LINES).for_each(|number| log(&entry(number)));
}

/// A peer as its documentation has it: unbuffered where that can be chosen, appending to what is there.
fn open(peer: &str, directory: &Path, limit: u64, kept: u32) -> Box<dyn FnMut(&Entry)> {
    let path = directory.join("s.log");
    let files = kept as usize;
    let mut sink: Box<dyn Write> = match peer {
        "bizar-log" => {
            let mut log = SessionLog::open(directory, "s", limit).kept(kept);
            return Box::new(move |entry| assert!(log.append(entry).is_written()));
        }
        "file-rotate" => {
            use file_rotate::{
                ContentLimit, FileRotate, compression::Compression, suffix::AppendCount,
            };
            let limit = ContentLimit::BytesSurpassed(limit as usize);
            Box::new(FileRotate::new(
                path,
                AppendCount::new(files),
                limit,
                Compression::None,
                None,
            ))
        }
        "logroller" => {
            use logroller::{LogRollerBuilder, Rotation, RotationSize};
            let builder = LogRollerBuilder::new(directory, Path::new("s.log"));
            let size = Rotation::SizeBased(RotationSize::Bytes(limit));
            Box::new(
                builder
                    .rotation(size)
                    .max_keep_files(u64::from(kept))
                    .build()
                    .expect("a log"),
            )
        }
        "rolling-file" => {
            use rolling_file::{BasicRollingFileAppender, RollingConditionBasic};
            let size = RollingConditionBasic::new().max_size(limit);
            Box::new(BasicRollingFileAppender::new(path, size, files).expect("a log"))
        }
        "flexi_logger" => {
            use flexi_logger::{
                Cleanup, Criterion, FileSpec, Naming, WriteMode, writers::FileLogWriter,
            };
            let builder =
                FileLogWriter::builder(FileSpec::default().directory(directory).basename("s"));
            let builder = builder.append().write_mode(WriteMode::Direct);
            let builder = builder.rotate(
                Criterion::Size(limit),
                Naming::Numbers,
                Cleanup::KeepLogFiles(files),
            );
            let (writer, handle) = builder.try_build_with_handle().expect("a log");
            std::mem::forget(handle);
            Box::new(writer)
        }
        // Rotates by time only.
        "tracing-appender" => Box::new(tracing_appender::rolling::never(directory, "s.log")),
        _ => unreachable!("no such peer"),
    };
    Box::new(move |entry| {
        // A failed write is a lost line, which is counted in the end.
        let _ = sink.write_all(format!("{entry}\n").as_bytes());
    })
}

fn entry(number: u64) -> Entry {
    let short = ShortFingerprint::from_bytes([0xab, 0x12, 0xcd, 0x34, 0xef, 0x56]);
    Entry::new(
        1_781_706_601_123,
        "ses_5f3ab2c1d4e6",
        "read",
        short,
        Outcome::Ok,
        Duration::from_millis(number),
    )
}

const LINES: u64 = 20_000;
const PEERS: [&str; 6] = [
    "bizar-log",
    "file-rotate",
    "flexi_logger",
    "logroller",
    "rolling-file",
    "tracing-appender",
];
