//! What has been seen from outside, and what must be true of it after each step.

use std::{collections::BTreeSet, time::Duration};

use bizar_background::{
    Effect, Event, Failure, InstanceId, Snapshot, Status,
    event::{Part, ToolState},
};

use super::{CAP, GUARD, SLOTS, Sim};

/// Why a run must end, in the order in which it came to be known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum First {
    Kill,
    Deadline,
    Cap,
    Guard,
    Shutdown,
}

/// What has been seen of an instance from outside.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) session: Option<String>,
    pub(super) deadline: Duration,
    pub(super) first: Vec<First>,
    pub(super) statuses: Vec<Status>,
    pub(super) error: Option<String>,
    pub(super) calls: BTreeSet<(String, String)>,
    pub(super) prompts: usize,
}

impl Seen {
    pub(super) fn is_final(&self) -> bool {
        self.statuses.last().is_some_and(|status| status.is_final())
    }
}

impl Sim {
    /// The instance that has to count an event, if it can know that it is its own.
    pub(super) fn owner(&self, event: &Event<'_>) -> Option<InstanceId> {
        let root = &self.actors.get(event.session()?)?.root;
        self.seen
            .iter()
            .find(|(_, seen)| seen.session.as_ref() == Some(root))
            .map(|(id, _)| *id)
    }

    pub(super) fn note_call(
        &mut self,
        id: InstanceId,
        message: &str,
        call: &str,
        state: &ToolState,
        is_root: bool,
    ) {
        let seen = self.seen.get_mut(&id).unwrap();
        if seen.is_final() {
            return;
        }
        seen.calls.insert((message.into(), call.into()));
        let is_capped = seen.calls.len() >= CAP;
        if is_root && *state == ToolState::Failed(GUARD.into()) {
            self.note(id, First::Guard);
        }
        if is_capped {
            self.note(id, First::Cap);
        }
    }

    pub(super) fn note(&mut self, id: InstanceId, first: First) {
        let seen = self.seen.get_mut(&id).unwrap();
        if !seen.is_final() && seen.first.is_empty() {
            seen.first.push(first);
        }
    }

    pub(super) fn note_all(&mut self, first: First) {
        for id in self.seen.keys().copied().collect::<Vec<_>>() {
            self.note(id, first);
        }
    }

    pub(super) fn note_look(&mut self, id: InstanceId, snapshot: &Result<Snapshot, Failure>) {
        let Ok(snapshot) = snapshot else { return };
        let root = self.seen[&id].session.clone();
        for session in &snapshot.sessions {
            for message in &session.transcript.messages {
                for part in &message.parts {
                    if let Part::Tool { call, state, .. } = part {
                        let is_root = root.as_ref() == Some(&session.id);
                        self.note_call(id, &message.info.id, call, state, is_root);
                    }
                }
            }
        }
    }

    /// What must be true after each step.
    pub(super) fn check(&mut self) {
        let finals: BTreeSet<_> = self
            .seen
            .iter()
            .filter(|(_, seen)| seen.is_final())
            .map(|(id, _)| *id)
            .collect();
        while let Some(change) = self.machine.next_change() {
            let seen = self.seen.get_mut(&change.instance_id).unwrap();
            let last = seen.statuses.last().copied();
            let is_allowed = match change.status {
                Status::Pending => last.is_none(),
                Status::Running => last == Some(Status::Pending),
                _ => matches!(last, Some(Status::Pending | Status::Running)),
            };
            assert!(is_allowed, "{:?} after {last:?}", change.status);
            seen.statuses.push(change.status);
            seen.error = change.error;
        }
        while let Some(effect) = self.machine.next_effect() {
            if let Effect::Create { id, .. } | Effect::Prompt { id, .. } = effect {
                assert!(!finals.contains(&id), "work after the end");
                let seen = self.seen.get_mut(&id).unwrap();
                if let Effect::Prompt { .. } = effect {
                    assert_eq!(
                        seen.first,
                        [],
                        "a prompt after it was decided to end the run"
                    );
                    seen.prompts += 1;
                    assert!(seen.prompts <= 2);
                }
            }
            self.todo.push(effect);
        }
        let live = self.seen.values().filter(|seen| !seen.is_final()).count();
        let taken = self.machine.slots_taken();
        assert!(
            live <= taken && taken <= SLOTS,
            "{live} live, {taken} slots taken"
        );
        let proof = self.proof.take();
        for (id, seen) in &self.seen {
            let view = self.machine.view(self.now, *id).unwrap();
            assert_eq!(Some(&view.status), seen.statuses.last());
            assert_eq!(view.error, seen.error);
            if !seen.is_final() || finals.contains(id) {
                continue;
            }
            match seen.first.first() {
                Some(first) => assert_first(*first, seen),
                None => assert!(
                    matches!(view.status, Status::Done | Status::Failed),
                    "{view:?}"
                ),
            }
            if view.status == Status::Done {
                let (prover, is_proof, calls) =
                    proof.unwrap_or_else(|| panic!("done without a look"));
                assert!(prover == *id && is_proof, "done without a proof");
                assert!(view.tool_call_count >= calls, "calls were lost");
                assert_eq!(
                    view.tool_call_count,
                    seen.calls.len(),
                    "calls were lost or counted twice"
                );
            }
        }
    }
}

fn assert_first(first: First, seen: &Seen) {
    let (status, error) = (
        *seen.statuses.last().unwrap(),
        seen.error.as_deref().unwrap_or_default(),
    );
    let is_right = match first {
        First::Kill => status == Status::Killed,
        First::Deadline => status == Status::TimedOut,
        // One look may show both at once.
        First::Cap | First::Guard => {
            status == Status::Failed
                && (error.contains("tool calls was reached") || error.contains("loop guard"))
        }
        First::Shutdown => status == Status::Failed && error.contains("shut down"),
    };
    assert!(is_right, "{first:?} came first, but {status:?}: {error}");
}
