//! Where things are on this machine.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folders of the user, of opencode and of the project.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) home: Option<PathBuf>,
    /// opencode's global configuration.
    pub(crate) config: Option<PathBuf>,
    /// The project: the current directory.
    pub(crate) project: PathBuf,
    /// Absolute entries of `PATH`.
    path: Vec<PathBuf>,
}

impl Places {
    pub(crate) fn from_env() -> Self {
        let home = env::home_dir().filter(|home| home.is_absolute());
        let xdg = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let config = xdg
            .filter(|folder| folder.is_absolute())
            .or_else(|| home.as_deref().map(|home| home.join(".config")));
        let path = env::var_os("PATH").unwrap_or_default();
        Self {
            home,
            config: config.map(|folder| folder.join("opencode")),
            project: env::current_dir().unwrap_or_default(),
            path: env::split_paths(&path)
                .filter(|folder| folder.is_absolute())
                .collect(),
        }
    }

    /// The folder whose `plugins` are loaded: the user's or the project's.
    pub(crate) fn folder(&self, in_project: bool) -> io::Result<PathBuf> {
        if in_project {
            return Ok(self.project.join(".opencode"));
        }
        self.config
            .clone()
            .ok_or_else(|| io::Error::other("there is no home directory"))
    }

    /// A program on `PATH`.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        let name = format!("{name}{}", env::consts::EXE_SUFFIX);
        let mut candidates = self.path.iter().map(|folder| folder.join(&name));
        candidates.find(|path| path.is_file())
    }

    /// opencode and the version it says it has.
    pub(crate) fn opencode(&self) -> Option<(PathBuf, String)> {
        let program = self.program("opencode")?;
        let output = Command::new(&program)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Some((program, version))
    }
}

/// What is to be said of a program of which [`is_passing`] holds.
pub(crate) const PASSES: &str = "lies in a build folder or a temporary one and may vanish: in bizar's sources, cargo \
                                 install --path examples/opencode puts the program where it stays";

/// Whether a program lies where it will not stay: in a build folder or a temporary one.
pub(crate) fn is_passing(program: &Path) -> bool {
    let built = ["debug", "release"].map(OsStr::new);
    let parent = program.parent().and_then(Path::file_name);
    let temporary = [env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
    parent.is_some_and(|name| built.contains(&name))
        || temporary.iter().any(|folder| {
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            program.starts_with(folder)
        })
}

/// Names the place of an error.
pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Replaces a file as a whole. A link is followed; mode and owner stay.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder).map_err(at(folder))?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(at(folder))?;
    file.write_all(text.as_bytes())?;
    match fs::metadata(&path) {
        Ok(old) => {
            file.as_file().set_permissions(old.permissions())?;
            keep_owner(file.path(), &old)?;
        }
        Err(_) => make_readable(file.as_file())?,
    }
    file.persist(&path)?;
    Ok(())
}

#[cfg(unix)]
fn keep_owner(path: &Path, old: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, chown};
    let new = fs::metadata(path)?;
    if (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    chown(path, Some(old.uid()), Some(old.gid()))
}

#[cfg(not(unix))]
fn keep_owner(_: &Path, _: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn make_readable(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_readable(_: &fs::File) -> io::Result<()> {
    Ok(())
}
