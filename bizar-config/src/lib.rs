#![doc = include_str!("../README.md")]

mod checked_path;
mod environment;
mod json;
mod kind;
mod options;
mod schema;
mod suggestion;
mod table;

use std::{collections::BTreeMap, fmt, iter, path::Path};

use serde_json::Value;

pub use crate::{
    checked_path::{CheckedPath, Refused},
    environment::{Environment, LogLevel},
    options::{BackgroundPermissions, DoomLoop, LoopMode, Options, Thresholds, ToolThresholds},
    schema::{json_schema, reference},
};
use crate::{json::Tree, options::Draft, suggestion::Shown, table::TABLE};

/// Where the values come from, weakest first; every field may be left out.
///
/// Nothing here is read from the process or the disk: the caller brings the text
/// of the file, the home directory and the environment.
#[derive(Clone, Debug, Default)]
pub struct Sources<'a> {
    /// The user's home directory, absolute. Without one nothing under `~` can be
    /// named, so the directories are unset unless an absolute path is given.
    pub home: Option<&'a Path>,
    /// Values that a host wants where the user set none.
    pub host_defaults: Option<Json<'a>>,
    /// The text of `~/.config/bizarharness/options.json`, if there is one.
    pub file: Option<&'a str>,
    /// The host's name in the file's `hosts` object, such as `"gemini"`.
    pub host: Option<&'a str>,
    /// The options that the host itself hands over.
    pub host_options: Option<Json<'a>>,
    /// The environment, read once by [`Environment::from_pairs`].
    pub env: Environment,
}

/// Options as JSON text or as a parsed value.
///
/// The text keeps the order in which the globs of `loopToolThresholds` were
/// written, and there the first match wins. A [`Value`] has the order of its map:
/// sorted, unless `serde_json` is built with `preserve_order`.
#[derive(Clone, Copy, Debug)]
pub enum Json<'a> {
    /// Unparsed JSON.
    Text(&'a str),
    /// A parsed document.
    Value(&'a Value),
}

impl<'a> From<&'a str> for Json<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a Value> for Json<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Value(value)
    }
}

/// What [`resolve`] made of the sources.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resolved {
    /// Valid options, whatever the sources held.
    pub options: Options,
    /// The environment, handed through.
    pub env: Environment,
    /// What was not used as it was written, in the order in which it was met;
    /// at most 100.
    pub notes: Vec<Note>,
    origins: BTreeMap<&'static str, Origin>,
}

impl Resolved {
    /// Which source decided `option`; an unknown name is [`Origin::Default`].
    #[must_use]
    pub fn origin(&self, option: &str) -> Origin {
        self.origins.get(option).copied().unwrap_or_default()
    }
}

/// The source that decided an option, weakest first.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Origin {
    /// The table of this crate.
    #[default]
    Default,
    /// [`Sources::host_defaults`].
    HostDefault,
    /// The options file.
    File,
    /// The options file, in the host's own object under `hosts`.
    FileHost,
    /// [`Sources::host_options`].
    Host,
    /// The environment.
    Environment,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::HostDefault => "default of this host",
            Self::File => "options file",
            Self::FileHost => "options file, this host",
            Self::Host => "options of the host",
            Self::Environment => "environment",
        })
    }
}

/// Something that was not used as it was written.
///
/// A note names the option and the rule. It never holds the value, which may be a
/// secret that was pasted into the wrong place.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Note {
    /// The option or environment variable; empty where a whole source is meant.
    pub option: String,
    /// What was done about it: one line, lower case.
    pub text: String,
}

impl Note {
    /// A note about an option, or with an empty name about a whole source. For who reads the sources.
    pub fn new(option: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            option: option.into(),
            text: text.into(),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.option.is_empty() {
            return f.write_str(&self.text);
        }
        write!(f, "{}: {}", self.option, self.text)
    }
}

/// Turns any sources into valid options and a list of notes; never fails.
///
/// Later sources win option by option: the table's defaults, the host's defaults,
/// the file, the file's object for this host, the host's options, the environment.
/// A value that cannot be used leaves what the sources before it said.
///
/// The links on the way to the directories are looked up on the disk, to see whether
/// they lead into a secret one; nothing else is read and nothing is written.
#[must_use]
pub fn resolve(sources: Sources<'_>) -> Resolved {
    let mut notes = Vec::new();
    let home = sources.home.filter(|home| home.is_absolute());
    if sources.home.is_some() && home.is_none() {
        notes.push(Note::new(
            "",
            "the home directory is not absolute: not used",
        ));
    }
    let mut resolution = Resolution {
        draft: Draft::new(home, &mut notes),
        origins: BTreeMap::new(),
        notes,
    };
    if let Some(json) = sources.host_defaults {
        resolution.host_layer(json, Origin::HostDefault);
    }
    if let Some(text) = sources.file {
        resolution.file(text, sources.host);
    }
    if let Some(json) = sources.host_options {
        resolution.host_layer(json, Origin::Host);
    }
    resolution.environment(&sources.env);

    let Resolution {
        draft,
        origins,
        mut notes,
    } = resolution;
    let options = draft.settle(&origins, &mut notes);
    notes.extend_from_slice(sources.env.notes());
    if notes.len() > MOST_NOTES {
        notes.truncate(MOST_NOTES - 1);
        notes.push(Note::new(
            "",
            "there is more to say: only the first 99 notes are kept",
        ));
    }
    Resolved {
        options,
        env: sources.env,
        notes,
        origins,
    }
}

struct Resolution {
    draft: Draft,
    origins: BTreeMap<&'static str, Origin>,
    notes: Vec<Note>,
}

impl Resolution {
    fn file(&mut self, text: &str, host: Option<&str>) {
        let Some(members) = self.members(Json::Text(text), Origin::File) else {
            return;
        };
        self.layer(&members, Origin::File);
        for (_, hosts) in members.iter().filter(|(key, _)| key == "hosts") {
            let Tree::Object(hosts) = hosts else {
                self.notes
                    .push(Note::new("hosts", "expected an object: not used"));
                continue;
            };
            for (name, options) in hosts {
                match (host, options) {
                    (Some(host), Tree::Object(members)) if host == name => {
                        self.layer(members, Origin::FileHost);
                    }
                    (Some(host), _) if host == name => {
                        let text = "expected an object for this host: not used";
                        self.notes.push(Note::new("hosts", text));
                    }
                    (Some(host), _) if suggestion::nearest(name, iter::once(host)).is_some() => {
                        let text =
                            format!("{} is not this host; did you mean {host}?", Shown(name));
                        self.notes.push(Note::new("hosts", text));
                    }
                    _ => {}
                }
            }
        }
    }

    fn host_layer(&mut self, json: Json<'_>, origin: Origin) {
        if let Some(members) = self.members(json, origin) {
            self.layer(&members, origin);
        }
    }

    /// The members of a source that should be an object. `null` is an absent source.
    fn members(&mut self, json: Json<'_>, origin: Origin) -> Option<Vec<(String, Tree)>> {
        let tree = match json {
            Json::Value(value) => Tree::from_value(value),
            Json::Text(text) => {
                match serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text)) {
                    Ok(tree) => tree,
                    Err(error) => {
                        let text = format!(
                            "{origin}: not valid JSON at line {} column {}: not used",
                            error.line(),
                            error.column()
                        );
                        self.notes.push(Note::new("", text));
                        return None;
                    }
                }
            }
        };
        match tree {
            Tree::Object(members) => Some(members),
            Tree::Null => None,
            _ => {
                self.notes.push(Note::new(
                    "",
                    format!("{origin}: expected an object: not used"),
                ));
                None
            }
        }
    }

    fn layer(&mut self, members: &[(String, Tree)], origin: Origin) {
        for (key, value) in members {
            if let Some(row) = TABLE.iter().find(|row| row.name == key) {
                if row
                    .kind
                    .set(row.name, value, &mut self.draft, &mut self.notes)
                {
                    self.origins.insert(row.name, origin);
                }
            } else if origin != Origin::File || (key != "hosts" && key != "$schema") {
                self.notes.push(unknown(key));
            }
        }
    }

    fn environment(&mut self, env: &Environment) {
        let options = &mut self.draft.options;
        if let Some(most) = env.max_concurrent_instances {
            options.max_concurrent_instances = most;
            self.origins
                .insert("maxConcurrentInstances", Origin::Environment);
        }
        if let Some(cap) = env.background_tool_call_cap {
            options.background_tool_call_cap = cap;
            self.origins
                .insert("backgroundToolCallCap", Origin::Environment);
        }
        if env.background_skip_permissions {
            options.background_permissions = BackgroundPermissions::Allow;
            self.origins
                .insert("backgroundPermissions", Origin::Environment);
        }
    }
}

fn unknown(key: &str) -> Note {
    match suggestion::nearest(key, TABLE.iter().map(|row| row.name)) {
        Some(name) => Note::new(
            Shown(key).to_string(),
            format!("unknown option; did you mean {name}?"),
        ),
        None => Note::new(Shown(key).to_string(), "unknown option"),
    }
}

/// A file full of nonsense must not become a log full of notes.
const MOST_NOTES: usize = 100;
