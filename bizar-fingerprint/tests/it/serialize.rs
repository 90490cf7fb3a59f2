//! From `Serialize`: every shape of serde's data model, with the bytes of its `Value`; what has no JSON is an error with a pointer.

use std::collections::BTreeMap;

use bizar_fingerprint::{
    ErrorKind, canonical_from_serialize, canonical_from_text, canonical_from_value,
};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::json;

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
struct Newtype(u8);

#[derive(Serialize)]
struct Tuple(u8, &'static str);

#[derive(Serialize)]
struct Record {
    zeta: Option<i64>,
    alpha: Shape,
    list: Vec<Shape>,
    unit: Unit,
    newtype: Newtype,
    tuple: Tuple,
    pair: (bool, char),
    bytes: Bytes,
}

#[derive(Serialize)]
enum Shape {
    Empty,
    One(f64),
    Two(u8, i8),
    Named { y: u64, x: Option<()> },
}

struct Bytes;

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&[0, 255])
    }
}

fn message(value: &(impl Serialize + ?Sized)) -> String {
    canonical_from_serialize(value).unwrap_err().to_string()
}

#[test]
fn every_shape_is_written_as_its_value_is() {
    let record = Record {
        zeta: Some(i64::MIN),
        alpha: Shape::Named {
            y: u64::MAX,
            x: None,
        },
        list: vec![Shape::Empty, Shape::One(1.0), Shape::Two(1, -1)],
        unit: Unit,
        newtype: Newtype(7),
        tuple: Tuple(1, "\u{1f600}\n"),
        pair: (true, '"'),
        bytes: Bytes,
    };
    let canonical = canonical_from_serialize(&record).unwrap();
    assert_eq!(
        canonical,
        canonical_from_value(&serde_json::to_value(&record).unwrap()).unwrap()
    );
    assert_eq!(
        canonical,
        canonical_from_text(serde_json::to_vec(&record).unwrap()).unwrap()
    );
    assert_eq!(
        String::from_utf8(canonical).unwrap(),
        "{\"alpha\":{\"Named\":{\"x\":null,\"y\":18446744073709551615}},\"bytes\":[0,255],\
         \"list\":[\"Empty\",{\"One\":1},{\"Two\":[1,-1]}],\"newtype\":7,\"pair\":[true,\"\\\"\"],\
         \"tuple\":[1,\"\u{1f600}\\n\"],\"unit\":null,\"zeta\":-9223372036854775808}"
    );
}

#[test]
fn no_integer_key_is_lost() {
    let map = BTreeMap::from([
        (9_007_199_254_740_992_u64, 1),
        (9_007_199_254_740_993, 2),
        (10, 3),
        (9, 4),
    ]);
    assert_eq!(
        canonical_from_serialize(&map).unwrap(),
        br#"{"10":3,"9":4,"9007199254740992":1,"9007199254740993":2}"#
    );
    let keys = BTreeMap::from([(true, 1), (false, 2)]);
    assert_eq!(
        canonical_from_serialize(&keys).unwrap(),
        br#"{"false":2,"true":1}"#
    );
    let keys = BTreeMap::from([('b', 1), ('"', 2)]);
    assert_eq!(
        canonical_from_serialize(&keys).unwrap(),
        br#"{"\"":2,"b":1}"#
    );
}

#[test]
fn fp_03_nan_is_never_null_at_any_depth() {
    assert_eq!(
        message(&f64::NAN),
        "number that is not finite at the top level"
    );
    assert_eq!(
        message(&vec![1.0, f64::NAN]),
        "number that is not finite at /1"
    );
    assert_eq!(
        message(
            &json!({"a": 1})
                .as_object()
                .map(|_| BTreeMap::from([("a/b~", [f32::INFINITY])]))
        ),
        "number that is not finite at /a~1b~0/0"
    );
    assert_eq!(
        message(&Shape::One(f64::NEG_INFINITY)),
        "number that is not finite at /One"
    );
    assert_eq!(
        message(&[Some(Shape::One(f64::NAN))]),
        "number that is not finite at /0/One"
    );
}

#[test]
fn single_precision_is_widened_exactly() {
    assert_eq!(
        canonical_from_serialize(&0.1_f32).unwrap(),
        b"0.10000000149011612"
    );
    assert_eq!(canonical_from_serialize(&0.5_f32).unwrap(), b"0.5");
}

#[test]
fn raw_text_is_canonical_too() {
    let raw: Box<serde_json::value::RawValue> =
        serde_json::from_str(r#"{"b": 1.0, "a": [ 2 ]}"#).unwrap();
    assert_eq!(
        canonical_from_serialize(&BTreeMap::from([("raw", raw)])).unwrap(),
        br#"{"raw":{"a":[2],"b":1}}"#
    );
}

/// Members in any order, any number of times.
struct Pairs<'p>(&'p [(&'p str, u8)]);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[test]
fn duplicate_keys_are_an_error() {
    assert_eq!(
        canonical_from_serialize(&Pairs(&[("b", 1), ("a", 2)])).unwrap(),
        br#"{"a":2,"b":1}"#
    );
    for pairs in [&[("a", 1), ("a", 2)][..], &[("b", 1), ("a", 2), ("b", 3)]] {
        assert_eq!(
            canonical_from_serialize(&Pairs(pairs)).unwrap_err().kind(),
            ErrorKind::DuplicateKey
        );
    }
}

#[test]
fn impossible_keys_are_an_error() {
    assert_eq!(
        message(&BTreeMap::from([(vec![1], 1)])),
        "map key that is no string at the top level"
    );
    assert_eq!(
        message(&[BTreeMap::from([((), 1)])]),
        "map key that is no string at /0"
    );
    struct Nan;
    impl Serialize for Nan {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            map.serialize_entry(&f64::NAN, &1)?;
            map.end()
        }
    }
    assert_eq!(
        canonical_from_serialize(&Nan).unwrap_err().kind(),
        ErrorKind::NonFinite
    );
}

/// Breaks the rules of serde's maps.
enum Broken {
    KeyAlone,
    TwoKeys,
    ValueAlone,
    Message,
}

impl Serialize for Broken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if matches!(self, Self::Message) {
            return Err(serde::ser::Error::custom("the secret is hunter2"));
        }
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::ValueAlone => map.serialize_value(&1)?,
            Self::TwoKeys => {
                map.serialize_key("a")?;
                map.serialize_key("b")?;
            }
            _ => map.serialize_key("a")?,
        }
        map.end()
    }
}

#[test]
fn a_broken_implementation_is_an_error_without_its_message() {
    for broken in [
        Broken::KeyAlone,
        Broken::TwoKeys,
        Broken::ValueAlone,
        Broken::Message,
    ] {
        assert_eq!(
            message(&[0, 1].map(|_| &broken)),
            "value that refuses to be serialised at /0"
        );
    }
}

/// Lists inside lists, or `Some` inside `Some`, as deep as asked, without a value in memory.
struct Deep {
    levels: usize,
    lists: bool,
}

impl Serialize for Deep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inner = Self {
            levels: self.levels.saturating_sub(1),
            lists: self.lists,
        };
        match self.levels {
            0 => serializer.serialize_unit(),
            _ if self.lists => {
                let mut list = serializer.serialize_seq(None)?;
                list.serialize_element(&inner)?;
                list.end()
            }
            _ => serializer.serialize_some(&inner),
        }
    }
}

#[test]
fn recursion_ends_with_and_without_brackets() {
    assert!(
        canonical_from_serialize(&Deep {
            levels: 128,
            lists: true
        })
        .is_ok()
    );
    assert!(
        canonical_from_serialize(&Deep {
            levels: 512,
            lists: false
        })
        .is_ok()
    );
    for deep in [
        Deep {
            levels: 129,
            lists: true,
        },
        Deep {
            levels: usize::MAX,
            lists: true,
        },
        Deep {
            levels: usize::MAX,
            lists: false,
        },
    ] {
        assert_eq!(
            canonical_from_serialize(&deep).unwrap_err().kind(),
            ErrorKind::TooDeep
        );
    }
}
