//! Sessions, one step at a time, in memory or in the store.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bizar_config::CheckedPath;
use bizar_state::{Store, Sweep, Updated};

use crate::{
    memory::State,
    notes::Notes,
    resident::{Resident, Residents, lock},
    setup::{Clock, Form},
};

/// All sessions, and where they are kept.
pub(crate) struct Sessions<S> {
    pub(crate) host: String,
    pub(crate) scope: String,
    pub(crate) form: Form,
    pub(crate) clock: Clock,
    pub(crate) notes: Arc<Notes>,
    pub(crate) store: Option<S>,
    /// Looked at before each use of the store: a link into a secret directory may have been made.
    pub(crate) store_path: Option<CheckedPath>,
    pub(crate) residents: Residents,
    pub(crate) skipped: AtomicU64,
}

/// When a resident session is written.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Saving {
    /// With a later step.
    Later,
    /// After this step, unless it was just written.
    Soon,
    /// After this step.
    Now,
}

impl<S: Store<State>> Sessions<S> {
    /// Changes one session, in its turn. `None` if the step was skipped.
    pub(crate) fn step<R>(
        &self,
        id: &str,
        saving: Saving,
        change: impl FnOnce(&mut State) -> R,
    ) -> Option<R> {
        let done = match self.form {
            Form::Resident => Some(self.resident_step(id, saving, change)),
            Form::PerCall(patience) => self.stored_step(id, patience, |slot| {
                let state = slot.take().unwrap_or_else(|| self.fresh(id));
                change(slot.insert(state))
            }),
        };
        if done.is_none() {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    /// Changes one session like [`step`](Self::step), if it is there at all.
    pub(crate) fn step_known<R>(
        &self,
        id: &str,
        change: impl FnOnce(&mut State) -> R,
    ) -> Option<R> {
        match self.form {
            Form::Resident => (self.residents.holds(id) || self.is_stored(id))
                .then(|| self.resident_step(id, Saving::Later, change)),
            Form::PerCall(patience) => {
                self.stored_step(id, patience, |slot| slot.as_mut().map(change))?
            }
        }
    }

    /// Takes the session out of memory and store; `finish` sees it once more.
    pub(crate) fn remove(&self, id: &str, finish: impl FnOnce(&mut State)) {
        match self.form {
            Form::Resident => self.residents.remove(id, |resident| {
                if let Some(state) = &mut resident.state {
                    finish(state);
                }
                self.stored_step(id, SAVE_PATIENCE, |slot| *slot = None);
            }),
            Form::PerCall(patience) => {
                self.stored_step(id, patience, |slot| {
                    if let Some(mut state) = slot.take() {
                        finish(&mut state);
                    }
                });
            }
        }
    }

    /// Removes the documents of old sessions and returns how many.
    pub(crate) fn sweep(&self, known: Option<&HashSet<String>>) -> usize {
        let sweep = Sweep {
            host: &self.host,
            scope: &self.scope,
            known,
            now: (self.clock)(),
        };
        let swept = self
            .store()
            .map(|store| store.sweep(|state| sweep.is_stale(state)));
        let Some(report) = swept.and_then(|swept| self.noted(swept)) else {
            return 0;
        };
        for error in &report.errors {
            self.notes.add(error.to_string());
        }
        report.removed.len()
    }

    /// Writes what is not yet written.
    pub(crate) fn flush(&self) {
        self.residents.for_each(|resident| {
            self.save(resident);
        });
    }

    /// The stored session, or an empty one.
    fn load(&self, id: &str, resident: &mut Resident) -> State {
        let read = self.store().map(|store| self.read(store, id));
        resident.is_blind = matches!(read, Some(None));
        let stored = read.flatten().flatten();
        stored.unwrap_or_else(|| self.fresh(id))
    }

    fn is_stored(&self, id: &str) -> bool {
        let read = self.store().and_then(|store| self.read(store, id));
        read.flatten().is_some()
    }

    /// What the store has of the session; `None` if it could not be read.
    fn read(&self, store: &S, id: &str) -> Option<Option<State>> {
        let loaded = self.noted(store.load(id))?;
        if let Some(unusable) = loaded.unusable {
            self.notes.add(unusable.to_string());
        }
        Some(loaded.document)
    }

    fn fresh(&self, id: &str) -> State {
        State::new(id, &*self.host, &*self.scope, (self.clock)())
    }

    fn resident_step<R>(
        &self,
        id: &str,
        saving: Saving,
        change: impl FnOnce(&mut State) -> R,
    ) -> R {
        let resident = self
            .residents
            .get(id, |leaving| self.save(leaving) || self.store().is_none());
        let mut resident = lock(&resident);
        let known = resident.state.take();
        let state = known.unwrap_or_else(|| self.load(id, &mut resident));
        let done = change(resident.state.insert(state));
        resident.is_dirty = true;
        let now = (self.clock)();
        // Also true when the clock went back.
        let is_time = resident
            .saved_at
            .is_none_or(|at| !(at..at.saturating_add(SAVE_EVERY_MS)).contains(&now));
        if saving == Saving::Now || (saving == Saving::Soon && is_time) {
            self.save(&mut resident);
        }
        done
    }

    /// Writes the session if it has changed; false if it could not.
    fn save(&self, resident: &mut Resident) -> bool {
        let Some(state) = resident
            .state
            .as_ref()
            .filter(|_| resident.is_dirty && !resident.is_gone)
        else {
            return true;
        };
        // After trouble it is tried again, but not at every call.
        resident.saved_at = Some((self.clock)());
        let copy = state.clone();
        let id = copy.session_id().to_owned();
        let may_replace = !resident.is_blind;
        let saved = self.stored_step(&id, SAVE_PATIENCE, |slot| {
            if may_replace || slot.is_none() {
                *slot = Some(copy);
            }
        });
        resident.is_dirty = saved.is_none();
        saved.is_some()
    }

    fn stored_step<R>(
        &self,
        id: &str,
        patience: Duration,
        change: impl FnOnce(&mut Option<State>) -> R,
    ) -> Option<R> {
        let updated = self.store()?.update_within(id, patience, change);
        let Updated { value, unusable } = self.noted(updated)?;
        if let Some(unusable) = unusable {
            self.notes.add(unusable.to_string());
        }
        Some(value)
    }

    /// The store, if there is one and its directory may be used.
    fn store(&self) -> Option<&S> {
        if let Some(Err(refused)) = self.store_path.as_ref().map(CheckedPath::check) {
            self.notes
                .add(format!("stateDir: {refused}: sessions are not kept"));
            return None;
        }
        self.store.as_ref()
    }

    fn noted<T>(&self, result: Result<T, S::Error>) -> Option<T> {
        result
            .inspect_err(|error| self.notes.add(error.to_string()))
            .ok()
    }
}

/// Ten times a second.
const SAVE_EVERY_MS: i64 = 100;

/// How long a resident session waits to be written; it is tried again later.
const SAVE_PATIENCE: Duration = Duration::from_millis(50);
