//! What holds for any document, checked against a peer and against the obvious way to do it.

use bizar_fingerprint::{
    Fingerprinter, canonical_from_serialize, canonical_from_text, canonical_from_value,
};
use proptest::prelude::*;
use serde_json::{Map, Number, Value};

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1000..1000_i32).prop_map(Value::from),
        any::<u64>().prop_map(
            |bits| Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
        ),
        (-1_000_000..1_000_000_i32, -30..30_i32)
            .prop_map(|(m, e)| Value::from(f64::from(m) * 10_f64.powi(e))),
    ]
}

/// Few letters, so that names meet, share beginnings and differ at every kind of character.
fn text() -> impl Strategy<Value = String> {
    let letter = prop::sample::select(vec![
        'a',
        'b',
        '"',
        '\\',
        '/',
        '\n',
        '\u{8}',
        '\u{1}',
        '\u{1f}',
        '\u{7f}',
        'é',
        '\u{d7ff}',
        '\u{e000}',
        '\u{fb33}',
        '\u{ffff}',
        '\u{10000}',
        '\u{1f600}',
        '\u{10ffff}',
    ]);
    prop_oneof![
        4 => prop::collection::vec(letter, 0..6).prop_map(|letters| letters.into_iter().collect()),
        1 => any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number(),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 40, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((text(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same value as text of another look: members turned round, white space, every character escaped.
fn other_text(value: &Value) -> String {
    let string = |text: &str| {
        let units: String = text
            .encode_utf16()
            .map(|unit| format!("\\u{unit:04X}"))
            .collect();
        format!("\"{units}\"")
    };
    match value {
        Value::String(text) => string(text),
        Value::Array(items) => format!(
            "[ {} ]",
            items.iter().map(other_text).collect::<Vec<_>>().join("\n,")
        ),
        Value::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .map(|(k, v)| format!("\t{} : {}", string(k), other_text(v)))
                .collect();
            members.reverse();
            format!("{{{}\r}}", members.join(", "))
        }
        other => other.to_string(),
    }
}

/// The rule in its plainest form: collect, sort by code units, print.
fn naive(value: &Value, out: &mut String) {
    let string = |text: &str, out: &mut String| {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\u{8}' => out.push_str("\\b"),
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\u{c}' => out.push_str("\\f"),
                '\r' => out.push_str("\\r"),
                c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => out.push(c),
            }
        }
        out.push('"');
    };
    match value {
        Value::String(text) => string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                naive(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.encode_utf16().collect::<Vec<_>>());
            out.push('{');
            for (n, (name, value)) in members.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                string(name, out);
                out.push(':');
                naive(value, out);
            }
            out.push('}');
        }
        Value::Number(number) if number.is_i64() || number.is_u64() => {
            // `-0` is an integer where serde_json keeps the text of numbers.
            out.push_str(
                &number
                    .as_i64()
                    .map_or_else(|| number.to_string(), |integer| integer.to_string()),
            );
        }
        Value::Number(number) => {
            let double = number.as_f64().unwrap();
            out.push_str(
                &String::from_utf8(serde_json_canonicalizer::to_vec(&double).unwrap()).unwrap(),
            );
        }
        other => out.push_str(&other.to_string()),
    }
}

/// Without integers beyond 2^53, where the peer rounds and we do not.
fn small_integers(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(integer) if integer.unsigned_abs() <= 1 << 53 => Value::from(integer),
            _ if number.is_f64() => Value::from(number.as_f64()),
            _ => Value::Null,
        },
        Value::Array(items) => items.into_iter().map(small_integers).collect(),
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(k, v)| (k, small_integers(v)))
                .collect::<Map<_, _>>(),
        ),
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn text_value_and_serialize_give_the_same_bytes(value in value()) {
        let canonical = canonical_from_value(&value).unwrap();
        prop_assert_eq!(&canonical, &canonical_from_serialize(&value).unwrap());
        prop_assert_eq!(&canonical, &canonical_from_text(value.to_string()).unwrap());
        prop_assert_eq!(&canonical, &canonical_from_text(other_text(&value)).unwrap());
        prop_assert_eq!(&canonical, &canonical_from_text(&canonical).unwrap(), "idempotent");
        let read: Value = serde_json::from_slice(&canonical).unwrap();
        prop_assert_eq!(&canonical, &canonical_from_value(&read).unwrap(), "read back");
    }

    #[test]
    fn the_naive_rule_agrees(value in value()) {
        let mut expected = String::new();
        naive(&value, &mut expected);
        prop_assert_eq!(String::from_utf8(canonical_from_value(&value).unwrap()).unwrap(), expected);
    }

    #[test]
    fn the_peer_agrees_up_to_2_to_the_53(value in value().prop_map(small_integers)) {
        let peer = String::from_utf8(serde_json_canonicalizer::to_vec(&value).unwrap()).unwrap();
        prop_assert_eq!(String::from_utf8(canonical_from_value(&value).unwrap()).unwrap(), peer);
    }

    #[test]
    fn any_double_prints_as_the_peer_prints_it(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let ours = canonical_from_serialize(&value).unwrap();
        prop_assert_eq!(&ours, &serde_json_canonicalizer::to_vec(&value).unwrap());
        let read: f64 = std::str::from_utf8(&ours).unwrap().parse().unwrap();
        prop_assert_eq!(read.to_bits(), (value + 0.0).to_bits(), "but for the sign of zero");
    }

    #[test]
    fn different_integers_have_different_fingerprints(a in any::<i64>(), b in any::<u64>(), step in 1..4_u64) {
        let mut fingerprinter = Fingerprinter::new();
        let c = b.wrapping_add(step);
        prop_assert_ne!(fingerprinter.of_serialize("t", &b).unwrap(), fingerprinter.of_serialize("t", &c).unwrap());
        prop_assert_ne!(fingerprinter.of_serialize("t", &a).unwrap(), fingerprinter.of_serialize("t", &(a ^ 1)).unwrap());
    }

    #[test]
    fn fingerprints_agree_on_every_path(value in value(), worktree in prop::sample::select(vec!["", "/w", "C:\\w"])) {
        let mut fingerprinter = Fingerprinter::new().worktree(worktree);
        let fingerprint = fingerprinter.of_value("bash", &value).unwrap();
        prop_assert_eq!(fingerprint, fingerprinter.of_serialize("bash", &value).unwrap());
        prop_assert_eq!(fingerprint, fingerprinter.of_text("bash", other_text(&value)).unwrap());
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let ours = canonical_from_text(&bytes);
        let peer = serde_json::from_slice::<Value>(&bytes);
        prop_assert!(ours.is_ok() == peer.is_ok());
    }

    #[test]
    fn an_inside_path_is_its_clean_rest(names in prop::collection::vec("[a-z.]{1,3}", 0..6)) {
        // The obvious way: a stack of names.
        let mut clean: Vec<&str> = vec!["r", "w"];
        for name in &names {
            match name.as_str() {
                "." => {}
                ".." => drop(clean.pop()),
                name => clean.push(name),
            }
        }
        let mut fingerprinter = Fingerprinter::new().worktree("/r/w").hash_outside(false);
        let path = format!("/r/w/{}", names.join("/"));
        let expected = match clean.as_slice() {
            ["r", "w"] => String::from("."),
            ["r", "w", rest @ ..] => rest.join("/"),
            _ => path.clone(),
        };
        let document = fingerprinter.canonical_text("t", Value::from(path).to_string()).unwrap();
        prop_assert_eq!(String::from_utf8(document).unwrap(), format!(r#"{{"args":"{expected}","tool":"t"}}"#));
    }
}
