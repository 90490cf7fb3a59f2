//! Hearing of changes: from inotify where there is one.

use std::{
    cell::Cell,
    collections::HashSet,
    io::ErrorKind,
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
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    changes: Arc<Mutex<Changes>>,
    /// A directory that is there could not be watched: the system allows no more watches.
    is_deaf: Cell<bool>,
    #[cfg(target_os = "linux")]
    kernel: Option<linux::Kernel>,
}

impl Watcher {
    /// `wake` is called when there is something again; it returns whether anybody still listens.
    pub(crate) fn start(wake: impl Fn() -> bool + Send + 'static) -> Self {
        let mut watcher = Self::default();
        #[cfg(target_os = "linux")]
        {
            watcher.kernel = linux::Kernel::start(Arc::clone(&watcher.changes), wake).ok();
            watcher.is_deaf.set(watcher.kernel.is_none());
        }
        #[cfg(not(target_os = "linux"))]
        {
            drop(wake);
            watcher.is_deaf.set(true);
        }
        watcher
    }

    /// One that hears of nothing.
    pub(crate) fn deaf() -> Self {
        let watcher = Self::default();
        watcher.is_deaf.set(true);
        watcher
    }

    /// Whether all changes are heard of; else the directories are to be listed every second.
    pub(crate) fn is_hearing(&self) -> bool {
        !self.is_deaf.get()
    }

    /// Watches what is not watched yet. True if there is something new to list.
    #[cfg(target_os = "linux")]
    pub(crate) fn cover<'a>(&self, directories: impl Iterator<Item = (Place, &'a Path)>) -> bool {
        let Some(kernel) = &self.kernel else {
            return false;
        };
        let mut is_new = false;
        for (place, path) in directories {
            match kernel.cover(place, path) {
                Ok(new) => is_new |= new,
                // Not there yet, or not ours to see: the listing says so.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::NotFound
                            | ErrorKind::NotADirectory
                            | ErrorKind::PermissionDenied
                    ) => {}
                Err(_) => self.is_deaf.set(true),
            }
        }
        is_new
    }

    /// Nothing is watched here.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn cover<'a>(&self, _: impl Iterator<Item = (Place, &'a Path)>) -> bool {
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
        pub(super) fn cover(&self, place: Place, path: &Path) -> io::Result<bool> {
            let mut places = lock(&self.places);
            if places.values().flatten().any(|other| *other == place) {
                return Ok(false);
            }
            let mask = WatchMask::MODIFY
                | WatchMask::CREATE
                | WatchMask::DELETE
                | WatchMask::MOVE
                | WatchMask::DELETE_SELF
                | WatchMask::MOVE_SELF
                | WatchMask::ONLYDIR;
            let watch = self.watches.clone().add(path, mask)?;
            places.entry(watch).or_default().push(place);
            Ok(true)
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
