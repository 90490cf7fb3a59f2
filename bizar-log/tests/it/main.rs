//! What the crate promises, a file for each promise.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests; a failure is what they are for"
)]

mod line;
mod name;
mod processes;
mod reader;
mod rotation;
mod trouble;

use std::{fs, path::Path, time::Duration};

use bizar_log::{Entry, Outcome, ShortFingerprint};

/// An entry that `number` makes distinct.
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

/// Bytes of the line of `entry`, its line feed included.
fn line_len(entry: &Entry) -> u64 {
    entry.to_string().len() as u64 + 1
}

/// The names of the files in `directory`, sorted.
fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The numbers of the entries in a file, all of whose lines must be whole.
fn numbers(path: &Path) -> Vec<u64> {
    let text = fs::read_to_string(path).unwrap();
    assert!(
        text.is_empty() || text.ends_with('\n'),
        "{path:?} ends within a line"
    );
    text.lines().map(number_of).collect()
}

fn number_of(line: &str) -> u64 {
    let entry: Entry = line
        .parse()
        .unwrap_or_else(|error| panic!("{error}: {line:?}"));
    u64::try_from(entry.duration().as_millis()).unwrap()
}
