//! The two kinds of hash: of a call, and of a result.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, ErrorKind};

/// The identity of a tool call: SHA-256 of the canonical JSON of `{"args":…,"tool":…}`.
///
/// Prints, parses and serialises as 64 lower-case hex digits (parsing also takes capitals).
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Fingerprint([u8; 32]);

/// What a call answered, in 16 bytes: equal for results that differ in volatile parts only.
///
/// Prints, parses and serialises as 32 lower-case hex digits (parsing also takes capitals).
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Digest([u8; 16]);

/// The first 12 hex digits of a [`Fingerprint`], as they stand in logs.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Short([u8; 12]);

impl Fingerprint {
    /// Takes 32 bytes as they are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 12 hex digits.
    #[must_use]
    pub fn short(&self) -> Short {
        let mut digits = [0; 12];
        let _ = hex::encode_to_slice(self.0.get(..6).unwrap_or_default(), &mut digits);
        Short(digits)
    }
}

impl Digest {
    /// Takes 16 bytes as they are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl Short {
    /// The 12 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(&self.0, &mut [0; 64], f)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(&self.0, &mut [0; 32], f)
    }
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl fmt::Debug for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Short({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).map(Self)
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).map(Self)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(Self)
    }
}

fn print(bytes: &[u8], digits: &mut [u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let _ = hex::encode_to_slice(bytes, digits); // the callers' lengths fit
    f.pad(std::str::from_utf8(digits).unwrap_or_default())
}

fn parse<const N: usize>(text: &str) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    match hex::decode_to_slice(text, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(hex::FromHexError::InvalidHexCharacter { index, .. }) => {
            Err(Error::at(ErrorKind::Hex, index))
        }
        Err(_) => Err(Error::at(ErrorKind::Hex, text.len().min(2 * N))),
    }
}

fn deserialize<'de, const N: usize, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<[u8; N], D::Error> {
    struct Hex<const N: usize>;

    impl<const N: usize> serde::de::Visitor<'_> for Hex<N> {
        type Value = [u8; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{} hex digits", 2 * N)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<[u8; N], E> {
            parse(text).map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Hex)
}
