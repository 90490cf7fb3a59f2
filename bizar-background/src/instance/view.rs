//! Showing an instance, and what time does to it.

use std::time::Duration;

use super::{Instance, Outbox};
use crate::{Intent, Limits, Now, Record, View, Waiting, event::RequestKind};

impl Instance {
    pub(crate) fn tick(&mut self, now: Now, limits: &Limits, out: &mut Outbox) {
        if now.clock >= self.deadline {
            self.intend(now, Intent::Deadline, out);
        }
        if let Some((error, at)) = &self.held_error
            && now.clock >= *at + limits.timing.error_hold
        {
            let error = error.clone();
            self.fail_with(now, &error, out);
        }
        self.tick_admission(now, limits, out);
        self.tick_ending(now, limits, out);
        self.tick_looks(now, limits, out);
        if self.has_progress() && now.clock >= self.last_persist + limits.timing.progress {
            self.persist(now, out);
        }
    }

    /// When the next [`Instance::tick`] has something to do; the largest time if never.
    pub(crate) fn due(&self, limits: &Limits) -> Duration {
        if !self.occupies() {
            return Duration::MAX;
        }
        let deadline = (self.outcome.is_none() && self.intent.is_none()).then_some(self.deadline);
        let held = self
            .held_error
            .as_ref()
            .map(|(_, at)| *at + limits.timing.error_hold);
        let progress = self
            .has_progress()
            .then(|| self.last_persist + limits.timing.progress);
        let dues = [
            deadline,
            held,
            progress,
            self.admission_due(limits),
            self.ending_due(limits),
            self.looks_due(limits),
        ];
        dues.into_iter().flatten().min().unwrap_or(Duration::MAX)
    }

    pub(crate) fn view(&self, now: Now, limits: &Limits) -> View {
        let (waiting_on, waiting_for) = self.waiting();
        let waiting_for = waiting_for.map(str::to_owned);
        let end = self.ended.unwrap_or(now);
        let run = end.clock.saturating_sub(self.accepted.clock);
        let left = self.deadline.saturating_sub(self.accepted.clock);
        let silence = now.clock.saturating_sub(self.last_activity);
        let is_stalled = self.outcome.is_none()
            && waiting_on.is_none()
            && !self.calls.has_open()
            && self.ending.is_none()
            && silence >= limits.timing.stall;
        View {
            instance_id: self.id,
            session_id: self.session.clone(),
            agent: self.agent.clone(),
            status: self.status_word(),
            started_at: self.accepted.epoch_ms,
            ended_at: self.ended.map(|ended| ended.epoch_ms),
            duration_ms: millis(run),
            deadline_at: self.accepted.epoch_ms.saturating_add(millis(left)),
            tool_call_count: self.calls.count(),
            cost_usd: self.usage.cost,
            tokens: self.usage.tokens,
            prompt_preview: Some(self.prompt_preview.clone()),
            result_preview: self.preview.shown(),
            error: self
                .outcome
                .as_ref()
                .and_then(|outcome| outcome.error.clone()),
            parent_agent: self.caller.clone(),
            parent_instance_id: None,
            loop_guard_tool: self.loop_guard_tool.clone(),
            waiting_on,
            waiting_for,
            retry: self.retry.clone(),
            is_ending: self.outcome.is_none() && self.intent.is_some(),
            draining: self.outcome.is_some() && self.ending.is_some(),
            reactivated: self.reactivated,
            stalled_for_ms: is_stalled.then(|| millis(silence)),
            rejected: self.rejected.clone(),
            warnings: self.warnings.clone(),
        }
    }

    pub(crate) fn record(&self) -> Record {
        Record {
            instance_id: self.id,
            session_id: self.session.clone(),
            agent: self.agent.clone(),
            parent_agent: self.caller.clone(),
            status: self.status_word(),
            started_at: self.accepted.epoch_ms,
            ended_at: self.ended.map(|ended| ended.epoch_ms),
            deadline_ms: millis(self.deadline.saturating_sub(self.accepted.clock)),
            tool_call_count: self.calls.count(),
            cost_usd: self.usage.cost,
            tokens: self.usage.tokens,
            error: self
                .outcome
                .as_ref()
                .and_then(|outcome| outcome.error.clone()),
            loop_guard_tool: self.loop_guard_tool.clone(),
            waiting_on: self.waiting().0,
            waiting_for: self.waiting().1.map(str::to_owned),
            reactivated: self.reactivated,
            ..Record::default()
        }
    }

    /// Whether the stored record has fallen behind.
    fn has_progress(&self) -> bool {
        self.is_dirty || self.stored_waiting != self.waiting().0
    }

    /// What the run waits for, and in which session.
    pub(super) fn waiting(&self) -> (Option<Waiting>, Option<&str>) {
        if self.outcome.is_some() {
            return (None, None);
        }
        if let Some(request) = self.requests.first() {
            let on = match request.kind {
                RequestKind::Permission => Waiting::Permission,
                RequestKind::Question => Waiting::Question,
            };
            return (Some(on), Some(&request.session));
        }
        if self.retry.is_some() {
            return (Some(Waiting::Retry), None);
        }
        if !self.is_root_idle {
            return (None, None);
        }
        let busy = self
            .tree
            .iter()
            .filter(|(session, node)| node.is_busy && !self.is_root(session))
            .map(|(session, _)| session.as_str())
            .min();
        (busy.map(|_| Waiting::Descendant), busy)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
