//! The user's options, and where a project begins.

use std::{env, path::Path};

use bizar_guard::{Form, Setup};

use crate::harness::Harness;

/// A guard for one event of a harness, by the user's options.
pub(crate) fn setup(harness: Harness) -> Setup {
    let facts = harness.facts();
    let defaults = facts.has_own_guard.then(|| EARLY.into());
    Setup::of_user(facts.name, defaults, None).form(Form::ONE_CALL)
}

/// Whether standard error is worth a word.
pub(crate) fn is_debugging() -> bool {
    env::var_os("BIZAR_LOG_LEVEL").is_some_and(|level| level == "debug")
}

/// The work tree that a directory belongs to.
pub(crate) fn worktree(directory: &str) -> Option<String> {
    let mut above = Path::new(directory).ancestors().take(MOST_ABOVE);
    let root = above.find(|above| above.join(".git").exists())?;
    root.to_str().map(str::to_owned)
}

/// Where the host's own guard acts at three to six calls, later levels would never be seen.
const EARLY: &str = r#"{"loopThresholdWarn":2,"loopThresholdEscalate":3,"loopThresholdBlock":12}"#;

const MOST_ABOVE: usize = 64;
