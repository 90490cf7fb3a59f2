//! Paths of a worktree made portable, by their text alone: no file is looked at, so a symbolic link is a name like any other.

use crate::hash::Key;

/// Longer strings are no paths.
const MAX_PATH: usize = 4096;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Spelling {
    Posix,
    Windows,
}

/// The directory whose paths are written relative to it.
#[derive(Clone, Debug)]
pub(crate) struct Worktree {
    spelling: Spelling,
    /// Clean, without a slash at its end.
    root: Vec<u8>,
}

impl Worktree {
    /// `None` for what is no absolute path and for the root of a file system, in which everything would be inside.
    pub(crate) fn new(path: &str) -> Option<Self> {
        let share = path.starts_with("//") && path.contains('\\');
        let spelling = if path.starts_with('/') && !share {
            Spelling::Posix
        } else {
            Spelling::Windows
        };
        let mut root = Vec::new();
        let prefix = clean(path.as_bytes(), spelling, &mut root)?;
        (root.len() > prefix).then_some(Self { spelling, root })
    }

    /// A cheap look at a JSON string's escaped text: could it be an absolute path?
    pub(crate) fn concerns(&self, escaped: &[u8]) -> bool {
        match self.spelling {
            Spelling::Posix => matches!(escaped, [b'/', ..]),
            Spelling::Windows => matches!(escaped, [b'/' | b'\\', ..] | [_, b':', ..]),
        }
    }

    /// Writes what stands for an absolute path; `false` for every other string.
    pub(crate) fn rewrite(
        &self,
        text: &[u8],
        hash_outside: Option<&Key>,
        out: &mut Vec<u8>,
    ) -> bool {
        if text.len() > MAX_PATH
            || text.iter().any(u8::is_ascii_control)
            || clean(text, self.spelling, out).is_none()
        {
            return false;
        }
        match out.strip_prefix(self.root.as_slice()) {
            Some([]) => {
                out.clear();
                out.push(b'.');
                true
            }
            Some([b'/', ..]) => {
                out.drain(..=self.root.len());
                true
            }
            _ => {
                let Some(key) = hash_outside else {
                    return false;
                };
                let mut short = [0; 16];
                let hash = key.hash(out);
                let _ = hex::encode_to_slice(hash.get(..8).unwrap_or_default(), &mut short);
                out.clear();
                out.extend_from_slice(b"path:");
                out.extend_from_slice(&short);
                true
            }
        }
    }
}

/// Appends an absolute path without `.`, `..`, doubled slashes and slashes at its end, with `/` between its names.
///
/// Returns the length of the root (`/`, `C:/`, `//server/share/`), which is never dropped; `None` if the path is not absolute.
fn clean(path: &[u8], spelling: Spelling, out: &mut Vec<u8>) -> Option<usize> {
    let start = out.len();
    let separator = |byte: &u8| *byte == b'/' || (spelling == Spelling::Windows && *byte == b'\\');
    let rest = match spelling {
        Spelling::Posix => {
            out.push(b'/');
            path.strip_prefix(b"/")?
        }
        Spelling::Windows => windows_root(path, out)?,
    };
    let root = out.len() - start;
    for name in rest.split(separator) {
        match name {
            b"" | b"." => {}
            b".." => {
                let names = out.get(start + root..).unwrap_or_default();
                let parent = names.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                out.truncate(start + root + parent);
            }
            _ => {
                if out.len() > start + root {
                    out.push(b'/');
                }
                out.extend_from_slice(name);
            }
        }
    }
    Some(root)
}

/// Appends the root of an absolute Windows path and returns what follows it.
fn windows_root<'p>(path: &'p [u8], out: &mut Vec<u8>) -> Option<&'p [u8]> {
    let slash = |byte: u8| byte == b'/' || byte == b'\\';
    match path {
        // `\\?\C:\…` and `\\?\UNC\server\share\…` are the long spellings of the two forms below.
        [a, b, b'?', c, rest @ ..] if slash(*a) && slash(*b) && slash(*c) => match rest {
            [b'U' | b'u', b'N' | b'n', b'C' | b'c', c, share @ ..] if slash(*c) => {
                share_root(share, out)
            }
            [_, b':', ..] => windows_root(rest, out),
            _ => None,
        },
        [a, b, share @ ..] if slash(*a) && slash(*b) => share_root(share, out),
        [drive, b':', c, rest @ ..] if drive.is_ascii_alphabetic() && slash(*c) => {
            out.extend_from_slice(&[drive.to_ascii_uppercase(), b':', b'/']);
            Some(rest)
        }
        _ => None,
    }
}

/// `server\share\…` after its two slashes.
fn share_root<'p>(path: &'p [u8], out: &mut Vec<u8>) -> Option<&'p [u8]> {
    let mut parts = path.splitn(3, |&byte| byte == b'/' || byte == b'\\');
    let (server, share) = (parts.next()?, parts.next()?);
    if server.is_empty() || share.is_empty() {
        return None;
    }
    for part in [b"/", server, share] {
        out.extend_from_slice(part);
        out.push(b'/');
    }
    Some(parts.next().unwrap_or_default())
}
