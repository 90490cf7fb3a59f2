//! SHA-256, or HMAC-SHA-256 where there is a key.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

/// An optional key, with HMAC's start state worked out once.
#[derive(Clone, Default)]
pub(crate) struct Key(Option<Hmac<Sha256>>);

impl Key {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        // HMAC fills a key up to the block with zeros; done here, nothing is left that could fail.
        let mut block = [0; 64];
        for (byte, key) in block.iter_mut().zip(key) {
            *byte = *key;
        }
        Self(Some(Hmac::new(&block.into())))
    }

    pub(crate) fn hasher(&self) -> Hasher {
        match &self.0 {
            Some(mac) => Hasher::Keyed(mac.clone()),
            None => Hasher::Plain(Sha256::new()),
        }
    }

    pub(crate) fn hash(&self, bytes: &[u8]) -> [u8; 32] {
        let mut hasher = self.hasher();
        hasher.update(bytes);
        hasher.finish()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Key(secret)"
        } else {
            "Key(none)"
        })
    }
}

pub(crate) enum Hasher {
    Keyed(Hmac<Sha256>),
    Plain(Sha256),
}

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Keyed(mac) => mac.update(bytes),
            Self::Plain(sha) => sha.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        match self {
            Self::Keyed(mac) => mac.finalize().into_bytes().into(),
            Self::Plain(sha) => sha.finalize().into(),
        }
    }
}
