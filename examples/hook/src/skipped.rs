//! Calls that were let through without being judged, a line each.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use bizar_guard::Options;

use crate::{harness::Harness, settings};

/// In `stateDir`.
const FILE: &str = "bizar-hook.skipped";

/// Notes one, where the user's options say.
pub(crate) fn note(harness: Option<Harness>, why: &str) {
    let mut setup = settings::setup(harness.unwrap_or(Harness::Claude));
    note_in(setup.options_mut(), harness, why);
}

/// How many were noted.
pub(crate) fn count(options: &Options) -> usize {
    let directory = options
        .state_dir
        .as_ref()
        .and_then(|path| path.check().ok());
    let text = directory.and_then(|directory| fs::read(directory.join(FILE)).ok());
    text.map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count())
}

/// Notes one. Time in milliseconds since 1970, harness and reason: nothing of the call.
pub(crate) fn note_in(options: &Options, harness: Option<Harness>, why: &str) {
    let directory = options
        .state_dir
        .as_ref()
        .and_then(|path| path.check().ok());
    let Some(directory) = directory else { return };
    let name = harness.map_or("unknown", |harness| harness.facts().name);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let line = format!("{} {name} {why}\n", now.unwrap_or_default().as_millis());
    append(&directory.join(FILE), &line);
}

/// One write, so that lines of several processes do not mix.
fn append(path: &Path, line: &str) {
    let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) else {
        return;
    };
    if file
        .metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() < MOST)
    {
        file.write_all(line.as_bytes()).ok();
    }
}

/// Enough to see that something is wrong.
const MOST: u64 = 1 << 20;
