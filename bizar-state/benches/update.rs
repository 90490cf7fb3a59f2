//! The cost of an update beside two floors of nothing but `std` and `serde_json`: *write*, the same
//! bytes into a temporary file, renamed; and *bare*, which also reads and parses first as any update
//! must, but takes no lock, proves nothing and keeps no unknown members.
//!
//! `cargo bench -p bizar-state --bench update` measures on the disk of the target folder; another
//! directory may be given as argument. All three take turns, so that a neighbour's load falls on all.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and stops when something is wrong"
)]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bizar_state::{Durability, FileStore, Outcome, SessionState, Store, ToolCall};
use serde::{Deserialize, Serialize};

type Session = SessionState<Snapshot>;

/// About as large as the detector's.
#[derive(Clone, Deserialize, Serialize)]
struct Snapshot {
    ring: Vec<(String, String)>,
}

fn main() {
    let place = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let place = place.map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    for (size, session) in [("new", session(0)), ("full", session(200))] {
        for (durability, rounds) in [(Durability::Process, 3000), (Durability::Power, 300)] {
            measure(&place, size, &session, durability, rounds);
        }
    }
}

fn measure(place: &Path, size: &str, session: &Session, durability: Durability, rounds: usize) {
    let directory = tempfile::tempdir_in(place).unwrap();
    let store = FileStore::<Session>::new(directory.path().join("store"), durability);
    store.save(session.clone()).unwrap();
    let bytes = fs::read(store.path("ses_1")).unwrap();
    let beside = directory.path().join("floor");
    fs::create_dir(&beside).unwrap();
    let path = beside.join("ses_1.json");
    fs::write(&path, &bytes).unwrap();

    let (mut write, mut bare, mut update) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        write.push(timed(|| replace(&path, &bytes, durability)));
        bare.push(timed(|| {
            let mut session: Session = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            session.touch(2000);
            replace(&path, &serde_json::to_vec(&session).unwrap(), durability);
        }));
        update.push(timed(|| {
            let updated = store.update("ses_1", |slot| slot.as_mut().unwrap().touch(2000));
            updated.unwrap();
        }));
    }
    println!("{durability:?}, {size} session of {} bytes", bytes.len());
    let update = Times::of(update);
    println!(
        "  update: {:.0?} best, {:.0?} median",
        update.best, update.median
    );
    for (name, floor) in [("write", Times::of(write)), ("bare", Times::of(bare))] {
        println!(
            "  {name}: {:.0?} best, {:.0?} median; ratio {:.2} best, {:.2} median",
            floor.best,
            floor.median,
            update.best.as_secs_f64() / floor.best.as_secs_f64(),
            update.median.as_secs_f64() / floor.median.as_secs_f64(),
        );
    }
}

/// A temporary file and a rename.
fn replace(path: &Path, bytes: &[u8], durability: Durability) {
    let temporary = path.with_extension("tmp");
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary)
        .unwrap();
    file.write_all(bytes).unwrap();
    if durability == Durability::Power {
        file.sync_all().unwrap();
    }
    drop(file);
    fs::rename(&temporary, path).unwrap();
    if durability == Durability::Power {
        File::open(path.parent().unwrap())
            .unwrap()
            .sync_all()
            .unwrap();
    }
}

/// A session after so many calls.
fn session(calls: u32) -> Session {
    let mut session = Session::new("ses_1", "opencode", "5f2c6a", 0);
    for number in 0..calls {
        session.tool_call(ToolCall {
            tool: "read".to_owned(),
            fingerprint: format!("{number:012x}"),
            at: 1000,
            outcome: Outcome::Ok,
        });
    }
    let ring =
        (0..calls.min(48)).map(|number| (format!("{number:064x}"), format!("{number:032x}")));
    session.detector = Some(Snapshot {
        ring: ring.collect(),
    });
    session
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

struct Times {
    best: Duration,
    median: Duration,
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        let at = |index: usize| times.get(index).copied().unwrap_or_default();
        Self {
            best: at(0),
            median: at(times.len() / 2),
        }
    }
}
