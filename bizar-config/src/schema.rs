//! The options described for editors and for people.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::table::TABLE;

/// The JSON Schema of `options.json`, made from the table that the parser follows.
///
/// It is committed as `options.schema.json`; a file that names it in `$schema` is completed
/// and checked by editors. It is stricter than [`resolve`](crate::resolve), which takes anything.
#[must_use]
pub fn json_schema() -> Value {
    let mut top = options();
    let host = json!({"type": "object", "properties": top, "additionalProperties": false});
    top.insert("$schema".to_owned(), json!({"type": "string"}));
    top.insert(
        "hosts".to_owned(),
        json!({
            "type": "object",
            "description": "options of single hosts, such as gemini; they win over the ones beside this object",
            "additionalProperties": {"$ref": "#/$defs/host"},
            "default": {},
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Bizar options",
        "type": "object",
        "properties": top,
        "additionalProperties": false,
        "$defs": {"host": host},
    })
}

/// The table of options in Markdown, as the front page shows it.
#[must_use]
pub fn reference() -> String {
    let mut text = String::from("| option | default | values | what it is |\n|---|---|---|---|\n");
    for row in &TABLE {
        let (default, values) = row.kind.described();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {default} | {values} | {} |",
            row.name, row.about
        );
    }
    text
}

fn options() -> Map<String, Value> {
    let described = TABLE.iter().map(|row| {
        let mut schema = row.kind.schema();
        if let Some(members) = schema.as_object_mut() {
            members.insert("description".to_owned(), json!(row.about));
        }
        (row.name.to_owned(), schema)
    });
    described.collect()
}
