//! One session, one safe file name; never two.

use bizar_log::{SessionLog, SessionName};
use proptest::prelude::*;

use crate::{entry, files};

#[test]
fn ordinary_ids_are_kept() {
    for id in [
        "ses_5f3AbC",
        "-",
        "_",
        "0",
        "1",
        &"a".repeat(100),
        "console",
        "com10",
        "lpt",
    ] {
        assert_eq!(SessionName::of(id).as_str(), id);
    }
}

#[test]
fn state_12_ids_are_no_paths() {
    let long = "a".repeat(300);
    let ids = [
        "../../x", "..", ".", "/abs", "a/b", "C:\\x", "", &long, "NUL\0x", "-",
    ];
    let names = ids.map(|id| SessionName::of(id).as_str().to_owned());
    let cut = format!("{}~9835fa6bf4e20a9b", "a".repeat(100));
    assert_eq!(
        names[..7],
        [
            "%2E%2E%2F%2E%2E%2Fx",
            "%2E%2E",
            "%2E",
            "%2Fabs",
            "a%2Fb",
            "C%3A%5Cx",
            "~e3b0c44298fc1c14"
        ]
    );
    assert_eq!(names[7], cut);
    assert_eq!(names[8..], ["NUL%00x", "-"]);
}

#[test]
fn state_13_dots_do_not_survive() {
    for id in ["..", "x.1", "x.log", "x.", ".x"] {
        assert!(!SessionName::of(id).as_str().contains('.'));
    }
    assert_eq!(SessionName::of("x.1").as_str(), "x%2E1");
}

#[test]
fn device_names_of_windows_are_not_used() {
    for id in ["con", "PRN", "Aux", "nul", "com0", "COM1", "lpt9"] {
        let name = SessionName::of(id);
        let (first, rest) = id.split_at(1);
        assert_eq!(name.as_str(), format!("%{:02X}{rest}", first.as_bytes()[0]));
    }
}

#[test]
fn capitals_are_told_apart_where_the_directory_does_not() {
    assert_eq!(SessionName::case_folded("abc").as_str(), "abc");
    let names =
        ["Ab", "aB", "AB"].map(|id| SessionName::case_folded(id).to_string().to_lowercase());
    assert_eq!(names[0], "ab~025b5573cb68f3af");
    assert!(
        names[0] != names[1] && names[1] != names[2] && names[0] != names[2],
        "{names:?}"
    );
    assert_eq!(
        SessionName::case_folded("CON")
            .as_str()
            .split_once('~')
            .unwrap()
            .0,
        "%43ON"
    );
}

#[test]
fn the_directory_is_asked_and_left_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("case"), "").unwrap();
    let folds = directory.path().join("CASE").exists();
    let name = SessionName::for_directory(directory.path(), "Ab");
    let expected = if folds {
        SessionName::case_folded("Ab")
    } else {
        SessionName::of("Ab")
    };
    assert_eq!(name, expected);
    assert_eq!(files(directory.path()), ["case"]);
}

#[test]
fn hostile_ids_make_one_file_in_the_directory() {
    let long = "x/".repeat(150);
    let ids = [
        "../../x",
        "..",
        "/abs",
        "a\\b",
        "C:x",
        "",
        long.as_str(),
        "a\0b",
        "a\nb",
        "\u{202e}gol",
        "nul",
        "x.1",
        "x ",
        "x",
        "ü",
        "u\u{308}",
        "%",
        "~",
        "~e3b0c44298fc1c14",
    ];
    for id in ids {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("logs");
        let mut log = SessionLog::open(&inner, id, 1 << 20);
        assert!(log.append(&entry(id, 1)).is_written());
        assert!(log.append(&entry(id, 2)).is_written());
        assert_eq!(files(directory.path()), ["logs"]);
        let found = files(&inner);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            std::fs::read_to_string(inner.join(&found[0]))
                .unwrap()
                .lines()
                .count(),
            2
        );
    }
}

/// Ids of few different characters, so that close ones come up.
fn ids() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[aA.~%/0-]{0,4}",
        "(con|CON|%63on|nul|com1|COM1|~e3b0c44298fc1c14|%|%25)",
        "[aA]{99,101}",
        "[a/]{32,36}",
        "a{100}~[0-9a-f]{16}",
    ]
}

proptest! {
    #[test]
    fn two_ids_never_share_a_file(a in ids(), b in ids()) {
        prop_assume!(a != b);
        prop_assert_ne!(SessionName::of(&a), SessionName::of(&b));
        // As a directory sees it that takes small and capital letters for the same.
        let folded = |id: &str| SessionName::case_folded(id).as_str().to_ascii_lowercase();
        prop_assert_ne!(folded(&a), folded(&b));
    }

    #[test]
    fn a_name_is_safe(id in ids()) {
        for name in [SessionName::of(&id), SessionName::case_folded(&id)] {
            let name = name.as_str();
            prop_assert!(!name.is_empty() && name.len() <= 117);
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-%~".contains(&b)));
            let lower = name.to_ascii_lowercase();
            prop_assert!(!["con", "prn", "aux", "nul", "com1", "lpt1"].contains(&lower.as_str()));
        }
    }
}
