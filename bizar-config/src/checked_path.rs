//! Paths that do not lead into a directory of secrets.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    fmt, fs,
    path::{Component, Path, PathBuf},
};

/// An absolute path that does not lead into `~/.ssh`, `~/.gnupg`, `~/.aws` or `~/.kube`.
///
/// Links are followed as far as they exist, so no spelling hides where a path ends:
/// `..`, `//`, a link on the way, a link whose target is missing, another case. What is
/// true when a path is made need not be true when it is opened, so [`check`] it
/// again right before that.
///
/// [`check`]: CheckedPath::check
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CheckedPath {
    path: PathBuf,
    home: Option<PathBuf>,
}

impl CheckedPath {
    /// Takes `text` as a user wrote it.
    ///
    /// `~`, `$HOME`, `${HOME}` and `%USERPROFILE%` at the beginning are the home directory,
    /// and so is `~name` if the home directory is called `name`. A relative path begins at
    /// the home directory, because the current directory is the project's and a project
    /// has no say here.
    ///
    /// # Errors
    /// Why the path is refused.
    pub fn new(text: &str, home: Option<&Path>) -> Result<Self, Refused> {
        Self::outside(text, &Secrets::of(home))
    }

    /// The same, for several paths at one moment.
    pub(crate) fn outside(text: &str, secrets: &Secrets) -> Result<Self, Refused> {
        let home = secrets.home.as_deref();
        let path = spelled_out(text, home)?;
        secrets.check(&path)?;
        Ok(Self {
            path,
            home: home.map(Path::to_path_buf),
        })
    }

    /// Looks again whether the path leads into a secret directory, as links may have been
    /// made since. To be called right before the path is opened.
    ///
    /// # Errors
    /// Where it leads now is refused.
    pub fn check(&self) -> Result<&Path, Refused> {
        Secrets::of(self.home.as_deref()).check(&self.path)?;
        Ok(&self.path)
    }

    /// The path as it will be opened: absolute, links not followed.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for CheckedPath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

/// Why a path is not used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refused {
    /// It is empty or has a NUL in it.
    Malformed,
    /// It needs a home directory, and there is none.
    NoHome,
    /// It begins with another user's home or with a variable.
    NotExpanded,
    /// It leads into a directory of secrets.
    Secret,
    /// Its links go round in circles.
    Links,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "not a path",
            Self::NoHome => "needs a home directory and there is none",
            Self::NotExpanded => {
                "begins with another user's home or a variable, which is not looked up"
            }
            Self::Secret => "leads into a directory of secrets",
            Self::Links => "has links that never end",
        })
    }
}

impl std::error::Error for Refused {}

/// The absolute path that a user means.
fn spelled_out(text: &str, home: Option<&Path>) -> Result<PathBuf, Refused> {
    if text.is_empty() || text.contains('\0') {
        return Err(Refused::Malformed);
    }
    let (first, rest) = text.split_at(text.find(is_separator).unwrap_or(text.len()));
    let at_home = |rest: &str| match home {
        Some(home) => Ok(home.join(rest.trim_start_matches(is_separator))),
        None => Err(Refused::NoHome),
    };
    match first {
        "~" | "$HOME" | "${HOME}" | "%USERPROFILE%" => at_home(rest),
        _ if first.starts_with('~') => {
            let name = home
                .and_then(Path::file_name)
                .and_then(|name| name.to_str());
            if name.is_some_and(|name| first.strip_prefix('~') == Some(name)) {
                at_home(rest)
            } else {
                Err(Refused::NotExpanded)
            }
        }
        _ if first.starts_with(['$', '%']) => Err(Refused::NotExpanded),
        _ if Path::new(text).is_absolute() => Ok(PathBuf::from(text)),
        // On Windows `C:x` and `\x` are neither absolute nor relative.
        _ if Path::new(text).has_root()
            || matches!(
                Path::new(text).components().next(),
                Some(Component::Prefix(_))
            ) =>
        {
            Err(Refused::NotExpanded)
        }
        _ => at_home(text),
    }
}

fn is_separator(c: char) -> bool {
    std::path::is_separator(c)
}

/// The directories of secrets, as they were found at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Secrets {
    home: Option<PathBuf>,
    /// The home directory with its links followed; `None` if they never end.
    true_home: Option<PathBuf>,
    directories: Vec<Secret>,
}

#[derive(Clone, Debug)]
struct Secret {
    path: PathBuf,
    /// Where it leads if it is a link; no place if that never ends.
    target: Option<Option<PathBuf>>,
    /// If it is there.
    identity: Option<Identity>,
}

impl Secrets {
    pub(crate) fn of(home: Option<&Path>) -> Self {
        let true_home = home.and_then(|home| followed(PathBuf::new(), home));
        let paths = true_home
            .iter()
            .flat_map(|home| SECRETS.map(|name| home.join(name)));
        Self {
            home: home.map(Path::to_path_buf),
            directories: paths.map(Secret::at).collect(),
            true_home,
        }
    }

    fn check(&self, path: &Path) -> Result<(), Refused> {
        let end = self.end(path).ok_or(Refused::Links)?;
        if self.hold(&end) {
            return Err(Refused::Secret);
        }
        Ok(())
    }

    fn end(&self, path: &Path) -> Option<PathBuf> {
        if let (Some(home), Some(true_home)) = (&self.home, &self.true_home)
            && let Ok(rest) = path.strip_prefix(home)
        {
            return followed(true_home.clone(), rest);
        }
        followed(PathBuf::new(), path)
    }

    /// Whether `end`, with its links followed, is a secret directory or in one.
    fn hold(&self, end: &Path) -> bool {
        if self.home.is_none() {
            // Nobody says whose home it is: the name alone must do.
            return end.components().any(|part| {
                SECRETS
                    .iter()
                    .any(|secret| same_name(part.as_os_str(), OsStr::new(secret)))
            });
        }
        let mut identities = None;
        self.true_home.is_none()
            || self.directories.iter().any(|secret| {
                is_inside(end, &secret.path)
                    || secret.target.as_ref().is_some_and(|target| {
                        target.as_ref().is_none_or(|target| is_inside(end, target))
                    })
                    || secret.identity.as_ref().is_some_and(|secret| {
                        identities
                            .get_or_insert_with(|| {
                                end.ancestors().filter_map(identity).collect::<Vec<_>>()
                            })
                            .contains(secret)
                    })
            })
    }
}

impl Secret {
    fn at(path: PathBuf) -> Self {
        // The way to the home directory has no links any more: only the last step can be one.
        let found = fs::symlink_metadata(&path).ok();
        let is_link = found.as_ref().is_some_and(fs::Metadata::is_symlink);
        Self {
            target: is_link.then(|| followed(PathBuf::new(), &path)),
            identity: found.and_then(|_| identity(&path)),
            path,
        }
    }
}

/// Where `path` ends, seen from `end`, when all links are followed, or `None` if they never end.
///
/// Unlike `fs::canonicalize` it goes on where nothing exists yet, so that a directory
/// that is still to be made is judged by where it will be.
fn followed(mut end: PathBuf, path: &Path) -> Option<PathBuf> {
    let mut todo: VecDeque<_> = path.components().filter_map(to_step).collect();
    let mut links = 0;
    while let Some(step) = todo.pop_front() {
        match step {
            Step::Root(root) => end.push(root),
            Step::Up => {
                end.pop();
            }
            Step::Into(name) => {
                end.push(name);
                // Anything that cannot be read as a link is taken for what it says.
                let Ok(target) = fs::read_link(&end) else {
                    continue;
                };
                links += 1;
                if links > MOST_LINKS {
                    return None;
                }
                end.pop();
                for step in target.components().rev().filter_map(to_step) {
                    todo.push_front(step);
                }
            }
        }
    }
    Some(end)
}

enum Step {
    Root(PathBuf),
    Up,
    Into(PathBuf),
}

fn to_step(component: Component<'_>) -> Option<Step> {
    match component {
        Component::Prefix(_) | Component::RootDir => Some(Step::Root(component.as_os_str().into())),
        Component::ParentDir => Some(Step::Up),
        Component::CurDir => None,
        Component::Normal(name) => Some(Step::Into(name.into())),
    }
}

/// Whether `path` is `directory` or below it. Names are compared as the least particular
/// file systems do: refusing `~/.SSH` where that is another directory harms nobody.
fn is_inside(path: &Path, directory: &Path) -> bool {
    let mut parts = path.components();
    directory.components().all(|wanted| {
        parts
            .next()
            .is_some_and(|part| same_name(part.as_os_str(), wanted.as_os_str()))
    })
}

fn same_name(a: &OsStr, b: &OsStr) -> bool {
    a == b || folded(a) == folded(b)
}

/// A name without what some file system passes over: case, characters of no width, dots and
/// blanks at the end, and the stream after a colon.
fn folded(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let name: String = if name.is_ascii() {
        name.to_ascii_lowercase()
    } else {
        // Upper case first: U+017F and U+212A become S and K only that way.
        name.to_uppercase().to_lowercase()
    };
    let seen: String = name.chars().filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')).collect();
    let stem = match seen.split_once(':') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => &seen,
    };
    match stem.trim_end_matches(['.', ' ']) {
        "" => stem.to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// What a directory is, whatever it is called: this sees through a bind mount, a short name,
/// another normal form.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    fs::canonicalize(path).ok()
}

const SECRETS: [&str; 4] = [".ssh", ".gnupg", ".aws", ".kube"];

/// As many as Linux follows.
const MOST_LINKS: u32 = 40;
