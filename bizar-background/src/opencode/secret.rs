//! The password of one server.

use std::fmt;

/// 32 random bytes as text, which cannot be printed and is wiped when it is no longer needed.
///
/// It exists in memory, in the environment of the child it is made for, and nowhere else.
pub(super) struct Secret(Box<[u8]>);

impl Secret {
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut random = [0; 32];
        getrandom::fill(&mut random)?;
        let secret = Self(encode(&random, URL, false).into_bytes().into_boxed_slice());
        wipe(&mut random);
        Ok(secret)
    }

    /// The text, for the environment of the child.
    pub(super) fn reveal(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The value of the `Authorization` header.
    pub(super) fn authorization(&self) -> String {
        let mut pair = format!("{USER}:{}", self.reveal()).into_bytes();
        let header = format!("Basic {}", encode(&pair, STANDARD, true));
        wipe(&mut pair);
        header
    }

    /// The text without the secret, wherever it stands in it.
    pub(super) fn redact(&self, text: &str) -> String {
        text.replace(self.reveal(), "[redacted]")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    // What is looked at afterwards cannot be left out by the compiler.
    std::hint::black_box(bytes);
}

fn encode(bytes: &[u8], alphabet: &[u8; 64], is_padded: bool) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = (0..3).fold(0_u32, |word, at| {
            word << 8 | u32::from(chunk.get(at).copied().unwrap_or(0))
        });
        for digit in 0..4 {
            let index = usize::try_from(word >> (18 - 6 * digit) & 63).unwrap_or_default();
            if digit <= chunk.len() {
                text.push(char::from(*alphabet.get(index).unwrap_or(&b'A')));
            } else if is_padded {
                text.push('=');
            }
        }
    }
    text
}

/// The name that goes with the password.
pub(super) const USER: &str = "opencode";
const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_those_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes(), STANDARD, true), text);
            assert_eq!(
                encode(bytes.as_bytes(), URL, false),
                text.trim_end_matches('=')
            );
        }
        assert_eq!(encode(&[0xfb, 0xff], URL, false), "-_8");
    }

    #[test]
    fn a_secret_is_new_and_does_not_print_itself() {
        let (one, two) = (Secret::new().unwrap(), Secret::new().unwrap());
        assert_eq!(one.reveal().len(), 43);
        assert_ne!(one.reveal(), two.reveal());
        assert_eq!(format!("{one:?}"), "Secret");
        assert_eq!(
            one.redact(&format!("a {} b", one.reveal())),
            "a [redacted] b"
        );
    }

    #[test]
    fn wiping_leaves_zeros() {
        let mut bytes = [1, 2, 3];
        wipe(&mut bytes);
        assert_eq!(bytes, [0; 3]);
    }
}
