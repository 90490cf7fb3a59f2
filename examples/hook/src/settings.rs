//! The user's options, and where a project begins.

use std::{
    env, fs,
    io::Read,
    path::{Path, PathBuf},
};

use bizar_guard::{Environment, Resolved, Sources, resolve};

use crate::harness::Harness;

/// The options in force for a harness.
pub(crate) fn resolved(harness: Harness) -> Resolved {
    let home = home();
    let file = home.as_deref().and_then(options_file);
    let facts = harness.facts();
    resolve(Sources {
        home: home.as_deref(),
        host_defaults: facts.has_own_guard.then(|| EARLY.into()),
        file: file.as_deref(),
        host: Some(facts.name),
        env: Environment::from_pairs(env::vars_os()),
        ..Sources::default()
    })
}

/// The user's home directory.
pub(crate) fn home() -> Option<PathBuf> {
    env::home_dir().filter(|home| home.is_absolute())
}

pub(crate) fn options_path(home: &Path) -> PathBuf {
    home.join(".config/bizarharness/options.json")
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

/// Its text, if it is a file of sensible length: a pipe would never end.
fn options_file(home: &Path) -> Option<String> {
    let path = options_path(home);
    if !fs::metadata(&path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    fs::File::open(&path)
        .ok()?
        .take(MOST_OPTIONS)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

/// Where the host's own guard acts at three to six calls, later levels would never be seen.
const EARLY: &str = r#"{"loopThresholdWarn":2,"loopThresholdEscalate":3,"loopThresholdBlock":12}"#;

const MOST_OPTIONS: u64 = 1 << 20;

const MOST_ABOVE: usize = 64;
