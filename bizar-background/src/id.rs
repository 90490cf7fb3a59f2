//! Names of instances: `bgr_` and a ULID.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The name of one background agent: `bgr_` and 26 characters of a ULID.
///
/// Names sort by the time they were made. A name is safe as a file name: its
/// alphabet is `0-9A-Z` without `I L O U`, and only that spelling is read back.
///
/// ```
/// use bizar_background::InstanceId;
/// let id = InstanceId::new(1_469_922_850_259, [0xff; 10]);
/// assert_eq!(id.to_string(), "bgr_01ARZ3NDEKZZZZZZZZZZZZZZZZ");
/// assert_eq!("bgr_01ARZ3NDEKZZZZZZZZZZZZZZZZ".parse(), Ok(id));
/// ```
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct InstanceId(u128);

impl InstanceId {
    /// Makes a name from milliseconds since 1970 (48 bits are used) and 80 random bits.
    #[must_use]
    pub fn new(epoch_ms: u64, random: [u8; 10]) -> Self {
        let time = u128::from(epoch_ms & ((1 << 48) - 1)) << 80;
        Self(
            random
                .iter()
                .fold(0, |all, byte| all << 8 | u128::from(*byte))
                | time,
        )
    }

    /// Milliseconds since 1970 at which the name was made.
    #[must_use]
    pub fn epoch_ms(self) -> u64 {
        u64::try_from(self.0 >> 80).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        for place in (0..LENGTH).rev() {
            let digit = usize::try_from(self.0 >> (5 * place) & 31).unwrap_or_default();
            write!(f, "{}", char::from(*ALPHABET.get(digit).unwrap_or(&b'0')))?;
        }
        Ok(())
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for InstanceId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidId)?.as_bytes();
        // 26 digits hold 130 bits: the first one may not use its two highest.
        if digits.len() != LENGTH || digits.first().is_none_or(|first| *first > b'7') {
            return Err(InvalidId);
        }
        let mut value = 0;
        for digit in digits {
            let place = ALPHABET
                .iter()
                .position(|known| known == digit)
                .ok_or(InvalidId)?;
            value = value << 5 | u128::try_from(place).unwrap_or_default();
        }
        Ok(Self(value))
    }
}

impl Serialize for InstanceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for InstanceId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

/// The text is not the name of an instance.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "not an instance id: expected bgr_ and 26 characters of 0-9 A-Z without I L O U, such as bgr_01ARZ3NDEKTSV4RRFFQ69G5FAV"
)]
pub struct InvalidId;

const PREFIX: &str = "bgr_";
const LENGTH: usize = 26;
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
