//! Files, directories, standard input: what is there to be read, and what is wrong with it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::opened::Opened;

/// Something the user should know about the input.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Note {
    place: String,
    line: Option<u64>,
    text: String,
    trouble: bool,
}

impl Note {
    /// Whether something that was asked for by name could not be used at all.
    pub fn is_trouble(&self) -> bool {
        self.trouble
    }

    pub(crate) fn of_file(place: &str, text: impl fmt::Display, trouble: bool) -> Self {
        Self {
            place: place.to_owned(),
            line: None,
            text: text.to_string(),
            trouble,
        }
    }
}

impl Note {
    pub(crate) fn of_line(place: &str, line: u64, text: &str) -> Self {
        Self {
            place: place.to_owned(),
            line: Some(line),
            text: text.to_owned(),
            trouble: false,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.text),
            None => write!(f, "{}: {}", self.place, self.text),
        }
    }
}

/// What is to be read, in order.
#[derive(Debug, Default)]
pub struct Input {
    files: VecDeque<Place>,
    total: u64,
    read: Rc<Cell<u64>>,
    /// What was found wrong before anything was read.
    notes: Vec<Note>,
    directories: Vec<Directory>,
}

#[derive(Debug)]
struct Place {
    source: Source,
    name: String,
    /// The directory it was found in; `None` = named by the user.
    directory: Option<usize>,
}

#[derive(Debug)]
enum Source {
    Bundled(&'static str),
    Path(PathBuf),
    Stdin,
}

/// A directory that was asked for.
#[derive(Debug)]
struct Directory {
    name: String,
    found: Rc<Found>,
    optional: bool,
}

/// What was found in a directory.
#[derive(Debug, Default)]
pub(crate) struct Found {
    good: Cell<u64>,
    passed_over: Cell<usize>,
    examples: RefCell<Vec<String>>,
}

impl Found {
    /// A file with so many usable lines.
    pub(crate) fn add(&self, good: u64) {
        self.good.set(self.good.get() + good);
    }

    /// A file of no known format.
    pub(crate) fn pass_over(&self, name: &str) {
        self.passed_over.set(self.passed_over.get() + 1);
        let mut examples = self.examples.borrow_mut();
        if examples.len() < MOST_EXAMPLES {
            let name = Path::new(name).file_name().unwrap_or_default();
            examples.push(name.to_string_lossy().into_owned());
        }
    }
}

impl Input {
    /// Files, directories (read recursively, in the order of their names) and `-`, standard input.
    pub fn of_paths(paths: &[PathBuf]) -> Self {
        let mut input = Self::default();
        for path in paths {
            input.add(path, false);
        }
        input
    }

    /// The usual places of harnesses: what is not there is no trouble.
    pub fn of_places(places: &[PathBuf]) -> Self {
        let mut input = Self::default();
        for place in places.iter().filter(|place| place.exists()) {
            input.add(place, true);
        }
        input
    }

    /// A session that is part of the program.
    pub fn of_bundled(name: &str, text: &'static str) -> Self {
        let place = Place {
            source: Source::Bundled(text),
            name: name.to_owned(),
            directory: None,
        };
        Self {
            total: text.len() as u64,
            files: [place].into(),
            ..Self::default()
        }
    }

    /// How many bytes the files have; standard input counts nothing.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// How many bytes have been read from disk.
    pub fn bytes_read(&self) -> u64 {
        self.read.get()
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.notes.is_empty()
    }

    /// The next file, open; or why it is not.
    pub(crate) fn next(&mut self) -> Option<Result<Opened<Box<dyn Read>>, Note>> {
        if let Some(note) = self.notes.pop() {
            return Some(Err(note));
        }
        let place = self.files.pop_front()?;
        let directory = place.directory.and_then(|at| self.directories.get(at));
        let opened = place
            .source
            .open(&self.read)
            .and_then(|raw| Opened::new(raw, &place.name, self.read.clone()));
        match opened {
            Ok(mut opened) => {
                opened.directory = directory.map(|directory| directory.found.clone());
                Some(Ok(opened))
            }
            Err(error) => Some(Err(Note::of_file(&place.name, error, directory.is_none()))),
        }
    }

    /// What there is to say about the directories.
    pub(crate) fn finish(self) -> Vec<Note> {
        let mut notes = Vec::new();
        for Directory {
            name,
            found,
            optional,
        } in &self.directories
        {
            let count = found.passed_over.get();
            let examples = found.examples.borrow().join(", ");
            match count {
                0 => {}
                1 => notes.push(Note::of_file(
                    name,
                    format!("passed over {examples}: of no known format"),
                    false,
                )),
                _ => {
                    let more = if count > MOST_EXAMPLES { ", …" } else { "" };
                    let text =
                        format!("passed over {count} files of no known format ({examples}{more})");
                    notes.push(Note::of_file(name, text, false));
                }
            }
            if found.good.get() == 0 && !optional {
                notes.push(Note::of_file(
                    name,
                    "no session of a known format in it",
                    true,
                ));
            }
        }
        notes
    }

    fn add(&mut self, path: &Path, optional: bool) {
        let name = path.display().to_string();
        if path == Path::new("-") {
            self.files.push_back(Place {
                source: Source::Stdin,
                name: "-".to_owned(),
                directory: None,
            });
            return;
        }
        match fs::metadata(path) {
            Err(error) => self.notes.insert(0, Note::of_file(&name, error, true)),
            Ok(data) if data.is_dir() => self.add_directory(path, name, optional),
            Ok(data) => {
                self.total += if data.is_file() { data.len() } else { 0 };
                self.files.push_back(Place {
                    source: Source::Path(path.to_owned()),
                    name,
                    directory: None,
                });
            }
        }
    }

    fn add_directory(&mut self, path: &Path, name: String, optional: bool) {
        let number = self.directories.len();
        self.directories.push(Directory {
            name,
            found: Rc::default(),
            optional,
        });
        let output = output();
        let mut waiting = vec![path.to_owned()];
        while let Some(directory) = waiting.pop() {
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) => {
                    let trouble = directory == path && !optional;
                    self.notes.insert(
                        0,
                        Note::of_file(&directory.display().to_string(), error, trouble),
                    );
                    continue;
                }
            };
            let mut entries: Vec<_> = entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect();
            entries.sort();
            let mut below = Vec::new();
            for entry in entries {
                let is_link = entry.is_symlink();
                // A link to a directory may lead round in a circle; a pipe would wait for ever.
                match fs::metadata(&entry) {
                    Ok(data) if data.is_dir() && !is_link => below.push(entry),
                    // What is written there would be read again, for ever.
                    Ok(data) if data.is_file() && output.is_some() && identity(&data) == output => {
                    }
                    Ok(data) if data.is_file() => {
                        self.total += data.len();
                        let name = entry.display().to_string();
                        self.files.push_back(Place {
                            source: Source::Path(entry),
                            name,
                            directory: Some(number),
                        });
                    }
                    _ => {}
                }
            }
            waiting.extend(below.into_iter().rev());
        }
    }
}

impl Source {
    fn open(&self, read: &Rc<Cell<u64>>) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Self::Bundled(text) => Box::new(text.as_bytes()),
            Self::Path(path) => Box::new(Counted {
                inner: File::open(path)?,
                read: read.clone(),
            }),
            Self::Stdin => Box::new(io::stdin().lock()),
        })
    }
}

/// The file that standard output goes to, if it is one.
#[cfg(unix)]
fn output() -> Option<(u64, u64)> {
    use std::os::fd::AsFd;

    let output = io::stdout().as_fd().try_clone_to_owned().ok()?;
    let data = File::from(output).metadata().ok()?;
    data.is_file().then(|| identity(&data)).flatten()
}

#[cfg(unix)]
fn identity(data: &fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    Some((data.dev(), data.ino()))
}

/// Elsewhere the standard library cannot tell: do not write into the directory that is read.
#[cfg(not(unix))]
fn output() -> Option<(u64, u64)> {
    None
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> Option<(u64, u64)> {
    None
}

/// Counts what is read, so that a person can be shown how far it is.
struct Counted {
    inner: File,
    read: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}

/// So many passed-over files of a directory are named.
const MOST_EXAMPLES: usize = 5;
