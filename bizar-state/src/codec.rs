//! A document as bytes: markers in front, unknown members kept.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

use crate::{Document, Error, Reason};

/// The members of an object, each as it is written. Nothing is converted, so that nothing a later
/// version wrote can be lost: not even a number that no Rust type holds.
type Members<'a> = BTreeMap<String, &'a RawValue>;

/// The document in `bytes`, if it is provably one of this kind.
pub(crate) fn decode<D: Document>(bytes: &[u8]) -> Result<D, Reason> {
    if bytes.is_empty() {
        return Err(Reason::Empty);
    }
    let members: Members<'_> =
        serde_json::from_slice(bytes).map_err(|error| Reason::Malformed {
            line: error.line(),
            column: error.column(),
        })?;
    if member::<Cow<'_, str>>(&members, KIND).as_deref() != Some(D::KIND) {
        return Err(Reason::Foreign);
    }
    match member::<u32>(&members, VERSION) {
        Some(version) if version <= D::VERSION => {}
        Some(version) => return Err(Reason::Future { version }),
        None => return Err(Reason::Foreign),
    }
    // The message of this error would quote values of the document.
    serde_json::from_slice(bytes).map_err(|error| Reason::WrongShape {
        line: error.line(),
        column: error.column(),
    })
}

/// `document` as one line, with the members of `previous` that its type does not know.
pub(crate) fn encode<D: Document>(document: &D, previous: &[u8]) -> Result<Vec<u8>, Error> {
    let known = serde_json::to_vec(document).map_err(|source| Error::Encode { source })?;
    let known: Members<'_> =
        serde_json::from_slice(&known).map_err(|source| Error::Encode { source })?;
    let kind = to_raw_value(D::KIND).map_err(|source| Error::Encode { source })?;
    let version = to_raw_value(&D::VERSION).map_err(|source| Error::Encode { source })?;

    let mut members: Members<'_> = serde_json::from_slice(previous).unwrap_or_default();
    members.extend(known);
    members.insert(KIND.to_owned(), &kind);
    members.insert(VERSION.to_owned(), &version);
    let mut bytes = serde_json::to_vec(&members).map_err(|source| Error::Encode { source })?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn member<'a, T: serde::Deserialize<'a>>(members: &Members<'a>, name: &str) -> Option<T> {
    members
        .get(name)
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
}

const KIND: &str = "kind";
const VERSION: &str = "version";
