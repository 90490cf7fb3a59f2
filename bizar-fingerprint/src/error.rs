//! The one error type: what is wrong, and where.

use std::fmt;

/// Why a value has no canonical form, and where.
///
/// It names a place and a cause, never a value: safe to log where the arguments themselves are not.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{} at {}", .0.kind, .0.place)]
pub struct Error(Box<Fault>); // boxed, so that results without one fit into a register

#[derive(Clone, Debug, Eq, PartialEq)]
struct Fault {
    kind: ErrorKind,
    place: Place,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text starts with a byte order mark; JSON has none.
    ByteOrderMark,
    /// An object has two members of one name; keeping either would make two values equal.
    DuplicateKey,
    /// Not the hex digits of a fingerprint or digest.
    Hex,
    /// A map key that JSON cannot have, such as a list.
    Key,
    /// Half of a UTF-16 surrogate pair, which no Unicode text has.
    LoneSurrogate,
    /// NaN or an infinity, from a `Serialize` implementation.
    NonFinite,
    /// A number beyond the largest double, such as `1e400`.
    NumberTooLarge,
    /// A `Serialize` implementation gave up or broke serde's rules. Its message is not kept: it may quote the value.
    Serialize,
    /// Not JSON.
    Syntax,
    /// More than [`MAX_DEPTH`](crate::MAX_DEPTH) arrays and objects inside one another.
    TooDeep,
    /// Something after the end of the document.
    TrailingData,
    /// The text ends inside the document.
    UnexpectedEnd,
    /// Bytes that are not UTF-8.
    Utf8,
}

/// Where it is wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Place {
    /// Byte offset in the text, from 0.
    Offset(usize),
    /// JSON pointer (RFC 6901) in the value; empty for the value itself. Member names appear in it, values do not.
    Pointer(String),
}

impl Error {
    #[cold]
    pub(crate) fn at(kind: ErrorKind, offset: usize) -> Self {
        Self(Box::new(Fault {
            kind,
            place: Place::Offset(offset),
        }))
    }

    #[cold]
    pub(crate) fn here(kind: ErrorKind) -> Self {
        Self(Box::new(Fault {
            kind,
            place: Place::Pointer(String::new()),
        }))
    }

    /// The same error, seen from the parent: the pointer grows at its front while the walk unwinds.
    #[cold]
    pub(crate) fn inside(mut self, token: &str) -> Self {
        if let Place::Pointer(pointer) = &mut self.0.place {
            let token = token.replace('~', "~0").replace('/', "~1");
            *pointer = format!("/{token}{pointer}");
        }
        self
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Where it is wrong.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// The byte offset, if the input was text.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        match self.0.place {
            Place::Offset(offset) => Some(offset),
            Place::Pointer(_) => None,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ByteOrderMark => "byte order mark",
            Self::DuplicateKey => "duplicate key",
            Self::Hex => "not the hex digits of a hash",
            Self::Key => "map key that is no string",
            Self::LoneSurrogate => "lone surrogate",
            Self::NonFinite => "number that is not finite",
            Self::NumberTooLarge => "number beyond the range of a double",
            Self::Serialize => "value that refuses to be serialised",
            Self::Syntax => "invalid json",
            Self::TooDeep => "more than 128 levels of nesting",
            Self::TrailingData => "data after the document",
            Self::UnexpectedEnd => "end of text inside the document",
            Self::Utf8 => "invalid utf-8",
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offset(offset) => write!(f, "byte {offset}"),
            Self::Pointer(pointer) if pointer.is_empty() => f.write_str("the top level"),
            Self::Pointer(pointer) => f.write_str(pointer),
        }
    }
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::here(ErrorKind::Serialize)
    }
}
