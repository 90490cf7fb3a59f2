//! What the store asks of the file system.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::lock::Slot;
use crate::{Error, Operation, Reason};

/// What is at a path.
pub(crate) enum Content {
    Absent,
    Bytes(Vec<u8>),
    Unusable(Reason),
}

/// The bytes of the regular file at `path`. A link is not followed, a pipe not waited for.
pub(crate) fn read(path: &Path, max_bytes: usize) -> io::Result<Content> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NOFOLLOW | libc::O_NONBLOCK,
    );
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::custom_flags(&mut options, OPEN_REPARSE_POINT);

    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::Absent),
        Err(error) => {
            return match fs::symlink_metadata(path) {
                Ok(metadata) if !metadata.is_file() => Ok(Content::Unusable(Reason::NotAFile)),
                _ => Err(error),
            };
        }
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Content::Unusable(Reason::NotAFile));
    }
    let max = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    if metadata.len() > max {
        return Ok(Content::Unusable(Reason::TooLarge));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    file.take(max).read_to_end(&mut bytes)?;
    Ok(Content::Bytes(bytes))
}

/// Puts `bytes` in the place of the file at `path`: wholly, or not at all.
///
/// The temporary file has a random name, so that even two writers whose locks do not meet, because
/// the directory was removed and made again between them, can never mix their bytes.
pub(crate) fn replace(
    directory: &Path,
    prefix: &str,
    path: &Path,
    bytes: &[u8],
    sync: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), Error> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(TEMPORARY);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600));

    // Dropped on any error, which removes it.
    let mut file = builder
        .tempfile_in(directory)
        .map_err(Error::io(Operation::Write, directory))?;
    file.write_all(bytes)
        .map_err(Error::io(Operation::Write, file.path()))?;
    sync(file.as_file()).map_err(Error::io(Operation::Sync, file.path()))?;
    put_in_place(file, path).map_err(Error::io(Operation::Replace, path))
}

/// Gives a temporary file the name `path`, and removes what had it.
fn put_in_place(file: NamedTempFile, path: &Path) -> io::Result<()> {
    // A file that is renamed over another is written to the disk there and then by ext4, which takes longer than all the
    // rest. An exchange of the two names is as indivisible, and whoever wants the file on the disk has synced it.
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, file.path(), CWD, path, RenameFlags::EXCHANGE).is_ok() {
            // Dropped, which removes what has the temporary name now.
            return Ok(());
        }
    }
    // There is nothing to exchange with, or the file system knows no exchange.
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Moves what is at `path` to a name that nothing had before.
pub(crate) fn keep_aside(path: &Path) -> io::Result<PathBuf> {
    let is_directory = fs::symlink_metadata(path)?.is_dir();
    let mut number = 1_u64;
    loop {
        let aside = path.with_extension(format!("kept-{number}"));
        // The name is taken first, then replaced: a rename alone would overwrite.
        let taken = if is_directory {
            fs::create_dir(&aside)
        } else {
            File::create_new(&aside).map(drop)
        };
        match taken {
            Ok(()) => return fs::rename(path, &aside).map(|()| aside),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn create_directory(directory: &Path, synced: bool) -> Result<(), Error> {
    let missing: Vec<_> = directory
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
        .collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(directory)
        .map_err(Error::io(Operation::CreateDirectory, directory))?;
    if synced {
        for parent in missing.iter().filter_map(|path| path.parent()) {
            let here = parent.as_os_str().is_empty();
            sync_directory(if here { Path::new(".") } else { parent })?;
        }
    }
    Ok(())
}

/// Waits until the names in `directory` are on the disk; nothing to do where only Unix can.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(Error::io(Operation::Sync, directory))?;
    }
    Ok(())
}

/// The files of a directory that have names of ours.
#[derive(Default)]
pub(crate) struct Entries {
    pub(crate) documents: Vec<PathBuf>,
    pub(crate) temporaries: Vec<(Slot, PathBuf)>,
}

pub(crate) fn entries(directory: &Path) -> Result<Entries, Error> {
    let mut entries = Entries::default();
    let found = match fs::read_dir(directory) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(entries),
        Err(error) => return Err(Error::io(Operation::List, directory)(error)),
    };
    for entry in found {
        let entry = entry.map_err(Error::io(Operation::List, directory))?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.ends_with(DOCUMENT) {
            entries.documents.push(entry.path());
        } else if let Some(slot) = temporary_slot(name) {
            entries.temporaries.push((slot, entry.path()));
        }
    }
    entries.documents.sort();
    Ok(entries)
}

/// The slot of the writer that made the temporary file `name`.
fn temporary_slot(name: &str) -> Option<Slot> {
    let (slot, random) = name
        .strip_prefix('.')?
        .strip_suffix(TEMPORARY)?
        .split_once('.')?;
    let ours = !random.is_empty() && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    Slot::parse(slot).filter(|_| ours)
}

pub(crate) const DOCUMENT: &str = ".json";
const TEMPORARY: &str = ".bizar-tmp";

/// Opens a link itself, not what it leads to.
#[cfg(windows)]
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn state_02_data_is_synced_before_the_rename() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        fs::write(&path, "old").unwrap();
        let mut synced = false;
        replace(directory.path(), ".0.", &path, b"new and longer", |file| {
            synced = true;
            assert_eq!(file.metadata().unwrap().len(), 14);
            assert_eq!(fs::read(&path).unwrap(), b"old");
            Ok(())
        })
        .unwrap();
        assert!(synced);
        assert_eq!(fs::read(&path).unwrap(), b"new and longer");
        assert_eq!(names(directory.path()), ["a.json"]);
    }

    #[test]
    fn state_03_a_failed_sync_keeps_the_old_document() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        fs::write(&path, "old").unwrap();
        let full = |_: &File| Err(io::ErrorKind::StorageFull.into());
        let error = replace(directory.path(), ".0.", &path, b"new", full).unwrap_err();
        let Error::Io {
            operation, source, ..
        } = error
        else {
            panic!("{error:?}");
        };
        assert_eq!(operation, Operation::Sync);
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["a.json"]);
    }

    #[test]
    fn only_names_that_the_store_makes_are_temporary() {
        for name in [".3.Ab3dE9.bizar-tmp", ".f.x.bizar-tmp"] {
            assert!(temporary_slot(name).is_some(), "{name}");
        }
        for name in [
            ".bizar-tmp",
            ".3..bizar-tmp",
            ".10.Ab3dE9.bizar-tmp",
            ".F.Ab3dE9.bizar-tmp",
            ".3.a.b.bizar-tmp",
            "3.Ab3dE9.bizar-tmp",
            ".3.Ab3dE9.bizar-tmp~",
        ] {
            assert!(temporary_slot(name).is_none(), "{name}");
        }
    }
}
