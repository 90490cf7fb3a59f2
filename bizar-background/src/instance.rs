//! The life of one background agent.
//!
//! Inputs are events, answers and time; outputs go to an [`Outbox`]. The parts:
//! this file keeps what is known, `ending` ends runs and waits until nothing is
//! left of them, `proof` decides whether an idle run is done, `tally` adds up, `view` shows.

use std::{
    collections::{HashMap, VecDeque},
    mem,
    sync::Arc,
    time::Duration,
};

use crate::{
    Change, Effect, Event, InstanceId, Intent, Limits, Now, Outcome, Permissions, Spawn, Status,
    Waiting,
    event::{
        Activity, MessageInfo, Part, Request, RequestKind, Retry, Role, ServerError, ToolState,
    },
};

mod ending;
mod proof;
mod tally;
mod view;

use ending::Ending;
use proof::{Candidate, Look};
use tally::{Calls, PREVIEW, Preview, Usage};

/// Where effects and changes wait until the driver takes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) changes: VecDeque<Change>,
    /// A slot was given back although its session was still busy.
    pub(crate) has_leftovers: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) id: InstanceId,
    pub(crate) agent: String,
    caller: Option<String>,
    prompt_preview: String,
    accepted: Now,
    deadline: Duration,
    stage: Stage,
    session: Option<String>,
    /// The server has shown work on the prompt.
    has_begun: bool,
    intent: Option<Intent>,
    outcome: Option<Outcome>,
    ended: Option<Now>,
    ending: Option<Ending>,
    /// The session and those below it.
    tree: HashMap<String, Node>,
    /// The root is known to be idle, not just unknown to be busy.
    is_root_idle: bool,
    /// Rises with whatever makes an older look at the server worthless.
    generation: u64,
    look: Look,
    candidate: Option<Candidate>,
    held_error: Option<(ServerError, Duration)>,
    retry: Option<Retry>,
    /// Requests that wait for somebody.
    requests: Vec<Request>,
    /// Requests that were answered from here, and when.
    answered: HashMap<String, Duration>,
    rejected: Vec<String>,
    warnings: Vec<String>,
    calls: Calls,
    usage: Usage,
    loop_guard_tool: Option<String>,
    reactivated: bool,
    late_aborts: u8,
    preview: Preview,
    last_activity: Duration,
    is_dirty: bool,
    stored_waiting: Option<Waiting>,
    last_persist: Duration,
}

#[derive(Clone, Debug)]
enum Stage {
    Creating {
        spawn: Arc<Spawn>,
    },
    Prompting {
        spawn: Arc<Spawn>,
        is_resent: bool,
    },
    /// The server did not answer: it may have the prompt or not.
    Unclear {
        spawn: Arc<Spawn>,
        is_resent: bool,
        since: Duration,
    },
    Taken {
        since: Duration,
    },
    /// The run was ended before there was a prompt.
    Withdrawn,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    is_busy: bool,
}

impl Instance {
    pub(crate) fn new(id: InstanceId, spawn: Spawn, now: Now, out: &mut Outbox) -> Self {
        let spawn = Arc::new(spawn);
        let instance = Self {
            id,
            agent: spawn.agent.clone(),
            caller: spawn.caller.clone(),
            prompt_preview: spawn.prompt.chars().take(PREVIEW).collect(),
            accepted: now,
            deadline: now.clock + spawn.deadline,
            stage: Stage::Creating {
                spawn: Arc::clone(&spawn),
            },
            session: None,
            has_begun: false,
            intent: None,
            outcome: None,
            ended: None,
            ending: None,
            tree: HashMap::new(),
            is_root_idle: false,
            generation: 0,
            look: Look::default(),
            candidate: None,
            held_error: None,
            retry: None,
            requests: Vec::new(),
            answered: HashMap::new(),
            rejected: Vec::new(),
            warnings: Vec::new(),
            calls: Calls::default(),
            usage: Usage::default(),
            loop_guard_tool: None,
            reactivated: false,
            late_aborts: 0,
            preview: Preview::default(),
            last_activity: now.clock,
            is_dirty: false,
            stored_waiting: None,
            last_persist: now.clock,
        };
        instance.announce(now, None, out);
        out.effects.push_back(Effect::Persist { id });
        out.effects.push_back(Effect::Create { id, spawn });
        instance
    }

    /// A session below one of ours has shown up.
    pub(crate) fn adopt(&mut self, session: &str) {
        if !self.tree.contains_key(session) {
            self.tree.insert(session.into(), Node::default());
            self.generation += 1;
        }
    }

    /// An event of one of our sessions.
    pub(crate) fn event(
        &mut self,
        now: Now,
        session: &str,
        event: &Event<'_>,
        limits: &Limits,
        out: &mut Outbox,
    ) {
        if !self.occupies() {
            return self.late_event(now, session, event, out);
        }
        self.last_activity = now.clock;
        match event {
            Event::Status { activity, .. } => self.status(now, session, activity, limits, out),
            Event::Error { error, .. } => self.error(now, session, error, out),
            Event::Message { info, .. } => self.message(now, session, info, limits, out),
            Event::Part { message, part, .. } => {
                self.part(now, session, message, part, limits, out)
            }
            Event::Delta { message, text, .. } => {
                if self.is_root(session) {
                    self.preview.add(message, text);
                }
            }
            Event::Asked(request) => self.asked(now, request, limits, out),
            Event::Answered { request, .. } => self.requests.retain(|open| open.id != *request),
            Event::Deleted { .. } => self.deleted(now, session, out),
            Event::Session { .. }
            | Event::Connected
            | Event::Heartbeat
            | Event::Unknown
            | Event::Unreadable => {}
        }
    }

    /// Whether the instance takes a slot.
    pub(crate) fn occupies(&self) -> bool {
        self.outcome.is_none() || self.ending.is_some()
    }

    pub(crate) fn is_final(&self) -> bool {
        self.outcome.is_some()
    }

    pub(crate) fn status_word(&self) -> Status {
        match &self.outcome {
            Some(outcome) => outcome.status,
            None if self.has_begun => Status::Running,
            None => Status::Pending,
        }
    }

    pub(crate) fn sessions(&self) -> impl Iterator<Item = &String> {
        self.tree.keys()
    }

    fn status(
        &mut self,
        now: Now,
        session: &str,
        activity: &Activity,
        limits: &Limits,
        out: &mut Outbox,
    ) {
        let is_root = self.is_root(session);
        let Some(node) = self.tree.get_mut(session) else {
            return;
        };
        let is_busy = match activity {
            Activity::Idle => false,
            Activity::Busy | Activity::Retry(_) => true,
            Activity::Unknown => return,
        };
        let was_busy = mem::replace(&mut node.is_busy, is_busy);
        if is_busy {
            self.generation += 1;
            self.candidate = None;
            if is_root {
                self.is_root_idle = false;
                self.begin(now, out);
                self.note_retry(activity);
                if let Some((error, _)) = self.held_error.take() {
                    self.warn(format!("the run went on after an error: {}", error.message));
                }
            }
            return;
        }
        if was_busy {
            self.generation += 1;
        }
        if is_root {
            self.is_root_idle = true;
            self.retry = None;
        }
        if self.ending.is_some() {
            self.look_soon(now, out);
        } else if is_root && let Some((error, _)) = self.held_error.take() {
            self.fail_with(now, &error, out);
        } else if self.candidate.is_none() && self.is_root_idle && !self.has_busy() {
            let settle = if is_root {
                Duration::ZERO
            } else {
                limits.timing.settle
            };
            self.nominate(now, settle, limits, out);
        }
    }

    fn note_retry(&mut self, activity: &Activity) {
        let Activity::Retry(retry) = activity else {
            return;
        };
        if self
            .retry
            .as_ref()
            .is_none_or(|last| last.attempt != retry.attempt)
        {
            self.warn(format!(
                "the provider is asked again after attempt {}: {}",
                retry.attempt, retry.message
            ));
        }
        self.retry = Some(retry.clone());
    }

    fn error(&mut self, now: Now, session: &str, error: &ServerError, out: &mut Outbox) {
        if self.ending.is_some() {
            return;
        }
        if !self.is_root(session) {
            return self.warn(format!("a subagent met an error: {}", error.message));
        }
        if self.candidate.is_some() {
            return self.fail_with(now, error, out);
        }
        self.held_error
            .get_or_insert_with(|| (error.clone(), now.clock));
    }

    fn message(
        &mut self,
        now: Now,
        session: &str,
        info: &MessageInfo,
        limits: &Limits,
        out: &mut Outbox,
    ) {
        if info.role != Role::Assistant {
            return;
        }
        if self.is_root(session) {
            self.begin(now, out);
            if !info.is_summary {
                self.preview.writes(&info.id);
            }
        }
        if self.usage.note(info) {
            self.is_dirty = true;
        }
        self.enforce(now, limits, out);
    }

    fn part(
        &mut self,
        now: Now,
        session: &str,
        message: &str,
        part: &Part,
        limits: &Limits,
        out: &mut Outbox,
    ) {
        match part {
            Part::Tool { call, tool, state } => {
                if self.is_root(session) {
                    self.begin(now, out);
                }
                self.tool_call(now, session, message, (call, tool, state), limits, out);
            }
            Part::Text {
                text,
                is_hidden: false,
            } if self.is_root(session) => self.preview.replace(message, text),
            _ => {}
        }
    }

    fn tool_call(
        &mut self,
        now: Now,
        session: &str,
        message: &str,
        (call, tool, state): (&str, &str, &ToolState),
        limits: &Limits,
        out: &mut Outbox,
    ) {
        if self.calls.note(message, call, *state == ToolState::Open) {
            self.generation += 1;
            self.is_dirty = true;
        }
        if let ToolState::Failed(text) = state
            && text.starts_with(GUARD)
        {
            if self.is_root(session) {
                self.intend(now, Intent::LoopGuard { tool: tool.into() }, out);
            } else {
                self.warn(format!(
                    "the loop guard refused a call of {tool} in a subagent"
                ));
            }
        }
        self.enforce(now, limits, out);
    }

    fn enforce(&mut self, now: Now, limits: &Limits, out: &mut Outbox) {
        let intent = if self.calls.count() >= limits.tool_calls {
            Intent::ToolCallCap
        } else if limits.cost_usd.is_some_and(|limit| self.usage.cost > limit) {
            Intent::Cost
        } else if limits.tokens.is_some_and(|limit| self.usage.tokens > limit) {
            Intent::Tokens
        } else {
            return;
        };
        self.intend(now, intent, out);
    }

    fn asked(&mut self, now: Now, request: &Request, limits: &Limits, out: &mut Outbox) {
        // The same request is seen in the stream and in snapshots; an answer may take a while or be lost.
        let is_answered = self
            .answered
            .get(&request.id)
            .is_some_and(|at| now.clock < *at + limits.timing.abort);
        if is_answered || self.requests.iter().any(|open| open.id == request.id) {
            return;
        }
        let grant = match limits.permissions {
            _ if self.ending.is_some() => false,
            Permissions::Wait => return self.requests.push(request.clone()),
            Permissions::Reject => false,
            Permissions::Allow => request.kind == RequestKind::Permission,
        };
        if !grant
            && self.ending.is_none()
            && self.rejected.len() < KEPT_LINES
            && !self.answered.contains_key(&request.id)
        {
            self.rejected.push(short(&request.title));
        }
        self.respond(now, request.clone(), grant, out);
    }

    fn respond(&mut self, now: Now, request: Request, grant: bool, out: &mut Outbox) {
        self.answered.insert(request.id.clone(), now.clock);
        out.effects.push_back(Effect::Respond {
            id: self.id,
            request,
            grant,
        });
    }

    fn deleted(&mut self, now: Now, session: &str, out: &mut Outbox) {
        if !self.is_root(session) {
            self.tree.entry(session.into()).or_default().is_busy = false;
        } else if self.ending.is_none() {
            self.is_root_idle = false;
            self.fail(now, "session deleted".into(), out);
        }
    }

    fn begin(&mut self, now: Now, out: &mut Outbox) {
        if !mem::replace(&mut self.has_begun, true) && self.outcome.is_none() {
            self.announce(now, None, out);
            self.persist(now, out);
        }
    }

    fn announce(&self, now: Now, error: Option<String>, out: &mut Outbox) {
        let status = self.status_word();
        out.changes.push_back(Change {
            instance_id: self.id,
            status,
            error,
            at: now.epoch_ms,
        });
    }

    fn persist(&mut self, now: Now, out: &mut Outbox) {
        self.is_dirty = false;
        self.stored_waiting = self.waiting().0;
        self.last_persist = now.clock;
        out.effects.push_back(Effect::Persist { id: self.id });
    }

    fn warn(&mut self, text: String) {
        if self.warnings.len() < KEPT_LINES {
            let text = short(&text);
            if self.warnings.last() != Some(&text) {
                self.warnings.push(text);
            }
        }
    }

    fn is_root(&self, session: &str) -> bool {
        self.session.as_deref() == Some(session)
    }

    fn has_busy(&self) -> bool {
        self.tree.values().any(|node| node.is_busy)
    }
}

/// One line for people, of a bounded length.
fn short(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(LINE)
        .collect()
}

/// Warnings and rejected requests that are kept.
const KEPT_LINES: usize = 32;
/// Characters of a warning.
const LINE: usize = 400;
/// How a refusal of the loop guard begins.
const GUARD: &str = "Loop protection: ";
