use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// How many rotated files a session keeps beside its live one.
pub const DEFAULT_KEPT: u32 = 3;

/// The file of a session: `<name>.log`, and `<name>.<age>.log` from age 1 up.
pub(crate) fn path(directory: &Path, name: &str, age: u32) -> PathBuf {
    match age {
        0 => directory.join(format!("{name}.log")),
        _ => directory.join(format!("{name}.{age}.log")),
    }
}

/// Makes room for a new live file: every file grows one older, the oldest is replaced.
///
/// Only as far as the first age that is free, so nothing is deleted while there is room. A step that fails
/// ends the rotation: going on would overwrite a file that could not be moved away.
pub(crate) fn rotate(directory: &Path, name: &str, kept: u32) -> io::Result<()> {
    let is_free = |age: &u32| fs::symlink_metadata(path(directory, name, *age)).is_err();
    let last = (1..=kept).find(is_free).unwrap_or(kept);
    for age in (0..last).rev() {
        fs::rename(path(directory, name, age), path(directory, name, age + 1))?;
    }
    Ok(())
}
