//! `repetition`: equal calls among the last few.

use crate::{Call, Key, Rule, session::Finding};

/// The widest window.
pub(crate) const MAX_WINDOW: usize = 50;
/// The narrowest window.
pub(crate) const MIN_WINDOW: usize = 3;
/// The current call is part of the window, so one less is kept.
pub(crate) const SIZE: usize = MAX_WINDOW - 1;

/// The keys of the last calls, and the unbroken run that ends with the last one.
#[derive(Clone, Debug)]
pub(crate) struct Repetition<K> {
    keys: [Option<K>; SIZE],
    /// Where the next key goes.
    next: usize,
    run: u32,
}

impl<K: Key> Repetition<K> {
    pub(crate) const fn new() -> Self {
        Self {
            keys: [None; SIZE],
            next: 0,
            run: 0,
        }
    }

    pub(crate) fn judge(&self, call: &Call<K>, window: usize) -> Finding {
        let matches = self
            .newest()
            .take(window - 1)
            .filter(|key| *key == call.key)
            .count();
        let matches = u32::try_from(matches).unwrap_or(u32::MAX).saturating_add(1);
        let count = matches.max(self.run_with(&call.key));
        let verdict = call.ladder.level(|threshold| count >= threshold);
        Finding::new(verdict, Rule::Repetition, count, 0)
    }

    pub(crate) fn enter(&mut self, call: &Call<K>) {
        self.run = self.run_with(&call.key);
        if let Some(place) = self.keys.get_mut(self.next) {
            *place = Some(call.key);
        }
        self.next = (self.next + 1) % SIZE;
    }

    /// The keys, newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = K> + '_ {
        let (newer, older) = self.keys.split_at_checked(self.next).unwrap_or_default();
        newer
            .iter()
            .rev()
            .chain(older.iter().rev())
            .copied()
            .flatten()
    }

    #[cfg(feature = "serde")]
    pub(crate) const fn run(&self) -> u32 {
        self.run
    }

    /// The memory of a snapshot; `None` if it cannot be one.
    #[cfg(feature = "serde")]
    pub(crate) fn restore(oldest_first: &[K], run: u32) -> Option<Self> {
        let mut this = Self::new();
        if oldest_first.len() > SIZE || (run == 0) != oldest_first.is_empty() {
            return None;
        }
        for (place, key) in this.keys.iter_mut().zip(oldest_first) {
            *place = Some(*key);
        }
        this.next = oldest_first.len() % SIZE;
        this.run = run;
        Some(this)
    }

    fn run_with(&self, key: &K) -> u32 {
        match self.newest().next() {
            Some(last) if last == *key => self.run.saturating_add(1),
            _ => 1,
        }
    }
}
