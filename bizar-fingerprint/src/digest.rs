//! The digest of a result: volatile parts out, then a hash of what is left.

use std::fmt;

use serde_json::Value;

use crate::emit::{Emitter, Rules, Scratch};
use crate::error::Error;
use crate::hash::Key;
use crate::{Digest, text, value, volatile};

/// Results up to this size are read as a whole.
pub(crate) const WHOLE: usize = 4 << 20;

/// Of longer ones, this much of the start and of the end, and the length.
const HEAD: usize = 1 << 20;
const TAIL: usize = 64 << 10;

/// Makes a [`Digest`] of text that comes in pieces, however they are cut.
///
/// Holds at most 4 MiB and the piece at hand. Made by [`Fingerprinter::digester`](crate::Fingerprinter::digester).
pub struct Digester {
    key: Key,
    ok: Option<bool>,
    length: u64,
    /// Everything, or from the moment on that this is more than `WHOLE`, the head and a tail of at most twice `TAIL`.
    kept: Vec<u8>,
}

impl Digester {
    pub(crate) fn new(key: Key, ok: Option<bool>) -> Self {
        Self {
            key,
            ok,
            length: 0,
            kept: Vec::new(),
        }
    }

    /// Adds a piece.
    pub fn update(&mut self, piece: &[u8]) {
        for piece in piece.chunks(TAIL) {
            self.length += piece.len() as u64;
            self.kept.extend_from_slice(piece);
            if self.length > WHOLE as u64 && self.kept.len() > HEAD + 2 * TAIL {
                self.kept.drain(HEAD..self.kept.len() - TAIL);
            }
        }
    }

    /// Says how it ended, if that was not known when the digester was made.
    pub fn ended(&mut self, ok: Option<bool>) {
        self.ok = ok;
    }

    /// The digest of all pieces together.
    #[must_use]
    pub fn finish(self) -> Digest {
        if self.length <= WHOLE as u64 {
            return of_text(&self.key, self.ok, &self.kept);
        }
        large(&self.key, self.ok, &self.kept, self.length)
    }
}

impl fmt::Debug for Digester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Digester")
            .field("ok", &self.ok)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

pub(crate) fn of_text(key: &Key, ok: Option<bool>, result: &[u8]) -> Digest {
    if result.len() > WHOLE {
        return large(key, ok, result, result.len() as u64);
    }
    if let Some(b'{' | b'[') = result.trim_ascii_start().first()
        && let Ok(json) = normalised_json(|emitter| text::emit(emitter, result))
    {
        return hash(key, ok, &json);
    }
    let mut normalised = Vec::with_capacity(result.len());
    volatile::normalise(result, &mut normalised);
    hash(key, ok, &normalised)
}

pub(crate) fn of_value(key: &Key, ok: Option<bool>, result: &Value) -> Digest {
    if let Value::String(text) = result {
        return of_text(key, ok, text.as_bytes());
    }
    match normalised_json(|emitter| value::emit(emitter, result, 1)) {
        Ok(json) if json.len() <= WHOLE => hash(key, ok, &json),
        Ok(json) => large(key, ok, &json, json.len() as u64),
        // A value that no JSON text of ours can have, so any digest of its own will do: where it breaks off, and why.
        Err((error, mut json)) => {
            json.extend_from_slice(error.to_string().as_bytes());
            hash(key, ok, &json)
        }
    }
}

/// `kept` is at least a head and a tail.
fn large(key: &Key, ok: Option<bool>, kept: &[u8], length: u64) -> Digest {
    let mut normalised = Vec::with_capacity(HEAD + TAIL);
    volatile::normalise(kept.get(..HEAD).unwrap_or_default(), &mut normalised);
    normalised.extend_from_slice(format!("{}{length} bytes{0}", volatile::MARK).as_bytes());
    volatile::normalise(
        kept.get(kept.len() - TAIL..).unwrap_or_default(),
        &mut normalised,
    );
    hash(key, ok, &normalised)
}

fn hash(key: &Key, ok: Option<bool>, normalised: &[u8]) -> Digest {
    let mut hasher = key.hasher();
    hasher.update(if ok == Some(false) {
        b"error\0"
    } else {
        b"ok\0"
    });
    hasher.update(normalised);
    let [bytes @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = hasher.finish();
    Digest::from_bytes(bytes)
}

/// The canonical form without volatile members and with its strings normalised; on error also what was written until then.
fn normalised_json(
    write: impl FnOnce(&mut Emitter<'_, ResultRules>) -> Result<(), Error>,
) -> Result<Vec<u8>, (Error, Vec<u8>)> {
    let mut scratch = Scratch::default();
    match write(&mut Emitter::new(&mut scratch, ResultRules)) {
        Ok(()) => Ok(scratch.out),
        Err(error) => Err((error, scratch.out)),
    }
}

struct ResultRules;

impl Rules for ResultRules {
    fn drops(&self, _: usize, name: &[u8]) -> bool {
        volatile::is_volatile_member(name)
    }

    fn concerns(&self, _: &[u8]) -> bool {
        true
    }

    fn rewrite(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        volatile::normalise(text, out);
        true
    }
}
