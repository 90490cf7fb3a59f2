//! What a user should hear once.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

/// Notes that wait to be shown; each text is taken once, and at most [`MOST`] in all.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: Vec<String>,
    known: HashSet<String>,
}

impl Notes {
    pub(crate) fn add(&self, text: String) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.known.len() < MOST && inner.known.insert(text.clone()) {
            inner.waiting.push(text);
        }
    }

    pub(crate) fn take(&self) -> Vec<String> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut inner.waiting)
    }
}

const MOST: usize = 200;
