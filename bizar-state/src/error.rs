//! Why a step could not be made.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a [`FileStore`](crate::FileStore) could not do something.
///
/// No variant holds any of a document's content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Others were writing for the whole time that the caller would wait.
    #[error("lock not free within {} ms", waited.as_millis())]
    Busy {
        /// How long the caller wanted to wait.
        waited: Duration,
    },
    /// The document's type does not serialize to a JSON object.
    #[error("not serializable as a JSON object")]
    Encode {
        /// What serializing said.
        source: serde_json::Error,
    },
    /// The file system refused.
    #[error("{operation} {}", path.display())]
    Io {
        /// What was tried.
        operation: Operation,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A change gave the document another id.
    #[error("a change must not give a document another id")]
    OtherId,
    /// The document is larger than [`FileStore::MAX_BYTES`](crate::FileStore::MAX_BYTES).
    #[error("document of {bytes} bytes is too large")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
}

impl Error {
    pub(crate) fn io(operation: Operation, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            operation,
            path: path.to_owned(),
            source,
        }
    }
}

/// A step in which the file system can fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Operation {
    /// Making the store's directory.
    CreateDirectory,
    /// Moving an unusable file aside.
    KeepAside,
    /// Listing the store's directory.
    List,
    /// Opening or taking a lock.
    Lock,
    /// Reading a document.
    Read,
    /// Removing a file.
    Remove,
    /// Putting a written file in the place of the old one.
    Replace,
    /// Waiting until data is on the disk.
    Sync,
    /// Writing a temporary file.
    Write,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CreateDirectory => "could not create directory",
            Self::KeepAside => "could not move aside",
            Self::List => "could not list",
            Self::Lock => "could not lock",
            Self::Read => "could not read",
            Self::Remove => "could not remove",
            Self::Replace => "could not replace",
            Self::Sync => "could not sync",
            Self::Write => "could not write",
        })
    }
}
