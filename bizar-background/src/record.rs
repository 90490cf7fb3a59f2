//! What is stored of an instance.

use serde::{Deserialize, Serialize};

use crate::{InstanceId, Status, View, Waiting};

/// The stored form of an instance: counts, times, status and names.
///
/// No prompt, no text of the model and no secret is in it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The instance.
    pub instance_id: InstanceId,
    /// The server's name of its session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The agent that ran.
    #[serde(default)]
    pub agent: String,
    /// The agent that asked for it.
    #[serde(default)]
    pub parent_agent: Option<String>,
    /// How it stands.
    pub status: Status,
    /// When it was accepted, in milliseconds since 1970.
    #[serde(default)]
    pub started_at: u64,
    /// When it got its final status, in milliseconds since 1970.
    #[serde(default)]
    pub ended_at: Option<u64>,
    /// How long it was allowed to take.
    #[serde(default)]
    pub deadline_ms: u64,
    /// Distinct tool calls, subagents included.
    #[serde(default)]
    pub tool_call_count: usize,
    /// US dollars, subagents included.
    #[serde(default)]
    pub cost_usd: f64,
    /// Tokens, subagents included.
    #[serde(default)]
    pub tokens: u64,
    /// Why it ended, unless it is done.
    #[serde(default)]
    pub error: Option<String>,
    /// The tool whose call the loop guard refused.
    #[serde(default)]
    pub loop_guard_tool: Option<String>,
    /// What the run waits for.
    #[serde(default)]
    pub waiting_on: Option<Waiting>,
    /// The session in which it waits.
    #[serde(default)]
    pub waiting_for: Option<String>,
    /// Its session was set to work again after it had ended.
    #[serde(default)]
    pub reactivated: bool,
    /// The process that runs it.
    #[serde(default)]
    pub owner: Option<Owner>,
}

impl Record {
    /// Ends a record whose process is gone. `true` if that changed it.
    pub fn orphaned(&mut self, epoch_ms: u64) -> bool {
        if self.status.is_final() {
            return false;
        }
        self.status = Status::Failed;
        self.error = Some("plugin restarted".into());
        self.waiting_on = None;
        self.waiting_for = None;
        self.ended_at = Some(epoch_ms);
        true
    }

    /// The record as a view. Previews are not stored.
    #[must_use]
    pub fn view(&self) -> View {
        View {
            instance_id: self.instance_id,
            session_id: self.session_id.clone(),
            agent: self.agent.clone(),
            status: self.status,
            started_at: self.started_at,
            ended_at: self.ended_at,
            duration_ms: self
                .ended_at
                .unwrap_or(self.started_at)
                .saturating_sub(self.started_at),
            deadline_at: self.started_at.saturating_add(self.deadline_ms),
            tool_call_count: self.tool_call_count,
            cost_usd: self.cost_usd,
            tokens: self.tokens,
            prompt_preview: None,
            result_preview: None,
            error: self.error.clone(),
            parent_agent: self.parent_agent.clone(),
            parent_instance_id: None,
            loop_guard_tool: self.loop_guard_tool.clone(),
            waiting_on: self.waiting_on,
            waiting_for: self.waiting_for.clone(),
            retry: None,
            is_ending: false,
            draining: false,
            reactivated: self.reactivated,
            stalled_for_ms: None,
            rejected: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl Default for Record {
    fn default() -> Self {
        Self {
            instance_id: InstanceId::new(0, [0; 10]),
            session_id: None,
            agent: String::new(),
            parent_agent: None,
            status: Status::Pending,
            started_at: 0,
            ended_at: None,
            deadline_ms: 0,
            tool_call_count: 0,
            cost_usd: 0.0,
            tokens: 0,
            error: None,
            loop_guard_tool: None,
            waiting_on: None,
            waiting_for: None,
            reactivated: false,
            owner: None,
        }
    }
}

/// The process that runs an instance. A process id alone is used again by others.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Its process id.
    pub pid: u32,
    /// When it was started, as its system counts that.
    #[serde(default)]
    pub started: u64,
    /// The run of the machine it belongs to.
    #[serde(default)]
    pub boot: String,
}
