//! The store of this crate: a directory with one file a document.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bizar_log::SessionName;

use crate::codec::Members;
use crate::disk::{
    Content, DOCUMENT, create_directory, entries, keep_aside, read, replace, sync_directory,
};
use crate::lock::{Lock, Slot};
use crate::{
    Document, Error, Listing, Loaded, Operation, Reason, Store, SweepReport, Unusable, Updated,
    codec,
};

/// Documents in one directory, each in a file `<name>.json` of mode 0600.
///
/// Making a `FileStore` touches nothing; the directory is made, with mode 0700, by the first write.
/// The name of a file is that of [`bizar_log::SessionName`]. Beside the documents there are up to
/// 16 empty lock files (`.lock-0` to `.lock-f`), what was moved aside (`<name>.kept-1` and so on),
/// and, after a writer was killed, temporary files (`.0.*.bizar-tmp`, by lock) that the next sweep
/// removes.
pub struct FileStore<D> {
    directory: PathBuf,
    durability: Durability,
    documents: PhantomData<fn() -> D>,
}

/// What a finished write has survived.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Durability {
    /// The end of the process, by any signal. After a power failure the document may be an older
    /// one, or unusable on some file systems.
    #[default]
    Process,
    /// A power failure too: file and directory are synced before the write is done.
    Power,
}

impl<D> FileStore<D> {
    /// A document may have this many bytes: larger files are unusable, larger writes refused.
    pub const MAX_BYTES: usize = 16 * 1024 * 1024;

    /// The documents in `directory`.
    pub fn new(directory: impl Into<PathBuf>, durability: Durability) -> Self {
        Self {
            directory: directory.into(),
            durability,
            documents: PhantomData,
        }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What a finished write of this store has survived.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The file that the document of `id` is in, if there is one.
    pub fn path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{}{DOCUMENT}", self.name(id)))
    }

    /// The name of the files of `id`: safe, bounded, without a dot, and shared with no other id.
    fn name(&self, id: &str) -> SessionName {
        let capitals = id.bytes().any(|byte| byte.is_ascii_uppercase());
        if capitals && Slot::of(id).folds_case(&self.directory) {
            SessionName::case_folded(id)
        } else {
            SessionName::of(id)
        }
    }

    fn synced(&self) -> bool {
        self.durability == Durability::Power
    }
}

impl<D: Document> FileStore<D> {
    /// Reads one document, and nothing else: no lock, no write, nothing moved aside.
    ///
    /// This and [`list`](Store::list) are for onlookers.
    ///
    /// # Errors
    /// When the file is there and could not be read.
    pub fn peek(&self, id: &str) -> Result<Loaded<D>, Error> {
        let path = self.path(id);
        Ok(match self.look(&path, Some(id))? {
            Sight::Absent => Loaded {
                document: None,
                unusable: None,
            },
            Sight::Usable(document, _) => Loaded {
                document: Some(document),
                unusable: None,
            },
            Sight::Unusable(reason) => Loaded {
                document: None,
                unusable: Some(Unusable { path, reason }),
            },
        })
    }

    /// What is at `path`. Without an `id`, the document's own must lead to this path.
    fn look(&self, path: &Path, id: Option<&str>) -> Result<Sight<D>, Error> {
        let bytes = match read(path, Self::MAX_BYTES) {
            Ok(Content::Absent) => return Ok(Sight::Absent),
            Ok(Content::Unusable(reason)) => return Ok(Sight::Unusable(reason)),
            Ok(Content::Bytes(bytes)) => bytes,
            Err(source) => return Err(Error::io(Operation::Read, path)(source)),
        };
        Ok(match codec::decode::<D>(&bytes) {
            Err(reason) => Sight::Unusable(reason),
            Ok((document, members)) => {
                let at_home = match id {
                    Some(id) => document.id() == id,
                    None => self.path(document.id()) == path,
                };
                if at_home {
                    Sight::Usable(document, members)
                } else {
                    Sight::Unusable(Reason::Misplaced)
                }
            }
        })
    }

    /// As `look`, under the lock of `id`, but what is unusable has been moved aside.
    #[expect(
        clippy::type_complexity,
        reason = "the document with its members, and the report"
    )]
    fn look_and_clear(&self, id: &str) -> Result<(Option<(D, Members)>, Option<Unusable>), Error> {
        let path = self.path(id);
        Ok(match self.look(&path, Some(id))? {
            Sight::Absent => (None, None),
            Sight::Usable(document, members) => (Some((document, members)), None),
            Sight::Unusable(reason) => {
                let path = keep_aside(&path).map_err(Error::io(Operation::KeepAside, &path))?;
                (None, Some(Unusable { path, reason }))
            }
        })
    }

    /// The lock of `id`, in a directory that is made if it is missing.
    fn lock(&self, id: &str, wait: Duration) -> Result<Lock, Error> {
        match Lock::acquire(&self.directory, Slot::of(id), wait) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                create_directory(&self.directory, self.synced())?;
                Lock::acquire(&self.directory, Slot::of(id), wait)
            }
            taken => taken,
        }
    }

    fn write(&self, id: &str, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() > Self::MAX_BYTES {
            return Err(Error::TooLarge { bytes: bytes.len() });
        }
        let sync = if self.synced() {
            File::sync_all
        } else {
            |_: &File| Ok(())
        };
        let prefix = format!(".{}.", Slot::of(id));
        replace(&self.directory, &prefix, &self.path(id), bytes, sync)?;
        self.sync_directory()
    }

    fn unlink(&self, path: &Path) -> Result<(), Error> {
        fs::remove_file(path).map_err(Error::io(Operation::Remove, path))?;
        self.sync_directory()
    }

    fn sync_directory(&self) -> Result<(), Error> {
        if self.synced() {
            sync_directory(&self.directory)?;
        }
        Ok(())
    }

    /// Removes the document at `path` if it is `stale`, judged again under its lock.
    fn sweep_document(
        &self,
        path: &Path,
        mut stale: impl FnMut(&D) -> bool,
        report: &mut SweepReport<Error>,
    ) -> Result<(), Error> {
        let seen = match self.look(path, None)? {
            Sight::Absent => return Ok(()),
            Sight::Unusable(reason) => {
                let path = path.to_owned();
                report.unusable.push(Unusable { path, reason });
                return Ok(());
            }
            Sight::Usable(document, _) => document,
        };
        if !stale(&seen) {
            report.kept += 1;
            return Ok(());
        }
        let _lock = Lock::acquire(&self.directory, Slot::of(seen.id()), SHORT_WAIT)?;
        // It may have been written since.
        match self.look(path, None)? {
            Sight::Usable(document, _) if document.id() == seen.id() && stale(&document) => {
                self.unlink(path)?;
                report.removed.push(document.id().to_owned());
            }
            Sight::Usable(..) => report.kept += 1,
            Sight::Absent | Sight::Unusable(_) => {}
        }
        Ok(())
    }

    /// Removes a temporary file whose writer was killed: a living one would hold the lock.
    fn sweep_temporary(&self, slot: Slot, path: &Path) -> Result<bool, Error> {
        let _lock = Lock::acquire(&self.directory, slot, SHORT_WAIT)?;
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() => self.unlink(path).map(|()| true),
            _ => Ok(false),
        }
    }
}

impl<D: Document> Store<D> for FileStore<D> {
    type Error = Error;

    fn load(&self, id: &str) -> Result<Loaded<D>, Error> {
        let seen = self.peek(id)?;
        if seen.unusable.is_none() {
            return Ok(seen);
        }
        let _lock = self.lock(id, SHORT_WAIT)?;
        let (found, unusable) = self.look_and_clear(id)?;
        Ok(Loaded {
            document: found.map(|(document, _)| document),
            unusable,
        })
    }

    fn update_within<R>(
        &self,
        id: &str,
        wait: Duration,
        change: impl FnOnce(&mut Option<D>) -> R,
    ) -> Result<Updated<R>, Error> {
        let _lock = self.lock(id, wait)?;
        let (found, unusable) = self.look_and_clear(id)?;
        let (mut slot, previous) = found.unzip();
        let value = change(&mut slot);
        match (slot, previous) {
            (Some(document), _) if document.id() != id => return Err(Error::OtherId),
            (Some(document), previous) => {
                let bytes = codec::encode(&document, &previous.unwrap_or_default())?;
                self.write(id, &bytes)?;
            }
            (None, Some(_)) => self.unlink(&self.path(id))?,
            (None, None) => {}
        }
        Ok(Updated { value, unusable })
    }

    fn list(&self) -> Result<Listing<D>, Error> {
        let mut listing = Listing {
            documents: Vec::new(),
            unusable: Vec::new(),
        };
        for path in entries(&self.directory)?.documents {
            let reason = match self.look(&path, None) {
                Ok(Sight::Absent) => continue,
                Ok(Sight::Usable(document, _)) => {
                    listing.documents.push(document);
                    continue;
                }
                Ok(Sight::Unusable(reason)) => reason,
                Err(Error::Io { source, .. }) => Reason::Unreadable(source.kind()),
                Err(error) => return Err(error),
            };
            listing.unusable.push(Unusable { path, reason });
        }
        listing.documents.sort_by(|a, b| a.id().cmp(b.id()));
        Ok(listing)
    }

    fn remove(&self, id: &str) -> Result<bool, Error> {
        // Without this, removing from a missing directory would make it.
        if self.peek(id)?.document.is_none() {
            return Ok(false);
        }
        let _lock = self.lock(id, Duration::MAX)?;
        let path = self.path(id);
        match self.look(&path, Some(id))? {
            Sight::Usable(..) => self.unlink(&path).map(|()| true),
            Sight::Absent | Sight::Unusable(_) => Ok(false),
        }
    }

    fn sweep(&self, mut stale: impl FnMut(&D) -> bool) -> Result<SweepReport<Error>, Error> {
        let mut report = SweepReport::default();
        let entries = entries(&self.directory)?;
        for (slot, path) in entries.temporaries {
            match self.sweep_temporary(slot, &path) {
                Ok(removed) => report.temporaries += usize::from(removed),
                Err(error) => report.errors.push(error),
            }
        }
        for path in entries.documents {
            if let Err(error) = self.sweep_document(&path, &mut stale, &mut report) {
                report.errors.push(error);
            }
        }
        report.removed.sort();
        Ok(report)
    }
}

impl<D> Clone for FileStore<D> {
    fn clone(&self) -> Self {
        Self::new(self.directory.clone(), self.durability)
    }
}

impl<D> fmt::Debug for FileStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore")
            .field("directory", &self.directory)
            .field("durability", &self.durability)
            .finish()
    }
}

/// What is in the place of a document.
enum Sight<D> {
    Absent,
    Usable(D, Members),
    Unusable(Reason),
}

/// How long a reader waits to move an unusable document aside, and a sweep to remove a stale one. What is being written
/// for longer is neither.
const SHORT_WAIT: Duration = Duration::from_millis(50);
