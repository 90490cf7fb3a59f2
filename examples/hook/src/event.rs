//! What a host's JSON says, in one form for all of them.

use bizar_guard::{Digester, Status};
use serde_json::Value;

use crate::{
    harness::Harness,
    scan::{Found, Scanner, Size, Wanted},
};

mod outcome;

/// One event of a host.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) harness: Harness,
    pub(crate) kind: Kind,
    /// As the host spells it.
    pub(crate) name: String,
    /// The session and, if it is a subagent that cannot be told otherwise, the agent.
    pub(crate) session: String,
    pub(crate) directory: Option<String>,
    pub(crate) tool: String,
    pub(crate) id: Option<String>,
    /// JSON text; `None` if the host did not supply them, or too many.
    pub(crate) args: Option<String>,
    pub(crate) result: Outcome,
    pub(crate) status: Status,
    pub(crate) millis: Option<u64>,
    /// The JSON has Copilot's camel-case members, and wants such an answer.
    pub(crate) is_camel: bool,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// A call is about to be made.
    Before,
    /// It has ended.
    After,
    /// The calls of one message have all ended.
    RoundEnded,
    /// The user has spoken.
    Turn,
    /// A session begins: a turn on hosts that tell of none.
    Start,
    /// The agent has nothing to do.
    Idle,
    /// Nothing that matters here.
    Other,
}

/// What a call answered.
#[derive(Debug)]
pub(crate) enum Outcome {
    Missing,
    Text(Vec<u8>),
    Digested(Box<Digester>),
}

/// Which members are kept. Where several names mean one thing, the first that is there counts.
pub(crate) const WANTED: &[Wanted] = {
    const fn wanted(parent: &'static str, name: &'static str, size: Size) -> Wanted {
        Wanted { parent, name, size }
    }
    const fn short(name: &'static str) -> Wanted {
        wanted("", name, Size::Short)
    }
    &[
        short("hook_event_name"),
        short("event"),
        short("hookName"),
        short("session_id"),
        short("sessionId"),
        short("conversation_id"),
        short("agent_id"),
        short("parent_agent_id"),
        short("calling_session_id"),
        short("cwd"),
        short("working_dir"),
        short("workspaceRoots"),
        short("workspace_roots"),
        short("source"),
        short("prompt"),
        short("message"),
        short("tool_name"),
        short("toolName"),
        short("tool_call_id"),
        short("tool_use_id"),
        short("duration_ms"),
        short("duration"),
        short("is_interrupt"),
        short("client_type"),
        short("cursor_version"),
        short("matcher_context"),
        short("turn_id"),
        short("model"),
        short("prompt_id"),
        short("timestamp"),
        short("taskId"),
        wanted("sessionContext", "rootSessionId", Size::Short),
        wanted("tool_call", "id", Size::Short),
        wanted("tool_call", "name", Size::Short),
        wanted("tool_result", "id", Size::Short),
        wanted("tool_result", "name", Size::Short),
        wanted("tool_result", "durationMs", Size::Short),
        wanted("tool_result", "result_type", Size::Short),
        wanted("toolResult", "resultType", Size::Short),
        wanted("", "tool_input", Size::Args),
        wanted("", "toolArgs", Size::Args),
        wanted("tool_call", "input", Size::Args),
        wanted("tool_result", "input", Size::Args),
        wanted("", "tool_response", Size::Result),
        wanted("", "tool_output", Size::Result),
        wanted("", "error", Size::Result),
        wanted("", "error_message", Size::Result),
        wanted("tool_result", "output", Size::Result),
        wanted("tool_result", "text_result_for_llm", Size::Result),
        wanted("toolResult", "textResultForLlm", Size::Result),
    ]
};

impl Event {
    /// What the scanned document says; `None` if it names no session.
    ///
    /// `harness` and `event` are what the command line says; the document knows better what the event
    /// is, and worse which host it comes from.
    pub(crate) fn new(
        scanned: Scanner,
        harness: Option<Harness>,
        event: Option<&str>,
    ) -> Option<Self> {
        if !scanned.is_complete() {
            return None;
        }
        let mut members = Members(scanned.into_found());
        let named = ["hook_event_name", "event", "hookName"];
        let name = members
            .first_text(&named)
            .or_else(|| event.map(str::to_owned));
        let name = name.unwrap_or_default();
        let harness = harness.or_else(|| members.harness(&name))?;
        let mut kind = kind(harness, &name);
        if kind == Kind::Turn && !members.has_prompt(harness) {
            kind = Kind::Other;
        }
        if kind == Kind::Start {
            kind = members.start(harness);
        }
        let is_camel = members.has("toolName");
        let tool = members
            .first_text(&[
                "tool_name",
                "toolName",
                "tool_call.name",
                "tool_result.name",
            ])
            .unwrap_or_default();
        let session = members.session(harness)?;
        let args = [
            "tool_input",
            "toolArgs",
            "tool_call.input",
            "tool_result.input",
        ];
        let args = args.iter().find_map(|name| members.take_json(name));
        let result = [
            "tool_response",
            "tool_output",
            "tool_result.output",
            "tool_result.text_result_for_llm",
            "toolResult.textResultForLlm",
            "error",
            "error_message",
        ];
        let result = result.iter().find_map(|name| members.take_result(name));
        let is_failure = name.to_ascii_lowercase().contains("failure");
        let (result, status) = match (kind, result) {
            (Kind::After, Some(Found::Json(json))) => {
                outcome::judge(harness, is_failure, members.is_refused(), &json)
            }
            (Kind::After, Some(Found::Digested(digester))) => {
                let status = outcome::plain_status(harness, is_failure);
                (Outcome::Digested(digester), status)
            }
            _ => (Outcome::Missing, outcome::plain_status(harness, is_failure)),
        };
        let is_interrupt = members.json("is_interrupt") == Some(b"true");
        Some(Self {
            harness,
            kind,
            session,
            directory: members.directory(),
            tool: canonical(harness, tool),
            id: members.first_text(&[
                "tool_call_id",
                "tool_use_id",
                "tool_call.id",
                "tool_result.id",
            ]),
            args,
            result,
            status: if is_interrupt {
                Status::Aborted
            } else {
                status
            },
            millis: ["duration_ms", "duration", "tool_result.durationMs"]
                .iter()
                .find_map(|name| serde_json::from_slice::<f64>(members.json(name)?).ok())
                .and_then(|millis| format!("{millis:.0}").parse().ok()),
            is_camel,
            name,
        })
    }
}

/// What was found, by name; `parent.name` for the members of members.
struct Members(Vec<Option<Found>>);

impl Members {
    fn slot(&mut self, name: &str) -> Option<&mut Option<Found>> {
        self.0.get_mut(place(name)?)
    }

    fn json(&self, name: &str) -> Option<&[u8]> {
        match self.0.get(place(name)?)? {
            Some(Found::Json(json)) => Some(json.trim_ascii()),
            _ => None,
        }
    }

    /// Present, and not null; a value that is too long is there too.
    fn has(&self, name: &str) -> bool {
        let found = place(name).and_then(|at| self.0.get(at)?.as_ref());
        found.is_some_and(
            |found| !matches!(found, Found::Json(json) if json.trim_ascii() == b"null"),
        )
    }

    fn text(&self, name: &str) -> Option<String> {
        let text: String = serde_json::from_slice(self.json(name)?).ok()?;
        Some(text).filter(|text| !text.is_empty())
    }

    fn first_text(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.text(name))
    }

    fn take_json(&mut self, name: &str) -> Option<String> {
        match self.slot(name)?.take()? {
            Found::Json(json) => String::from_utf8(json).ok(),
            _ => None,
        }
    }

    fn take_result(&mut self, name: &str) -> Option<Found> {
        self.slot(name)?.take()
    }

    /// Which host writes like this, if the command line does not say.
    fn harness(&self, event: &str) -> Option<Harness> {
        let kimi = self.text("client_type");
        Some(if self.has("hookName") && self.has("taskId") {
            Harness::Cline
        } else if self.has("toolName") || self.has("sessionId") {
            Harness::Copilot
        } else if self.has("conversation_id") || self.has("cursor_version") {
            Harness::Cursor
        } else if self.has("event") {
            Harness::Goose
        } else if [
            "BeforeTool",
            "AfterTool",
            "BeforeAgent",
            "AfterAgent",
            "PreCompress",
        ]
        .contains(&event)
        {
            Harness::Gemini
        } else if kimi.is_some_and(|client| client.starts_with("kimi")) {
            Harness::Kimi
        } else if self.has("turn_id") && self.has("model") {
            Harness::Codex
        } else if self.has("timestamp") && self.has("prompt_id") {
            Harness::Qwen
        } else if self.has("prompt_id") || self.has("tool_use_id") {
            Harness::Claude
        } else if self.has("timestamp") {
            Harness::Copilot
        } else if self.has("session_id") && !event.is_empty() {
            Harness::Droid
        } else {
            return None;
        })
    }

    /// One name for each agent.
    fn session(&self, harness: Harness) -> Option<String> {
        let own = [
            "session_id",
            "sessionId",
            "conversation_id",
            "sessionContext.rootSessionId",
        ];
        let session = self.first_text(&own)?;
        let agent = self.text("agent_id");
        let agent = match harness {
            // A child has a session of its own, named like the agent, but not in each of its events.
            Harness::Copilot => return Some(agent.unwrap_or(session)),
            // The agent of the root has an id too.
            Harness::Cline => agent.filter(|_| self.has("parent_agent_id")),
            _ => agent,
        };
        Some(match agent {
            Some(agent) => format!("{session}:{agent}"),
            None => session,
        })
    }

    fn directory(&self) -> Option<String> {
        let first = |name| match serde_json::from_slice(self.json(name)?).ok()? {
            Value::Array(roots) => roots.first()?.as_str().map(str::to_owned),
            _ => None,
        };
        self.first_text(&["cwd", "working_dir"])
            .or_else(|| first("workspaceRoots"))
            .or_else(|| first("workspace_roots"))
    }

    /// Whether the user said anything: some hosts send an empty prompt after each round of tools.
    fn has_prompt(&self, harness: Harness) -> bool {
        let prompt = if harness == Harness::Goose {
            "message"
        } else {
            "prompt"
        };
        match self.json(prompt) {
            Some(json) => {
                serde_json::from_slice(json).is_ok_and(|prompt: Value| says_something(&prompt))
            }
            // Cline's has none; one that is too long says a lot.
            None => self.has(prompt) || harness == Harness::Cline,
        }
    }

    /// What the start of a session is.
    fn start(&self, harness: Harness) -> Kind {
        let goes_on = self
            .text("source")
            .is_some_and(|source| source == "compact");
        let is_turn = harness == Harness::Droid && !goes_on && !self.has("calling_session_id");
        if is_turn { Kind::Turn } else { Kind::Start }
    }

    /// Whether somebody else refused the call.
    fn is_refused(&self) -> bool {
        let kind = self.first_text(&["tool_result.result_type", "toolResult.resultType"]);
        kind.is_some_and(|kind| kind == "denied" || kind == "rejected")
    }
}

fn place(name: &str) -> Option<usize> {
    let (parent, name) = name.split_once('.').unwrap_or(("", name));
    WANTED
        .iter()
        .position(|wanted| wanted.parent == parent && wanted.name == name)
}

fn says_something(prompt: &Value) -> bool {
    match prompt {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(parts) => parts.iter().any(says_something),
        Value::Object(part) => {
            // A picture says something too.
            let is_text = part.get("type").is_none_or(|kind| kind == "text");
            !is_text || part.get("text").is_some_and(says_something)
        }
        _ => false,
    }
}

/// The names that hosts have for the same thing.
fn kind(harness: Harness, name: &str) -> Kind {
    match name {
        "PreToolUse" | "preToolUse" | "BeforeTool" | "tool_call" => Kind::Before,
        "PostToolUse" | "postToolUse" | "AfterTool" | "tool_result" | "PostToolUseFailure"
        | "postToolUseFailure" => Kind::After,
        "PostToolBatch" => Kind::RoundEnded,
        "PreCompress" if harness == Harness::Gemini => Kind::RoundEnded,
        "UserPromptSubmit"
        | "userPromptSubmitted"
        | "BeforeAgent"
        | "beforeSubmitPrompt"
        | "TaskStart"
        | "agent_start"
        | "prompt_submit" => Kind::Turn,
        "SessionStart" | "sessionStart" => Kind::Start,
        "Stop" | "stop" | "AfterAgent" | "agentStop" | "agent_end" | "TaskComplete"
        | "StopFailure" | "SessionEnd" | "sessionEnd" | "session_shutdown" | "SessionShutdown" => {
            Kind::Idle
        }
        _ => Kind::Other,
    }
}

/// Copilot has two names for its shell and its agents, in one session.
fn canonical(harness: Harness, tool: String) -> String {
    match (harness, tool.as_str()) {
        (Harness::Copilot, "bash") => "Bash".to_owned(),
        (Harness::Copilot, "task") => "Agent".to_owned(),
        _ => tool,
    }
}
