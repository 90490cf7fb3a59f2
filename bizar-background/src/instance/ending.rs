//! Ending a run, and waiting until nothing of it is left.
//!
//! Why a run is ended is set once, before anything is aborted. The final status
//! comes when the whole tree is quiet, or after a limit; what is still busy then
//! keeps the slot for a while more.

use std::{mem, sync::Arc, time::Duration};

use super::{Instance, Outbox, Stage, short};
use crate::{
    Effect, Event, Failure, Intent, Limits, Now, Outcome, Status,
    event::{Activity, ServerError},
};

/// A run that is being ended, or has ended and is not quiet yet.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    since: Duration,
    /// How often everything that was busy has been aborted again.
    rounds: u8,
    /// Aborts without an answer.
    aborts: usize,
    last_abort: Duration,
}

impl Instance {
    /// Decides to end the run. The first reason wins.
    pub(crate) fn intend(&mut self, now: Now, intent: Intent, out: &mut Outbox) {
        if self.outcome.is_some() || self.intent.is_some() {
            return;
        }
        if let Intent::LoopGuard { tool } = &intent {
            self.loop_guard_tool = Some(short(tool));
        }
        self.intent = Some(intent);
        self.candidate = None;
        self.held_error = None;
        self.ending = Some(Ending {
            since: now.clock,
            rounds: 0,
            aborts: 0,
            last_abort: now.clock,
        });
        self.refuse_open(now, out);
        // A session that is still being made is aborted when its name arrives.
        if let Some(session) = self.session.clone() {
            self.abort(now, session, out);
        }
    }

    /// The server is gone, and everything that ran on it.
    pub(crate) fn server_lost(
        &mut self,
        now: Now,
        reason: &str,
        limits: &Limits,
        out: &mut Outbox,
    ) {
        if self.outcome.is_none() {
            match &self.intent {
                Some(intent) => {
                    let outcome = self.outcome_of(intent, limits);
                    self.conclude(now, outcome, out);
                }
                None => self.conclude(
                    now,
                    Outcome {
                        status: Status::Failed,
                        error: Some(short(reason)),
                    },
                    out,
                ),
            }
        }
        self.release();
    }

    pub(crate) fn aborted(&mut self, now: Now, out: &mut Outbox) {
        let Some(ending) = &mut self.ending else {
            return;
        };
        ending.aborts = ending.aborts.saturating_sub(1);
        if ending.aborts == 0 {
            self.look_soon(now, out);
        }
    }

    /// The session's name has arrived, or never will.
    pub(crate) fn created(
        &mut self,
        now: Now,
        session: Result<String, Failure>,
        limits: &Limits,
        out: &mut Outbox,
    ) {
        let Stage::Creating { spawn } = &self.stage else {
            return;
        };
        let spawn = Arc::clone(spawn);
        match session {
            Ok(session) => {
                self.tree.insert(session.clone(), super::Node::default());
                self.session = Some(session.clone());
                self.persist(now, out);
                if self.outcome.is_some() || self.intent.is_some() {
                    self.stage = Stage::Withdrawn;
                    return self.abort(now, session, out);
                }
                self.send_prompt(spawn, false, out);
            }
            Err(failure) => {
                self.stage = Stage::Withdrawn;
                if self.ending.is_some() {
                    self.quiet(now, limits, out);
                } else {
                    self.is_root_idle = true;
                    self.fail(
                        now,
                        format!("the session could not be made: {failure}"),
                        out,
                    );
                }
            }
        }
    }

    pub(super) fn fail_with(&mut self, now: Now, error: &ServerError, out: &mut Outbox) {
        let text = if error.is_abort() {
            "aborted from outside".into()
        } else {
            error.message.clone()
        };
        self.fail(now, text, out);
    }

    /// Ends the run as failed, and aborts what may still run of it.
    pub(super) fn fail(&mut self, now: Now, error: String, out: &mut Outbox) {
        self.end(
            now,
            Outcome {
                status: Status::Failed,
                error: Some(short(&error)),
            },
            out,
        );
    }

    /// Ends the run without an intent.
    pub(super) fn end(&mut self, now: Now, outcome: Outcome, out: &mut Outbox) {
        if self.outcome.is_some() {
            return;
        }
        self.conclude(now, outcome, out);
        self.refuse_open(now, out);
        let mut left = self.busy_sessions();
        if let Some(root) = self.session.clone()
            && !self.is_root_idle
            && !left.contains(&root)
        {
            left.insert(0, root);
        }
        if left.is_empty() {
            return self.release();
        }
        self.ending = Some(Ending {
            since: now.clock,
            rounds: 1,
            aborts: 0,
            last_abort: now.clock,
        });
        for session in left {
            self.abort(now, session, out);
        }
    }

    /// A look at a run that is being ended.
    pub(super) fn ending_seen(
        &mut self,
        now: Now,
        is_seen: bool,
        limits: &Limits,
        out: &mut Outbox,
    ) {
        // Without a look, events must have shown that the root is idle.
        let is_quiet = !self.has_busy()
            && (is_seen || self.is_root_idle || !self.has_begun)
            && !self.is_in_flight();
        if is_quiet {
            return self.quiet(now, limits, out);
        }
        if self.has_open_aborts() {
            return;
        }
        let mut busy = self.busy_sessions();
        let Some(ending) = &mut self.ending else {
            return;
        };
        let is_early = now.clock < ending.last_abort + AGAIN;
        if is_early {
            // The root needs a moment to stop; what it has left running does not know yet.
            busy.retain(|session| self.session.as_ref() != Some(session));
        }
        if ending.rounds < ROUNDS && !busy.is_empty() && (!is_early || ending.rounds == 0) {
            ending.rounds += 1;
            for session in busy {
                self.abort(now, session, out);
            }
        } else {
            self.look.due = Some(now.clock + AGAIN);
        }
    }

    /// Nothing runs any more.
    pub(super) fn quiet(&mut self, now: Now, limits: &Limits, out: &mut Outbox) {
        if self.outcome.is_none()
            && let Some(intent) = &self.intent
        {
            let outcome = self.outcome_of(intent, limits);
            self.conclude(now, outcome, out);
        }
        self.release();
    }

    pub(super) fn tick_ending(&mut self, now: Now, limits: &Limits, out: &mut Outbox) {
        let Some((confirm, release)) = self.ending_limits(limits) else {
            return;
        };
        if self.outcome.is_none() && now.clock >= confirm {
            self.warn("abort not confirmed".into());
            if let Some(intent) = &self.intent {
                let outcome = self.outcome_of(intent, limits);
                self.conclude(now, outcome, out);
            }
            if let Some(ending) = &mut self.ending {
                ending.aborts = 0;
            }
            self.look_soon(now, out);
        }
        if self.outcome.is_some() && now.clock >= release {
            self.warn("still busy after the abort: the slot was given back".into());
            out.has_leftovers = true;
            self.release();
        }
    }

    pub(super) fn ending_due(&self, limits: &Limits) -> Option<Duration> {
        let (confirm, release) = self.ending_limits(limits)?;
        Some(if self.outcome.is_none() {
            confirm
        } else {
            release
        })
    }

    /// Nothing of this changes the outcome.
    pub(super) fn late_event(
        &mut self,
        now: Now,
        session: &str,
        event: &Event<'_>,
        out: &mut Outbox,
    ) {
        match event {
            Event::Status {
                activity: Activity::Busy | Activity::Retry(_),
                ..
            } if self.is_root(session) => {
                if !self.has_begun && self.late_aborts < LATE_ABORTS {
                    // The prompt was taken, and its run begins only now: nobody wants it any more.
                    self.late_aborts += 1;
                    out.effects.push_back(Effect::Abort {
                        id: self.id,
                        session: session.into(),
                    });
                } else if !mem::replace(&mut self.reactivated, true) {
                    out.effects.push_back(Effect::Persist { id: self.id });
                }
            }
            Event::Delta { .. } if self.is_unconfirmed(now) => {
                self.late_aborts += 1;
                self.warn("abort not confirmed: text still arrives".into());
                out.effects.push_back(Effect::Abort {
                    id: self.id,
                    session: session.into(),
                });
            }
            Event::Asked(request)
                if !self.reactivated && !self.answered.contains_key(&request.id) =>
            {
                self.respond(now, request.clone(), false, out);
            }
            _ => {}
        }
    }

    /// Text that comes now shows that an abort had no effect.
    fn is_unconfirmed(&self, now: Now) -> bool {
        let is_late = self
            .ended
            .is_some_and(|ended| now.clock >= ended.clock + LATE_TEXT);
        is_late && self.intent.is_some() && self.late_aborts == 0 && !self.reactivated
    }

    pub(super) fn is_in_flight(&self) -> bool {
        matches!(self.stage, Stage::Creating { .. } | Stage::Prompting { .. })
    }

    pub(super) fn abort(&mut self, now: Now, session: String, out: &mut Outbox) {
        if let Some(ending) = &mut self.ending {
            ending.aborts += 1;
            ending.last_abort = now.clock;
        }
        out.effects.push_back(Effect::Abort {
            id: self.id,
            session,
        });
    }

    pub(super) fn has_open_aborts(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.aborts > 0)
    }

    fn ending_limits(&self, limits: &Limits) -> Option<(Duration, Duration)> {
        let ending = self.ending.as_ref()?;
        let confirm = match self.intent {
            Some(Intent::Shutdown) => limits.timing.shutdown_abort,
            Some(_) => limits.timing.abort,
            None => Duration::ZERO,
        };
        Some((
            ending.since + confirm,
            ending.since + confirm + limits.timing.drain,
        ))
    }

    fn conclude(&mut self, now: Now, outcome: Outcome, out: &mut Outbox) {
        self.candidate = None;
        self.held_error = None;
        self.retry = None;
        self.ended = Some(now);
        let error = outcome.error.clone();
        self.outcome = Some(outcome);
        self.announce(now, error, out);
        self.persist(now, out);
    }

    /// Gives the slot back, and the memory that only a live run needs.
    fn release(&mut self) {
        self.ending = None;
        self.look = super::Look::default();
        self.requests = Vec::new();
        self.calls.close();
        self.usage.close();
        if !matches!(self.stage, Stage::Creating { .. } | Stage::Prompting { .. }) {
            self.stage = Stage::Withdrawn;
        }
    }

    fn refuse_open(&mut self, now: Now, out: &mut Outbox) {
        for request in mem::take(&mut self.requests) {
            self.respond(now, request, false, out);
        }
    }

    fn busy_sessions(&self) -> Vec<String> {
        let mut busy: Vec<_> = self
            .tree
            .iter()
            .filter(|(_, node)| node.is_busy)
            .map(|(session, _)| session.clone())
            .collect();
        busy.sort();
        busy
    }

    fn outcome_of(&self, intent: &Intent, limits: &Limits) -> Outcome {
        let (status, error) = match intent {
            Intent::Kill => (Status::Killed, "killed".into()),
            Intent::Deadline => {
                let run = self.deadline.saturating_sub(self.accepted.clock);
                (
                    Status::TimedOut,
                    format!("the deadline of {} ms was reached", run.as_millis()),
                )
            }
            Intent::ToolCallCap => (
                Status::Failed,
                format!("the limit of {} tool calls was reached", limits.tool_calls),
            ),
            Intent::Cost => {
                let limit = limits.cost_usd.unwrap_or_default();
                (
                    Status::Failed,
                    format!(
                        "the cost of {:.4} US dollars is over the limit of {limit:.4}",
                        self.usage.cost
                    ),
                )
            }
            Intent::Tokens => {
                let limit = limits.tokens.unwrap_or_default();
                (
                    Status::Failed,
                    format!("{} tokens are over the limit of {limit}", self.usage.tokens),
                )
            }
            Intent::LoopGuard { tool } => (
                Status::Failed,
                format!("the loop guard refused a call of {}", short(tool)),
            ),
            Intent::Shutdown => (Status::Failed, "background agents were shut down".into()),
        };
        Outcome {
            status,
            error: Some(error),
        }
    }
}

/// How often everything busy is aborted again.
const ROUNDS: u8 = 2;
/// How soon a run that is being ended is looked at again.
const AGAIN: Duration = Duration::from_millis(500);
/// Text that comes this long after an abort is no remainder.
const LATE_TEXT: Duration = Duration::from_secs(1);
/// How often a run is aborted that begins after its end.
const LATE_ABORTS: u8 = 3;
