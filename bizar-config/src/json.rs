//! JSON that keeps the order of its members.
//!
//! The first matching glob of `loopToolThresholds` wins, so the order counts, and
//! `serde_json::Value` sorts members unless a feature of the whole program says
//! otherwise.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    /// May be infinite, where a number is beyond all doubles.
    Number(f64),
    Text(String),
    List(Vec<Self>),
    /// Members as written, repeated ones too: the last one wins when they are applied.
    Object(Vec<(String, Self)>),
}

impl Tree {
    /// No option has values deeper than this; what lies below is dropped.
    const DEEPEST: usize = 8;

    pub(crate) fn from_value(value: &Value) -> Self {
        Self::from_value_at(value, 0)
    }

    fn from_value_at(value: &Value, depth: usize) -> Self {
        if depth > Self::DEEPEST {
            return Self::Null;
        }
        match value {
            Value::Null => Self::Null,
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Number(number) => Self::Number(
                number
                    .as_f64()
                    .unwrap_or_else(|| number_beyond_doubles(&number.to_string())),
            ),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(
                items
                    .iter()
                    .map(|item| Self::from_value_at(item, depth + 1))
                    .collect(),
            ),
            Value::Object(members) => Self::Object(
                members
                    .iter()
                    .map(|(key, value)| (key.clone(), Self::from_value_at(value, depth + 1)))
                    .collect(),
            ),
        }
    }
}

fn number_beyond_doubles(text: &str) -> f64 {
    text.parse().unwrap_or(0.0)
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

#[expect(
    clippy::cast_precision_loss,
    reason = "no option tells integers above 2^53 apart"
)]
impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(bool))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Tree, E> {
        Ok(Tree::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Tree, E> {
        Ok(Tree::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Tree, E> {
        Ok(Tree::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Tree, E> {
        Ok(Tree::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry::<String, Tree>()? {
            members.push(member);
        }
        // With `arbitrary_precision`, which any crate of the program may switch on,
        // a number arrives as a map of this one member.
        if let [(key, Tree::Text(digits))] = members.as_slice()
            && key == "$serde_json::private::Number"
        {
            return Ok(Tree::Number(number_beyond_doubles(digits)));
        }
        Ok(Tree::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_repetitions() {
        let tree: Tree =
            serde_json::from_str(r#"{"z": 1, "a": [true, null, "x", -2.5], "z": {}}"#).unwrap();
        let items = vec![
            Tree::Bool(true),
            Tree::Null,
            Tree::Text("x".into()),
            Tree::Number(-2.5),
        ];
        let members = [
            ("z", Tree::Number(1.0)),
            ("a", Tree::List(items)),
            ("z", Tree::Object(vec![])),
        ];
        assert_eq!(
            tree,
            Tree::Object(members.map(|(key, value)| (key.to_owned(), value)).into())
        );
    }

    #[test]
    fn deep_values_are_cut_and_deep_text_is_an_error() {
        let mut value = Value::Null;
        for _ in 0..5_000 {
            value = Value::Array(vec![value]);
        }
        let _ = Tree::from_value(&value);
        assert!(serde_json::from_str::<Tree>(&"[".repeat(100_000)).is_err());
    }
}
