//! From a call to its fingerprint, by rules that are set once.

use serde::Serialize;
use serde_json::Value;

use crate::digest::Digester;
use crate::emit::{Emitter, Rules, Scratch, write_string};
use crate::error::Error;
use crate::hash::Key;
use crate::ignored::IgnoredArgs;
use crate::path::Worktree;
use crate::serialize::Writer;
use crate::{Digest, Fingerprint, digest, text, value};

/// Makes fingerprints of calls and digests of results.
///
/// Set up once, then used for every call: it keeps its buffers, so a call allocates nothing once they have
/// grown. Clone it for another thread.
///
/// By default the table of [`IgnoredArgs::default`] applies, no path is touched and there is no key.
#[derive(Clone, Debug)]
pub struct Fingerprinter {
    worktree: Option<Worktree>,
    hash_outside: bool,
    unify_empty: bool,
    ignored: IgnoredArgs,
    key: Key,
    scratch: Scratch,
}

impl Fingerprinter {
    /// The default rules.
    #[must_use]
    pub fn new() -> Self {
        Self {
            worktree: None,
            hash_outside: true,
            unify_empty: true,
            ignored: IgnoredArgs::default(),
            key: Key::default(),
            scratch: Scratch::default(),
        }
    }

    /// Makes arguments that are absolute paths portable: relative inside this directory, hashed outside.
    ///
    /// The spelling of the directory decides what an absolute path is: `/…`, or `C:\…` and `\\server\share\…`
    /// (with either slash). The root of a file system and what is no absolute path count as no worktree; see
    /// [`has_worktree`](Self::has_worktree).
    #[must_use]
    pub fn worktree(self, directory: impl AsRef<str>) -> Self {
        Self {
            worktree: Worktree::new(directory.as_ref()),
            ..self
        }
    }

    /// Whether paths outside the worktree become `path:` and 16 hex digits of their hash (default), or stay.
    #[must_use]
    pub fn hash_outside(self, hash_outside: bool) -> Self {
        Self {
            hash_outside,
            ..self
        }
    }

    /// Whether `null` is written `{}` (default), which is what absent arguments are.
    #[must_use]
    pub fn unify_empty(self, unify_empty: bool) -> Self {
        Self {
            unify_empty,
            ..self
        }
    }

    /// Replaces the table of arguments that are left out.
    #[must_use]
    pub fn ignored(self, ignored: IgnoredArgs) -> Self {
        Self { ignored, ..self }
    }

    /// Uses HMAC-SHA-256 with this key for fingerprints, digests and outside paths, so that nobody without the
    /// key can find out arguments by trying.
    #[must_use]
    pub fn keyed(self, key: &[u8; 32]) -> Self {
        Self {
            key: Key::new(key),
            ..self
        }
    }

    /// Whether there is a worktree that is used.
    #[must_use]
    pub fn has_worktree(&self) -> bool {
        self.worktree.is_some()
    }

    /// The fingerprint of a call whose arguments are JSON text.
    ///
    /// # Errors
    /// As [`canonical_from_text`](crate::canonical_from_text); also for what is wrong inside an ignored argument.
    pub fn of_text(&mut self, tool: &str, args: impl AsRef<[u8]>) -> Result<Fingerprint, Error> {
        self.document(tool, |emitter| text::emit(emitter, args.as_ref()))?;
        Ok(self.finish())
    }

    /// The fingerprint of a call whose arguments are a value.
    ///
    /// # Errors
    /// As [`canonical_from_value`](crate::canonical_from_value).
    pub fn of_value(&mut self, tool: &str, args: &Value) -> Result<Fingerprint, Error> {
        self.document(tool, |emitter| value::emit(emitter, args, 1))?;
        Ok(self.finish())
    }

    /// The fingerprint of a call whose arguments serde can serialise.
    ///
    /// # Errors
    /// As [`canonical_from_serialize`](crate::canonical_from_serialize).
    pub fn of_serialize(
        &mut self,
        tool: &str,
        args: &(impl Serialize + ?Sized),
    ) -> Result<Fingerprint, Error> {
        self.document(tool, |emitter| args.serialize(Writer::new(emitter)))?;
        Ok(self.finish())
    }

    /// The fingerprint of a call without arguments; the same as of `{}` and `null`.
    #[must_use]
    pub fn of_absent(&mut self, tool: &str) -> Fingerprint {
        let written = self.document(tool, |emitter| {
            emitter.out().extend_from_slice(b"{}");
            Ok(())
        });
        debug_assert!(written.is_ok(), "nothing above can fail");
        self.finish()
    }

    /// The document `{"args":…,"tool":…}` whose hash is the fingerprint, for arguments that are JSON text.
    ///
    /// # Errors
    /// As [`of_text`](Self::of_text).
    pub fn canonical_text(&mut self, tool: &str, args: impl AsRef<[u8]>) -> Result<Vec<u8>, Error> {
        self.document(tool, |emitter| text::emit(emitter, args.as_ref()))?;
        Ok(self.scratch.out.clone())
    }

    /// The document `{"args":{},"tool":…}` of a call without arguments.
    #[must_use]
    pub fn canonical_absent(&mut self, tool: &str) -> Vec<u8> {
        let _ = self.of_absent(tool);
        self.scratch.out.clone()
    }

    /// The digest of a result that is text, which may be JSON. `ok` is whether the call succeeded; unknown counts as success.
    #[must_use]
    pub fn digest_text(&self, ok: Option<bool>, result: impl AsRef<[u8]>) -> Digest {
        digest::of_text(&self.key, ok, result.as_ref())
    }

    /// The digest of a result that is a value: a string counts as text, all else as its JSON.
    #[must_use]
    pub fn digest_value(&self, ok: Option<bool>, result: &Value) -> Digest {
        digest::of_value(&self.key, ok, result)
    }

    /// Makes a digest of text that comes in pieces; the same as [`digest_text`](Self::digest_text) of the whole.
    #[must_use]
    pub fn digester(&self, ok: Option<bool>) -> Digester {
        Digester::new(self.key.clone(), ok)
    }

    fn document(
        &mut self,
        tool: &str,
        args: impl FnOnce(&mut Emitter<'_, CallRules<'_>>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        const START: &[u8] = b"{\"args\":";
        self.scratch.out.clear();
        self.scratch.out.extend_from_slice(START);
        let rules = CallRules {
            tool,
            ignored: &self.ignored,
            worktree: self.worktree.as_ref(),
            hash_outside: self.hash_outside.then_some(&self.key),
        };
        args(&mut Emitter::new(&mut self.scratch, rules))?;

        let out = &mut self.scratch.out;
        if self.unify_empty && out.get(START.len()..) == Some(b"null") {
            out.truncate(START.len());
            out.extend_from_slice(b"{}");
        }
        out.extend_from_slice(b",\"tool\":");
        write_string(out, tool.as_bytes());
        out.push(b'}');
        Ok(())
    }

    fn finish(&self) -> Fingerprint {
        Fingerprint::from_bytes(self.key.hash(&self.scratch.out))
    }
}

impl Default for Fingerprinter {
    fn default() -> Self {
        Self::new()
    }
}

struct CallRules<'f> {
    tool: &'f str,
    ignored: &'f IgnoredArgs,
    worktree: Option<&'f Worktree>,
    hash_outside: Option<&'f Key>,
}

impl Rules for CallRules<'_> {
    fn drops(&self, depth: usize, name: &[u8]) -> bool {
        depth == 1 && self.ignored.contains(self.tool, name)
    }

    fn concerns(&self, escaped: &[u8]) -> bool {
        self.worktree
            .is_some_and(|worktree| worktree.concerns(escaped))
    }

    fn rewrite(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        self.worktree
            .is_some_and(|worktree| worktree.rewrite(text, self.hash_outside, out))
    }
}
