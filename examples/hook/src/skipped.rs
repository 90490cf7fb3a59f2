//! Calls that were let through without being judged, a line each.

use std::{
    fs::OpenOptions,
    io::Write,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use bizar_guard::Options;

use crate::{harness::Harness, settings};

/// In `stateDir`.
pub(crate) const FILE: &str = "bizar-hook.skipped";

/// Notes one, where the options say.
pub(crate) fn note(harness: Option<Harness>, why: &str) {
    let resolved = settings::resolved(harness.unwrap_or(Harness::Claude));
    note_in(&resolved.options, harness, why);
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
