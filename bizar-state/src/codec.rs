//! A document as bytes: markers in front, unknown members kept.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

use crate::{Document, Error, Reason};

/// The members of an object, each as it is written. Nothing is converted, so that nothing a later
/// version wrote can be lost: not even a number that no Rust type holds.
pub(crate) type Members = BTreeMap<String, Box<RawValue>>;

/// The document in `bytes`, if it is provably one of this kind, and its members.
pub(crate) fn decode<D: Document>(bytes: &[u8]) -> Result<(D, Members), Reason> {
    if bytes.is_empty() {
        return Err(Reason::Empty);
    }
    let members: Members = serde_json::from_slice(bytes).map_err(|error| Reason::Malformed {
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
    match serde_json::from_slice(bytes) {
        Ok(document) => Ok((document, members)),
        Err(error) => Err(Reason::WrongShape {
            line: error.line(),
            column: error.column(),
        }),
    }
}

/// `document` as one line, with the members of `previous` that its type does not know.
pub(crate) fn encode<D: Document>(document: &D, previous: &Members) -> Result<Vec<u8>, Error> {
    write(document, previous).map_err(|source| Error::Encode { source })
}

fn write<D: Document>(document: &D, previous: &Members) -> serde_json::Result<Vec<u8>> {
    let known = serde_json::to_vec(document)?;
    let known: BTreeMap<String, &RawValue> = serde_json::from_slice(&known)?;
    let kind = to_raw_value(D::KIND)?;
    let version = to_raw_value(&D::VERSION)?;

    let mut members: BTreeMap<&str, &RawValue> = BTreeMap::new();
    members.extend(previous.iter().map(|(name, raw)| (name.as_str(), &**raw)));
    members.extend(known.iter().map(|(name, raw)| (name.as_str(), *raw)));
    members.extend([(KIND, &*kind), (VERSION, &*version)]);
    let mut bytes = serde_json::to_vec(&members)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn member<'a, T: serde::Deserialize<'a>>(members: &'a Members, name: &str) -> Option<T> {
    members
        .get(name)
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
}

const KIND: &str = "kind";
const VERSION: &str = "version";
