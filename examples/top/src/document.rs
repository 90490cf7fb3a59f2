//! The documents on disk, as an onlooker reads them: nothing is locked, moved or mended.

use std::{
    io::{self, Read as _},
    path::Path,
};

use bizar_log::SessionName;
use bizar_state::{Document as _, FileStore, Reason, SessionState};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::open;

/// A session's document. The detector's snapshot stays text: one of another version costs nothing else.
pub type State = SessionState<Box<RawValue>>;

/// The record of a background agent, as far as it is shown. Unknown members are passed over.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Instance {
    /// `bgr_` and a ULID.
    pub instance_id: String,
    /// The server's name of its session.
    pub session_id: Option<String>,
    /// The agent that runs.
    pub agent: String,
    /// The agent that asked for it.
    pub parent_agent: Option<String>,
    /// `pending`, `running`, `done`, `failed`, `killed`, `timed_out`.
    pub status: String,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// Milliseconds since 1970.
    pub ended_at: Option<i64>,
    /// How long it may take.
    pub deadline_ms: i64,
    /// Tool calls, subagents included.
    pub tool_call_count: u64,
    /// US dollars, subagents included.
    pub cost_usd: f64,
    /// Tokens, subagents included.
    pub tokens: u64,
    /// Why it ended, unless it is done.
    pub error: Option<String>,
    /// The tool whose call the loop guard refused.
    pub loop_guard_tool: Option<String>,
    /// `permission`, `question`, `retry` or `descendant`.
    pub waiting_on: Option<String>,
    /// The session that it waits for.
    pub waiting_for: Option<String>,
    /// Its end has been decided.
    pub is_ending: bool,
    /// It has ended, and something of it is still busy.
    pub draining: bool,
    /// It was set to work again after its end.
    pub reactivated: bool,
    /// How long there has been no sign of life, if that is long.
    pub stalled_for_ms: Option<i64>,
    /// What else was noticed.
    pub warnings: Vec<String>,
}

impl Instance {
    /// Whether it has not ended.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self.status.as_str(), "pending" | "running")
    }

    /// Milliseconds until it is ended at the latest; negative if that has passed.
    #[must_use]
    pub fn left(&self, now: i64) -> Option<i64> {
        (self.is_live() && self.deadline_ms > 0).then(|| {
            self.started_at
                .saturating_add(self.deadline_ms)
                .saturating_sub(now)
        })
    }
}

/// The session's document at `path`; `None` if there is none any more.
pub(crate) fn session(path: &Path) -> Result<Option<State>, Reason> {
    let Some(bytes) = bytes(path)? else {
        return Ok(None);
    };
    let marks: Marks = parse(&bytes)?;
    if marks.kind.as_deref() != Some(State::KIND) {
        return Err(Reason::Foreign);
    }
    match marks.version {
        Some(version) if version <= State::VERSION => {}
        Some(version) => return Err(Reason::Future { version }),
        None => return Err(Reason::Foreign),
    }
    let state: State = parse(&bytes)?;
    if is_named_after(path, state.session_id()) {
        Ok(Some(state))
    } else {
        Err(Reason::Misplaced)
    }
}

/// The record at `path`; `None` if there is none any more.
pub(crate) fn instance(path: &Path) -> Result<Option<Instance>, Reason> {
    let Some(bytes) = bytes(path)? else {
        return Ok(None);
    };
    let instance: Instance = parse(&bytes)?;
    if !instance.status.is_empty() && is_named_after(path, &instance.instance_id) {
        Ok(Some(instance))
    } else {
        Err(Reason::Foreign)
    }
}

/// Whether the document of `id` belongs into this file.
fn is_named_after(path: &Path, id: &str) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let names = [SessionName::of(id), SessionName::case_folded(id)];
    names.iter().any(|name| Some(name.as_str()) == stem)
}

#[derive(Deserialize)]
struct Marks {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    version: Option<u32>,
}

fn bytes(path: &Path) -> Result<Option<Vec<u8>>, Reason> {
    let most = FileStore::<State>::MAX_BYTES as u64;
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open::for_reading(path)?
            .take(most + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(why(path, &error)),
        Ok(bytes) if bytes.is_empty() => Err(Reason::Empty),
        Ok(bytes) if bytes.len() as u64 > most => Err(Reason::TooLarge),
        Ok(bytes) => Ok(Some(bytes)),
    }
}

/// Why the file at `path` could not be read.
pub(crate) fn why(path: &Path, error: &io::Error) -> Reason {
    if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        Reason::NotAFile
    } else {
        Reason::Unreadable(error.kind())
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Reason> {
    // The error's own message would quote the document.
    serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        if error.is_data() {
            Reason::WrongShape { line, column }
        } else {
            Reason::Malformed { line, column }
        }
    })
}
