//! From an id to a file.

use std::collections::BTreeSet;
use std::fs;

use bizar_state::Store;

use crate::counter::{Counter, add_one, files, store};

#[test]
fn state_12_every_id_is_one_file_inside() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("a/b");
    let store = store(&directory);
    let long = "a".repeat(300);
    let longer = "a".repeat(301);
    let ids = [
        "../../x",
        "..",
        ".",
        "/abs",
        "a/b",
        "a%2Fb",
        "C:\\x",
        "",
        &long,
        &longer,
        "NUL\0x",
        "NUL",
        "-",
        "x.1",
        "x",
        "\u{202e}x",
        "x\n",
        "ses_1.json",
        ".lock-0",
    ];
    for (already, id) in ids.iter().enumerate() {
        assert_eq!(files_of(&directory), already);
        assert_eq!(add_one(&store, id).unwrap(), 1, "{id:?}");
        assert_eq!(add_one(&store, id).unwrap(), 2, "{id:?}");
        assert_eq!(store.path(id).parent(), Some(&*directory));
        assert!(store.path(id).file_name().unwrap().len() <= 130);
    }
    let listed = store.list().unwrap();
    assert_eq!(listed.unusable, []);
    let listed: BTreeSet<_> = listed
        .documents
        .into_iter()
        .map(|counter| counter.id)
        .collect();
    assert_eq!(listed, ids.iter().map(|&id| id.to_owned()).collect());
    for id in ids {
        assert!(store.remove(id).unwrap(), "{id:?}");
    }
    assert_eq!(files(&directory).len(), 0);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn state_13_dots_are_no_traversal() {
    let root = tempfile::tempdir().unwrap();
    let store = store(&root.path().join("inner"));
    store.save(Counter::new("..", 1)).unwrap();
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    assert_eq!(store.path(".."), root.path().join("inner/%2E%2E.json"));
}

#[test]
fn ids_that_differ_in_case_share_no_file_where_case_is_folded() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    assert_eq!(store.path("Ses_1"), directory.path().join("Ses_1.json"));
    // What a directory that folds case answers.
    for slot in "0123456789abcdef".chars() {
        fs::write(directory.path().join(format!(".lock-{slot}")), "").unwrap();
        fs::write(directory.path().join(format!(".LOCK-{slot}")), "").unwrap();
    }
    let mut paths = BTreeSet::new();
    for id in ["ses_1", "Ses_1", "SES_1"] {
        store.save(Counter::new(id, 1)).unwrap();
        paths.insert(store.path(id).to_str().unwrap().to_lowercase());
    }
    assert_eq!(paths.len(), 3);
    assert_eq!(store.list().unwrap().documents.len(), 3);
}

#[test]
fn a_change_cannot_give_another_id() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let error = store
        .update("a", |slot| *slot = Some(Counter::new("b", 1)))
        .unwrap_err();
    assert!(matches!(error, bizar_state::Error::OtherId), "{error:?}");
    assert_eq!(files(directory.path()).len(), 0);
}

fn files_of(directory: &std::path::Path) -> usize {
    if directory.exists() {
        files(directory).len()
    } else {
        0
    }
}
