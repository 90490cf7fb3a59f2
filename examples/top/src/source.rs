//! The watched directories, turned into news for the model.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt, fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use bizar_log::Entry;
use bizar_state::Reason;

use crate::{
    document::{self, Instance, State},
    tail::Tail,
};

/// One of the watched directories.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Place {
    /// Of the logs: `<name>.log`.
    Logs,
    /// Of the sessions' documents: `<name>.json`.
    States,
    /// Of the background agents' records: `<id>.json`.
    Background,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Logs, Self::States, Self::Background];

    /// The name that a file has for its session or instance: rotated logs, locks and temporary files have none.
    #[must_use]
    pub fn stem(self, file_name: &str) -> Option<&str> {
        let ending = match self {
            Self::Logs => ".log",
            Self::States | Self::Background => ".json",
        };
        let stem = file_name.strip_suffix(ending)?;
        (!stem.is_empty() && !stem.contains('.')).then_some(stem)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Logs => "logs",
            Self::States => "states",
            Self::Background => "background records",
        })
    }
}

/// Something that was read. `name` is the file's, without its ending.
#[derive(Debug)]
pub enum News {
    /// Lines were added to a log; or it was found empty.
    Lines {
        /// Of the log.
        name: String,
        /// In order.
        entries: Vec<Entry>,
        /// Lines that are no entries.
        bad_lines: u64,
    },
    /// A session's document has changed.
    State {
        /// Of the document.
        name: String,
        /// What it is now.
        state: Result<Box<State>, Reason>,
    },
    /// A record of a background agent has changed.
    Instance {
        /// Of the record.
        name: String,
        /// What it is now.
        instance: Result<Box<Instance>, Reason>,
    },
    /// A file is no longer there.
    Gone {
        /// Where it was.
        place: Place,
        /// Its name.
        name: String,
    },
    /// A log cannot be read.
    BadLog {
        /// Its name.
        name: String,
        /// Why.
        reason: Reason,
    },
    /// How it stands with a directory.
    Directory {
        /// Which one.
        place: Place,
        /// What keeps it from being read; `None` if it was read.
        trouble: Option<Trouble>,
    },
}

/// Why a directory shows nothing, or not everything.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Trouble {
    /// It is not there.
    Missing(PathBuf),
    /// It cannot be read.
    Unreadable(PathBuf, io::ErrorKind),
    /// It holds more files than are looked at.
    TooMany(PathBuf, usize),
    /// The options name none that may be used.
    Unset,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(
                f,
                "{} does not exist: nothing was written yet",
                path.display()
            ),
            Self::Unreadable(path, kind) => write!(f, "{} cannot be read: {kind}", path.display()),
            Self::TooMany(path, count) => write!(
                f,
                "{} has {count} files: the {MOST_FILES} that changed last are shown",
                path.display()
            ),
            Self::Unset => f.write_str(
                "no directory: there is no home directory, or the options name one that is refused",
            ),
        }
    }
}

/// Reads what is new in the directories; opens only what has changed since.
#[derive(Debug, Default)]
pub struct Source {
    directories: BTreeMap<Place, PathBuf>,
    known: HashMap<(Place, String), Stamp>,
    tails: HashMap<String, Tail>,
    read: u64,
}

impl Source {
    /// Nothing is touched yet. Records of background agents lie in `bg` below `states`.
    #[must_use]
    pub fn new(logs: Option<PathBuf>, states: Option<PathBuf>) -> Self {
        let background = states.as_ref().map(|states| states.join("bg"));
        let directories = [
            (Place::Logs, logs),
            (Place::States, states),
            (Place::Background, background),
        ];
        Self {
            directories: directories
                .into_iter()
                .filter_map(|(place, path)| Some((place, path?)))
                .collect(),
            ..Self::default()
        }
    }

    /// The directories that there are to be.
    pub fn directories(&self) -> impl Iterator<Item = (Place, &Path)> {
        self.directories
            .iter()
            .map(|(place, path)| (*place, path.as_path()))
    }

    /// How many files have been read so far.
    #[must_use]
    pub fn files_read(&self) -> u64 {
        self.read
    }

    /// Lists the directories and reads what is new or has another time or size than before.
    pub fn scan(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        for place in Place::ALL {
            let trouble = match self.directories.get(&place).cloned() {
                None => Some(Trouble::Unset),
                Some(path) => self.scan_one(place, &path, &mut news),
            };
            news.push(News::Directory { place, trouble });
        }
        news
    }

    /// Reads one file that is said to have changed.
    pub fn look(&mut self, place: Place, name: &str) -> Option<News> {
        let path = self.path(place, name)?;
        let stamp = fs::symlink_metadata(&path).ok().as_ref().map(Stamp::of);
        let key = (place, name.to_owned());
        let Some(stamp) = stamp else {
            if place == Place::Logs {
                self.tails.remove(name);
            }
            return self.known.remove(&key).map(|_| News::Gone {
                place,
                name: name.to_owned(),
            });
        };
        self.known.insert(key, stamp);
        self.read_one(place, name, &path)
    }

    fn scan_one(&mut self, place: Place, path: &Path, news: &mut Vec<News>) -> Option<Trouble> {
        let mut found = match list(place, path) {
            Ok(found) => found,
            Err(error) => {
                self.forget(place, &HashSet::new(), news);
                return Some(match error.kind() {
                    io::ErrorKind::NotFound => Trouble::Missing(path.to_owned()),
                    kind => Trouble::Unreadable(path.to_owned(), kind),
                });
            }
        };
        let count = found.len();
        if count > MOST_FILES {
            found.sort_by_key(|(_, stamp)| std::cmp::Reverse(stamp.modified));
            found.truncate(MOST_FILES);
        }
        for (name, stamp) in &found {
            let key = (place, name.clone());
            if self.known.get(&key) != Some(stamp) {
                self.known.insert(key, *stamp);
                news.extend(
                    self.path(place, name)
                        .and_then(|path| self.read_one(place, name, &path)),
                );
            }
        }
        let names = found.iter().map(|(name, _)| name.as_str()).collect();
        self.forget(place, &names, news);
        (count > MOST_FILES).then(|| Trouble::TooMany(path.to_owned(), count))
    }

    /// Tells of the files that are gone.
    fn forget(&mut self, place: Place, names: &HashSet<&str>, news: &mut Vec<News>) {
        self.known.retain(|(at, name), _| {
            let stays = *at != place || names.contains(name.as_str());
            if !stays {
                news.push(News::Gone {
                    place,
                    name: name.clone(),
                });
                if place == Place::Logs {
                    self.tails.remove(name);
                }
            }
            stays
        });
    }

    fn read_one(&mut self, place: Place, name: &str, path: &Path) -> Option<News> {
        self.read += 1;
        let name = name.to_owned();
        match place {
            Place::Logs => {
                let directory = path.parent()?;
                let tail = self.tails.entry(name.clone()).or_default();
                Some(match tail.read(directory, &name) {
                    Ok(added) => News::Lines {
                        name,
                        entries: added.entries,
                        bad_lines: added.bad_lines,
                    },
                    Err(error) => News::BadLog {
                        name,
                        reason: document::why(path, &error),
                    },
                })
            }
            Place::States => Some(match document::session(path) {
                Ok(None) => News::Gone { place, name },
                Ok(Some(state)) => News::State {
                    name,
                    state: Ok(Box::new(state)),
                },
                Err(reason) => News::State {
                    name,
                    state: Err(reason),
                },
            }),
            Place::Background => Some(match document::instance(path) {
                Ok(None) => News::Gone { place, name },
                Ok(Some(instance)) => News::Instance {
                    name,
                    instance: Ok(Box::new(instance)),
                },
                Err(reason) => News::Instance {
                    name,
                    instance: Err(reason),
                },
            }),
        }
    }

    fn path(&self, place: Place, name: &str) -> Option<PathBuf> {
        let ending = match place {
            Place::Logs => "log",
            Place::States | Place::Background => "json",
        };
        let directory = self.directories.get(&place)?;
        Some(directory.join(format!("{name}.{ending}")))
    }
}

/// By which a change is noticed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Stamp {
    modified: Option<SystemTime>,
    len: u64,
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            modified: metadata.modified().ok(),
            len: metadata.len(),
        }
    }
}

fn list(place: Place, directory: &Path) -> io::Result<Vec<(String, Stamp)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let file_name = entry.file_name();
        let Some(name) = file_name.to_str().and_then(|name| place.stem(name)) else {
            continue;
        };
        // Deleted meanwhile.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        found.push((name.to_owned(), Stamp::of(&metadata)));
    }
    Ok(found)
}

/// Logs are never deleted: of years of them, only these are looked at.
const MOST_FILES: usize = 5000;
