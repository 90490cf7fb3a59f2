use std::{
    fmt, io, mem,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    entry::Entry,
    live::{self, Live},
    name::SessionName,
    rotate::{self, DEFAULT_KEPT},
};

/// 10 MiB: the size at which a live file is rotated, unless the caller says otherwise.
pub const DEFAULT_ROTATION_BYTES: u64 = 10 * 1024 * 1024;

/// The log of one session: appends lines and rotates the file.
///
/// Any number of these, in any number of processes of one machine, may share one session. Each line is
/// one `write` to a file opened for appending, made under an exclusive lock of that file after a check that it still
/// has its name; so a line is never torn. A line that follows another within 10 ms, with nobody else writing, goes without
/// the lock. Either way it counts as written only if the file has a name afterwards, else it is written again: no line is
/// lost to a file that somebody deleted meanwhile.
///
/// Nothing is touched before the first [`append`](Self::append), and nothing here ever fails or panics.
#[derive(Debug)]
pub struct SessionLog {
    directory: PathBuf,
    session: String,
    /// Name and live file, known when the directory is.
    target: Option<(SessionName, PathBuf)>,
    rotation_bytes: u64,
    kept: u32,
    live: Option<Live>,
    /// Room for a line, used again and again.
    line: String,
    /// Lock `<name>.lock` instead of the log, and open the log anew for every line: where files have no identity to
    /// compare, and where a lock keeps others from reading.
    locks_beside: bool,
    lock_is_stuck: bool,
    warned: Vec<mem::Discriminant<Warning>>,
}

impl SessionLog {
    /// The longest that [`append`](Self::append) waits for others, in all.
    pub const PATIENCE: Duration = Duration::from_millis(100);

    /// The log of `session` in `directory`; a live file that would grow beyond `rotation_bytes` is rotated.
    ///
    /// Three rotated files are kept. The directory need not exist.
    pub fn open(directory: impl Into<PathBuf>, session: &str, rotation_bytes: u64) -> Self {
        Self {
            directory: directory.into(),
            session: session.to_owned(),
            target: None,
            rotation_bytes,
            kept: DEFAULT_KEPT,
            live: None,
            line: String::new(),
            locks_beside: !cfg!(unix),
            lock_is_stuck: false,
            warned: Vec::new(),
        }
    }

    /// Keeps `files` rotated files instead of three; at least one.
    #[must_use]
    pub fn kept(mut self, files: u32) -> Self {
        self.kept = files.max(1);
        self
    }

    /// Appends one line and says what happened, which a caller may ignore.
    ///
    /// When this returns [`is_written`](Appended::is_written), the line is with the operating system: it
    /// survives the end of this process by any signal, though not a power cut.
    pub fn append(&mut self, entry: &Entry) -> Appended {
        let mut line = mem::take(&mut self.line);
        line.clear();
        entry.write_to(&mut line);
        line.push('\n');
        let mut appended = Appended::default();
        match self.place(&line, &mut appended) {
            Ok(()) => appended.written = true,
            Err(warning) => appended.warning = Some(warning),
        }
        self.line = line;
        if let Some(warning) = &appended.warning {
            let kind = mem::discriminant(warning);
            if self.warned.contains(&kind) {
                appended.warning = None;
            } else {
                self.warned.push(kind);
            }
        }
        appended
    }

    /// Finds the file that has the name now, rotates it if need be, and writes.
    fn place(&mut self, line: &str, appended: &mut Appended) -> Result<(), Warning> {
        let patience = if self.lock_is_stuck {
            Duration::ZERO
        } else {
            Self::PATIENCE
        };
        let deadline = Instant::now() + patience;
        if let Some(live) = &mut self.live
            && let Ok(true) = live.write_in_burst(line, self.rotation_bytes, deadline)
        {
            return Ok(());
        }
        let mut cause = io::ErrorKind::ResourceBusy;
        for _ in 0..ROUNDS {
            match self.attempt(line, deadline, appended) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(Failure::NotAFile) => return Err(Warning::NotAFile),
                // Somebody created or deleted the file or the directory between two of our steps.
                Err(Failure::Io(error)) if is_race(error.kind()) => cause = error.kind(),
                Err(Failure::Io(error)) => return Err(Warning::NotWritten(error.kind())),
            }
        }
        Err(Warning::NotWritten(cause))
    }

    /// One round: true if the line is written, false if the file lost its name and another must be opened.
    fn attempt(
        &mut self,
        line: &str,
        deadline: Instant,
        appended: &mut Appended,
    ) -> Result<bool, Failure> {
        let directory = self.directory.as_path();
        let (name, path) = self.target.get_or_insert_with(|| {
            let name = live::name(directory, &self.session);
            let path = rotate::path(directory, name.as_str(), 0);
            (name, path)
        });
        let name = name.as_str();

        let beside = if self.locks_beside {
            Some(live::open(directory, &lock_path(directory, name))?)
        } else {
            None
        };
        let beside_locked = beside.as_ref().map(|file| live::lock(file, deadline));
        let mut live = match self.live.take() {
            Some(live) => live,
            None => Live::open(directory, path)?,
        };
        let locked = beside_locked.unwrap_or_else(|| live.lock(deadline));
        self.lock_is_stuck = !locked;
        if !locked {
            appended.warning = Some(Warning::LockTimedOut);
        }

        let Some(size) = live.size_at(path) else {
            return Ok(false);
        };
        let grown = size.saturating_add(line.len() as u64);
        // Without the lock, another process may be rotating at this moment.
        if locked && size > 0 && grown > self.rotation_bytes {
            match rotate::rotate(directory, name, self.kept) {
                Ok(()) => {
                    appended.rotated = true;
                    return Ok(false);
                }
                Err(error) => appended.warning = Some(Warning::NotRotated(error.kind())),
            }
        }
        let live = live.write(line, size, locked)?;
        if !live.has_a_name()? {
            return Ok(false);
        }
        if !self.locks_beside {
            // A handle that cannot be unlocked is closed, which lets go.
            self.live = live.unlock();
        }
        Ok(true)
    }
}

/// What became of one [`SessionLog::append`]. A caller may ignore it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Appended {
    written: bool,
    rotated: bool,
    warning: Option<Warning>,
}

impl Appended {
    /// Whether the whole line is in the log.
    pub fn is_written(&self) -> bool {
        self.written
    }

    /// Whether the line began a new file because the last one was full.
    pub fn is_rotated(&self) -> bool {
        self.rotated
    }

    /// What somebody should be told, once for each kind of trouble in the life of a [`SessionLog`].
    pub fn warning(&self) -> Option<&Warning> {
        self.warning.as_ref()
    }
}

/// Trouble with a log. The text names no path, no session and no tool.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Somebody held the lock longer than [`SessionLog::PATIENCE`]. The line was written without it, and nothing
    /// is rotated until the lock is free again; till then it is tried without waiting.
    LockTimedOut,
    /// In the place of the log is a link, a directory or a device. Nothing was written.
    NotAFile,
    /// A file could not be renamed. The line was written and the log grows beyond its limit.
    NotRotated(io::ErrorKind),
    /// The line is not in the log.
    NotWritten(io::ErrorKind),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LockTimedOut => {
                f.write_str("log is locked by another process, writing without rotation")
            }
            Self::NotAFile => {
                f.write_str("log line dropped: something that is no regular file is in its place")
            }
            Self::NotRotated(kind) => {
                write!(f, "log not rotated, it will outgrow its limit: {kind}")
            }
            Self::NotWritten(kind) => write!(f, "log line dropped: {kind}"),
        }
    }
}

/// Why a round came to nothing.
pub(crate) enum Failure {
    NotAFile,
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn is_race(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists)
}

fn lock_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.lock"))
}

/// How often a file may lose its name under our hands before a line is given up. Each time takes another
/// process that fills a whole file in between.
const ROUNDS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Reader, ShortFingerprint};

    /// The way of systems where files have no identity, which works on all.
    #[test]
    fn a_lock_beside_the_log_keeps_every_line() {
        let directory = tempfile::tempdir().unwrap();
        let short = ShortFingerprint::from_bytes([0; 6]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut log = SessionLog::open(directory.path(), "s", 5_000).kept(1_000);
                    log.locks_beside = true;
                    for _ in 0..500 {
                        let entry = Entry::new(0, "s", "t", short, Outcome::Ok, Duration::ZERO);
                        assert!(log.append(&entry).is_written());
                    }
                });
            }
        });
        let entries = Reader::new(directory.path(), "s").read().unwrap();
        assert_eq!(entries.iter().flatten().count(), 2_000);
        assert_eq!(entries.len(), 2_000);
        assert!(directory.path().join("s.lock").is_file());
    }
}
