//! Reading without a trace.

use std::collections::BTreeMap;
use std::fs;

use bizar_state::{Reason, Store};

use crate::counter::{Counter, store};

#[test]
fn an_onlooker_changes_nothing_and_waits_for_nobody() {
    let root = tempfile::tempdir().unwrap();
    let missing = store(&root.path().join("missing"));
    assert_eq!(missing.peek("a").unwrap().document, None);
    assert_eq!(missing.list().unwrap().documents, []);
    assert!(!missing.remove("a").unwrap());
    assert_eq!(missing.sweep(|_| true).unwrap().removed.len(), 0);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);

    let store = store(root.path());
    store.save(Counter::new("a", 1)).unwrap();
    fs::write(store.path("bad"), "{").unwrap();
    let before = everything(root.path());
    // Within a change the lock is held.
    store
        .update("a", |_| {
            let seen = store.peek("a").unwrap();
            assert_eq!(seen.document, Some(Counter::new("a", 1)));
            let bad = store.peek("bad").unwrap().unusable.unwrap();
            assert_eq!(bad.path, store.path("bad"));
            assert!(matches!(bad.reason, Reason::Malformed { line: 1, .. }));
            let listed = store.list().unwrap();
            assert_eq!(listed.documents, [Counter::new("a", 1)]);
            assert_eq!(listed.unusable, [bad]);
            assert_eq!(everything(root.path()), before);
        })
        .unwrap();
}

fn everything(directory: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}
