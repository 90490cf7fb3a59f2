//! From a recorded call to the identities that rules compare.

use std::hash::{DefaultHasher, Hash, Hasher};

use bizar_fingerprint::{Fingerprint, Fingerprinter, IgnoredArgs};
use bizar_guard::kind;
use bizar_window::Outcome;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::judge::Subject;
use crate::record::{Call, Recorded};

/// Makes fingerprints and digests; keeps the scratch memory for them.
#[derive(Debug)]
pub struct Identity {
    normal: Fingerprinter,
    plain: Fingerprinter,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            normal: Fingerprinter::new(),
            plain: Fingerprinter::new().ignored(IgnoredArgs::none()),
        }
    }
}

impl Identity {
    /// The fingerprint of a call, and all a rule needs to judge it in `round`.
    ///
    /// # Errors
    /// Arguments that have no identity: duplicate names, half a surrogate pair.
    pub fn of(
        &mut self,
        call: &Call,
        round: u64,
    ) -> Result<(Fingerprint, Subject), bizar_fingerprint::Error> {
        let args = call
            .args
            .as_deref()
            .filter(|_| !call.args_missing)
            .map(|args| args.get());
        let (normal, plain) = match args {
            Some(args) => (
                self.normal.of_text(&call.tool, args.as_bytes())?,
                self.plain.of_text(&call.tool, args.as_bytes())?,
            ),
            None => (
                self.normal.of_absent(&call.tool),
                self.plain.of_absent(&call.tool),
            ),
        };
        let mut tool = DefaultHasher::new();
        call.tool.hash(&mut tool);
        let subject = Subject {
            key: *normal.as_bytes(),
            plain_key: *plain.as_bytes(),
            tool: tool.finish(),
            kind: kind(
                &call.tool,
                if call.args_missing {
                    None
                } else {
                    Some(args.unwrap_or("{}"))
                },
            ),
            round,
            outcome: self.outcome(call),
        };
        Ok((normal, subject))
    }

    fn outcome(&self, call: &Call) -> Option<Outcome<[u8; 16]>> {
        if call.is_unanswered() {
            return None;
        }
        let digest = match &call.result {
            Recorded::Absent => None,
            Recorded::Text(text) => {
                Some(*self.normal.digest_text(call.ok, text.as_bytes()).as_bytes())
            }
            Recorded::Json(raw) => Some(match serde_json::from_str::<Value>(raw.get()) {
                Ok(value) => *self.normal.digest_value(call.ok, &value).as_bytes(),
                // Deeper than a value may be.
                Err(_) => *self
                    .normal
                    .digest_text(call.ok, raw.get().as_bytes())
                    .as_bytes(),
            }),
            Recorded::Norm(hash) => Some(digest_of_hash("norm", call.ok, hash)),
            Recorded::Sha256(hash) => Some(digest_of_hash("sha256", call.ok, hash)),
        };
        Some(Outcome {
            ok: call.ok,
            digest,
            refused: false,
        })
    }
}

/// The recorder's own hash says which results are equal; our normalisation would take it for a volatile id and drop it.
fn digest_of_hash(sort: &str, ok: Option<bool>, hash: &str) -> [u8; 16] {
    let failed = u8::from(ok == Some(false));
    let full = Sha256::new()
        .chain_update(sort)
        .chain_update([0, failed])
        .chain_update(hash)
        .finalize();
    let mut half = [0; 16];
    half.copy_from_slice(full.get(..16).unwrap_or(&[0; 16]));
    half
}
