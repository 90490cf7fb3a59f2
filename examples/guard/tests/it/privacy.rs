//! No byte of an argument or a result reaches a log, a state file, a text or a note.

use std::{fs, path::Path};

use bizar_guard::{Call, Delivery, End, Ended, Form, Guard, Round, Status};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::rig::Rig;

/// What every secret holds, and no name, number or hash of ours can.
const MARK: &str = "zQ7\u{2603}";

fn secret() -> impl Strategy<Value = String> {
    ("[a-z/~ .\\n\"\\\\]{0,12}", "[a-z0-9]{0,8}")
        .prop_map(|(before, after)| format!("{before}{MARK}{after}"))
}

/// Arguments with marked secrets as keys and values, at any depth.
fn args() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        secret().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(Value::Null)
    ];
    let tree = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((secret(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    (
        secret(),
        tree,
        prop::sample::select(vec!["command", "path", "filePath", "description"]),
    )
        .prop_map(|(secret, tree, name)| json!({name: secret, "more": tree}))
}

fn assert_clean(what: &str, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    for mark in [MARK, "zQ7", "\u{2603}", "\\u2603"] {
        assert!(!text.contains(mark), "{what} holds {mark}");
    }
}

fn assert_clean_files(directory: &Path) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        assert_clean("a file name", path.to_string_lossy().as_bytes());
        if path.is_dir() {
            files += assert_clean_files(&path);
        } else {
            assert_clean(&path.to_string_lossy(), &fs::read(&path).unwrap());
            files += 1;
        }
    }
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_argument_byte_gets_out(args in args(), result in secret(), mode in 0..3_usize, per_call in any::<bool>(), as_text in any::<bool>(), broken in 0..4) {
        let rig = Rig::new();
        let mode = ["progress", "repetition", "cycle"][mode];
        let form = if per_call { Form::ONE_CALL } else { Form::Resident };
        let guard = Guard::new(rig.setup(form, &json!({ "loopMode": mode }), &[]));
        let mut text = args.to_string();
        if broken == 0 {
            text.push_str(MARK); // no JSON any more
        }
        let mut seen = Vec::new();
        for i in 0..16 {
            let id = format!("call-{i}");
            let mut call = Call::new("s", ["bash", "read"][i % 2], &args).id(&id).round(Round::Overlap);
            if as_text {
                call.args = text.as_str().into();
            }
            let decision = guard.before(&call);
            seen.push(format!("{decision:?}"));
            seen.extend(guard.request("s", [Delivery::Forgets, Delivery::Keeps][i % 2]));
            if !decision.refused {
                let status = [Status::Ok, Status::Failed, Status::Refused, Status::Unknown, Status::Aborted][i % 5];
                guard.after(&End { args: call.args, ..End::new("s", call.tool, &args, Ended::new(status, result.as_str())).id(&id) });
            }
        }
        guard.idle("s");
        seen.extend(guard.notes());
        seen.push(format!("{guard:?}"));
        drop(guard);
        for text in seen {
            assert_clean("a text", text.as_bytes());
        }
        prop_assert!(assert_clean_files(rig.home()) >= 2);
    }
}

/// The check itself sees a secret where there is one.
#[test]
fn the_mark_is_seen() {
    let home = tempfile::TempDir::new().unwrap();
    fs::write(home.path().join("file"), format!("a {MARK} b")).unwrap();
    assert!(std::panic::catch_unwind(|| assert_clean_files(home.path())).is_err());
}
