//! What to run, checked before anything is started.

use std::{fmt, time::Duration};

use serde_json::{Map, Value};

use crate::{InstanceId, InvalidModel, Limits, Model};

/// What to run.
///
/// ```
/// use bizar_background::{Limits, Spawn};
/// let arguments = serde_json::json!({"agent": "mimir", "prompt": "Read the auth module.", "timeoutMs": 60_000});
/// let spawn = Spawn::from_json(&arguments, &Limits::default())?;
/// assert_eq!(spawn.deadline.as_secs(), 60);
/// # Ok::<(), bizar_background::Refusal>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spawn {
    /// The agent to run.
    pub agent: String,
    /// What it is told, word for word.
    pub prompt: String,
    /// The model, if not the agent's own.
    pub model: Option<Model>,
    /// How long the run may take, from the moment it is accepted.
    pub deadline: Duration,
    /// The agent that asks for the run.
    pub caller: Option<String>,
    /// The session that asks for the run.
    pub caller_session: Option<String>,
}

impl Spawn {
    /// A run of `agent` with the default deadline of 5 minutes.
    #[must_use]
    pub fn new(agent: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            prompt: prompt.into(),
            deadline: DEFAULT_DEADLINE,
            ..Self::default()
        }
    }

    /// Reads the arguments of a tool: `agent`, `prompt`, and maybe `model` and `timeoutMs`.
    ///
    /// # Errors
    /// What is missing or wrong, in words that tell a model what to do instead.
    pub fn from_json(arguments: &Value, limits: &Limits) -> Result<Self, Refusal> {
        let none = Map::new();
        let arguments = arguments.as_object().unwrap_or(&none);
        let mut spawn = Self::new(text(arguments, "agent")?, text(arguments, "prompt")?);
        match arguments.get("model") {
            None | Some(Value::Null) => {}
            Some(Value::String(model)) => spawn.model = Some(model.parse()?),
            Some(_) => return Err(InvalidModel.into()),
        }
        match arguments.get("timeoutMs") {
            None | Some(Value::Null) => {}
            // 60000.0 is a whole number too: JSON does not tell them apart.
            Some(Value::Number(number)) => {
                let whole = number.as_u64().or_else(|| {
                    let number = number.as_f64().filter(|number| number.fract() == 0.0)?;
                    format!("{number:.0}").parse().ok()
                });
                spawn.deadline = Duration::from_millis(whole.ok_or(Refusal::Deadline)?);
            }
            Some(_) => return Err(Refusal::Deadline),
        }
        spawn.check(limits)?;
        Ok(spawn)
    }

    /// Says what is wrong with the run before anything is started.
    ///
    /// # Errors
    /// An empty agent or prompt, a reserved agent, a prompt over 1 MiB, a deadline out of range.
    pub fn check(&self, limits: &Limits) -> Result<(), Refusal> {
        if self.agent.trim().is_empty() {
            return Err(Refusal::Argument { name: "agent" });
        }
        if self.prompt.trim().is_empty() {
            return Err(Refusal::Argument { name: "prompt" });
        }
        if limits.reserved_agents.contains(&self.agent) {
            return Err(Refusal::Reserved {
                agent: self.agent.clone(),
            });
        }
        if self.prompt.len() > MAX_PROMPT {
            return Err(Refusal::PromptTooLong {
                bytes: self.prompt.len(),
            });
        }
        if !(MIN_DEADLINE..=MAX_DEADLINE).contains(&self.deadline) {
            return Err(Refusal::Deadline);
        }
        Ok(())
    }
}

/// Why a run was not started.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// An argument is missing or is no text.
    #[error("{name} is required: a text that is not blank")]
    Argument {
        /// The argument.
        name: &'static str,
    },
    /// The agent may not run in the background.
    #[error("agent {agent} cannot run in the background: name another agent")]
    Reserved {
        /// The agent.
        agent: String,
    },
    /// The server has no such agent.
    #[error("there is no agent {agent}; available: {}", .available.join(", "))]
    UnknownAgent {
        /// The agent.
        agent: String,
        /// What there is.
        available: Vec<String>,
    },
    /// The prompt is too long.
    #[error(
        "the prompt has {bytes} bytes, at most {MAX_PROMPT} are taken: put the material in a file and name it"
    )]
    PromptTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The run deadline is out of range or is no number.
    #[error("timeoutMs must be a whole number from 1000 to 1800000")]
    Deadline,
    /// The model cannot be read.
    #[error(transparent)]
    Model(#[from] InvalidModel),
    /// Every slot is taken.
    #[error("all {limit} background slots are taken by {}: collect or kill one, or wait", Holders(.holders))]
    NoSlot {
        /// The number of slots.
        limit: usize,
        /// Who has them: instance, its agent, and what it does.
        holders: Vec<(InstanceId, String, &'static str)>,
    },
    /// Everything is being shut down.
    #[error("background agents are being shut down")]
    ShuttingDown,
    /// The instance is there already.
    #[error("instance {0} is there already")]
    Duplicate(InstanceId),
}

struct Holders<'a>(&'a [(InstanceId, String, &'static str)]);

impl fmt::Display for Holders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (id, agent, state)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{id} ({agent}, {state})")?;
        }
        Ok(())
    }
}

fn text(arguments: &Map<String, Value>, name: &'static str) -> Result<String, Refusal> {
    match arguments.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        _ => Err(Refusal::Argument { name }),
    }
}

const DEFAULT_DEADLINE: Duration = Duration::from_secs(5 * 60);
const MIN_DEADLINE: Duration = Duration::from_secs(1);
const MAX_DEADLINE: Duration = Duration::from_secs(30 * 60);
const MAX_PROMPT: usize = 1 << 20;
