//! Servers that outlived their owner are found at the next start, and ended.
//!
//! This is for owners without a watchdog. A running server is noted with its process,
//! when that was started, its command line and its port. A later start ends the process
//! group of a noted server if its owner is dead and all four are still as noted.
//! Nothing else is touched.

use std::{path::PathBuf, time::Duration};

use bizar_state::{Document, Durability, FileStore, Store};
use serde::{Deserialize, Serialize};

use super::client::Loopback;
use crate::{
    Owner,
    process::{self, Identity, Signal},
};

/// The notes in a directory. Everything here blocks.
#[derive(Clone, Debug)]
pub(super) struct Notes(FileStore<Note>);

/// A note on a server that runs. It goes when this is dropped.
#[derive(Debug)]
pub(super) struct Noted {
    notes: Notes,
    name: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct Note {
    name: String,
    owner: Owner,
    server: Identity,
    port: u16,
}

impl Notes {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self(FileStore::new(directory, Durability::Process))
    }

    /// Notes a server of this process. `None`: it cannot be, and the server runs without.
    pub(super) fn add(&self, pid: u32, port: Loopback) -> Option<Noted> {
        let note = Note {
            name: format!("{pid}-{}", port.port()),
            owner: process::owner(),
            server: Identity::of(pid)?,
            port: port.port(),
        };
        let name = note.name.clone();
        self.0.save(note).ok()?;
        Some(Noted {
            notes: self.clone(),
            name,
        })
    }

    /// Ends what dead owners have left: gently, and after `patience` not.
    pub(super) fn reap(&self, patience: Duration) {
        let listing = self.0.list().map(|listing| listing.documents);
        let mut orphaned = listing.unwrap_or_default();
        orphaned.retain(|note| !process::is_alive(&note.owner));
        let mut left: Vec<&Note> = orphaned.iter().filter(|note| note.is_left()).collect();
        for (signal, patience) in [(Signal::Terminate, patience), (Signal::Kill, KILLED)] {
            for note in &left {
                process::signal_group(note.server.pid, signal);
            }
            let mut rounds = patience.as_millis().div_ceil(ROUND.as_millis());
            while rounds > 0 && !left.is_empty() {
                std::thread::sleep(ROUND);
                left.retain(|note| note.server.is_running());
                rounds -= 1;
            }
        }
        for note in &orphaned {
            // A note that stays is judged again at the next start.
            let _ = self.0.remove(&note.name);
        }
    }
}

impl Note {
    /// Whether the noted server, and no other process, still runs.
    fn is_left(&self) -> bool {
        self.server.is_running()
            && process::leads_group(self.server.pid)
            && Loopback::is_taken(self.port)
    }
}

impl Document for Note {
    const KIND: &'static str = "bizar.server";
    const VERSION: u32 = 1;

    fn id(&self) -> &str {
        &self.name
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let _ = self.notes.0.remove(&self.name);
    }
}

const ROUND: Duration = Duration::from_millis(50);
/// For a killed process to be gone.
const KILLED: Duration = Duration::from_secs(1);

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]
mod tests {
    use std::{
        io::Read,
        net::{Ipv4Addr, TcpListener},
        os::unix::process::{CommandExt, ExitStatusExt},
        process::{Child, Command, Stdio},
    };

    use super::*;

    /// A server with a note whose owner is dead. The port is held by the test.
    struct Left {
        directory: tempfile::TempDir,
        child: Child,
        listener: TcpListener,
    }

    impl Left {
        fn new(script: &str, change: impl FnOnce(&mut Note)) -> Self {
            let mut child = Command::new("sh");
            child.args(["-c", script]).process_group(0);
            child.stdout(Stdio::piped());
            let mut left = Self {
                directory: tempfile::tempdir().unwrap(),
                child: child.spawn().unwrap(),
                listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
            };
            // It says something as soon as its trap is set.
            let mut said = left.child.stdout.take().unwrap();
            said.read_exact(&mut [0]).unwrap();
            let mut owner = process::owner();
            owner.started += 1;
            owner.boot.push_str(if cfg!(target_os = "linux") {
                ""
            } else {
                "before"
            });
            let mut note = Note {
                name: "left".into(),
                owner,
                server: Identity::of(left.child.id()).unwrap(),
                port: left.listener.local_addr().unwrap().port(),
            };
            change(&mut note);
            left.notes().0.save(note).unwrap();
            left
        }

        fn notes(&self) -> Notes {
            Notes::new(self.directory.path().into())
        }

        /// The signal that has ended it, if one has, and whether the note is still there.
        fn reaped(mut self) -> (Option<i32>, bool) {
            let notes = self.notes();
            notes.reap(Duration::from_millis(300));
            let end = self.child.try_wait().unwrap();
            process::signal_group(self.child.id(), Signal::Kill);
            self.child.wait().unwrap();
            let is_noted = !notes.0.list().unwrap().documents.is_empty();
            (end.and_then(|end| end.signal()), is_noted)
        }
    }

    const PLAIN: &str = "echo; sleep 300; true";

    #[test]
    fn what_is_as_noted_is_ended() {
        assert_eq!(Left::new(PLAIN, |_| {}).reaped(), (Some(15), false));
        let stubborn = "trap '' TERM; echo; sleep 300; true";
        assert_eq!(Left::new(stubborn, |_| {}).reaped(), (Some(9), false));
    }

    #[test]
    fn what_differs_in_one_of_four_is_not_touched() {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        for which in 0..4 {
            let left = Left::new(PLAIN, |note| match which {
                0 => note.server.pid = std::process::id(),
                1 => note.server.started.push('1'),
                2 => note.server.command.push('x'),
                _ => note.port = port,
            });
            assert_eq!(left.reaped(), (None, false));
        }
    }

    #[test]
    fn what_has_an_owner_is_not_touched() {
        let alive = |note: &mut Note| note.owner = process::owner();
        assert_eq!(Left::new(PLAIN, alive).reaped(), (None, true));
    }

    #[test]
    fn what_leads_no_group_is_not_touched() {
        let mut child = Command::new("sleep").arg("300").spawn().unwrap();
        let identity = Identity::when_it_is(child.id(), "sleep 300");
        let left = Left::new(PLAIN, |note| note.server = identity.clone());
        assert_eq!(left.reaped(), (None, false));
        assert!(identity.is_running());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
