//! Is an idle run done? Looks at the server, and what follows from them.
//!
//! Idle is only a candidate. A look reads what is going on and then all messages.
//! It counts if nothing has happened since it was asked for. If the answer is not
//! whole yet, further looks follow; the last one decides.

use std::{sync::Arc, time::Duration};

use super::{Instance, Outbox, Stage};
use crate::{
    Effect, Failure, Limits, Now, Outcome, Snapshot, Spawn, Status,
    transcript::{Answer as Last, Gap},
};

/// A run that may be done.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    since: Duration,
    /// Looks that found the answer not whole.
    looks: usize,
    due: Option<Duration>,
}

/// Looks at the server: one at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    ticket: u64,
    open: Option<Open>,
    /// Another look is wanted as soon as this one is over.
    is_wanted: bool,
    pub(super) due: Option<Duration>,
    /// Looks in a row that did not find the session.
    gone: u8,
    /// When the last look was asked for before a run that never began is given up.
    last_chance: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Open {
    ticket: u64,
    generation: u64,
    at: Duration,
}

impl Instance {
    pub(crate) fn prompted(
        &mut self,
        now: Now,
        taken: Result<(), Failure>,
        limits: &Limits,
        out: &mut Outbox,
    ) {
        let Stage::Prompting { spawn, is_resent } = &self.stage else {
            return;
        };
        let (spawn, is_resent) = (Arc::clone(spawn), *is_resent);
        let since = now.clock;
        if self.outcome.is_some() || self.intent.is_some() {
            // The prompt may have arrived after the abort.
            self.stage = Stage::Taken { since };
            if let Some(session) = self.session.clone() {
                self.abort(now, session, out);
            }
            return;
        }
        self.look.due = Some(since + limits.timing.reconcile);
        match taken {
            // Events are often faster than the answer: the run may even be over already.
            Ok(()) | Err(Failure::Unclear(_)) if taken.is_ok() || self.has_begun => {
                self.stage = Stage::Taken { since };
                if self.is_root_idle && !self.has_busy() {
                    self.nominate(now, Duration::ZERO, limits, out);
                }
            }
            Ok(()) | Err(Failure::Unclear(_)) => {
                self.stage = Stage::Unclear {
                    spawn,
                    is_resent,
                    since,
                };
                self.look_soon(now, out);
            }
            Err(failure) => {
                self.stage = Stage::Withdrawn;
                self.is_root_idle = true;
                self.fail(now, format!("the prompt was refused: {failure}"), out);
            }
        }
    }

    pub(crate) fn send_prompt(&mut self, spawn: Arc<Spawn>, is_resent: bool, out: &mut Outbox) {
        let Some(session) = self.session.clone() else {
            return;
        };
        self.stage = Stage::Prompting {
            spawn: Arc::clone(&spawn),
            is_resent,
        };
        out.effects.push_back(Effect::Prompt {
            id: self.id,
            session,
            spawn,
        });
    }

    /// Asks for a look now, or right after the one that is under way.
    pub(crate) fn look_soon(&mut self, now: Now, out: &mut Outbox) {
        let Some(session) = self.session.clone() else {
            return;
        };
        if self.look.open.is_some() {
            self.look.is_wanted = true;
            return;
        }
        self.look.ticket += 1;
        let ticket = self.look.ticket;
        self.look.open = Some(Open {
            ticket,
            generation: self.generation,
            at: now.clock,
        });
        self.look.is_wanted = false;
        self.look.due = None;
        out.effects.push_back(Effect::Observe {
            id: self.id,
            session,
            ticket,
        });
    }

    pub(crate) fn observed(
        &mut self,
        now: Now,
        ticket: u64,
        snapshot: Result<Snapshot, Failure>,
        limits: &Limits,
        out: &mut Outbox,
    ) {
        if !self.occupies() {
            return;
        }
        if self
            .look
            .open
            .as_ref()
            .is_none_or(|open| open.ticket != ticket)
        {
            // It was given up. It decides nothing, but what it adds up counts.
            return snapshot
                .iter()
                .for_each(|snapshot| self.learn(now, snapshot, limits, out));
        }
        let Some(open) = self.look.open.take() else {
            return;
        };
        self.look.due = Some(now.clock + limits.timing.reconcile);
        match snapshot {
            Ok(snapshot) => self.seen(now, &open, &snapshot, limits, out),
            Err(Failure::Gone) => self.not_found(now, limits, out),
            Err(_) if self.ending.is_some() => self.ending_seen(now, false, limits, out),
            Err(_) => self.look_again(now, UNREACHABLE),
        }
        if self.occupies() && self.look.is_wanted {
            self.look_soon(now, out);
        }
    }

    /// An idle root without busy descendants may be done.
    pub(super) fn nominate(
        &mut self,
        now: Now,
        settle: Duration,
        limits: &Limits,
        out: &mut Outbox,
    ) {
        if !matches!(self.stage, Stage::Taken { .. }) || self.ending.is_some() {
            return;
        }
        let [first, ..] = limits.timing.looks;
        let due = now.clock + settle + first;
        self.candidate = Some(Candidate {
            since: now.clock + settle,
            looks: 0,
            due: Some(due),
        });
        self.tick_looks(now, limits, out);
    }

    pub(super) fn tick_looks(&mut self, now: Now, limits: &Limits, out: &mut Outbox) {
        if self
            .look
            .open
            .as_ref()
            .is_some_and(|open| now.clock >= open.at + limits.timing.answer)
        {
            let ticket = self.look.ticket;
            self.observed(
                now,
                ticket,
                Err(Failure::Unclear("no answer".into())),
                limits,
                out,
            );
        }
        let candidate_due = self.candidate.as_ref().and_then(|candidate| candidate.due);
        let is_due = |due: Option<Duration>| due.is_some_and(|due| now.clock >= due);
        if is_due(candidate_due) || is_due(self.look.due) && !self.has_open_aborts() {
            if let Some(candidate) = &mut self.candidate {
                candidate.due = None;
            }
            self.look.due = None;
            self.look_soon(now, out);
        }
    }

    /// A run that the server took and never began.
    pub(super) fn tick_admission(&mut self, now: Now, limits: &Limits, out: &mut Outbox) {
        if self.admission_due(limits).is_none_or(|due| now.clock < due) {
            return;
        }
        if self.look.last_chance.is_none() {
            self.look.last_chance = Some(now.clock);
            return self.look_soon(now, out);
        }
        let text = if self.is_root_idle {
            "the run ended without an assistant message".into()
        } else {
            format!(
                "the server did not start the run within {} ms",
                limits.timing.admission.as_millis()
            )
        };
        // It may start yet.
        self.is_root_idle = false;
        self.fail(now, text, out);
    }

    pub(super) fn admission_due(&self, limits: &Limits) -> Option<Duration> {
        let since = match self.stage {
            Stage::Taken { since } | Stage::Unclear { since, .. } if !self.has_begun => since,
            _ => return None,
        };
        let due = match self.look.last_chance {
            Some(asked) => asked + limits.timing.error_hold,
            None => since + limits.timing.admission,
        };
        (self.outcome.is_none() && self.intent.is_none()).then_some(due)
    }

    pub(super) fn looks_due(&self, limits: &Limits) -> Option<Duration> {
        let candidate = self.candidate.as_ref().and_then(|candidate| candidate.due);
        let lost = self
            .look
            .open
            .as_ref()
            .map(|open| open.at + limits.timing.answer);
        let due = self.look.due.filter(|_| !self.has_open_aborts());
        [candidate, lost, due].into_iter().flatten().min()
    }

    fn seen(
        &mut self,
        now: Now,
        open: &Open,
        snapshot: &Snapshot,
        limits: &Limits,
        out: &mut Outbox,
    ) {
        self.look.gone = 0;
        let before = self.generation;
        self.learn(now, snapshot, limits, out);
        // What was learned from the look itself does not make it worthless.
        let is_fresh = open.generation == before;
        if is_fresh {
            self.learn_activity(now, snapshot, out);
        }
        if self.ending.is_some() {
            return if is_fresh {
                self.ending_seen(now, true, limits, out)
            } else {
                self.look_soon(now, out)
            };
        }
        let Some(root) = snapshot.sessions.first() else {
            return;
        };
        if let Stage::Unclear {
            spawn,
            is_resent,
            since,
        } = &self.stage
        {
            let (spawn, is_resent, since) = (Arc::clone(spawn), *is_resent, *since);
            if root.transcript.has_prompt() || self.has_begun {
                self.stage = Stage::Taken { since };
            } else if !is_resent {
                return self.send_prompt(spawn, true, out);
            }
        }
        if !matches!(self.stage, Stage::Taken { .. }) {
            return;
        }
        if !is_fresh {
            return if self.candidate.is_some() {
                self.look_again(now, UNSETTLED)
            };
        }
        if self.has_busy() {
            self.candidate = None;
            return;
        }
        // Whatever is asked is answered before the run can be over.
        if !self.requests.is_empty() {
            return;
        }
        match root.transcript.answer() {
            Last::Complete { cut } => {
                if let Some(cut) = cut {
                    self.warn(cut.into());
                }
                self.end(
                    now,
                    Outcome {
                        status: Status::Done,
                        error: None,
                    },
                    out,
                );
            }
            Last::Failed(error) => self.fail_with(now, &error, out),
            Last::Missing if !self.has_begun => self.candidate = None,
            Last::Missing => self.unfinished(
                now,
                "the run ended without an assistant message",
                limits,
                out,
            ),
            Last::Incomplete(gap) => {
                let text = self.gap_text(gap);
                self.unfinished(now, &text, limits, out);
            }
        }
    }

    /// Calls, cost, requests and sessions only ever add up: they count from any look.
    fn learn(&mut self, now: Now, snapshot: &Snapshot, limits: &Limits, out: &mut Outbox) {
        for session in &snapshot.sessions {
            self.adopt(&session.id);
            for message in &session.transcript.messages {
                self.message(now, &session.id, &message.info, limits, out);
                for part in &message.parts {
                    self.part(now, &session.id, &message.info.id, part, limits, out);
                }
            }
        }
        for request in &snapshot.requests {
            if self.tree.contains_key(&request.session) {
                self.asked(now, request, limits, out);
            }
        }
    }

    fn learn_activity(&mut self, now: Now, snapshot: &Snapshot, out: &mut Outbox) {
        for (session, node) in &mut self.tree {
            node.is_busy = snapshot.active.contains_key(session);
        }
        self.requests
            .retain(|open| snapshot.requests.iter().any(|listed| listed.id == open.id));
        let activity = self
            .session
            .as_ref()
            .and_then(|session| snapshot.active.get(session));
        self.is_root_idle = activity.is_none();
        match activity {
            Some(activity) => {
                self.begin(now, out);
                self.note_retry(activity);
            }
            None => self.retry = None,
        }
    }

    fn unfinished(&mut self, now: Now, error: &str, limits: &Limits, out: &mut Outbox) {
        let candidate = self.candidate.get_or_insert(Candidate {
            since: now.clock,
            looks: 0,
            due: None,
        });
        candidate.looks += 1;
        match limits.timing.looks.get(candidate.looks) {
            Some(after) => candidate.due = Some((candidate.since + *after).max(now.clock)),
            None => self.fail(now, error.into(), out),
        }
    }

    fn gap_text(&self, gap: Gap) -> String {
        match (gap, self.rejected.last()) {
            (Gap::ToolCalls, Some(title)) => {
                // The reason is stored, and the patterns of a permission are arguments.
                let name = title.split(" (").next().unwrap_or_default();
                format!("stopped at a rejected permission: {name}")
            }
            (Gap::ToolCalls, None) => "the run ended after tool calls without an answer".into(),
            (Gap::Unanswered, _) => "the run ended with an unanswered message".into(),
            (Gap::Open, _) => "the run ended in the middle of an answer".into(),
            (Gap::Nothing, _) => "the last step produced nothing".into(),
        }
    }

    fn not_found(&mut self, now: Now, limits: &Limits, out: &mut Outbox) {
        if self.ending.is_some() {
            return self.quiet(now, limits, out);
        }
        self.look.gone += 1;
        if self.look.gone >= 2 {
            self.is_root_idle = true;
            self.tree.values_mut().for_each(|node| node.is_busy = false);
            self.fail(now, "the session is gone".into(), out);
        } else {
            self.look_again(now, UNREACHABLE);
        }
    }

    fn look_again(&mut self, now: Now, after: Duration) {
        let due = Some(now.clock + after);
        match &mut self.candidate {
            Some(candidate) => candidate.due = due,
            None => self.look.due = due,
        }
    }
}

/// How soon a look is tried again that did not reach the server.
const UNREACHABLE: Duration = Duration::from_secs(1);
/// How soon a look is tried again during which something happened.
const UNSETTLED: Duration = Duration::from_millis(50);
