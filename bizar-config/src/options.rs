//! The options, typed.

use std::{collections::BTreeMap, path::Path};

use crate::{CheckedPath, Note, Origin, checked_path::Secrets, table};

/// Every option of Bizar.
///
/// [`resolve`](crate::resolve) makes only valid ones. The fields are open so that a program
/// can decide for itself: what it sets there is its own, and the ranges are named here.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// `loopThresholdWarn`, `loopThresholdEscalate`, `loopThresholdBlock`.
    pub thresholds: Thresholds,
    /// `loopWindowSize`: calls that `repetition` looks back on, 3 to 50.
    pub loop_window_size: u32,
    /// `loopMode`: what counts as going in circles.
    pub loop_mode: LoopMode,
    /// `loopHaltAfterBlocks`: refused calls before the run is ended, 0 (never) to 1000.
    pub loop_halt_after_blocks: u32,
    /// `loopObserveOnly`: verdicts are logged and nothing else.
    pub loop_observe_only: bool,
    /// `loopPollTools`: globs of tools that wait for something; `None` is the guard's table.
    pub loop_poll_tools: Option<Vec<String>>,
    /// `loopExemptTools`: globs of tools that are never judged.
    pub loop_exempt_tools: Vec<String>,
    /// `loopToolThresholds`: thresholds by tool; the first glob that matches decides.
    pub loop_tool_thresholds: Vec<ToolThresholds>,
    /// `loopIgnoreArgs`: arguments that play no part, by tool, beside the guard's table.
    pub loop_ignore_args: Vec<(String, Vec<String>)>,
    /// `logDir`: where a line a call is written; `None` if no safe place is known.
    pub log_dir: Option<CheckedPath>,
    /// `stateDir`: where sessions are kept; `None` if no safe place is known.
    pub state_dir: Option<CheckedPath>,
    /// `logRotationBytes`: bytes of a log file before it is rotated, 1024 and more.
    pub log_rotation_bytes: u64,
    /// `fingerprintKeyFile`: a file with 32 bytes that key the fingerprints.
    pub fingerprint_key_file: Option<CheckedPath>,
    /// `verdictTimeoutMs`: milliseconds that an adapter waits for a verdict, 50 to 5000.
    pub verdict_timeout_ms: u32,
    /// `opencodeDoomLoop`: what becomes of opencode's own loop question.
    pub opencode_doom_loop: DoomLoop,
    /// `backgroundAgents`: names of the agents that may spawn, collect and kill.
    pub background_agents: Vec<String>,
    /// `backgroundPermissions`: the answer to a background agent that asks.
    pub background_permissions: BackgroundPermissions,
    /// `backgroundEager`: start the background server at load.
    pub background_eager: bool,
    /// `backgroundParent`: make background sessions children of the caller.
    pub background_parent: bool,
    /// `backgroundMaxCostUsd`: dollars an instance may cost, 0 and more.
    pub background_max_cost_usd: Option<f64>,
    /// `backgroundMaxTokens`: tokens an instance may use, 1 and more.
    pub background_max_tokens: Option<u64>,
    /// `maxConcurrentInstances`: live background agents, 1 to 32.
    pub max_concurrent_instances: u32,
    /// `backgroundToolCallCap`: tool calls of a background agent, 1 to 5000.
    pub background_tool_call_cap: u32,
}

/// Three rising counts: warn below escalate below block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Thresholds {
    warn: u32,
    escalate: u32,
    block: u32,
}

impl Thresholds {
    /// The largest `block`.
    pub const MOST: u32 = 1_000_000;

    /// Brings the counts into order: `warn` is at least 1, `escalate` above it, `block` above that.
    ///
    /// ```
    /// use bizar_config::Thresholds;
    ///
    /// let thresholds = Thresholds::new(9, 8, 12);
    /// assert_eq!((thresholds.warn(), thresholds.escalate(), thresholds.block()), (9, 10, 12));
    /// ```
    #[must_use]
    pub fn new(warn: u32, escalate: u32, block: u32) -> Self {
        let warn = warn.clamp(1, Self::MOST - 2);
        let escalate = escalate.clamp(warn + 1, Self::MOST - 1);
        let block = block.clamp(escalate + 1, Self::MOST);
        Self {
            warn,
            escalate,
            block,
        }
    }

    /// The count of the first warning.
    #[must_use]
    pub const fn warn(self) -> u32 {
        self.warn
    }

    /// The count of the stronger warning.
    #[must_use]
    pub const fn escalate(self) -> u32 {
        self.escalate
    }

    /// The count that is refused.
    #[must_use]
    pub const fn block(self) -> u32 {
        self.block
    }
}

/// Thresholds of the tools that a glob matches.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ToolThresholds {
    /// A tool name, in which `*` stands for anything.
    pub glob: String,
    /// Their thresholds; what was left out is as for every other tool.
    pub thresholds: Thresholds,
}

/// What counts as going in circles.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum LoopMode {
    /// Calls that bring nothing new.
    #[default]
    Progress,
    /// Equal calls among the last ones.
    Repetition,
    /// Short cycles of equal calls.
    Cycle,
}

impl LoopMode {
    pub(crate) const WORDS: [(&'static str, Self); 3] = [
        ("progress", Self::Progress),
        ("repetition", Self::Repetition),
        ("cycle", Self::Cycle),
    ];

    /// The word in the options.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        word(&Self::WORDS, self)
    }
}

/// What becomes of opencode's own loop question.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum DoomLoop {
    /// It is answered by Bizar's presence.
    #[default]
    Allow,
    /// It is left as it is.
    Leave,
}

impl DoomLoop {
    pub(crate) const WORDS: [(&'static str, Self); 2] =
        [("allow", Self::Allow), ("leave", Self::Leave)];

    /// The word in the options.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        word(&Self::WORDS, self)
    }
}

/// The answer to a background agent that asks for a permission.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum BackgroundPermissions {
    /// No.
    #[default]
    Reject,
    /// None: somebody else will answer.
    Wait,
    /// Yes to everything.
    Allow,
}

impl BackgroundPermissions {
    pub(crate) const WORDS: [(&'static str, Self); 3] = [
        ("reject", Self::Reject),
        ("wait", Self::Wait),
        ("allow", Self::Allow),
    ];

    /// The word in the options.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        word(&Self::WORDS, self)
    }
}

fn word<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words
        .iter()
        .find(|(_, of)| *of == value)
        .map_or("", |(word, _)| word)
}

/// Options in the making: thresholds are put in order when all sources have spoken.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) options: Options,
    /// Looked up once for all paths.
    pub(crate) secrets: Secrets,
    pub(crate) warn: u32,
    pub(crate) escalate: u32,
    pub(crate) block: u32,
    pub(crate) by_tool: Vec<ToolDraft>,
}

/// An entry of `loopToolThresholds`; `None` where it says nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolDraft {
    pub(crate) glob: String,
    pub(crate) warn: Option<u32>,
    pub(crate) escalate: Option<u32>,
    pub(crate) block: Option<u32>,
}

impl Draft {
    /// The defaults of the table.
    pub(crate) fn new(home: Option<&Path>, notes: &mut Vec<Note>) -> Self {
        let mut draft = Self {
            options: Options {
                thresholds: Thresholds::new(0, 0, 0),
                loop_window_size: 0,
                loop_mode: LoopMode::default(),
                loop_halt_after_blocks: 0,
                loop_observe_only: false,
                loop_poll_tools: None,
                loop_exempt_tools: Vec::new(),
                loop_tool_thresholds: Vec::new(),
                loop_ignore_args: Vec::new(),
                log_dir: None,
                state_dir: None,
                log_rotation_bytes: 0,
                fingerprint_key_file: None,
                verdict_timeout_ms: 0,
                opencode_doom_loop: DoomLoop::default(),
                background_agents: Vec::new(),
                background_permissions: BackgroundPermissions::default(),
                background_eager: false,
                background_parent: false,
                background_max_cost_usd: None,
                background_max_tokens: None,
                max_concurrent_instances: 0,
                background_tool_call_cap: 0,
            },
            secrets: Secrets::of(home),
            warn: 0,
            escalate: 0,
            block: 0,
            by_tool: Vec::new(),
        };
        for row in &table::TABLE {
            row.kind.reset(row.name, &mut draft, notes);
        }
        draft
    }

    pub(crate) fn settle(
        mut self,
        origins: &BTreeMap<&'static str, Origin>,
        notes: &mut Vec<Note>,
    ) -> Options {
        let main = Thresholds::new(self.warn, self.escalate, self.block);
        self.options.thresholds = main;
        for (name, wanted, is) in [
            ("loopThresholdEscalate", self.escalate, main.escalate),
            ("loopThresholdBlock", self.block, main.block),
        ] {
            if wanted != is
                && origins
                    .get(name)
                    .is_some_and(|origin| *origin > Origin::HostDefault)
            {
                notes.push(Note::new(
                    name,
                    format!("raised to {is}, to be above the one before it"),
                ));
            }
        }
        for tool in self.by_tool {
            let escalate = tool.escalate.unwrap_or(main.escalate);
            let block = tool.block.unwrap_or(main.block);
            let thresholds = Thresholds::new(tool.warn.unwrap_or(main.warn), escalate, block);
            let is_raised = tool
                .escalate
                .is_some_and(|wanted| wanted != thresholds.escalate)
                || tool.block.is_some_and(|wanted| wanted != thresholds.block);
            if is_raised {
                notes.push(Note::new(
                    "loopToolThresholds",
                    "an entry's thresholds were raised, each to be above the one before it",
                ));
            }
            self.options.loop_tool_thresholds.push(ToolThresholds {
                glob: tool.glob,
                thresholds,
            });
        }
        self.options
    }
}

impl Default for Options {
    /// The defaults without a home directory: nothing is written anywhere.
    fn default() -> Self {
        Draft::new(None, &mut Vec::new()).settle(&BTreeMap::new(), &mut Vec::new())
    }
}
