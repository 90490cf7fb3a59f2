//! The cost of an update beside its floor: the same bytes written to a temporary file and renamed,
//! with and without syncs, by nothing but `std`.
//!
//! `cargo bench -p bizar-state` measures on the disk of the target folder; another directory may be
//! given as argument. Floor and store take turns, one write each, so that a neighbour's load falls
//! on both.

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
use serde_json::{Value, json};

type Sessions = FileStore<SessionState<Value>>;

fn main() {
    let place = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let place = place.map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    for (size, session) in [("new", session(0)), ("full", session(200))] {
        for (durability, rounds) in [(Durability::Process, 3000), (Durability::Power, 300)] {
            measure(&place, size, &session, durability, rounds);
        }
    }
}

fn measure(
    place: &Path,
    size: &str,
    session: &SessionState<Value>,
    durability: Durability,
    rounds: usize,
) {
    let directory = tempfile::tempdir_in(place).unwrap();
    let store = Sessions::new(directory.path().join("store"), durability);
    store.save(session.clone()).unwrap();
    let bytes = fs::read(store.path("ses_1")).unwrap();
    let beside = directory.path().join("floor");
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("ses_1.json"), &bytes).unwrap();

    let mut floor = Vec::new();
    let mut update = Vec::new();
    for round in 0..rounds {
        floor.push(timed(|| plain(&beside, round, &bytes, durability)));
        update.push(timed(|| {
            let updated = store.update("ses_1", |slot| slot.as_mut().unwrap().touch(2000));
            updated.unwrap();
        }));
    }
    let (floor_best, floor_median) = best_and_median(floor);
    let (best, median) = best_and_median(update);
    println!(
        "{durability:?} {size} ({} bytes): update best {best:.0?} median {median:.0?}, \
         floor best {floor_best:.0?} median {floor_median:.0?}, \
         ratio best {:.2} median {:.2}",
        bytes.len(),
        best.as_secs_f64() / floor_best.as_secs_f64(),
        median.as_secs_f64() / floor_median.as_secs_f64(),
    );
}

/// A temporary file and a rename.
fn plain(directory: &Path, round: usize, bytes: &[u8], durability: Durability) {
    let temporary = directory.join(format!(".{round}.tmp"));
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
    fs::rename(&temporary, directory.join("ses_1.json")).unwrap();
    if durability == Durability::Power {
        File::open(directory).unwrap().sync_all().unwrap();
    }
}

/// A session after so many calls, with a snapshot as large as the detector's.
fn session(calls: u32) -> SessionState<Value> {
    let mut session = SessionState::new("ses_1", "opencode", "5f2c6a", 0);
    for number in 0..calls {
        session.tool_call(ToolCall {
            tool: "read".to_owned(),
            fingerprint: format!("{number:012x}"),
            at: 1000,
            outcome: Outcome::Ok,
        });
    }
    let ring: Vec<_> = (0..calls.min(48))
        .map(|number| json!([format!("{number:064x}"), "ab"]))
        .collect();
    session.detector = Some(json!({ "ring": ring }));
    session
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn best_and_median(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    (at(0), at(times.len() / 2))
}
