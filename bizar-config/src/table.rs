//! The one table of all options: parsing, notes, schema and documentation follow it.

use crate::{
    Thresholds,
    kind::Kind,
    options::{BackgroundPermissions, DoomLoop, LoopMode},
};

/// An option: its name, what it is for, and what its values are.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) kind: Kind,
}

pub(crate) static TABLE: [Row; 25] = [
    Row {
        name: "loopThresholdWarn",
        about: "count at which the agent is told that it goes in circles",
        kind: Kind::Count {
            default: 5,
            least: 1,
            most: Thresholds::MOST - 2,
            field: |draft| &mut draft.warn,
        },
    },
    Row {
        name: "loopThresholdEscalate",
        about: "count at which it is told more strongly; one above warn if not above it",
        kind: Kind::Count {
            default: 8,
            least: 1,
            most: Thresholds::MOST - 1,
            field: |draft| &mut draft.escalate,
        },
    },
    Row {
        name: "loopThresholdBlock",
        about: "count at which the call is refused; one above escalate if not above it",
        kind: Kind::Count {
            default: 12,
            least: 1,
            most: Thresholds::MOST,
            field: |draft| &mut draft.block,
        },
    },
    Row {
        name: "loopWindowSize",
        about: "calls that the mode `repetition` looks back on",
        kind: Kind::Count {
            default: 10,
            least: 3,
            most: 50,
            field: |draft| &mut draft.options.loop_window_size,
        },
    },
    Row {
        name: "logDir",
        about: "directory of the logs, one line a call; never inside ~/.ssh, ~/.gnupg, ~/.aws or ~/.kube",
        kind: Kind::Path {
            default: Some("~/.cache/bizarharness/logs"),
            field: |draft| &mut draft.options.log_dir,
        },
    },
    Row {
        name: "stateDir",
        about: "directory of the sessions' state; never inside ~/.ssh, ~/.gnupg, ~/.aws or ~/.kube",
        kind: Kind::Path {
            default: Some("~/.cache/bizarharness"),
            field: |draft| &mut draft.options.state_dir,
        },
    },
    Row {
        name: "logRotationBytes",
        about: "bytes of a log file before it is rotated",
        kind: Kind::Size {
            default: Some(10_485_760),
            least: 1024,
            set: |draft, bytes| draft.options.log_rotation_bytes = bytes.unwrap_or(10_485_760),
        },
    },
    Row {
        name: "loopMode",
        about: "what counts as going in circles: calls without news, equal calls, or short cycles",
        kind: Kind::Word {
            words: &["progress", "repetition", "cycle"],
            set: |draft, word| draft.options.loop_mode = parse(&LoopMode::WORDS, word),
        },
    },
    Row {
        name: "loopHaltAfterBlocks",
        about: "refused calls in a row after which the run is ended; 0 is never",
        kind: Kind::Count {
            default: 3,
            least: 0,
            most: 1000,
            field: |draft| &mut draft.options.loop_halt_after_blocks,
        },
    },
    Row {
        name: "loopObserveOnly",
        about: "log verdicts and do nothing else",
        kind: Kind::Switch {
            default: false,
            field: |draft| &mut draft.options.loop_observe_only,
        },
    },
    Row {
        name: "loopPollTools",
        about: "globs of the tools that wait for something, in place of the built-in list",
        kind: Kind::Names {
            default: None,
            set: |draft, names| draft.options.loop_poll_tools = names,
        },
    },
    Row {
        name: "loopExemptTools",
        about: "globs of the tools that are never judged",
        kind: Kind::Names {
            default: Some(&[]),
            set: |draft, names| draft.options.loop_exempt_tools = names.unwrap_or_default(),
        },
    },
    Row {
        name: "loopToolThresholds",
        about: "thresholds of some tools: glob to warn, escalate, block; the first glob that matches decides",
        kind: Kind::ToolThresholds,
    },
    Row {
        name: "loopIgnoreArgs",
        about: "arguments that do not make a call another one: glob to names, beside the built-in table",
        kind: Kind::IgnoreArgs,
    },
    Row {
        name: "fingerprintKeyFile",
        about: "file with a 32-byte key for the fingerprints, made if absent",
        kind: Kind::Path {
            default: None,
            field: |draft| &mut draft.options.fingerprint_key_file,
        },
    },
    Row {
        name: "verdictTimeoutMs",
        about: "milliseconds that an adapter waits for a verdict before the call goes on",
        kind: Kind::Count {
            default: 250,
            least: 50,
            most: 5000,
            field: |draft| &mut draft.options.verdict_timeout_ms,
        },
    },
    Row {
        name: "opencodeDoomLoop",
        about: "allow: opencode no longer asks about repeated calls itself; leave: it does as configured",
        kind: Kind::Word {
            words: &["allow", "leave"],
            set: |draft, word| draft.options.opencode_doom_loop = parse(&DoomLoop::WORDS, word),
        },
    },
    Row {
        name: "backgroundAgents",
        about: "agents that may spawn, collect and kill background agents",
        kind: Kind::Names {
            default: Some(&["odin"]),
            set: |draft, names| draft.options.background_agents = names.unwrap_or_default(),
        },
    },
    Row {
        name: "backgroundPermissions",
        about: "answer to a background agent that asks for a permission",
        kind: Kind::Word {
            words: &["reject", "wait", "allow"],
            set: |draft, word| {
                draft.options.background_permissions = parse(&BackgroundPermissions::WORDS, word)
            },
        },
    },
    Row {
        name: "backgroundEager",
        about: "start the background server at load instead of at first use",
        kind: Kind::Switch {
            default: false,
            field: |draft| &mut draft.options.background_eager,
        },
    },
    Row {
        name: "backgroundParent",
        about: "make background sessions children of the session that spawned them",
        kind: Kind::Switch {
            default: false,
            field: |draft| &mut draft.options.background_parent,
        },
    },
    Row {
        name: "backgroundMaxCostUsd",
        about: "US dollars after which a background agent is stopped",
        kind: Kind::Amount {
            field: |draft| &mut draft.options.background_max_cost_usd,
        },
    },
    Row {
        name: "backgroundMaxTokens",
        about: "tokens after which a background agent is stopped",
        kind: Kind::Size {
            default: None,
            least: 1,
            set: |draft, tokens| draft.options.background_max_tokens = tokens,
        },
    },
    Row {
        name: "maxConcurrentInstances",
        about: "background agents alive at the same time",
        kind: Kind::Count {
            default: 8,
            least: 1,
            most: 32,
            field: |draft| &mut draft.options.max_concurrent_instances,
        },
    },
    Row {
        name: "backgroundToolCallCap",
        about: "tool calls after which a background agent is stopped",
        kind: Kind::Count {
            default: 500,
            least: 1,
            most: 5000,
            field: |draft| &mut draft.options.background_tool_call_cap,
        },
    },
];

/// The range of a count, for the environment variables that stand for one.
pub(crate) fn range(option: &str) -> (u32, u32) {
    let row = TABLE.iter().find(|row| row.name == option);
    match row.map(|row| &row.kind) {
        Some(Kind::Count { least, most, .. }) => (*least, *most),
        _ => (0, u32::MAX),
    }
}

fn parse<T: Copy + Default>(words: &[(&str, T)], word: &str) -> T {
    words
        .iter()
        .find(|(known, _)| *known == word)
        .map_or_else(T::default, |(_, value)| *value)
}
