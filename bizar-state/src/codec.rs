//! A document as bytes: markers in front, then the members that its type does not know, then its own.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::value::StringDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::ser::Error as _;
use serde_json::value::RawValue;

use crate::{Document, Error, Reason};

/// Members of an object, each as it is written. Nothing is converted, so that nothing a later
/// version wrote can be lost: not even a number that no Rust type holds.
pub(crate) type Members = BTreeMap<String, Box<RawValue>>;

/// The document in `bytes`, if it is provably one of this kind, and the members that it does not know.
pub(crate) fn decode<D: Document>(bytes: &[u8]) -> Result<(D, Members), Reason> {
    if bytes.is_empty() {
        return Err(Reason::Empty);
    }
    let mut markers = Markers::default();
    let mut unknown = Members::new();
    // All bytes at once, which is cheaper than string by string. What follows is no document: it is asked where the error is.
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(markers_of(bytes).err().unwrap_or(Reason::Foreign));
    };
    let mut json = serde_json::Deserializer::from_str(text);
    let document = D::deserialize(Envelope {
        json: &mut json,
        markers: &mut markers,
        unknown: &mut unknown,
    });
    match document.and_then(|document| json.end().map(|()| document)) {
        Ok(document) => {
            markers.check::<D>()?;
            Ok((document, unknown))
        }
        // The message of this error would quote values of the document.
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            markers_of(bytes)?.check::<D>()?;
            Err(Reason::WrongShape { line, column })
        }
    }
}

/// `document` as one line, with the members that its type does not know.
pub(crate) fn encode<D: Document>(document: &D, unknown: &Members) -> Result<Vec<u8>, Error> {
    write(document, unknown).map_err(|source| Error::Encode { source })
}

fn write<D: Document>(document: &D, unknown: &Members) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1 << 14);
    bytes.extend_from_slice(br#"{"kind":"#);
    serde_json::to_writer(&mut bytes, D::KIND)?;
    bytes.extend_from_slice(br#","version":"#);
    serde_json::to_writer(&mut bytes, &D::VERSION)?;
    for (name, value) in unknown {
        bytes.push(b',');
        serde_json::to_writer(&mut bytes, name)?;
        bytes.push(b':');
        bytes.extend_from_slice(value.get().as_bytes());
    }
    let start = bytes.len();
    serde_json::to_writer(&mut bytes, document)?;
    match bytes.get_mut(start..) {
        Some([b'{', b'}']) => {
            bytes.remove(start);
        }
        Some([brace @ b'{', ..]) => *brace = b',',
        _ => return Err(serde_json::Error::custom("not a JSON object")),
    }
    bytes.push(b'\n');
    Ok(bytes)
}

/// How the store knows its own documents.
#[derive(Default)]
struct Markers {
    kind: Option<String>,
    version: Option<u32>,
}

impl Markers {
    fn check<D: Document>(&self) -> Result<(), Reason> {
        match self.version {
            _ if self.kind.as_deref() != Some(D::KIND) => Err(Reason::Foreign),
            Some(version) if version <= D::VERSION => Ok(()),
            Some(version) => Err(Reason::Future { version }),
            None => Err(Reason::Foreign),
        }
    }
}

/// The markers of an object that may be anything else.
fn markers_of(bytes: &[u8]) -> Result<Markers, Reason> {
    let members: Members = serde_json::from_slice(bytes).map_err(|error| Reason::Malformed {
        line: error.line(),
        column: error.column(),
    })?;
    Ok(Markers {
        kind: member(&members, KIND),
        version: member(&members, VERSION),
    })
}

fn member<'a, T: Deserialize<'a>>(members: &'a Members, name: &str) -> Option<T> {
    let raw = members.get(name)?;
    serde_json::from_str(raw.get()).ok()
}

/// An object of which a type gets the members that it asks for; markers and the rest are put aside.
///
/// A type that is read as a map, not as a struct, names no members: it gets all but the markers.
struct Envelope<'a, J> {
    json: J,
    markers: &'a mut Markers,
    unknown: &'a mut Members,
}

impl<'a, J> Envelope<'a, J> {
    fn opened<V>(self, fields: Option<&'static [&'static str]>, visitor: V) -> (J, Opened<'a, V>) {
        let opened = Opened {
            inner: visitor,
            fields,
            markers: self.markers,
            unknown: self.unknown,
        };
        (self.json, opened)
    }
}

impl<'de, J: Deserializer<'de>> Deserializer<'de> for Envelope<'_, J> {
    type Error = J::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, J::Error> {
        let (json, opened) = self.opened(None, visitor);
        json.deserialize_map(opened)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, J::Error> {
        let (json, opened) = self.opened(Some(fields), visitor);
        json.deserialize_map(opened)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, J::Error> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The visitor of the type, or the members that it visits.
struct Opened<'a, I> {
    inner: I,
    fields: Option<&'static [&'static str]>,
    markers: &'a mut Markers,
    unknown: &'a mut Members,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Opened<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<M: MapAccess<'de>>(self, members: M) -> Result<V::Value, M::Error> {
        self.inner.visit_map(Opened {
            inner: members,
            fields: self.fields,
            markers: self.markers,
            unknown: self.unknown,
        })
    }
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for Opened<'_, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        while let Some(name) = self.inner.next_key::<String>()? {
            match name.as_str() {
                KIND => self.markers.kind = Some(self.inner.next_value()?),
                VERSION => self.markers.version = Some(self.inner.next_value()?),
                known if self.fields.is_none_or(|fields| fields.contains(&known)) => {
                    let name: StringDeserializer<M::Error> = name.into_deserializer();
                    return seed.deserialize(name).map(Some);
                }
                _ => {
                    let value = self.inner.next_value()?;
                    self.unknown.insert(name, value);
                }
            }
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, M::Error> {
        self.inner.next_value_seed(seed)
    }
}

const KIND: &str = "kind";
const VERSION: &str = "version";

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use super::*;

    macro_rules! document {
        ($name:ident) => {
            impl Document for $name {
                const KIND: &'static str = "test";
                const VERSION: u32 = 7;

                fn id(&self) -> &str {
                    "x"
                }
            }
        };
    }

    #[derive(Serialize, Deserialize)]
    struct Plain {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<u8>,
    }

    #[derive(Serialize, Deserialize)]
    struct Wrapped(Plain);

    #[derive(Serialize, Deserialize)]
    struct Flat {
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number { number: u8 },
        Word { word: String },
    }

    #[derive(Serialize, Deserialize)]
    struct Bare(u8);

    document!(Plain);
    document!(Wrapped);
    document!(Flat);
    document!(Either);
    document!(Bare);

    fn rewritten<D: Document + DeserializeOwned>(text: &str) -> String {
        let (document, unknown) = decode::<D>(text.as_bytes()).unwrap();
        String::from_utf8(encode(&document, &unknown).unwrap()).unwrap()
    }

    /// A struct's unknown members go in front, in the order of their names; a map has all there are.
    #[test]
    fn nothing_unknown_is_lost_and_nothing_is_written_twice() {
        let text =
            r#"{"z":1e400,"number":5,"note":3,"version":7,"word":"w","kind":"test","a":[1, 2]}"#;
        let head = r#"{"kind":"test","version":7,"#;
        let plain = r#""a":[1, 2],"number":5,"word":"w","z":1e400,"note":3}"#;
        assert_eq!(rewritten::<Plain>(text), format!("{head}{plain}\n"));
        assert_eq!(rewritten::<Wrapped>(text), format!("{head}{plain}\n"));
        let text = text.replace("1e400", "1");
        let all = r#""a":[1,2],"note":3,"number":5,"word":"w","z":1}"#;
        assert_eq!(rewritten::<Flat>(&text), format!("{head}{all}\n"));
        assert_eq!(
            rewritten::<Either>(&text),
            format!("{head}\"number\":5}}\n")
        );
    }

    #[test]
    fn a_member_that_is_known_and_left_out_is_gone() {
        let text = r#"{"note":null,"kind":"test","version":7}"#;
        assert_eq!(
            rewritten::<Plain>(text),
            "{\"kind\":\"test\",\"version\":7}\n"
        );
    }

    #[test]
    fn what_is_no_object_is_neither_read_nor_written() {
        for text in ["[7]", "7", r#"["test",7]"#, "null", "{} {}", r#"{"note":1"#] {
            let reason = decode::<Plain>(text.as_bytes()).err();
            assert!(
                matches!(reason, Some(Reason::Malformed { .. })),
                "{text}: {reason:?}"
            );
        }
        assert!(matches!(
            decode::<Bare>(b"7"),
            Err(Reason::Malformed { .. })
        ));
        assert!(matches!(
            encode(&Bare(7), &Members::new()),
            Err(Error::Encode { .. })
        ));
    }
}
