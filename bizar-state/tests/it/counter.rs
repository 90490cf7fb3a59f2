//! The document that most tests store.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bizar_state::{Document, Durability, FileStore, Store};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Counter {
    pub(crate) id: String,
    pub(crate) count: u64,
    #[serde(default)]
    pub(crate) padding: String,
}

impl Document for Counter {
    const KIND: &'static str = "test.counter";
    const VERSION: u32 = 2;

    fn id(&self) -> &str {
        &self.id
    }
}

impl Counter {
    pub(crate) fn new(id: &str, count: u64) -> Self {
        Self {
            id: id.to_owned(),
            count,
            padding: String::new(),
        }
    }
}

pub(crate) type Counters = FileStore<Counter>;

pub(crate) fn store(directory: &Path) -> Counters {
    FileStore::new(directory, Durability::Process)
}

/// Adds one and returns the new count.
pub(crate) fn add_one(store: &Counters, id: &str) -> Result<u64, bizar_state::Error> {
    let updated = store.update(id, |slot| {
        let counter = slot.get_or_insert_with(|| Counter::new(id, 0));
        counter.count += 1;
        counter.count
    })?;
    assert_eq!(updated.unusable, None);
    Ok(updated.value)
}

/// The files of a directory but the locks, with what is in them.
pub(crate) fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .filter(|(name, _)| !name.starts_with(".lock-"))
        .map(|(name, path)| (name, fs::read(path).unwrap_or_default()))
        .collect()
}
