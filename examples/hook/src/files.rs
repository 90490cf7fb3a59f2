//! Files of others, changed with care.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// The text of a file; an absent one is empty.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    // A device may never end, and a pipe waits for somebody who writes.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("is not a file"));
    }
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

/// Replaces a file in one step: a link stays a link, mode and owner stay as they are.
pub(crate) fn write(path: &Path, text: &str, is_program: bool) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    match fs::metadata(&target) {
        Ok(old) => {
            fs::set_permissions(file.path(), old.permissions())?;
            keep_owner(file.path(), &old);
        }
        Err(_) => fresh_mode(file.path(), is_program)?,
    }
    file.as_file().sync_all()?;
    file.persist(&target)?;
    Ok(())
}

/// Keeps a copy of the file as it was before we first changed it.
pub(crate) fn back_up(path: &Path) -> io::Result<Option<PathBuf>> {
    let copy = backup_name(path);
    if copy.exists() || !path.exists() {
        return Ok(None);
    }
    fs::copy(path, &copy)?;
    Ok(Some(copy))
}

pub(crate) fn backup_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".before-bizar-hook");
    path.with_file_name(name)
}

#[cfg(unix)]
fn keep_owner(path: &Path, old: &fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, chown};
    // Without the right to, it stays ours: there is no better.
    chown(path, Some(old.uid()), Some(old.gid())).ok();
}

#[cfg(not(unix))]
fn keep_owner(_: &Path, _: &fs::Metadata) {}

#[cfg(unix)]
fn fresh_mode(path: &Path, is_program: bool) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = if is_program { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn fresh_mode(_: &Path, _: bool) -> io::Result<()> {
    Ok(())
}
