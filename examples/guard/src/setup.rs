//! What a guard is made of.

use std::{fmt, sync::Arc, time::Duration};

use bizar_config::{Environment, Options, Resolved, Sources, resolve};

/// What a guard is made of: whose calls it judges, by which options, and how sessions are kept.
#[derive(Clone)]
pub struct Setup {
    pub(crate) host: String,
    pub(crate) directory: String,
    pub(crate) worktree: Option<String>,
    pub(crate) options: Options,
    pub(crate) env: Environment,
    pub(crate) notes: Vec<String>,
    pub(crate) form: Form,
    pub(crate) clock: Clock,
}

/// The time in milliseconds since 1970-01-01 UTC.
pub(crate) type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// How sessions are kept between calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// In memory, for a host that lives long, and written to the store after a call, at most ten times a second
    /// a session, when the session goes idle, and at the end.
    ///
    /// A session belongs to one process at a time. The [`LIVE_SESSIONS`](Self::LIVE_SESSIONS) that were used
    /// last stay in memory; others are read back when they are used again.
    Resident,
    /// In the store, for a program that lives for one call, or several of them at once: each step loads, changes
    /// and saves the session as one. A step that has to wait for the others longer than this is skipped:
    /// the call is allowed.
    PerCall(Duration),
}

impl Form {
    /// Sessions that [`Form::Resident`] holds in memory; each takes a file handle and about 16 KiB.
    pub const LIVE_SESSIONS: usize = 64;

    /// [`Form::PerCall`] with a patience of 50 ms.
    pub const ONE_CALL: Self = Self::PerCall(Duration::from_millis(50));
}

impl Setup {
    /// A resident guard for `host`, a short name such as `opencode`, by what
    /// [`resolve`] made of the options.
    #[must_use]
    pub fn new(host: impl Into<String>, resolved: Resolved) -> Self {
        Self {
            host: host.into(),
            directory: String::new(),
            worktree: None,
            options: resolved.options,
            env: resolved.env,
            notes: resolved.notes.iter().map(ToString::to_string).collect(),
            form: Form::Resident,
            clock: Arc::new(now),
        }
    }

    /// The same with the defaults, and without a home directory: nothing is written, and sessions are kept in
    /// memory only.
    #[must_use]
    pub fn in_memory(host: impl Into<String>) -> Self {
        let mut resolved = resolve(Sources::default());
        resolved.notes.clear();
        Self::new(host, resolved)
    }

    /// The directory that the sessions work in. A hash of it keeps projects apart when old sessions are swept, and
    /// unless there is a [`worktree`](Self::worktree), it makes paths in arguments portable.
    #[must_use]
    pub fn directory(self, directory: impl Into<String>) -> Self {
        Self {
            directory: directory.into(),
            ..self
        }
    }

    /// The root of the work tree. The root of a file system counts as none.
    #[must_use]
    pub fn worktree(self, worktree: impl Into<String>) -> Self {
        Self {
            worktree: Some(worktree.into()),
            ..self
        }
    }

    /// How sessions are kept.
    #[must_use]
    pub fn form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// Another clock: milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn clock(self, clock: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self {
            clock: Arc::new(clock),
            ..self
        }
    }

    /// The options, to change some in code.
    pub fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("host", &self.host)
            .field("directory", &self.directory)
            .field("worktree", &self.worktree)
            .field("options", &self.options)
            .field("env", &self.env)
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}
