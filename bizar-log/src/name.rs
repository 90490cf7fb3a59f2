use std::{
    fmt, fs, io,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

use sha2::{Digest as _, Sha256};

use crate::percent;

/// The file stem of a session: safe on every file system, never shared by two ids.
///
/// * An id of 1 to 100 characters `[A-Za-z0-9_-]` that is no reserved device name of
///   Windows is its own name.
/// * Any other id is percent-encoded, dots included, so the name of `x.1` can never be a
///   rotation of `x`. Of a reserved name the first character is encoded.
/// * If that is longer than 100 characters it is cut there, and `~` with 16 hex digits of
///   the id's SHA-256 follow. The empty id is only that ending.
/// * In a directory that takes `A` and `a` for one file, ids with capital letters get the
///   ending too.
///
/// A name is at most 117 bytes of ASCII; it has no dot, no separator and no space.
///
/// ```
/// use bizar_log::SessionName;
///
/// assert_eq!(SessionName::of("ses_5Fb3").as_str(), "ses_5Fb3");
/// assert_eq!(SessionName::of("../x").as_str(), "%2E%2E%2Fx");
/// assert_eq!(SessionName::of("nul").as_str(), "%6Eul");
/// assert_eq!(SessionName::case_folded("Ab").as_str(), "Ab~025b5573cb68f3af");
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionName(String);

impl SessionName {
    /// The name of `id` in a directory that tells `A` from `a`.
    pub fn of(id: &str) -> Self {
        Self::new(id, false)
    }

    /// The name of `id` in a directory that takes `A` and `a` for one file.
    pub fn case_folded(id: &str) -> Self {
        Self::new(id, true)
    }

    /// The name of `id` in `directory`, by how this directory treats capital letters.
    ///
    /// Asked only for ids that have one: an empty file with a unique name is created in
    /// `directory`, looked up in other case, and removed. Where that fails (no directory, not
    /// writable) the usual behaviour of the operating system is assumed: macOS and
    /// Windows fold case, others do not.
    pub fn for_directory(directory: &Path, id: &str) -> Self {
        let capitals = id.bytes().any(|byte| byte.is_ascii_uppercase());
        Self::new(id, capitals && folds_case(directory))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn new(id: &str, folds_case: bool) -> Self {
        let mut name = String::with_capacity(LONGEST + 17);
        let mut rest = id;
        if is_reserved(id) {
            let (first, others) = id.split_at(1);
            percent::encode(first, |_| false, &mut name);
            rest = others;
        }
        percent::encode(rest, stays, &mut name);

        let capitals = id.bytes().any(|byte| byte.is_ascii_uppercase());
        if name.is_empty() || name.len() > LONGEST || (folds_case && capitals) {
            name.truncate(LONGEST);
            push_hash(id, &mut name);
        }
        Self(name)
    }
}

impl AsRef<str> for SessionName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Appends `~` and 16 hex digits of the SHA-256 of `text`. `~` stands in no other name.
pub(crate) fn push_hash(text: &str, out: &mut String) {
    out.push('~');
    for byte in Sha256::digest(text).iter().take(8) {
        out.extend(
            [byte >> 4, byte & 15]
                .iter()
                .filter_map(|nibble| char::from_digit(u32::from(*nibble), 16)),
        );
    }
}

fn stays(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Device names that Windows finds in every directory, whatever the extension.
fn is_reserved(id: &str) -> bool {
    let lower = id.to_ascii_lowercase();
    let numbered = |prefix| {
        lower
            .strip_prefix(prefix)
            .is_some_and(|rest: &str| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(lower.as_str(), "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

fn folds_case(directory: &Path) -> bool {
    probe(directory).unwrap_or(cfg!(any(target_os = "macos", target_os = "ios", windows)))
}

/// Whether a file is found under a name that differs only in case.
fn probe(directory: &Path) -> io::Result<bool> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let unique = format!(
        ".case-{}-{}",
        std::process::id(),
        COUNTER.fetch_add(1, Ordering::Relaxed)
    );
    let lower = directory.join(format!("{unique}.probe"));
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&lower)?;
    let found = fs::symlink_metadata(directory.join(format!("{unique}.PROBE"))).is_ok();
    fs::remove_file(&lower)?;
    Ok(found)
}

const LONGEST: usize = 100;
