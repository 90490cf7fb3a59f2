//! What a guard is made of.

use std::{
    env, fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bizar_config::{Environment, Json, Note, Options, Resolved, Sources, resolve};

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
    ///
    /// While sessions cannot be written, up to four times as many stay.
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

    /// The setup of the user who runs this process: [`home`] and environment are read, and
    /// `~/.config/bizarharness/options.json` if it is there.
    ///
    /// `defaults` is what this host wants where the user set nothing, `options` what the host
    /// itself was given. No other variable and no other file is read.
    #[must_use]
    pub fn of_user(
        host: impl Into<String>,
        defaults: Option<Json<'_>>,
        options: Option<Json<'_>>,
    ) -> Self {
        let host = host.into();
        let home = home();
        let variables = Environment::NAMES
            .iter()
            .filter_map(|name| Some((name, env::var_os(name)?)));
        let resolved = resolve_with_file(Sources {
            home: home.as_deref(),
            host_defaults: defaults,
            file: None,
            host: Some(&host),
            host_options: options,
            env: Environment::from_pairs(variables),
        });
        Self::new(host, resolved)
    }

    /// A resident guard with the defaults, and without a home directory: nothing is written, and sessions are kept in
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

/// The home directory of the user who runs this process, as `HOME` (on Windows `USERPROFILE`) has it.
///
/// `None` if it is not set or no absolute path, which would be a directory of the project. The system's
/// list of users is not asked: it may be on another machine.
#[must_use]
pub fn home() -> Option<PathBuf> {
    let home = env::var_os(HOME).map(PathBuf::from);
    home.filter(|home| home.is_absolute())
}

/// Resolves sources together with the user's options file, `~/.config/bizarharness/options.json`.
///
/// Reads no more than 1 MiB of it, and waits for nothing. Where something is there that is no readable file, a note says
/// so, and it counts as absent.
pub fn resolve_with_file(sources: Sources<'_>) -> Resolved {
    // A home that is not absolute would be a directory of the project.
    let home = sources.home.filter(|home| home.is_absolute());
    let (file, trouble) = match home.map_or(Ok(None), |home| read(&home.join(OPTIONS_FILE))) {
        Ok(file) => (file, None),
        Err(why) => (
            None,
            Some(format!("{OPTIONS_FILE}: could not be read: {why}")),
        ),
    };
    let mut resolved = resolve(Sources {
        file: file.as_deref(),
        ..sources
    });
    resolved
        .notes
        .extend(trouble.map(|text| Note::new("", text)));
    resolved
}

/// The text of the options file, if there is one, or why not; of a sane size.
fn read(path: &Path) -> Result<Option<String>, String> {
    // A device may never end, and a pipe waits for somebody who writes.
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Err("is not a file".to_owned());
    }
    let mut text = String::new();
    match fs::File::open(path).and_then(|file| file.take(MOST_OPTIONS).read_to_string(&mut text)) {
        Ok(_) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.kind().to_string()),
    }
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

const OPTIONS_FILE: &str = ".config/bizarharness/options.json";

/// 1 MiB.
const MOST_OPTIONS: u64 = 1 << 20;
