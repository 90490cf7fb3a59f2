//! Where each harness keeps its hooks, and which of its events matter.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::harness::Harness;

/// One file of hooks.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) is_project: bool,
}

/// How hooks are written down.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Format {
    /// `{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …}]}]}}`
    Groups(Json),
    /// `{"version": 1, "hooks": {EVENT: [{"bash": …}]}}`
    Copilot,
    /// `{"version": 1, "hooks": {EVENT: [{"command": …}]}}`
    Cursor,
    /// `[[hooks]]` in TOML.
    Kimi,
    /// A directory of programs, named like the events.
    Programs,
}

/// What a JSON format differs in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Json {
    /// The host reads comments and trailing commas.
    pub(crate) has_comments: bool,
    /// Time limits are in milliseconds, not in seconds.
    pub(crate) in_millis: bool,
}

/// Seconds after which a host may give up on us; we give up on ourselves long before.
pub(crate) const TIMEOUT: u32 = 5;

pub(crate) fn format(harness: Harness) -> Format {
    let json = |has_comments, in_millis| {
        Format::Groups(Json {
            has_comments,
            in_millis,
        })
    };
    match harness {
        Harness::Claude | Harness::Droid => json(true, false),
        Harness::Gemini | Harness::Qwen => json(true, true),
        Harness::Codex | Harness::Goose => json(false, false),
        Harness::Copilot => Format::Copilot,
        Harness::Cursor => Format::Cursor,
        Harness::Kimi => Format::Kimi,
        Harness::Cline => Format::Programs,
    }
}

/// The events to be told of.
pub(crate) fn events(harness: Harness) -> &'static [&'static str] {
    match harness {
        Harness::Claude | Harness::Qwen => &[
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PostToolBatch",
            "UserPromptSubmit",
            "SessionStart",
            "Stop",
        ],
        Harness::Codex | Harness::Droid => &[
            "PreToolUse",
            "PostToolUse",
            "UserPromptSubmit",
            "SessionStart",
            "Stop",
        ],
        Harness::Gemini => &[
            "BeforeTool",
            "AfterTool",
            "BeforeAgent",
            "PreCompress",
            "SessionStart",
            "AfterAgent",
        ],
        Harness::Copilot | Harness::Kimi | Harness::Goose => &[
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "UserPromptSubmit",
            "SessionStart",
            "Stop",
        ],
        Harness::Cursor => &[
            "preToolUse",
            "postToolUse",
            "postToolUseFailure",
            "beforeSubmitPrompt",
            "sessionStart",
            "stop",
        ],
        Harness::Cline => &["TaskStart", "PreToolUse", "PostToolUse", "TaskComplete"],
    }
}

/// The user's file for a harness.
pub(crate) fn of_user(harness: Harness, home: &Path) -> Place {
    // A harness that was told of another home of its own is followed there.
    let own = |variable: &str, usual: &str| {
        let moved = env::var_os(variable).map(PathBuf::from);
        let moved = moved.filter(|moved| moved.is_absolute());
        moved.unwrap_or_else(|| home.join(usual))
    };
    let path = match harness {
        Harness::Claude => own("CLAUDE_CONFIG_DIR", ".claude").join("settings.json"),
        Harness::Codex => own("CODEX_HOME", ".codex").join("hooks.json"),
        Harness::Gemini => home.join(".gemini/settings.json"),
        Harness::Qwen => home.join(".qwen/settings.json"),
        Harness::Copilot => own("COPILOT_HOME", ".copilot").join("hooks/bizar-hook.json"),
        Harness::Kimi => own("KIMI_CODE_HOME", ".kimi-code").join("config.toml"),
        Harness::Droid => home.join(".factory/settings.json"),
        Harness::Cursor => home.join(".cursor/hooks.json"),
        Harness::Goose => home.join(".agents/plugins/bizar-hook/hooks/hooks.json"),
        Harness::Cline => home.join(".cline/hooks"),
    };
    Place {
        path,
        is_project: false,
    }
}

/// A project's file for a harness, if there is such a thing.
pub(crate) fn of_project(harness: Harness, project: &Path) -> Option<Place> {
    let path = match harness {
        Harness::Claude => ".claude/settings.json",
        Harness::Codex => ".codex/hooks.json",
        Harness::Gemini => ".gemini/settings.json",
        Harness::Qwen => ".qwen/settings.json",
        Harness::Copilot => ".github/hooks/bizar-hook.json",
        Harness::Kimi => return None,
        Harness::Droid => ".factory/settings.json",
        Harness::Cursor => ".cursor/hooks.json",
        Harness::Goose => ".agents/plugins/bizar-hook/hooks/hooks.json",
        Harness::Cline => ".cline/hooks",
    };
    Some(Place {
        path: project.join(path),
        is_project: true,
    })
}
