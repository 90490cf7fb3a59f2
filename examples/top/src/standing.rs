//! Where a session stands on the ladder.

use std::{collections::HashMap, path::PathBuf};

use bizar_config::{Environment, Json, Options, Sources, Thresholds, resolve};
use bizar_fingerprint::glob_matches;
use bizar_state::Outcome;
use bizar_window::{Pending, Rule, Rules, Verdict};
use serde::Deserialize;

use crate::document::State;

/// What the detector's snapshot says of the last call.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The rules of the session.
    pub rules: Rules,
    /// The thresholds of the last call's tool.
    pub ladder: Thresholds,
    /// How often in a row the last call brought nothing new.
    pub count: u32,
    /// The verdict of the last call.
    pub verdict: Verdict,
    /// The rule that decided it.
    pub rule: Option<Rule>,
    /// Calls that were refused with no progress between.
    pub refused: u32,
    /// What the agent is told with its next request.
    pub due: Option<Verdict>,
    /// The calls that are running: tool, and when they began.
    pub open: Vec<(String, i64)>,
}

impl Standing {
    /// Where the session of `state` stands; `None` if its detector is missing or of another version.
    #[must_use]
    pub fn of(state: &State, ladders: &mut Ladders) -> Option<Self> {
        let detector: Detector = serde_json::from_str(state.detector.as_ref()?.get()).ok()?;
        let Snapshot {
            rules,
            refused,
            memory,
            ..
        } = &detector.session;
        let last = state.tool_calls().next_back();
        let open = detector.open.last().map(|open| open.tool.as_str());
        let tool = open.or_else(|| last.map(|call| call.tool.as_str()));
        let ladder = ladders.of(state.host(), tool.unwrap_or_default());
        let (count, mut verdict, mut rule) = memory.last(&ladder);
        let is_refused = last.is_some_and(|call| call.outcome == Outcome::Blocked);
        if *refused > 0 && is_refused && detector.open.is_empty() && !rules.observe_only {
            let is_halted = rules.halt_after > 0 && *refused > rules.halt_after;
            verdict = verdict.max(if is_halted {
                Verdict::Halt
            } else {
                Verdict::Block
            });
            if is_halted {
                rule = Some(Rule::Halt);
            }
        }
        Some(Self {
            rules: *rules,
            ladder,
            count,
            verdict,
            rule,
            refused: *refused,
            due: detector.session.pending().map(|pending| pending.verdict),
            open: detector
                .open
                .into_iter()
                .map(|open| (open.tool, open.at))
                .collect(),
        })
    }
}

/// The thresholds of every host and tool, as the options file sets them.
#[derive(Clone, Debug, Default)]
pub struct Ladders {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The text of the options file.
    pub file: Option<String>,
    /// The environment.
    pub env: Environment,
    by_host: HashMap<String, Options>,
}

impl Ladders {
    /// From the options file and the environment.
    #[must_use]
    pub fn new(home: Option<PathBuf>, file: Option<String>, env: Environment) -> Self {
        Self {
            home,
            file,
            env,
            by_host: HashMap::new(),
        }
    }

    /// The thresholds of `tool` under `host`.
    pub fn of(&mut self, host: &str, tool: &str) -> Thresholds {
        if !self.by_host.contains_key(host) {
            // A host is any text in a document: a thousand of them are not worth remembering.
            if self.by_host.len() >= MOST_HOSTS {
                self.by_host.clear();
            }
            let is_stricter = STRICTER_HOSTS.contains(&host);
            let resolved = resolve(Sources {
                home: self.home.as_deref(),
                host_defaults: is_stricter.then_some(Json::Text(STRICTER)),
                file: self.file.as_deref(),
                host: Some(host),
                host_options: None,
                env: self.env.clone(),
            });
            self.by_host.insert(host.to_owned(), resolved.options);
        }
        let Some(options) = self.by_host.get(host) else {
            return Options::default().thresholds;
        };
        let of_tool = options
            .loop_tool_thresholds
            .iter()
            .find(|thresholds| glob_matches(&thresholds.glob, tool));
        of_tool.map_or(options.thresholds, |found| found.thresholds)
    }
}

/// What is looked at in the guard's memory of a session.
#[derive(Deserialize)]
struct Detector {
    session: Snapshot,
    #[serde(default)]
    open: Vec<Open>,
}

#[derive(Deserialize)]
struct Open {
    tool: String,
    at: i64,
}

#[derive(Deserialize)]
struct Snapshot {
    rules: Rules,
    #[serde(default)]
    refused: u32,
    #[serde(default)]
    level: Option<Pending>,
    #[serde(default)]
    round_level: Option<Pending>,
    #[serde(default)]
    round_news: bool,
    memory: Memory,
}

impl Snapshot {
    /// As `bizar_window::Session::pending`: the level falls once a round was quieter and brought news.
    fn pending(&self) -> Option<Pending> {
        let verdict = |level: Option<Pending>| level.map_or(Verdict::Allow, |level| level.verdict);
        let is_lower = verdict(self.round_level) < verdict(self.level);
        if self.round_news && is_lower {
            self.round_level
        } else {
            self.level
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Memory {
    Progress { entries: Vec<Entry> },
    Repetition { keys: Vec<String>, run: u32 },
    Cycle { equal: Vec<u32> },
}

/// What is usual is left out.
/// One call, in the short names of the snapshot; what is usual is left out there.
#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "c", default = "one")]
    count: u32,
    #[serde(rename = "v", default)]
    verdict: Verdict,
    #[serde(rename = "r", default)]
    rule: Option<Rule>,
}

const fn one() -> u32 {
    1
}

impl Memory {
    /// Count, verdict and rule of the last call.
    fn last(&self, ladder: &Thresholds) -> (u32, Verdict, Option<Rule>) {
        match self {
            Self::Progress { entries } => {
                let Some(last) = entries.last() else {
                    return (0, Verdict::Allow, None);
                };
                // The count of a halt is of refusals; the ladder's is that of the call before.
                let climbing = entries
                    .iter()
                    .rev()
                    .find(|entry| entry.rule != Some(Rule::Halt));
                let count = climbing.unwrap_or(last).count;
                (count, last.verdict, last.rule)
            }
            Self::Repetition { keys, run } => {
                let matches = keys.iter().filter(|key| Some(*key) == keys.last()).count();
                let count = u32::try_from(matches).unwrap_or(u32::MAX).max(*run);
                let verdict = rung(count, ladder);
                let rule = (verdict > Verdict::Allow).then_some(Rule::Repetition);
                (count, verdict, rule)
            }
            Self::Cycle { equal } => {
                let calls = (1..).zip(equal).filter(|(_, equal)| **equal > 0);
                let count = calls
                    .map(|(period, equal)| equal.saturating_add(period))
                    .max();
                (count.unwrap_or(1), Verdict::Allow, None)
            }
        }
    }
}

/// The rung of a plain count.
fn rung(count: u32, ladder: &Thresholds) -> Verdict {
    let notice = ladder.warn().saturating_sub(2).max(2);
    match count {
        _ if count >= ladder.block() => Verdict::Block,
        _ if count >= ladder.escalate() => Verdict::Escalate,
        _ if count >= ladder.warn() => Verdict::Warn,
        _ if count >= notice && ladder.warn() > 2 => Verdict::Notice,
        _ => Verdict::Allow,
    }
}

/// Harnesses that stop a loop of their own accord after a few calls: there the guard has to speak earlier.
const STRICTER_HOSTS: [&str; 5] = ["gemini", "qwen", "cline", "droid", "kimi"];
const STRICTER: &str =
    r#"{"loopThresholdWarn":2,"loopThresholdEscalate":3,"loopThresholdBlock":12}"#;
const MOST_HOSTS: usize = 64;
