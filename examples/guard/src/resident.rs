//! Sessions in memory.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{memory::State, setup::Form};

/// The sessions that were used last. Locks are taken in the order map, session; a session's
/// lock is held while it is read from or written to the store, the map's only while a
/// session leaves.
#[derive(Debug, Default)]
pub(crate) struct Residents {
    map: Mutex<Map>,
}

#[derive(Debug, Default)]
struct Map {
    slots: HashMap<String, Slot>,
    uses: u64,
}

#[derive(Debug)]
struct Slot {
    resident: Arc<Mutex<Resident>>,
    used: u64,
}

/// One session in memory.
#[derive(Debug, Default)]
pub(crate) struct Resident {
    /// `None` until it was looked for in the store.
    pub(crate) state: Option<State>,
    pub(crate) is_dirty: bool,
    /// The store could not be read: what may stand there must not be written over.
    pub(crate) is_blind: bool,
    pub(crate) saved_at: Option<i64>,
    /// It was deleted, and must not be written again by who still holds it.
    pub(crate) is_gone: bool,
}

impl Residents {
    /// The session, made empty if it is not here. `leaving` is called with the one that is to make room, and says
    /// whether it can.
    pub(crate) fn get(
        &self,
        id: &str,
        leaving: impl FnOnce(&mut Resident) -> bool,
    ) -> Arc<Mutex<Resident>> {
        let mut map = lock(&self.map);
        map.uses += 1;
        let used = map.uses;
        if let Some(slot) = map.slots.get_mut(id) {
            slot.used = used;
            return Arc::clone(&slot.resident);
        }
        if map.slots.len() >= Form::LIVE_SESSIONS {
            map.evict(leaving);
        }
        let resident = Arc::default();
        map.slots.insert(
            id.to_owned(),
            Slot {
                resident: Arc::clone(&resident),
                used,
            },
        );
        resident
    }

    pub(crate) fn holds(&self, id: &str) -> bool {
        lock(&self.map).slots.contains_key(id)
    }

    /// Takes the session out. `finish` is called while nobody can bring it back.
    pub(crate) fn remove<R>(&self, id: &str, finish: impl FnOnce(&mut Resident) -> R) -> R {
        let mut map = lock(&self.map);
        let resident = map
            .slots
            .remove(id)
            .map_or_else(Arc::default, |slot| slot.resident);
        let mut resident = lock(&resident);
        resident.is_gone = true;
        finish(&mut resident)
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        lock(&self.map).slots.keys().cloned().collect()
    }

    pub(crate) fn for_each(&self, mut visit: impl FnMut(&mut Resident)) {
        let all: Vec<_> = lock(&self.map)
            .slots
            .values()
            .map(|slot| Arc::clone(&slot.resident))
            .collect();
        for resident in all {
            visit(&mut lock(&resident));
        }
    }
}

impl Map {
    /// Lets the session go that was not used for longest, of those that nobody holds. One that cannot be written
    /// stays, while there are not far too many.
    fn evict(&mut self, leaving: impl FnOnce(&mut Resident) -> bool) {
        let free = self
            .slots
            .iter()
            .filter(|(_, slot)| Arc::strong_count(&slot.resident) == 1);
        let Some((id, resident)) = free
            .min_by_key(|(_, slot)| slot.used)
            .map(|(id, slot)| (id.clone(), Arc::clone(&slot.resident)))
        else {
            return;
        };
        if leaving(&mut lock(&resident)) || self.slots.len() >= 4 * Form::LIVE_SESSIONS {
            self.slots.remove(&id);
        }
    }
}

/// A lock that somebody panicked under is as good as any: every change here is small and whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
