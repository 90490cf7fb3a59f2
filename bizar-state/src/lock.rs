//! One writer at a time, across threads and processes.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, Operation};

/// The right to change the documents whose names share a lock. Ends when dropped, or with the
/// process: a killed writer locks nobody out.
///
/// There is a fixed number of lock files, chosen by a hash of the document's id, and none is ever
/// removed. So nobody can hold a lock on a file that another process has just unlinked and
/// made anew, which is what makes removing and sweeping safe, and old sessions leave no litter.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held for its lock")] File);

impl Lock {
    /// Takes the lock of `slot` in `directory`, which must exist.
    pub(crate) fn acquire(directory: &Path, slot: Slot, wait: Duration) -> Result<Self, Error> {
        let path = directory.join(format!(".lock-{slot}"));
        // Opened anew each time: locks belong to the open file, so threads exclude each other
        // too, and a directory that was removed and made again is never locked by its ghost.
        let file = open(&path).map_err(Error::io(Operation::Lock, &path))?;
        let taken = if wait == Duration::MAX {
            block(&file).map(|()| true)
        } else {
            poll(&file, wait)
        };
        match taken {
            Ok(true) => Ok(Self(file)),
            Ok(false) => Err(Error::Busy { waited: wait }),
            Err(source) => Err(Error::io(Operation::Lock, &path)(source)),
        }
    }
}

/// Which of the lock files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Slot(u64);

impl Slot {
    /// FNV-1a. Every process of every version must choose the same slot, so this is part of the
    /// format on disk.
    pub(crate) fn of(id: &str) -> Self {
        let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(hash % SLOTS)
    }

    /// The slot whose `Display` form is `text`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        (0..SLOTS).map(Self).find(|slot| slot.to_string() == text)
    }

    /// Whether `directory` takes `A` and `a` for one letter. Seen by looking for the lock file
    /// under a name that differs in case; before there is one there are no documents either.
    pub(crate) fn folds_case(self, directory: &Path) -> bool {
        directory
            .join(format!(".LOCK-{self}"))
            .symlink_metadata()
            .is_ok()
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// Opens the lock file; making it is the rare case, and the dearer one.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    options.create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn block(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Tries until `wait` is over, with growing pauses; at least once.
fn poll(file: &File, wait: Duration) -> io::Result<bool> {
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let left = wait.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(false);
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

const SLOTS: u64 = 16;
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LAST_PAUSE: Duration = Duration::from_millis(2);
