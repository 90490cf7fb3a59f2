#![doc = include_str!("../README.md")]

mod canonical;
mod compound;
mod digest;
mod emit;
mod error;
mod fingerprint;
mod fingerprinter;
mod hash;
mod ignored;
mod name;
mod number;
mod path;
mod serialize;
mod text;
mod value;
mod volatile;

pub use canonical::{
    Canonicaliser, canonical_from_serialize, canonical_from_text, canonical_from_value,
};
pub use digest::Digester;
pub use error::{Error, ErrorKind, Place};
pub use fingerprint::{Digest, Fingerprint, Short};
pub use fingerprinter::Fingerprinter;
pub use ignored::{IgnoredArgs, SHELL_TOOLS, glob_matches};

/// How many arrays and objects may lie inside one another; serde_json reads one less.
pub const MAX_DEPTH: usize = 128;
