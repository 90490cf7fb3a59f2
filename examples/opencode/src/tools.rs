//! The four tools of background agents: who may use them, their arguments, and their results.

use std::time::Duration;

use bizar_background::opencode::Opencode;
use bizar_background::{Agents, InstanceId, Limits, Permissions, Spawn, View};
use bizar_guard::Options;
use serde_json::{Value, json};

/// What opencode registers: descriptions and arguments, by name.
const TOOLS: &str = include_str!("tools.json");

/// The definitions as one line for the plugin file.
pub(crate) fn definitions() -> Value {
    serde_json::from_str(TOOLS).unwrap_or_default()
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tool {
    Spawn,
    Status,
    Collect,
    Kill,
}

impl Tool {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "spawn" => Self::Spawn,
            "status" => Self::Status,
            "collect" => Self::Collect,
            "kill" => Self::Kill,
            _ => return None,
        })
    }
}

/// A call of a tool, as the host tells it.
pub(crate) struct Call {
    /// The agent that calls: from the host, never from the arguments.
    pub(crate) agent: String,
    pub(crate) session: String,
    pub(crate) args: Value,
}

/// The background agents of one directory.
pub(crate) struct Tools {
    agents: Agents<Opencode>,
    limits: Limits,
    /// Agents that may spawn, collect and kill.
    privileged: Vec<String>,
}

impl Tools {
    pub(crate) fn new(agents: Agents<Opencode>, limits: Limits, privileged: Vec<String>) -> Self {
        Self {
            agents,
            limits,
            privileged,
        }
    }

    /// The result, or what is wrong with the call and what to do instead.
    pub(crate) async fn call(&self, tool: Tool, call: Call) -> Result<Value, String> {
        if tool != Tool::Status && !self.privileged.contains(&call.agent) {
            return Err(self.not_for(&call.agent));
        }
        match tool {
            Tool::Spawn => self.spawn(call).await,
            Tool::Status => self.status(&call.args).await,
            Tool::Collect => self.collect(&call.args).await,
            Tool::Kill => self.kill(&call.args).await,
        }
    }

    pub(crate) async fn shut_down(&self) {
        self.agents.shutdown().await;
    }

    fn not_for(&self, agent: &str) -> String {
        format!(
            "agent {agent} may not spawn, collect or kill background agents, only {} may (option backgroundAgents): use \
             bizar_status to look at them, and the task tool or your report to get work done",
            self.privileged.join(", ")
        )
    }

    async fn spawn(&self, call: Call) -> Result<Value, String> {
        let mut spawn = Spawn::from_json(&call.args, &self.limits).map_err(text)?;
        spawn.caller = Some(call.agent);
        spawn.caller_session = Some(call.session);
        let view = self.agents.spawn(spawn).await.map_err(text)?;
        let mut answer = json!({
            "instanceId": view.instance_id,
            "sessionId": view.session_id,
            "status": view.status,
        });
        if let (Some(error), Some(answer)) = (view.error, answer.as_object_mut()) {
            answer.insert("error".to_owned(), json!(error));
        }
        Ok(answer)
    }

    async fn status(&self, args: &Value) -> Result<Value, String> {
        if !matches!(args.get("instanceId"), None | Some(Value::Null)) {
            let view = self.agents.status(instance(args)?).await.map_err(text)?;
            return Ok(json!(view));
        }
        let all = match args.get("all") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(all)) => *all,
            Some(_) => return Err("all must be true or false".to_owned()),
        };
        let mut views = self.agents.statuses(all).await;
        let is_ended = |view: &View| view.status.is_final();
        let ended = views.iter().filter(|view| is_ended(view)).count();
        let mut surplus = ended.saturating_sub(SHOWN);
        let left_out = surplus;
        views.retain(|view| {
            let goes = surplus > 0 && is_ended(view);
            surplus -= usize::from(goes);
            !goes
        });
        Ok(json!({"instances": views, "olderEnded": left_out}))
    }

    async fn collect(&self, args: &Value) -> Result<Value, String> {
        let id = instance(args)?;
        let wait = match args.get("timeoutMs") {
            None | Some(Value::Null) => None,
            Some(wait) => Some(milliseconds(wait)?),
        };
        Ok(json!(self.agents.collect(id, wait).await.map_err(text)?))
    }

    async fn kill(&self, args: &Value) -> Result<Value, String> {
        let killed = self.agents.kill(instance(args)?).await.map_err(text)?;
        if killed.status.is_final() {
            return Ok(json!(killed));
        }
        Err(format!(
            "{} belongs to another running opencode: it can be killed only from there",
            killed.instance_id
        ))
    }
}

/// The limits that options set.
pub(crate) fn limits(options: &Options) -> Limits {
    let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    Limits {
        live: count(options.max_concurrent_instances),
        tool_calls: count(options.background_tool_call_cap),
        cost_usd: options.background_max_cost_usd,
        tokens: options.background_max_tokens,
        permissions: match options.background_permissions.as_str() {
            "wait" => Permissions::Wait,
            "allow" => Permissions::Allow,
            _ => Permissions::Reject,
        },
        reserved_agents: options.background_agents.clone(),
        ..Limits::default()
    }
}

fn instance(args: &Value) -> Result<InstanceId, String> {
    let id = args.get("instanceId").and_then(Value::as_str);
    let id = id.ok_or("instanceId is required: see bizar_status for those there are")?;
    id.parse().map_err(text)
}

fn milliseconds(value: &Value) -> Result<Duration, String> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0);
    number
        .filter(|number| (0.0..=LONGEST_MS).contains(number))
        .map(|number| Duration::from_secs_f64(number / 1000.0))
        .ok_or_else(|| format!("timeoutMs must be a whole number from 0 to {LONGEST_MS}"))
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Ended instances in a list.
const SHOWN: usize = 20;
const LONGEST_MS: f64 = 1_800_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_whole_milliseconds_in_range() {
        for (value, wait) in [
            (json!(0), 0),
            (json!(2000.0), 2000),
            (json!(1_800_000), 1_800_000),
        ] {
            assert_eq!(milliseconds(&value), Ok(Duration::from_millis(wait)));
        }
        for value in [
            json!(-1),
            json!(0.5),
            json!("1000"),
            json!(1_800_001),
            json!([1]),
        ] {
            assert!(milliseconds(&value).unwrap_err().contains("0 to 1800000"));
        }
    }

    #[test]
    fn every_tool_is_described_and_warns_of_foreign_text() {
        let tools = definitions();
        let mut names: Vec<_> = tools.as_object().unwrap().keys().collect();
        names.sort();
        assert_eq!(
            names,
            [
                "bizar_collect",
                "bizar_kill",
                "bizar_spawn_background",
                "bizar_status"
            ]
        );
        for (name, tool) in tools.as_object().unwrap() {
            assert!(tool["description"].as_str().unwrap().len() > 40, "{name}");
            for required in tool["required"].as_array().unwrap() {
                assert!(
                    tool["args"].get(required.as_str().unwrap()).is_some(),
                    "{name}"
                );
            }
        }
        let spawn = tools["bizar_spawn_background"]["description"]
            .as_str()
            .unwrap();
        assert!(spawn.contains("untrusted"));
    }
}
