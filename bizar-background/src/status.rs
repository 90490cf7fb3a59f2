//! How an instance stands.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{InstanceId, event::Retry};

/// The status of an instance. The last four are final.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted; the server has not begun.
    Pending,
    /// The server has begun.
    Running,
    /// The run ended with a whole answer and nothing of it is left running.
    Done,
    /// It ended in any other way.
    Failed,
    /// It was killed.
    Killed,
    /// It reached its deadline.
    TimedOut,
}

impl Status {
    /// Nothing changes it any more.
    #[must_use]
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }

    /// The word of the contract: `pending`, `running`, `done`, `failed`, `killed`, `timed_out`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::TimedOut => "timed_out",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a run is being ended. It is recorded before the abort; the first one wins.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Intent {
    /// Somebody asked for it.
    Kill,
    /// The deadline has passed.
    Deadline,
    /// The limit of tool calls is reached.
    ToolCallCap,
    /// The limit of cost is passed.
    Cost,
    /// The limit of tokens is passed.
    Tokens,
    /// The loop guard refused a call of this tool.
    LoopGuard {
        /// The tool.
        tool: String,
    },
    /// Everything is being shut down.
    Shutdown,
}

/// How a run ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// A final status.
    pub status: Status,
    /// Why, unless it is done.
    pub error: Option<String>,
}

/// A change of an instance's status.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The instance.
    pub instance_id: InstanceId,
    /// Its new status.
    pub status: Status,
    /// Why it ended, unless it is done.
    pub error: Option<String>,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

/// What a run waits for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// Somebody to grant a permission.
    Permission,
    /// Somebody to answer a question.
    Question,
    /// The provider.
    Retry,
    /// A subagent that goes on while its parent is idle.
    Descendant,
}

/// Everything that may be shown of an instance. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// The instance.
    pub instance_id: InstanceId,
    /// The server's name of its session, once there is one.
    pub session_id: Option<String>,
    /// The agent that runs.
    pub agent: String,
    /// How it stands.
    pub status: Status,
    /// When it was accepted.
    pub started_at: u64,
    /// When it got its final status.
    pub ended_at: Option<u64>,
    /// How long it has taken, in milliseconds.
    pub duration_ms: u64,
    /// When it is ended at the latest.
    pub deadline_at: u64,
    /// Distinct tool calls, subagents included.
    pub tool_call_count: usize,
    /// US dollars, subagents included.
    pub cost_usd: f64,
    /// Tokens, subagents included.
    pub tokens: u64,
    /// The first 200 characters of the prompt.
    pub prompt_preview: Option<String>,
    /// The last 200 characters that the model wrote.
    pub result_preview: Option<String>,
    /// Why it ended, unless it is done.
    pub error: Option<String>,
    /// The agent that asked for it.
    pub parent_agent: Option<String>,
    /// Always empty: an instance cannot spawn another.
    pub parent_instance_id: Option<InstanceId>,
    /// The tool whose call the loop guard refused.
    pub loop_guard_tool: Option<String>,
    /// What the run waits for.
    pub waiting_on: Option<Waiting>,
    /// The session that it waits for, if it waits for a subagent.
    pub waiting_for: Option<String>,
    /// The wait for the provider.
    pub retry: Option<Retry>,
    /// It has been decided to end the run.
    pub is_ending: bool,
    /// It has ended, and something of it is still busy: the slot is not free yet.
    pub draining: bool,
    /// Its session was set to work again by somebody after it had ended.
    pub reactivated: bool,
    /// How long there has been no sign of life, if that is long.
    pub stalled_for_ms: Option<u64>,
    /// Requests that were refused because nobody watches the run.
    pub rejected: Vec<String>,
    /// What else was noticed.
    pub warnings: Vec<String>,
}
