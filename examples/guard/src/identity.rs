//! From calls and results to what the detector compares.

use std::sync::Mutex;

use bizar_config::{LoopMode, Options};
use bizar_fingerprint::{Digest, Digester, Fingerprint, Fingerprinter, IgnoredArgs, glob_matches};
use bizar_window::{Kind, Ladder};

use crate::{
    call::{Args, Ended, Output, Status},
    key_file,
    kind::{POLL_TOOLS, kind_with},
    notes::Notes,
    resident::lock,
    setup::Setup,
};

/// The rules of identity, set once.
#[derive(Debug)]
pub(crate) struct Identity {
    rules: Fingerprinter,
    /// Copies that nobody uses at the moment; each keeps its buffers.
    idle: Mutex<Vec<Fingerprinter>>,
}

impl Identity {
    pub(crate) fn new(setup: &Setup, notes: &Notes) -> Self {
        let rules = match setup.options.loop_mode {
            // Strings are compared as they are, and all arguments count.
            LoopMode::Cycle => Fingerprinter::new().ignored(IgnoredArgs::none()),
            LoopMode::Progress | LoopMode::Repetition => normalising(setup),
        };
        Self {
            rules: keyed(rules, setup, notes),
            idle: Mutex::default(),
        }
    }

    /// The identity of a call, and its kind. Arguments that have no identity count as missing.
    pub(crate) fn of(&self, tool: &str, args: Args<'_>, options: &Options) -> (Fingerprint, Kind) {
        let idle = lock(&self.idle).pop();
        let mut fingerprinter = idle.unwrap_or_else(|| self.rules.clone());
        let fingerprint = match args {
            Args::Missing => None,
            Args::Text(text) => fingerprinter.of_text(tool, text).ok(),
            Args::Value(value) => fingerprinter.of_value(tool, value).ok(),
        };
        let identity = match (fingerprint, options.loop_poll_tools.as_deref()) {
            (None, _) => (fingerprinter.of_absent(tool), Kind::ArgsMissing),
            (Some(fingerprint), Some(polls)) => (fingerprint, kind_with(polls, tool, args)),
            (Some(fingerprint), None) => (fingerprint, kind_with(&POLL_TOOLS, tool, args)),
        };
        lock(&self.idle).push(fingerprinter);
        identity
    }

    /// The digest of what a call ended with, if anything is known of it.
    pub(crate) fn digest(&self, ended: &Ended<'_>) -> Option<Digest> {
        let ok = match ended.status {
            Status::Ok => Some(true),
            Status::Failed | Status::Refused => Some(false),
            Status::Unknown => None,
            Status::Aborted => return None,
        };
        match ended.result {
            Output::Missing => None,
            Output::Text(text) => Some(self.rules.digest_text(ok, text)),
            Output::Value(value) => Some(self.rules.digest_value(ok, value)),
            Output::Digest(digest) => Some(digest),
        }
    }

    pub(crate) fn digester(&self, ok: Option<bool>) -> Digester {
        self.rules.digester(ok)
    }
}

/// The thresholds of a tool: those of the first glob that matches, or the common ones.
pub(crate) fn ladder(options: &Options, tool: &str) -> Ladder {
    let own = options
        .loop_tool_thresholds
        .iter()
        .find(|own| glob_matches(&own.glob, tool));
    let thresholds = own.map_or(options.thresholds, |own| own.thresholds);
    Ladder::new(thresholds.warn(), thresholds.escalate(), thresholds.block())
}

fn normalising(setup: &Setup) -> Fingerprinter {
    let mut ignored = IgnoredArgs::default();
    for (glob, names) in &setup.options.loop_ignore_args {
        ignored.add(glob.as_str(), names);
    }
    let rules = Fingerprinter::new().ignored(ignored);
    let in_worktree = rules
        .clone()
        .worktree(setup.worktree.as_deref().unwrap_or_default());
    if in_worktree.has_worktree() {
        return in_worktree;
    }
    rules.worktree(&setup.directory)
}

fn keyed(rules: Fingerprinter, setup: &Setup, notes: &Notes) -> Fingerprinter {
    let Some(file) = setup
        .options
        .fingerprint_key_file
        .as_ref()
        .filter(|_| !setup.env.disable)
    else {
        return rules;
    };
    match key_file::read_or_make(file) {
        Ok(key) => rules.keyed(&key),
        Err(why) => {
            notes.add(format!(
                "fingerprintKeyFile: {why}: fingerprints have no key"
            ));
            rules
        }
    }
}
