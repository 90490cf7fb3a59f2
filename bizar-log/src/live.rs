use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::{append::Failure, name::SessionName};

/// The file that is written to, while it keeps its name.
#[derive(Debug)]
pub(crate) struct Live {
    file: File,
    identity: Option<(u64, u64)>,
    /// When it was last seen under its name.
    seen: Option<Instant>,
    /// The size after our last line, where the file ends with a line feed; 0 if not known.
    end: u64,
}

impl Live {
    pub(crate) fn open(directory: &Path, path: &Path) -> Result<Self, Failure> {
        let file = open(directory, path)?;
        let identity = identity(&file.metadata()?);
        Ok(Self {
            file,
            identity,
            seen: None,
            end: 0,
        })
    }

    pub(crate) fn lock(&self, deadline: Instant) -> bool {
        lock(&self.file, deadline)
    }

    pub(crate) fn unlock(self) -> Option<Self> {
        self.file.unlock().is_ok().then_some(self)
    }

    /// The size of this file, if it is what `path` names: not a newer file, not a link to this one.
    pub(crate) fn size_at(&mut self, path: &Path) -> Option<u64> {
        let found = fs::symlink_metadata(path).ok()?;
        self.seen = Some(Instant::now());
        (found.is_file() && identity(&found) == self.identity).then_some(found.len())
    }

    /// Appends `line` without the lock where that is needless; false if it must be written the long way.
    ///
    /// A single write to the end of a file is whole without a lock, which is only there so that nobody rotates between
    /// the look and the write. Just after a look, far from the limit and with no line of anybody else since ours, the worst
    /// that can happen is that the file is renamed at this very moment, and then it still has the line.
    pub(crate) fn write_in_burst(&mut self, line: &str, rotation_bytes: u64) -> io::Result<bool> {
        let grown = self.end.saturating_add(line.len() as u64);
        let is_far = rotation_bytes >= BURST_LIMIT && grown <= rotation_bytes - BURST_MARGIN;
        let is_burst = self.end > 0 && self.seen.is_some_and(|seen| seen.elapsed() < BURST);
        if !is_far || !is_burst {
            return Ok(false);
        }
        let found = self.file.metadata()?;
        if found.len() != self.end || !has_a_name(&found) {
            return Ok(false);
        }
        let count = self.file.write(line.as_bytes())?;
        if count < line.len() {
            let partial = self.end.saturating_add(count as u64);
            if self.lock(Instant::now()) && self.file.metadata()?.len() == partial {
                self.file.set_len(self.end)?;
            }
            return Ok(false);
        }
        self.end = grown;
        Ok(true)
    }

    /// Appends `line` whole or not at all to a file of `size` bytes.
    pub(crate) fn write(mut self, line: &str, size: u64, locked: bool) -> io::Result<Self> {
        // Somebody who died in the middle of a line must not spoil ours.
        let is_torn = locked && size > 0 && size != self.end && !self.ends_a_line()?;
        let separated = if is_torn {
            format!("\n{line}")
        } else {
            String::new()
        };
        let bytes = if is_torn {
            separated.as_bytes()
        } else {
            line.as_bytes()
        };

        let count = loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                count => break count?,
            }
        };
        if count == bytes.len() {
            self.end = size.saturating_add(count as u64);
            return Ok(self);
        }
        // Part of a line is worse than none. Without the lock the end of the file may be another's.
        if locked && self.file.metadata()?.len() == size.saturating_add(count as u64) {
            self.file.set_len(size)?;
        }
        Err(io::ErrorKind::StorageFull.into())
    }

    fn ends_a_line(&mut self) -> io::Result<bool> {
        let mut last = [0];
        self.file.seek(SeekFrom::End(-1))?;
        self.file.read_exact(&mut last)?;
        Ok(last == *b"\n")
    }
}

/// The file name for `session`; the directory is created first, so that it can be asked about its letters.
pub(crate) fn name(directory: &Path, session: &str) -> SessionName {
    // A failure shows again, with its cause, when the file is opened.
    let _ = create(directory);
    SessionName::for_directory(directory, session)
}

/// Opens a regular file for appending, creating it and its directory for this user alone.
///
/// Never follows a link: one that stands there is refused, `create_new` does not follow one that appears, and one
/// that replaces a file in between is found by [`Live::size_at`] before anything is written.
pub(crate) fn open(directory: &Path, path: &Path) -> Result<File, Failure> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(private().open(path)?),
        Ok(_) => Err(Failure::NotAFile),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(directory)?;
            Ok(private().create_new(true).open(path)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Locks `file` against everybody else; false if that takes longer than till `deadline`.
///
/// A file system that has no locks is taken to have one writer.
pub(crate) fn lock(file: &File, deadline: Instant) -> bool {
    let mut pause = Duration::from_micros(10);
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {}
            Ok(()) | Err(TryLockError::Error(_)) => return true,
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(1));
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn create(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// What tells one file from another, whatever its name. Elsewhere than on Unix nothing stable does, and
/// the log is opened anew for every line instead.
#[cfg(unix)]
pub(crate) fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(crate) fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(unix)]
fn has_a_name(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 0
}

#[cfg(not(unix))]
fn has_a_name(_: &Metadata) -> bool {
    false
}

/// How long after a look at its name a file may get lines without another.
const BURST: Duration = Duration::from_millis(10);

/// With a smaller limit, and nearer to it than the margin, a file could be rotated and deleted within a burst.
const BURST_LIMIT: u64 = 1 << 20;
const BURST_MARGIN: u64 = 1 << 16;
