//! Calls that were let through without being judged, a line each.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use bizar_guard::Options;

use crate::harness::Harness;

/// Keeps in mind where notes go: when one is due, there may be no time to read the options.
pub(crate) fn remember(options: &Options) {
    OPTIONS.set(options.clone()).ok();
}

/// Notes one. Time in milliseconds since 1970, harness and reason: nothing of the call.
pub(crate) fn note(harness: Option<Harness>, why: &str) {
    let usual = || Some(bizar_guard::home()?.join(".cache/bizarharness"));
    let Some(directory) = OPTIONS.get().map_or_else(usual, directory) else {
        return;
    };
    let name = harness.map_or("unknown", |harness| harness.facts().name);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let line = format!("{} {name} {why}\n", now.unwrap_or_default().as_millis());
    append(&directory.join(FILE), &line);
}

/// How many were noted.
pub(crate) fn count(options: &Options) -> usize {
    let text = directory(options).and_then(|directory| fs::read(directory.join(FILE)).ok());
    text.map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count())
}

fn directory(options: &Options) -> Option<PathBuf> {
    let path = options.state_dir.as_ref()?.check().ok()?;
    Some(path.to_owned())
}

/// One write, so that lines of several processes do not mix.
fn append(path: &Path, line: &str) {
    // A pipe of that name would be waited for.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() || metadata.len() > MOST) {
        return;
    }
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
        file.write_all(line.as_bytes()).ok();
    }
}

static OPTIONS: OnceLock<Options> = OnceLock::new();

/// In `stateDir`.
const FILE: &str = "bizar-hook.skipped";

/// Enough to see that something is wrong.
const MOST: u64 = 1 << 20;
