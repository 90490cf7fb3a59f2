use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    entry::{Entry, ParseError},
    live, rotate,
};

/// The logs in `directory`, by name. A directory that does not exist has none.
///
/// Only regular files named `<name>.log` and `<name>.<age>.log` are looked at, and none is opened.
///
/// # Errors
/// The directory cannot be read.
pub fn list(directory: &Path) -> io::Result<Vec<Listed>> {
    let mut found: BTreeMap<String, Listed> = BTreeMap::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let file_name = entry.file_name();
        let Some((name, age)) = file_name.to_str().and_then(parts) else {
            continue;
        };
        // Deleted meanwhile, or a link, which this crate never makes.
        let Some(metadata) = entry.metadata().ok().filter(fs::Metadata::is_file) else {
            continue;
        };
        let listed = found.entry(name.to_owned()).or_insert_with(|| Listed {
            name: name.to_owned(),
            bytes: 0,
            oldest: 0,
            modified: SystemTime::UNIX_EPOCH,
        });
        listed.bytes += metadata.len();
        listed.oldest = listed.oldest.max(age);
        listed.modified = listed
            .modified
            .max(metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH));
    }
    Ok(found.into_values().collect())
}

/// One session's log as [`list`] found it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Listed {
    /// The text of its [`SessionName`](crate::SessionName); the session's id is in each of its entries.
    pub name: String,
    /// Bytes in all its files.
    pub bytes: u64,
    /// The highest number of a rotated file; 0 if there is only the live one.
    pub oldest: u32,
    /// When a line was last added.
    pub modified: SystemTime,
}

/// Reads the entries of one log across its rotated files, and later those that have been added.
///
/// Takes no lock and changes nothing.
#[derive(Debug)]
pub struct Reader {
    directory: PathBuf,
    name: String,
    /// Files read so far, oldest first. They stay open, so that their identities are not given to others.
    seen: Vec<Seen>,
}

impl Reader {
    /// A reader of the log with this file `name`, from its oldest line on.
    ///
    /// Nothing is opened yet. A name that is no [`SessionName`](crate::SessionName) has no entries.
    pub fn new(directory: impl Into<PathBuf>, name: &str) -> Self {
        Self {
            directory: directory.into(),
            name: name.to_owned(),
            seen: Vec::new(),
        }
    }

    /// All entries that were added since the last call, in the order of the files.
    ///
    /// A last line that has no line feed yet is left for the next call, and empty lines are passed over. Other lines that are
    /// no entry are reported in their place. Lines that were rotated away between two calls are missing. Without a log there are no entries.
    ///
    /// # Errors
    /// A file or the directory cannot be read. Nothing is skipped: the next call tries again.
    pub fn read(&mut self) -> io::Result<Vec<Result<Entry, ParseError>>> {
        let mut entries = Vec::new();
        let mut files = self.files()?;
        for file in &mut files {
            file.read(&mut entries)?;
        }
        self.seen = files;
        Ok(entries)
    }

    /// The files there are now, oldest first, with what is known of them.
    fn files(&self) -> io::Result<Vec<Seen>> {
        let listed = list(&self.directory)?
            .into_iter()
            .find(|listed| listed.name == self.name);
        let Some(listed) = listed else {
            return Ok(Vec::new());
        };
        let mut files: Vec<Seen> = Vec::new();
        // From the newest on: when they are renamed meanwhile, one may come twice, but none is missed.
        for age in 0..=listed.oldest.saturating_add(1) {
            let path = rotate::path(&self.directory, &self.name, age);
            if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
                continue;
            }
            let file = match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            let identity = identity(&file)?;
            if files.iter().all(|other| other.identity != identity) {
                let known = self.seen.iter().find(|seen| seen.identity == identity);
                let offset = known.map_or(0, |seen| seen.offset);
                files.push(Seen {
                    file,
                    identity,
                    offset,
                });
            }
        }
        files.reverse();
        Ok(files)
    }
}

#[derive(Debug)]
struct Seen {
    file: File,
    identity: (u64, u64),
    /// Where the first line begins that has not been read.
    offset: u64,
}

impl Seen {
    fn read(&mut self, entries: &mut Vec<Result<Entry, ParseError>>) -> io::Result<()> {
        if self.file.metadata()?.len() < self.offset {
            self.offset = 0;
        }
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.offset))?;
        self.file.read_to_end(&mut bytes)?;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(line_bytes) = line.strip_suffix(b"\n") else {
                break;
            };
            self.offset += line.len() as u64;
            if line_bytes.is_empty() {
                continue;
            }
            entries.push(String::from_utf8_lossy(line_bytes).parse());
        }
        Ok(())
    }
}

/// `ses_1.2.log` is age 2 of `ses_1`. A name has no dot, so there is one way to read it.
fn parts(file_name: &str) -> Option<(&str, u32)> {
    let stem = file_name.strip_suffix(".log")?;
    let (name, age) = match stem.split_once('.') {
        None => (stem, 0),
        Some((name, age)) => (
            name,
            age.parse()
                .ok()
                .filter(|number: &u32| *number > 0 && number.to_string() == age)?,
        ),
    };
    (!name.is_empty()).then_some((name, age))
}

/// What tells a file from others after a rename: its number, or else its beginning, where a time stamp stands.
fn identity(file: &File) -> io::Result<(u64, u64)> {
    if let Some(identity) = live::identity(&file.metadata()?) {
        return Ok(identity);
    }
    let mut beginning = Vec::new();
    file.take(256).read_to_end(&mut beginning)?;
    let hash = beginning
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default()
        .iter();
    Ok((
        hash.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        }),
        0,
    ))
}
