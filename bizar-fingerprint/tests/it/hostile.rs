//! No input aborts, hangs or collides in silence.

use bizar_fingerprint::{
    ErrorKind, Fingerprinter, MAX_DEPTH, canonical_from_serialize, canonical_from_text,
    canonical_from_value,
};
use serde_json::Value;

fn deep_value(levels: usize, objects: bool) -> Value {
    (0..levels).fold(Value::Null, |inner, _| {
        if objects {
            Value::Object([(String::from("a"), inner)].into_iter().collect())
        } else {
            Value::Array(vec![inner])
        }
    })
}

/// Takes a deep value apart level by level: serde_json's own drop would overflow the stack.
fn take_apart(mut value: Value) {
    while let Some(inner) = match &mut value {
        Value::Array(items) => items.pop(),
        Value::Object(members) => members.get_mut("a").map(Value::take),
        _ => None,
    } {
        value = inner;
    }
}

#[test]
fn fp_14_depth_has_a_limit_and_never_aborts() {
    // A small stack, as a thread of a host may have.
    let checked = std::thread::Builder::new().stack_size(512 << 10).spawn(|| {
        for levels in [127, 128, 129, 8_000, 100_000] {
            let fits = levels <= MAX_DEPTH;
            for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
                let json = format!("{}null{}", open.repeat(levels), close.repeat(levels));
                let text = canonical_from_text(&json);
                assert_eq!(text.is_ok(), fits, "{levels}");
                if let Err(error) = text {
                    assert_eq!(
                        (error.kind(), error.offset()),
                        (ErrorKind::TooDeep, Some(MAX_DEPTH * open.len()))
                    );
                }
                assert_eq!(
                    Fingerprinter::new()
                        .worktree("/w")
                        .of_text("t", &json)
                        .is_ok(),
                    fits
                );
                let _ = Fingerprinter::new().digest_text(None, &json);

                let value = deep_value(levels, open == "{\"a\":");
                for result in [
                    canonical_from_value(&value),
                    canonical_from_serialize(&value),
                ] {
                    assert_eq!(result.is_ok(), fits, "{levels}");
                    if let Err(error) = result {
                        let pointer = if open == "[" { "/0" } else { "/a" }.repeat(MAX_DEPTH);
                        assert_eq!(
                            error.to_string(),
                            format!("more than 128 levels of nesting at {pointer}")
                        );
                    }
                }
                let _ = Fingerprinter::new().digest_value(None, &value);
                take_apart(value);
            }
        }
    });
    checked.unwrap().join().unwrap();
}

#[test]
fn unclosed_and_unopened_brackets_are_errors() {
    for json in [
        "[".repeat(1_000_000),
        "{\"a\":".repeat(100_000),
        "]".repeat(1_000_000),
        "[{\"\":".repeat(100_000),
    ] {
        assert!(canonical_from_text(&json).is_err());
    }
}

#[test]
fn every_prefix_and_every_changed_byte_of_a_document_is_answered() {
    let json = r#"{"a":[1,-2.5e-3,true,null,"\u00e9\ud83d\ude00\n/w"],"/w":{"b":{},"a":[]},"z":9007199254740993}"#.as_bytes();
    // serde_json keeps the last of two members, and with `arbitrary_precision` numbers of any size.
    let silent_in_peer = [ErrorKind::DuplicateKey, ErrorKind::NumberTooLarge];
    let mut fingerprinter = Fingerprinter::new().worktree("/w");
    for end in 0..json.len() {
        assert!(fingerprinter.of_text("t", &json[..end]).is_err());
    }
    for at in 0..json.len() {
        for byte in 0..=255 {
            let mut json = json.to_vec();
            json[at] = byte;
            let ours = fingerprinter.of_text("t", &json);
            let peer = serde_json::from_slice::<Value>(&json);
            match ours {
                Ok(ours) => assert_eq!(ours, fingerprinter.of_value("t", &peer.unwrap()).unwrap()),
                Err(error) => assert!(
                    peer.is_err() || silent_in_peer.contains(&error.kind()),
                    "{error}"
                ),
            }
        }
    }
}

#[test]
fn long_names_and_many_members_are_sorted_in_time() {
    let members: Vec<String> = (0..50_000)
        .rev()
        .map(|n| format!("\"{}{n:05}\":{n}", "k".repeat(50)))
        .collect();
    let canonical = canonical_from_text(format!("{{{}}}", members.join(","))).unwrap();
    let sorted: Vec<String> = members.into_iter().rev().collect();
    assert_eq!(canonical, format!("{{{}}}", sorted.join(",")).into_bytes());
}

#[test]
fn a_hard_number_is_read_and_printed_in_time() {
    let long = format!("0.{}1", "0".repeat(100_000));
    assert_eq!(canonical_from_text(&long).unwrap(), b"0");
    let long = format!("{}.5", "9".repeat(300));
    assert_eq!(canonical_from_text(&long).unwrap(), b"1e+300");
    assert!(canonical_from_text("9".repeat(100_000)).is_err());
}

#[test]
fn an_error_says_nothing_of_the_values() {
    for json in [
        r#"{"key":"secret" x}"#,
        r#"{"key":"secret\ud800"}"#,
        r#"["secret",1e999]"#,
        r#"{"secret":1,"secret":2}"#,
    ] {
        assert!(!format!("{:?}", canonical_from_text(json).unwrap_err()).contains("secret"));
    }
}
