//! What cannot be used is kept.

use std::fs;

use bizar_state::{Reason, Store};
use proptest::prelude::*;

use crate::counter::{Counter, Counters, add_one, files, store};

const GOOD: &str = r#"{"kind":"test.counter","version":2,"id":"c","count":3}"#;

/// Puts `bytes` in the place of a document, and sees that they are kept and the document is new.
fn kept(bytes: &[u8]) -> Reason {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    fs::write(store.path("c"), bytes).unwrap();
    let updated = store.save(Counter::new("c", 1)).unwrap();
    let unusable = updated.unusable.unwrap();
    assert_eq!(unusable.path, directory.path().join("c.kept-1"));
    assert_eq!(fs::read(unusable.path).unwrap(), bytes);
    assert_eq!(
        store.load("c").unwrap().document,
        Some(Counter::new("c", 1))
    );
    assert_eq!(files(directory.path()).len(), 2);
    unusable.reason
}

fn is_malformed(bytes: &[u8]) -> bool {
    matches!(kept(bytes), Reason::Malformed { .. })
}

#[test]
fn state_04_a_corrupt_file_is_kept_before_the_first_save() {
    let cut = br#"{"sessionId":"ses_1","cou"#;
    assert!(is_malformed(cut));

    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    fs::write(store.path("ses_1"), cut).unwrap();
    let loaded = store.load("ses_1").unwrap();
    assert_eq!(loaded.document, None);
    let unusable = loaded.unusable.unwrap();
    assert_eq!(fs::read(&unusable.path).unwrap(), cut);
    let message = unusable.to_string();
    let place = unusable.path.display().to_string();
    assert!(
        message.starts_with(&format!("{place}: not a JSON object (line 1, column ")),
        "{message}"
    );
    // Reported once: from now on there is nothing.
    assert_eq!(store.load("ses_1").unwrap().unusable, None);
    assert_eq!(add_one(&store, "ses_1").unwrap(), 1);
}

#[test]
fn state_05_each_corrupt_file_is_kept_under_its_own_name() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    fs::write(directory.path().join("c.kept-2"), "older").unwrap();
    for number in 1..=20 {
        store.save(Counter::new("c", number)).unwrap();
        fs::write(store.path("c"), format!("corrupt {number}")).unwrap();
        assert!(store.load("c").unwrap().unusable.is_some());
    }
    let mut texts: Vec<_> = files(directory.path())
        .into_values()
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .collect();
    let mut expected: Vec<_> = (1..=20).map(|number| format!("corrupt {number}")).collect();
    expected.push("older".to_owned());
    texts.sort();
    expected.sort();
    assert_eq!(texts, expected);
}

#[test]
fn state_06_what_is_no_document_is_kept() {
    assert!(is_malformed(&[0; 4096]));
    assert_eq!(kept(b""), Reason::Empty);
    assert!(is_malformed(format!("\u{feff}{GOOD}").as_bytes()));
    assert!(is_malformed(b"[1]"));
    assert!(is_malformed(format!("{GOOD} x").as_bytes()));
    assert!(is_malformed(b"{\"a\":\"\xff\"}"));
    let wrong = GOOD.replace('3', "-3");
    assert!(matches!(
        kept(wrong.as_bytes()),
        Reason::WrongShape { line: 1, .. }
    ));
    let missing = GOOD.replace("\"count\"", "\"number\"");
    assert!(matches!(
        kept(missing.as_bytes()),
        Reason::WrongShape { line: 1, .. }
    ));
    assert!(is_malformed("[".repeat(1_000_000).as_bytes()));
}

#[test]
fn foreign_and_later_documents_are_kept() {
    assert_eq!(kept(b"{}"), Reason::Foreign);
    assert_eq!(
        kept(GOOD.replace("test.counter", "other").as_bytes()),
        Reason::Foreign
    );
    assert_eq!(
        kept(GOOD.replace("\"version\":2,", "").as_bytes()),
        Reason::Foreign
    );
    assert_eq!(
        kept(GOOD.replace(":2", ":\"2\"").as_bytes()),
        Reason::Foreign
    );
    assert_eq!(
        kept(GOOD.replace(":2", ":3").as_bytes()),
        Reason::Future { version: 3 }
    );
    assert_eq!(
        kept(GOOD.replace("\"c\"", "\"d\"").as_bytes()),
        Reason::Misplaced
    );
}

#[test]
fn earlier_versions_are_read_and_become_the_present_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    fs::write(store.path("c"), GOOD.replace(":2", ":1")).unwrap();
    assert_eq!(add_one(&store, "c").unwrap(), 4);
    let text = fs::read_to_string(store.path("c")).unwrap();
    assert_eq!(
        text,
        "{\"kind\":\"test.counter\",\"version\":2,\"id\":\"c\",\"count\":4,\"padding\":\"\"}\n"
    );
}

#[test]
fn a_file_that_is_too_large_is_kept_without_being_read() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let size = 1 << 40;
    fs::File::create(store.path("c"))
        .unwrap()
        .set_len(size)
        .unwrap();
    let unusable = store.load("c").unwrap().unusable.unwrap();
    assert_eq!(unusable.reason, Reason::TooLarge);
    assert_eq!(fs::metadata(unusable.path).unwrap().len(), size);
}

/// Bytes of any kind, and documents in which a few bytes are wrong.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let wrong = (
        prop::collection::vec((0..GOOD.len(), any::<u8>()), 0..4),
        0..=GOOD.len(),
    );
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        wrong.prop_map(|(changes, length)| {
            let mut bytes = GOOD.as_bytes().to_vec();
            changes.iter().for_each(|&(at, byte)| bytes[at] = byte);
            bytes.truncate(length.max(GOOD.len() / 2));
            bytes
        }),
        "\\PC*".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn arbitrary_bytes_are_kept(bytes in bytes()) {
        let directory = tempfile::tempdir().unwrap();
        let store: Counters = store(directory.path());
        fs::write(store.path("c"), &bytes).unwrap();
        let seen = store.peek("c").unwrap();
        let loaded = store.load("c").unwrap();
        prop_assert_eq!(&seen.document, &loaded.document);
        match loaded.unusable {
            Some(unusable) => {
                prop_assert_eq!(loaded.document, None);
                prop_assert_eq!(fs::read(unusable.path).unwrap(), bytes);
                prop_assert!(!store.path("c").exists());
            }
            None => {
                prop_assert_eq!(loaded.document.unwrap().id, "c");
                prop_assert_eq!(fs::read(store.path("c")).unwrap(), bytes);
            }
        }
        store.save(Counter::new("c", 1)).unwrap();
        prop_assert_eq!(store.load("c").unwrap().document, Some(Counter::new("c", 1)));
    }
}
