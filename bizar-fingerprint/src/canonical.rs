//! Canonical JSON on its own.

use serde::Serialize;
use serde_json::Value;

use crate::emit::{Emitter, Scratch, Verbatim};
use crate::error::Error;
use crate::serialize::Writer;
use crate::{text, value};

/// Canonical JSON of a document that is JSON text.
///
/// # Errors
/// [`Error`] with the byte offset: not JSON, nested too deep, duplicate keys, lone surrogates, numbers beyond a double.
pub fn canonical_from_text(json: impl AsRef<[u8]>) -> Result<Vec<u8>, Error> {
    owned(|canonicaliser| canonicaliser.from_text(json).map(drop))
}

/// Canonical JSON of a value.
///
/// # Errors
/// [`Error`] with the JSON pointer: nested too deep, or (serde_json's `arbitrary_precision`) a number beyond a double.
pub fn canonical_from_value(value: &Value) -> Result<Vec<u8>, Error> {
    owned(|canonicaliser| canonicaliser.from_value(value).map(drop))
}

/// Canonical JSON of anything that serde can serialise.
///
/// # Errors
/// [`Error`] with the JSON pointer: nested too deep, duplicate or impossible keys, NaN and infinities, or an implementation of `Serialize` that fails.
pub fn canonical_from_serialize(value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, Error> {
    owned(|canonicaliser| canonicaliser.from_serialize(value).map(drop))
}

/// Writes canonical JSON again and again into one buffer, which stops growing at the largest document.
///
/// ```
/// use bizar_fingerprint::Canonicaliser;
///
/// let mut canonicaliser = Canonicaliser::default();
/// assert_eq!(canonicaliser.from_text(r#"{"b": 1.0, "a": 2}"#)?, br#"{"a":2,"b":1}"#);
/// # Ok::<(), bizar_fingerprint::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Canonicaliser {
    scratch: Scratch,
}

impl Canonicaliser {
    /// Like [`canonical_from_text`].
    ///
    /// # Errors
    /// The same.
    pub fn from_text(&mut self, json: impl AsRef<[u8]>) -> Result<&[u8], Error> {
        text::emit(&mut self.start(), json.as_ref())?;
        Ok(&self.scratch.out)
    }

    /// Like [`canonical_from_value`].
    ///
    /// # Errors
    /// The same.
    pub fn from_value(&mut self, value: &Value) -> Result<&[u8], Error> {
        value::emit(&mut self.start(), value, 1)?;
        Ok(&self.scratch.out)
    }

    /// Like [`canonical_from_serialize`].
    ///
    /// # Errors
    /// The same.
    pub fn from_serialize(&mut self, value: &(impl Serialize + ?Sized)) -> Result<&[u8], Error> {
        value.serialize(Writer::new(&mut self.start()))?;
        Ok(&self.scratch.out)
    }

    fn start(&mut self) -> Emitter<'_, Verbatim> {
        self.scratch.out.clear();
        Emitter::new(&mut self.scratch, Verbatim)
    }
}

fn owned(write: impl FnOnce(&mut Canonicaliser) -> Result<(), Error>) -> Result<Vec<u8>, Error> {
    let mut canonicaliser = Canonicaliser::default();
    write(&mut canonicaliser)?;
    Ok(canonicaliser.scratch.out)
}
