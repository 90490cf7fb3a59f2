//! Hearing of changes: from inotify where there is one.

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::source::Place;

/// What has changed since it was last asked for.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// These files.
    pub(crate) files: HashSet<(Place, String)>,
    /// Nobody knows what: everything is to be listed.
    pub(crate) is_unknown: bool,
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.is_unknown
    }
}

/// Watches directories from a thread of its own. Each changed file is noted once, however often it changes.
#[derive(Debug)]
pub(crate) struct Watcher {
    changes: Arc<Mutex<Changes>>,
    #[cfg(target_os = "linux")]
    kernel: Option<linux::Kernel>,
}

impl Watcher {
    /// `wake` is called when there is something again; it returns whether anybody still listens.
    pub(crate) fn start(wake: impl Fn() -> bool + Send + 'static) -> Self {
        let changes = Arc::new(Mutex::new(Changes::default()));
        #[cfg(target_os = "linux")]
        {
            let kernel = linux::Kernel::start(Arc::clone(&changes), wake).ok();
            Self { changes, kernel }
        }
        #[cfg(not(target_os = "linux"))]
        {
            drop(wake);
            Self { changes }
        }
    }

    /// Whether changes are heard of; else the directories are to be listed every second.
    pub(crate) fn is_hearing(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.kernel.is_some();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Watches what is not watched yet. True if there is something new to list.
    pub(crate) fn cover<'a>(&self, directories: impl Iterator<Item = (Place, &'a Path)>) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(kernel) = &self.kernel {
            return directories
                .map(|(place, path)| kernel.cover(place, path))
                .fold(false, |any, new| any || new);
        }
        drop(directories);
        false
    }

    /// What has changed since the last time.
    pub(crate) fn take(&self) -> Changes {
        std::mem::take(&mut lock(&self.changes))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        collections::HashMap,
        io,
        path::Path,
        sync::{Arc, Mutex},
        thread,
    };

    use inotify::{Event, EventMask, Inotify, WatchDescriptor, WatchMask, Watches};

    use super::{Changes, lock};
    use crate::source::Place;

    #[derive(Debug)]
    pub(super) struct Kernel {
        watches: Watches,
        /// Two places may be one directory.
        places: Arc<Mutex<HashMap<WatchDescriptor, Vec<Place>>>>,
    }

    impl Kernel {
        pub(super) fn start(
            changes: Arc<Mutex<Changes>>,
            wake: impl Fn() -> bool + Send + 'static,
        ) -> io::Result<Self> {
            let mut inotify = Inotify::init()?;
            let kernel = Self {
                watches: inotify.watches(),
                places: Arc::default(),
            };
            let (watches, places) = (inotify.watches(), Arc::clone(&kernel.places));
            let listen = move || {
                let mut buffer = vec![0; 16 * 1024];
                while let Ok(events) = inotify.read_events_blocking(&mut buffer) {
                    let mut noted = lock(&changes);
                    let was_empty = noted.is_empty();
                    for event in events {
                        note(&event, &mut noted, &places, &watches);
                    }
                    let is_news = was_empty && !noted.is_empty();
                    drop(noted);
                    if is_news && !wake() {
                        break;
                    }
                }
            };
            thread::Builder::new()
                .name("inotify".to_owned())
                .spawn(listen)?;
            Ok(kernel)
        }

        /// True if the directory was not watched before.
        pub(super) fn cover(&self, place: Place, path: &Path) -> bool {
            let mut places = lock(&self.places);
            if places.values().flatten().any(|other| *other == place) {
                return false;
            }
            let mask = WatchMask::MODIFY
                | WatchMask::CREATE
                | WatchMask::DELETE
                | WatchMask::MOVE
                | WatchMask::DELETE_SELF
                | WatchMask::MOVE_SELF
                | WatchMask::ONLYDIR;
            match self.watches.clone().add(path, mask) {
                Ok(watch) => {
                    places.entry(watch).or_default().push(place);
                    true
                }
                // Not there yet, or not ours to see: the listing says so.
                Err(_) => false,
            }
        }
    }

    fn note(
        event: &Event<&std::ffi::OsStr>,
        changes: &mut Changes,
        places: &Mutex<HashMap<WatchDescriptor, Vec<Place>>>,
        watches: &Watches,
    ) {
        let mut places = lock(places);
        let is_lost =
            EventMask::IGNORED | EventMask::DELETE_SELF | EventMask::MOVE_SELF | EventMask::UNMOUNT;
        if event.mask.intersects(is_lost) {
            // The path leads elsewhere now; it is covered anew when it leads anywhere.
            if places.remove(&event.wd).is_some() {
                let _ = watches.clone().remove(event.wd.clone());
                changes.is_unknown = true;
            }
            return;
        }
        if event.mask.contains(EventMask::Q_OVERFLOW) {
            changes.is_unknown = true;
            return;
        }
        let Some(name) = event.name.and_then(|name| name.to_str()) else {
            return;
        };
        for place in places.get(&event.wd).into_iter().flatten() {
            if let Some(stem) = place.stem(name) {
                changes.files.insert((*place, stem.to_owned()));
            }
        }
    }
}
