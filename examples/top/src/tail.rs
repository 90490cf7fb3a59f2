//! The end of a log, and what is added to it.

use std::{
    fs::{File, Metadata},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use bizar_log::{DEFAULT_KEPT, Entry};

use crate::open;

/// Reads the last lines of one session's log, and later those that have been added.
///
/// No file stays open: a thousand sessions would take more handles than a process may have.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The file that was read last, and how far.
    place: Option<(Identity, u64)>,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Added {
    pub(crate) entries: Vec<Entry>,
    /// Lines that are no entries.
    pub(crate) bad_lines: u64,
}

impl Tail {
    /// What was added since the last call; at first, the end of the log.
    pub(crate) fn read(&mut self, directory: &Path, name: &str) -> io::Result<Added> {
        let mut added = Added::default();
        // Without a live file, the log is just being rotated or is gone.
        let Some(mut live) = open(&directory.join(format!("{name}.log")))? else {
            return Ok(added);
        };
        let metadata = live.metadata()?;
        let identity = identity(&metadata);
        let offset = match self.place {
            None => beginning_of_end(metadata.len()),
            Some((known, offset)) if known == identity => {
                // Shorter than before: somebody cut it off.
                if offset > metadata.len() { 0 } else { offset }
            }
            Some((known, offset)) => {
                let rotated =
                    (1..=DEFAULT_KEPT).map(|age| directory.join(format!("{name}.{age}.log")));
                read_rotated(rotated, known, offset, &mut added)?;
                0
            }
        };
        let offset = read_from(
            &mut live,
            offset,
            metadata.len(),
            self.place.is_none(),
            &mut added,
        )?;
        self.place = Some((identity, offset));
        Ok(added)
    }
}

/// The rest of the file that was the live one.
fn read_rotated(
    paths: impl Iterator<Item = PathBuf>,
    known: Identity,
    offset: u64,
    added: &mut Added,
) -> io::Result<()> {
    for path in paths {
        let Some(mut file) = open(&path)? else {
            continue;
        };
        let metadata = file.metadata()?;
        if identity(&metadata) == known {
            read_from(&mut file, offset, metadata.len(), false, added)?;
            break;
        }
    }
    Ok(())
}

/// Reads whole lines from `offset` on and returns where the next one begins.
fn read_from(
    file: &mut File,
    offset: u64,
    len: u64,
    is_first: bool,
    added: &mut Added,
) -> io::Result<u64> {
    // So far behind, the lines between are of no use to a live view.
    let is_behind = len.saturating_sub(offset) > MOST_BYTES;
    let offset = if is_behind {
        beginning_of_end(len)
    } else {
        offset
    };
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.take(MOST_BYTES + TAIL_BYTES).read_to_end(&mut bytes)?;
    // Somewhere in a line, in all likelihood.
    let mut is_cut = (is_first || is_behind) && offset > 0;
    let mut next = offset;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let is_whole = line.ends_with(b"\n");
        if !is_whole && line.len() as u64 <= Entry::LINE_BYTES {
            break;
        }
        next += line.len() as u64;
        if std::mem::take(&mut is_cut) {
            continue;
        }
        let text = String::from_utf8_lossy(line);
        match text.trim_end_matches('\n').parse() {
            Ok(entry) => added.entries.push(entry),
            Err(_) => added.bad_lines += 1,
        }
    }
    Ok(next)
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match open::for_reading(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

fn beginning_of_end(len: u64) -> u64 {
    len.saturating_sub(TAIL_BYTES)
}

/// What tells a file from others after a rename.
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// Where files have no numbers, a rotation is a file that has become shorter.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> Identity {
    (0, 0)
}

/// So much of a log is read at first: a few hundred lines.
const TAIL_BYTES: u64 = 64 * 1024;

/// So much is read at once later.
const MOST_BYTES: u64 = 1024 * 1024;
