#![doc = include_str!("../README.md")]

mod codec;
mod disk;
mod error;
mod file;
mod lock;
mod session;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::error::{Error, Operation};
pub use crate::file::{Durability, FileStore};
pub use crate::session::{Outcome, SessionState, Sweep, TOOL_CALLS, ToolCall};

/// A type that is kept as one JSON object under one id.
///
/// The store writes two members of its own into the object, `kind` and `version`: they are how it
/// knows its own documents later. A type therefore has no members of these names.
///
/// Members that the type does not know, because a later version wrote them, are kept byte for byte
/// when the document is written again. So do not use `deny_unknown_fields`, and read every member that
/// is written. A type that is read as a map (one with `flatten` too) is given all members and keeps what it wants.
/// Members of nested objects are the type's own business.
pub trait Document: Serialize + DeserializeOwned {
    /// Which documents these are, like `bizar.session`. Another kind is foreign, and left alone.
    const KIND: &'static str;

    /// The version that is written. Any up to this one is read, a higher one is not: raise it only
    /// when an old reader would be wrong about a new document, not for a new member.
    const VERSION: u32;

    /// The id that the document is kept under. Never changes during the life of a document.
    fn id(&self) -> &str;
}

/// Documents of one type, each under its id; every change is one indivisible step.
///
/// [`FileStore`] is the store of this crate. Whoever is generic over this trait can be given
/// another one, such as a database that holds the sessions of a fleet.
pub trait Store<D: Document> {
    /// Why a step could not be made.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Reads one document.
    ///
    /// What lies there and cannot be used is moved aside, kept, and reported in the answer; the
    /// document then counts as absent. Never waits for others longer than a moment.
    ///
    /// # Errors
    /// When the store could not be read or the unusable document not be moved, also because
    /// others are writing in its place.
    fn load(&self, id: &str) -> Result<Loaded<D>, Self::Error>;

    /// Reads, changes and writes one document as one step across threads and processes.
    ///
    /// `change` is given the document, or `None` if there is none. What it leaves there is stored;
    /// `None` removes the document. It must not call the store again: it would wait for itself.
    ///
    /// Gives up when others kept it from starting for longer than `wait`. [`Duration::MAX`] waits
    /// for ever; zero tries once.
    ///
    /// # Errors
    /// When nothing was changed: the wait was too long, or the store could not be read or written.
    /// (One exception: if only the last sync of a durable store failed, the new document is in
    /// place, but may not survive a power failure.)
    fn update_within<R>(
        &self,
        id: &str,
        wait: Duration,
        change: impl FnOnce(&mut Option<D>) -> R,
    ) -> Result<Updated<R>, Self::Error>;

    /// [`update_within`](Self::update_within), waiting as long as it takes.
    ///
    /// # Errors
    /// As there, without the wait.
    fn update<R>(
        &self,
        id: &str,
        change: impl FnOnce(&mut Option<D>) -> R,
    ) -> Result<Updated<R>, Self::Error> {
        self.update_within(id, Duration::MAX, change)
    }

    /// Writes one document, whatever was there before.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    fn save(&self, document: D) -> Result<Updated<()>, Self::Error> {
        let id = document.id().to_owned();
        self.update(&id, |slot| *slot = Some(document))
    }

    /// All documents of this store, ordered by id. Changes nothing and waits for nobody.
    ///
    /// # Errors
    /// When the store could not be read at all; trouble with single documents is in the answer.
    fn list(&self) -> Result<Listing<D>, Self::Error>;

    /// Removes one document; says whether there was one. Only a document that is provably of this
    /// store is removed: anything else in its place stays and counts as none. Waits like
    /// [`update`](Self::update), as long as it takes.
    ///
    /// # Errors
    /// When the store could not be read or written.
    fn remove(&self, id: &str) -> Result<bool, Self::Error>;

    /// Removes the documents that are `stale`, each judged and removed as one step, and what
    /// writers that were killed left behind.
    ///
    /// For sessions, [`Sweep::is_stale`] is the rule.
    ///
    /// # Errors
    /// When the store could not be read at all; trouble with single documents is in the report.
    fn sweep(&self, stale: impl FnMut(&D) -> bool)
    -> Result<SweepReport<Self::Error>, Self::Error>;
}

/// What [`Store::load`] found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Loaded<D> {
    /// The document, if there is a usable one.
    pub document: Option<D>,
    /// What lay in its place and cannot be used: report it once.
    pub unusable: Option<Unusable>,
}

/// What came of [`Store::update`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Updated<R> {
    /// What the change returned.
    pub value: R,
    /// What lay in the document's place and was moved aside: report it once.
    pub unusable: Option<Unusable>,
}

/// What [`Store::list`] found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Listing<D> {
    /// The documents, ordered by id.
    pub documents: Vec<D>,
    /// What lies in the place of a document and cannot be used. It was left where it is.
    pub unusable: Vec<Unusable>,
}

/// What [`Store::sweep`] did.
#[derive(Debug)]
pub struct SweepReport<E> {
    /// The ids of the documents that were removed.
    pub removed: Vec<String>,
    /// How many documents of this store were looked at and stay.
    pub kept: usize,
    /// How many files that killed writers left behind were removed.
    pub temporaries: usize,
    /// What is not provably a document of this store. It was left as it is.
    pub unusable: Vec<Unusable>,
    /// What could not be removed.
    pub errors: Vec<E>,
}

impl<E> Default for SweepReport<E> {
    fn default() -> Self {
        Self {
            removed: Vec::new(),
            kept: 0,
            temporaries: 0,
            unusable: Vec::new(),
            errors: Vec::new(),
        }
    }
}

/// Something in the place of a document that cannot be used.
///
/// Its `Display` form is fit for a log: it never holds any of the content.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct Unusable {
    /// Where it lies now.
    pub path: PathBuf,
    /// Why it cannot be used.
    pub reason: Reason,
}

/// Why a document cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// There is not a single byte.
    #[error("empty")]
    Empty,
    /// It has another `kind`, or no `kind` and `version` at all.
    #[error("not a document of this kind")]
    Foreign,
    /// A later version wrote it.
    #[error("written by a later version ({version})")]
    Future {
        /// The `version` it says it has.
        version: u32,
    },
    /// It is not a JSON object.
    #[error("not a JSON object (line {line}, column {column})")]
    Malformed {
        /// The line of the first error, from 1.
        line: usize,
        /// The column of the first error, in bytes.
        column: usize,
    },
    /// It is a document of another id.
    #[error("a document of another id")]
    Misplaced,
    /// It is a symbolic link, a directory or a device. Links are not followed.
    #[error("not a regular file")]
    NotAFile,
    /// It is larger than any document may be ([`FileStore::MAX_BYTES`]).
    #[error("too large")]
    TooLarge,
    /// It could not be read. Only in listings and reports; elsewhere this is an error.
    #[error("unreadable: {0}")]
    Unreadable(std::io::ErrorKind),
    /// A JSON object of the right kind, but members are missing or of the wrong type.
    #[error("wrong shape (line {line}, column {column})")]
    WrongShape {
        /// The line of the first error, from 1.
        line: usize,
        /// The column of the first error, in bytes.
        column: usize,
    },
}
