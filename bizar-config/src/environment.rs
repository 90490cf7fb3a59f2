//! The environment variables of Bizar, read once.

use std::ffi::OsStr;

use crate::{Note, kind, suggestion, table};

/// What the environment says. The default is an environment that says nothing.
///
/// Read it once, at start: changes made later are meant to have no effect.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Environment {
    /// `BIZAR_DISABLE=1`: do nothing at all.
    pub disable: bool,
    /// `BIZAR_DISABLE_LOOP=1`: judge nothing, log all the same.
    pub disable_loop: bool,
    /// `BIZAR_DISABLE_LOG=1`: log nothing, judge all the same.
    pub disable_log: bool,
    /// `BIZAR_LOG_LEVEL`: how much Bizar says about itself.
    pub log_level: LogLevel,
    /// `BIZAR_MAX_CONCURRENT_INSTANCES`, in 1 to 32.
    pub max_concurrent_instances: Option<u32>,
    /// `BIZAR_BACKGROUND_TOOL_CALL_CAP`, in 1 to 5000.
    pub background_tool_call_cap: Option<u32>,
    /// `BIZAR_BACKGROUND_SKIP_PERMISSIONS=1`: as `backgroundPermissions: allow`.
    pub background_skip_permissions: bool,
    /// `BIZAR_BACKGROUND_CHILD=1`: this process is a background server itself.
    pub background_child: bool,
    notes: Vec<Note>,
}

impl Environment {
    /// The names of all variables that are looked at.
    pub const NAMES: [&str; 8] = [
        "BIZAR_DISABLE",
        "BIZAR_DISABLE_LOOP",
        "BIZAR_DISABLE_LOG",
        "BIZAR_LOG_LEVEL",
        "BIZAR_MAX_CONCURRENT_INSTANCES",
        "BIZAR_BACKGROUND_TOOL_CALL_CAP",
        "BIZAR_BACKGROUND_SKIP_PERMISSIONS",
        "BIZAR_BACKGROUND_CHILD",
    ];

    /// Picks Bizar's variables out of `pairs`; all others are passed over unread.
    ///
    /// ```
    /// use bizar_config::{Environment, LogLevel};
    ///
    /// let env = Environment::from_pairs([("BIZAR_DISABLE_LOG", "1"), ("BIZAR_LOG_LEVEL", "loud")]);
    /// assert!(env.disable_log && !env.disable_loop);
    /// assert_eq!(env.log_level, LogLevel::Info);
    /// assert_eq!(env.notes().len(), 1); // about "loud"
    /// ```
    ///
    /// Programs hand over `std::env::var_os` of each of [`NAMES`](Self::NAMES), or the whole of
    /// `std::env::vars_os()`.
    #[must_use]
    pub fn from_pairs<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let mut env = Self::default();
        for (name, value) in pairs {
            let Some(name) = name.as_ref().to_str() else {
                continue;
            };
            let Some(variable) = Self::NAMES.iter().find(|known| **known == name) else {
                continue;
            };
            match value.as_ref().to_str() {
                Some("") => {}
                Some(text) => env.set(variable, text),
                None => env.note(variable, "not Unicode: not used"),
            }
        }
        env
    }

    /// What was not used as it was written.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn set(&mut self, name: &'static str, text: &str) {
        match name {
            "BIZAR_DISABLE" => self.disable = self.switch(name, text),
            "BIZAR_DISABLE_LOOP" => self.disable_loop = self.switch(name, text),
            "BIZAR_DISABLE_LOG" => self.disable_log = self.switch(name, text),
            "BIZAR_BACKGROUND_SKIP_PERMISSIONS" => {
                self.background_skip_permissions = self.switch(name, text)
            }
            "BIZAR_BACKGROUND_CHILD" => self.background_child = self.switch(name, text),
            "BIZAR_LOG_LEVEL" => self.log_level = self.level(name, text),
            "BIZAR_MAX_CONCURRENT_INSTANCES" => {
                self.max_concurrent_instances = self.count(name, "maxConcurrentInstances", text)
            }
            "BIZAR_BACKGROUND_TOOL_CALL_CAP" => {
                self.background_tool_call_cap = self.count(name, "backgroundToolCallCap", text)
            }
            _ => {}
        }
    }

    fn switch(&mut self, name: &'static str, text: &str) -> bool {
        if text != "1" && text != "0" {
            self.note(name, "only 1 switches it on: not used");
        }
        text == "1"
    }

    fn level(&mut self, name: &'static str, text: &str) -> LogLevel {
        let level = LogLevel::ALL
            .into_iter()
            .find(|level| level.as_str() == text);
        if level.is_none() {
            self.note(name, "expected debug, info, warn or error: info is used");
        }
        level.unwrap_or_default()
    }

    /// A count that is clamped like the option of the same meaning.
    fn count(&mut self, name: &'static str, option: &str, text: &str) -> Option<u32> {
        let Some(number) = kind::decimal(text) else {
            self.note(name, "expected a number: not used");
            return None;
        };
        let (least, most) = table::range(option);
        let count = kind::clamp(number, least, most);
        if f64::from(count).total_cmp(&number).is_ne() {
            self.note(
                name,
                &format!("brought to a whole number from {least} to {most}"),
            );
        }
        Some(count)
    }

    fn note(&mut self, name: &'static str, text: &str) {
        self.notes.push(Note::new(name, text));
    }

    /// The known variable that an unknown `BIZAR_*` name was probably meant to be.
    ///
    /// For programs that check an installation; at run time no other name is looked at.
    #[must_use]
    pub fn suggest(name: &str) -> Option<&'static str> {
        let is_ours = !Self::NAMES.contains(&name)
            && name
                .get(..6)
                .is_some_and(|start| start.eq_ignore_ascii_case("bizar_"));
        is_ours
            .then(|| suggestion::nearest(name, Self::NAMES.into_iter()))
            .flatten()
    }
}

/// How much Bizar says about itself: this level and the graver ones.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// What a user may want to know.
    #[default]
    Info,
    /// What a user should know.
    Warn,
    /// Only what went wrong.
    Error,
}

impl LogLevel {
    const ALL: [Self; 4] = [Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// The word in `BIZAR_LOG_LEVEL`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}
