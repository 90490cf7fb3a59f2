//! Where harnesses keep the sessions they record.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The usual places below a home directory, existing or not.
///
/// `variable` answers for the harnesses' own home variables, `CLAUDE_CONFIG_DIR` and `CODEX_HOME`. opencode keeps its sessions in a
/// database: `opencode export ID > FILE` writes one out.
pub fn usual_places(home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let own = |name: &str, usual: &str| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map_or_else(|| home.join(usual), PathBuf::from)
    };
    vec![
        own("CLAUDE_CONFIG_DIR", ".claude").join("projects"),
        own("CODEX_HOME", ".codex").join("sessions"),
        home.join(".gemini/tmp"),
        home.join(".qwen/projects"),
        home.join(".copilot/session-state"),
        home.join(".cline/data/sessions"),
        home.join(".kimi-code/sessions"),
        home.join(".factory/sessions"),
    ]
}
