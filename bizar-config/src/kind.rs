//! The kinds of values that options have: how they are read, noted and described.

use serde_json::{Value, json};

use crate::{
    CheckedPath, Note, Thresholds,
    json::Tree,
    options::{Draft, ToolDraft},
    suggestion::Shown,
};

/// The values of an option, the default among them, and where they go.
pub(crate) enum Kind {
    /// A whole number in a range.
    Count {
        default: u32,
        least: u32,
        most: u32,
        field: fn(&mut Draft) -> &mut u32,
    },
    /// A whole number that only a lower bound holds.
    Size {
        default: Option<u64>,
        least: u64,
        set: fn(&mut Draft, Option<u64>),
    },
    /// A number that is not negative, or nothing.
    Amount {
        field: fn(&mut Draft) -> &mut Option<f64>,
    },
    Switch {
        default: bool,
        field: fn(&mut Draft) -> &mut bool,
    },
    /// One of a few words, the default first; `set` is never given another.
    Word {
        words: &'static [&'static str],
        set: fn(&mut Draft, &str),
    },
    /// A list of names or globs; `None` in the default means a table elsewhere.
    Names {
        default: Option<&'static [&'static str]>,
        set: fn(&mut Draft, Option<Vec<String>>),
    },
    /// A directory or file that is not in a secret directory.
    Path {
        default: Option<&'static str>,
        field: fn(&mut Draft) -> &mut Option<CheckedPath>,
    },
    ToolThresholds,
    IgnoreArgs,
}

impl Kind {
    /// Puts the default into the draft.
    pub(crate) fn reset(&self, name: &'static str, draft: &mut Draft, notes: &mut Vec<Note>) {
        match self {
            Self::Count { default, field, .. } => *field(draft) = *default,
            Self::Size { default, set, .. } => set(draft, *default),
            Self::Amount { field } => *field(draft) = None,
            Self::Switch { default, field } => *field(draft) = *default,
            Self::Word { words, set } => set(draft, words.first().copied().unwrap_or_default()),
            Self::Names { default, set } => set(
                draft,
                default.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            ),
            Self::Path { default, field } => {
                let path = default
                    .map(|text| CheckedPath::outside(text, &draft.secrets))
                    .transpose();
                if let Err(refused) = &path {
                    notes.push(Note::new(
                        name,
                        format!("the default {refused}: nothing is written there"),
                    ));
                }
                *field(draft) = path.unwrap_or_default();
            }
            Self::ToolThresholds => draft.by_tool.clear(),
            Self::IgnoreArgs => draft.options.loop_ignore_args.clear(),
        }
    }

    /// Puts a user's value into the draft and says whether it could be used at all.
    pub(crate) fn set(
        &self,
        name: &'static str,
        value: &Tree,
        draft: &mut Draft,
        notes: &mut Vec<Note>,
    ) -> bool {
        let mut note = |text: String| notes.push(Note::new(name, text));
        let is_optional = matches!(
            self,
            Self::Amount { .. }
                | Self::Size { default: None, .. }
                | Self::Path { default: None, .. }
                | Self::Names { default: None, .. }
        );
        if is_optional && *value == Tree::Null {
            self.reset(name, draft, notes);
            return true;
        }
        match (self, value) {
            (
                Self::Count {
                    least, most, field, ..
                },
                _,
            ) => match number(value, &mut note) {
                Some(number) => *field(draft) = whole(number, *least, *most, &mut note),
                None => return false,
            },
            (Self::Size { least, set, .. }, _) => match number(value, &mut note) {
                Some(number) => set(draft, Some(whole_size(number, *least, &mut note))),
                None => return false,
            },
            (Self::Amount { field }, _) => match number(value, &mut note) {
                Some(number) => *field(draft) = Some(amount(number, &mut note)),
                None => return false,
            },
            (Self::Switch { field, .. }, Tree::Bool(on)) => *field(draft) = *on,
            (Self::Word { words, set }, Tree::Text(text)) => {
                match words.iter().find(|word| *word == text) {
                    Some(word) => set(draft, word),
                    None => {
                        note(format!("expected one of {}: not used", words.join(", ")));
                        return false;
                    }
                }
            }
            (Self::Names { set, .. }, Tree::List(items)) => {
                set(draft, Some(names(items, &mut note)))
            }
            (Self::Path { field, .. }, Tree::Text(text)) => {
                match CheckedPath::outside(text, &draft.secrets) {
                    Ok(path) => *field(draft) = Some(path),
                    Err(refused) => {
                        note(format!("{refused}: not used"));
                        return false;
                    }
                }
            }
            (Self::ToolThresholds, Tree::Object(members)) => {
                draft.by_tool = tool_thresholds(members, &mut note)
            }
            (Self::IgnoreArgs, Tree::Object(members)) => {
                draft.options.loop_ignore_args = ignored(members, &mut note)
            }
            _ => {
                note(format!("expected {}: not used", self.expected()));
                return false;
            }
        }
        true
    }

    fn expected(&self) -> &'static str {
        match self {
            Self::Count { .. } | Self::Size { .. } | Self::Amount { .. } => "a number",
            Self::Switch { .. } => "true or false",
            Self::Word { .. } => "a word",
            Self::Names { .. } => "a list of names",
            Self::Path { .. } => "a path",
            Self::ToolThresholds | Self::IgnoreArgs => "an object",
        }
    }

    /// The schema of the values, without the description.
    pub(crate) fn schema(&self) -> Value {
        let names = json!({"type": "array", "items": {"type": "string", "minLength": 1}});
        match self {
            Self::Count {
                default,
                least,
                most,
                ..
            } => json!({"type": "integer", "minimum": least, "maximum": most, "default": default}),
            Self::Size {
                default: Some(default),
                least,
                ..
            } => json!({"type": "integer", "minimum": least, "default": default}),
            Self::Size {
                default: None,
                least,
                ..
            } => json!({"type": ["integer", "null"], "minimum": least}),
            Self::Amount { .. } => json!({"type": ["number", "null"], "minimum": 0}),
            Self::Switch { default, .. } => json!({"type": "boolean", "default": default}),
            Self::Word { words, .. } => json!({"enum": words, "default": words.first()}),
            Self::Names {
                default: Some(default),
                ..
            } => with(names, "default", json!(default)),
            Self::Names { default: None, .. } => with(names, "type", json!(["array", "null"])),
            Self::Path {
                default: Some(default),
                ..
            } => json!({"type": "string", "minLength": 1, "default": default}),
            Self::Path { default: None, .. } => json!({"type": ["string", "null"], "minLength": 1}),
            Self::ToolThresholds => {
                let count = json!({"type": "integer", "minimum": 1, "maximum": Thresholds::MOST});
                let entry = json!({
                    "type": "object",
                    "properties": {"warn": count, "escalate": count, "block": count},
                    "additionalProperties": false,
                });
                json!({"type": "object", "additionalProperties": entry, "default": {}})
            }
            Self::IgnoreArgs => {
                json!({"type": "object", "additionalProperties": names, "default": {}})
            }
        }
    }

    /// The default and the rule as the reference shows them.
    pub(crate) fn described(&self) -> (String, String) {
        let none = || "none".to_owned();
        match self {
            Self::Count {
                default,
                least,
                most,
                ..
            } => (
                default.to_string(),
                format!("whole number, {least} to {most}"),
            ),
            Self::Size { default, least, .. } => (
                default.map_or_else(none, |default| default.to_string()),
                format!("whole number, at least {least}"),
            ),
            Self::Amount { .. } => (none(), "number, at least 0".to_owned()),
            Self::Switch { default, .. } => (default.to_string(), "true or false".to_owned()),
            Self::Word { words, .. } => (
                words.first().copied().unwrap_or_default().to_owned(),
                words.join(", "),
            ),
            Self::Names { default, .. } => (
                default.map_or_else(|| "built in".to_owned(), |names| json!(names).to_string()),
                "list of names".to_owned(),
            ),
            Self::Path { default, .. } => {
                (default.map_or_else(none, str::to_owned), "path".to_owned())
            }
            Self::ToolThresholds => ("{}".to_owned(), "glob to thresholds".to_owned()),
            Self::IgnoreArgs => ("{}".to_owned(), "glob to list of names".to_owned()),
        }
    }
}

/// The number that a text wholly is: digits, perhaps a sign before and a fraction after.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (all_digits(whole) && all_digits(fraction))
        .then(|| text.parse().ok())
        .flatten()
}

/// The whole number below, brought into the range.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "brought into the range first"
)]
pub(crate) fn clamp(number: f64, least: u32, most: u32) -> u32 {
    number.floor().clamp(f64::from(least), f64::from(most)) as u32
}

fn number(value: &Tree, note: &mut impl FnMut(String)) -> Option<f64> {
    let number = match value {
        Tree::Number(number) if !number.is_nan() => Some(*number),
        Tree::Text(text) => {
            decimal(text).inspect(|_| note("a number in quotes: taken as a number".to_owned()))
        }
        _ => None,
    };
    if number.is_none() {
        note("expected a number: not used".to_owned());
    }
    number
}

fn whole(number: f64, least: u32, most: u32, note: &mut impl FnMut(String)) -> u32 {
    let count = clamp(number, least, most);
    if f64::from(count).total_cmp(&(number + 0.0)).is_ne() {
        note(format!("brought to a whole number from {least} to {most}"));
    }
    count
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a float becomes the nearest integer that there is"
)]
fn whole_size(number: f64, least: u64, note: &mut impl FnMut(String)) -> u64 {
    let size = (number.floor() as u64).max(least);
    if (size as f64).total_cmp(&number).is_ne() {
        note(format!("brought to a whole number of at least {least}"));
    }
    size
}

fn amount(number: f64, note: &mut impl FnMut(String)) -> f64 {
    let amount = number.clamp(0.0, f64::MAX) + 0.0;
    if amount.total_cmp(&(number + 0.0)).is_ne() {
        note("brought to a number of at least 0".to_owned());
    }
    amount
}

/// The strings of a list that are not empty.
fn names(items: &[Tree], note: &mut impl FnMut(String)) -> Vec<String> {
    let names: Vec<String> = items
        .iter()
        .filter_map(|item| match item {
            Tree::Text(name) if !name.is_empty() => Some(name.clone()),
            _ => None,
        })
        .collect();
    if names.len() < items.len() {
        note(format!(
            "{} of {} entries are no names: not used",
            items.len() - names.len(),
            items.len()
        ));
    }
    names
}

fn tool_thresholds(members: &[(String, Tree)], note: &mut impl FnMut(String)) -> Vec<ToolDraft> {
    let mut tools = Vec::new();
    for (glob, value) in members {
        let (Tree::Object(entries), false) = (value, glob.is_empty()) else {
            note(format!(
                "{}: expected a glob and an object: not used",
                Shown(glob)
            ));
            continue;
        };
        let mut tool = ToolDraft {
            glob: glob.clone(),
            ..ToolDraft::default()
        };
        for (key, value) in entries {
            let field = match key.as_str() {
                "warn" => &mut tool.warn,
                "escalate" => &mut tool.escalate,
                "block" => &mut tool.block,
                _ => {
                    note(format!(
                        "{}: expected warn, escalate, block; passed over {}",
                        Shown(glob),
                        Shown(key)
                    ));
                    continue;
                }
            };
            if let Some(number) = number(value, note) {
                *field = Some(whole(number, 1, Thresholds::MOST, note));
            }
        }
        tools.push(tool);
    }
    tools
}

fn ignored(
    members: &[(String, Tree)],
    note: &mut impl FnMut(String),
) -> Vec<(String, Vec<String>)> {
    let mut table = Vec::new();
    for (glob, value) in members {
        match value {
            Tree::List(items) if !glob.is_empty() => table.push((glob.clone(), names(items, note))),
            _ => note(format!(
                "{}: expected a glob and a list of names: not used",
                Shown(glob)
            )),
        }
    }
    table
}

fn with(mut schema: Value, key: &str, value: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.insert(key.to_owned(), value);
    }
    schema
}
