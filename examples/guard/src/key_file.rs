//! The file with the key of the fingerprints.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::Path,
};

use bizar_config::CheckedPath;

/// The key in the file, which is made with random bytes and mode 0600 if there is none.
///
/// Errors are texts for a note: the guard goes on without a key.
pub(crate) fn read_or_make(file: &CheckedPath) -> Result<[u8; 32], String> {
    let path = file.check().map_err(|refused| refused.to_string())?;
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(path).map_err(|error| format!("could not be made: {}", error.kind()))?;
            // What counts is what lies there: another process may have been faster.
            read(path).map_err(|error| format!("could not be read: {}", error.kind()))
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err("is not 32 bytes long".to_owned())
        }
        read => read.map_err(|error| format!("could not be read: {}", error.kind())),
    }
}

fn read(path: &Path) -> io::Result<[u8; 32]> {
    // A pipe waits for somebody who writes.
    if !fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(33).read_to_end(&mut bytes)?;
    bytes
        .try_into()
        .map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Puts a whole key in place at once, or leaves the one that is there.
fn make(path: &Path) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make_private_directory(directory)?;
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    // Temporary files have mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&key)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

fn make_private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}
