//! Which arguments of which tools are commentary and do not tell two calls apart.

use crate::emit::write_string;

/// A table of tools and their arguments that are left out of a fingerprint.
///
/// Only arguments themselves are left out, never members of what they hold, and only for tools that a row
/// names: there is no name that is ignored everywhere.
///
/// The default table knows the arguments in which some harnesses make the model say what it is doing:
/// `description` and `thought` of shell tools, `task_progress` of Cline's tools.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IgnoredArgs {
    rows: Vec<Row>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Row {
    tools: Vec<String>,
    /// As they stand in JSON, escaped, without quotes.
    names: Vec<Vec<u8>>,
}

impl IgnoredArgs {
    /// The table without rows: every argument counts.
    #[must_use]
    pub fn none() -> Self {
        Self { rows: Vec::new() }
    }

    /// Adds a row: arguments called `names` of tools whose name matches `glob` ([`glob_matches`]) are left out.
    pub fn add<N: AsRef<str>>(
        &mut self,
        glob: impl Into<String>,
        names: impl IntoIterator<Item = N>,
    ) -> &mut Self {
        self.rows.push(Row {
            tools: vec![glob.into()],
            names: names
                .into_iter()
                .map(|name| escaped(name.as_ref()))
                .collect(),
        });
        self
    }

    /// `name` as it stands in JSON. Names are looked at first: they are few, and rarely there.
    pub(crate) fn contains(&self, tool: &str, name: &[u8]) -> bool {
        self.rows.iter().any(|row| {
            row.names.iter().any(|ignored| ignored == name)
                && row.tools.iter().any(|glob| glob_matches(glob, tool))
        })
    }
}

impl Default for IgnoredArgs {
    fn default() -> Self {
        let row = |tools: &[&str], names: &[&str]| Row {
            tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
            names: names.iter().map(|name| escaped(name)).collect(),
        };
        Self {
            rows: vec![
                row(&SHELL_TOOLS, &["description", "thought"]),
                row(&CLINE_TOOLS, &["task_progress"]),
            ],
        }
    }
}

/// Whether a tool name matches a glob, in which `*` stands for any text, also none. Case counts.
///
/// ```
/// use bizar_fingerprint::glob_matches;
///
/// assert!(glob_matches("mcp__*__search", "mcp__web__search"));
/// assert!(!glob_matches("bash", "Bash"));
/// ```
#[must_use]
pub fn glob_matches(glob: &str, name: &str) -> bool {
    let Some((head, tail)) = glob.split_once('*') else {
        return glob == name;
    };
    let Some(mut rest) = name.strip_prefix(head) else {
        return false;
    };
    // Each middle part at its first place: later ones never allow more.
    let (middle, last) = tail.rsplit_once('*').unwrap_or(("", tail));
    for part in middle.split('*') {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

fn escaped(name: &str) -> Vec<u8> {
    let mut quoted = Vec::new();
    write_string(&mut quoted, name.as_bytes());
    quoted
        .get(1..quoted.len().saturating_sub(1))
        .unwrap_or_default()
        .to_vec()
}

/// Tools that run a shell command, under the names that harnesses give them.
pub const SHELL_TOOLS: [&str; 10] = [
    "bash",
    "Bash",
    "shell",
    "exec",
    "exec_command",
    "execute_bash",
    "shell_exec",
    "terminal",
    "run_shell_command",
    "Execute",
];

const CLINE_TOOLS: [&str; 15] = [
    "access_mcp_resource",
    "ask_followup_question",
    "attempt_completion",
    "browser_action",
    "execute_command",
    "list_code_definition_names",
    "list_files",
    "new_task",
    "plan_mode_respond",
    "read_file",
    "replace_in_file",
    "search_files",
    "use_mcp_tool",
    "web_fetch",
    "write_to_file",
];
