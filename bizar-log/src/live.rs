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
    /// A single write to the end of a file is whole without a lock. What else the lock is for is seen afterwards. A line that
    /// begins where our last one ended follows nobody's half line, and nobody who takes back half a line of his own takes ours
    /// along. A file that still has a name was not deleted by others' rotations, though it may be an older one by now.
    pub(crate) fn write_in_burst(
        &mut self,
        line: &str,
        rotation_bytes: u64,
        deadline: Instant,
    ) -> io::Result<bool> {
        let grown = self.end.saturating_add(line.len() as u64);
        let is_burst = self.end > 0
            && grown <= rotation_bytes
            && self.seen.is_some_and(|seen| seen.elapsed() < BURST);
        if !is_burst || self.file.seek(SeekFrom::End(0))? != self.end {
            return Ok(false);
        }
        let count = self.file.write(line.as_bytes())?;
        let end = self.file.stream_position()?;
        if count == line.len() && end == grown {
            self.end = grown;
            return self.has_a_name();
        }
        // Somebody else was faster, or the disk is full.
        self.end = 0;
        let locked = self.lock(deadline);
        let is_kept =
            count == line.len() && self.follows_a_line(line, end)? && self.has_a_name()?;
        if count < line.len() {
            self.take_back(end.saturating_sub(count as u64), count, locked)?;
        }
        self.file.unlock()?;
        Ok(is_kept)
    }

    /// Appends `line` whole or not at all to a file of `size` bytes.
    pub(crate) fn write(mut self, line: &str, size: u64, locked: bool) -> io::Result<Self> {
        // Somebody who died in the middle of a line must not spoil ours. One who is still writing his (a burst takes no
        // lock) looks the same; then there is an empty line, which readers pass over.
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
        self.take_back(size, count, locked)?;
        Err(io::ErrorKind::StorageFull.into())
    }

    /// Whether this file can still be found: it has another name by now, or none if it was deleted.
    pub(crate) fn has_a_name(&self) -> io::Result<bool> {
        links(&self.file).map(|links| links > 0)
    }

    /// Removes the first `count` bytes of a line that were written at `start`: part of a line is worse than none.
    ///
    /// Not without the lock, and not if others' bytes follow.
    fn take_back(&self, start: u64, count: usize, locked: bool) -> io::Result<()> {
        let end = start.saturating_add(count as u64);
        if locked && count > 0 && self.file.metadata()?.len() == end {
            self.file.set_len(start)?;
        }
        Ok(())
    }

    /// Whether `line` stands before the offset `end`, and a line feed before it.
    fn follows_a_line(&mut self, line: &str, end: u64) -> io::Result<bool> {
        let wanted = format!("\n{line}");
        let Some(start) = end.checked_sub(wanted.len() as u64) else {
            return Ok(false);
        };
        let mut found = vec![0; wanted.len()];
        self.file.seek(SeekFrom::Start(start))?;
        Ok(self.file.read_exact(&mut found).is_ok() && found == wanted.as_bytes())
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

/// The number of names of `file`, where it can be without its times: after somebody asked for these, Linux has to give the next write
/// a time of its own, which makes a line three times as dear.
#[cfg(unix)]
fn links(file: &File) -> io::Result<u64> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, StatxFlags, statx};
        // Linux before 4.11 and some sandboxes do not have it.
        if let Ok(found) = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::NLINK) {
            return Ok(found.stx_nlink.into());
        }
    }
    file.metadata()
        .map(|found| std::os::unix::fs::MetadataExt::nlink(&found))
}

/// Elsewhere the log is opened anew for every line.
#[cfg(not(unix))]
fn links(_: &File) -> io::Result<u64> {
    Ok(1)
}

/// How long after a look at its name a file may get lines without another.
const BURST: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(content: &str) -> (tempfile::TempDir, Live) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.log");
        fs::write(&path, content).unwrap();
        let Ok(live) = Live::open(directory.path(), &path) else {
            panic!("a file that was just made");
        };
        (directory, live)
    }

    /// What a burst asks when its line did not come right behind the last one.
    #[test]
    fn a_line_counts_only_where_it_stands_whole() {
        let (_directory, mut live) = file_of("a\nhalf b\nc\n");
        for (line, end, counts) in [
            ("c\n", 11, true),
            ("b\n", 9, false),
            ("half b\n", 9, true),
            ("d\n", 11, false),
            ("d\n", 13, false),
            ("a\n", 2, false),
        ] {
            assert_eq!(
                live.follows_a_line(line, end).unwrap(),
                counts,
                "{line:?} at {end}"
            );
        }
    }

    #[test]
    fn only_ones_own_half_line_is_taken_back() {
        let (_directory, live) = file_of("a\nhalf");
        for (start, count, locked, left) in [
            (2, 3, true, 6),
            (2, 4, false, 6),
            (6, 0, true, 6),
            (2, 4, true, 2),
        ] {
            live.take_back(start, count, locked).unwrap();
            assert_eq!(live.file.metadata().unwrap().len(), left);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_burst_into_a_deleted_file_does_not_count() {
        let (directory, mut live) = file_of("a\n");
        let path = directory.path().join("s.log");
        (live.end, live.seen) = (2, Some(Instant::now() + Duration::from_secs(3600)));
        assert!(live.write_in_burst("b\n", 100, Instant::now()).unwrap());
        // Renamed by a rotation: the line is in the log. Deleted by the next: it is not.
        let older = directory.path().join("s.1.log");
        fs::rename(&path, &older).unwrap();
        assert!(live.write_in_burst("c\n", 100, Instant::now()).unwrap());
        assert_eq!(fs::read_to_string(&older).unwrap(), "a\nb\nc\n");
        fs::remove_file(&older).unwrap();
        assert!(!live.write_in_burst("d\n", 100, Instant::now()).unwrap());
    }
}
