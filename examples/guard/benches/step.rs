//! What a guarded call costs beside its parts: `cargo bench -p bizar-guard`.
//!
//! A resident guard is compared with the bare fingerprint, digest and detector, a guard that lives
//! for one call with two bare updates of a store.
#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench"
)]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use bizar_fingerprint::Fingerprinter;
use bizar_guard::{
    Call, End, Ended, FileStore, Form, Guard, Setup, Sources, State, Store, resolve,
};
use bizar_state::Durability;
use bizar_window::{Outcome, Rules, Session};
use serde_json::json;

const ROUNDS: usize = 41;

fn main() {
    let home = tempfile::tempdir().unwrap();
    let args: Vec<String> = (0..64)
        .map(|i| json!({"path": format!("src/file-{i}.rs"), "limit": 2000}).to_string())
        .collect();
    let result = "a line of some result\n".repeat(100);

    let mut fingerprinter = Fingerprinter::new().worktree("/srv/project");
    let mut session: Session<[u8; 32], [u8; 16]> = Session::new(Rules::default());
    let parts = measure(640, |i| {
        let fingerprint = fingerprinter.of_text("read", &args[i % 64]).unwrap();
        let judgement = session.before(&bizar_window::Call::new(*fingerprint.as_bytes(), 1));
        let digest = fingerprinter.digest_text(Some(true), &result);
        session.after(judgement.handle, Outcome::ok(*digest.as_bytes()));
    });
    let resolved = || {
        resolve(Sources {
            home: Some(home.path()),
            ..Sources::default()
        })
    };
    let pair = |guard: &Guard, i: usize| {
        let args = args[i % 64].as_str();
        let _ = black_box(guard.before(&Call::new("s", "read", args)));
        guard.after(&End::new("s", "read", args, Ended::ok(result.as_str())));
    };
    let memory = Guard::new(Setup::in_memory("bench").directory("/srv/project"));
    let in_memory = measure(640, |i| pair(&memory, i));
    let resident = Guard::new(Setup::new("bench", resolved()).directory("/srv/project"));
    let on_disk = measure(640, |i| pair(&resident, i));
    resident.flush();

    let store =
        FileStore::<State>::new(home.path().join(".cache/bizarharness"), Durability::Process);
    let updates = measure(32, |_| {
        for _ in 0..2 {
            store
                .update("s", |state| black_box(state).as_mut().unwrap().touch(0))
                .unwrap();
        }
    });
    let per_call = measure(32, |i| {
        pair(
            &Guard::new(
                Setup::new("bench", resolved())
                    .directory("/srv/project")
                    .form(Form::ONE_CALL),
            ),
            i,
        )
    });

    println!("one call, before and after it        best       median");
    show("the parts in memory", parts, parts);
    show("resident, nothing on disk", in_memory, parts);
    show("resident, log and state on disk", on_disk, parts);
    show("two updates of the store", updates, updates);
    show("a guard for one call", per_call, updates);
}

type Times = (Duration, Duration);

/// Best and median time of one run of `work`, over `ROUNDS` rounds of `runs`.
fn measure(runs: usize, mut work: impl FnMut(usize)) -> Times {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..runs).for_each(&mut work);
            start.elapsed() / u32::try_from(runs).unwrap()
        })
        .collect();
    times.sort_unstable();
    (*times.first().unwrap(), *times.get(ROUNDS / 2).unwrap())
}

fn show(name: &str, (best, median): Times, floor: Times) {
    let ratio = best.as_secs_f64() / floor.0.as_secs_f64();
    println!(
        "{name:32} {:>9.1} us {:>9.1} us   {ratio:>6.2} x",
        best.as_secs_f64() * 1e6,
        median.as_secs_f64() * 1e6
    );
}
