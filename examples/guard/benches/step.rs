//! What a guarded call costs beside its parts: `cargo bench -p bizar-guard`.
//!
//! A resident guard is compared with the bare fingerprint, digest and detector, a guard that lives
//! for one call with two bare updates of a store. The rounds take turns, so that what else the
//! machine does falls on all alike.
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

fn main() {
    let home = tempfile::tempdir().unwrap();
    let args: Vec<String> = (0..64)
        .map(|i| json!({"path": format!("src/file-{i}.rs"), "limit": 2000}).to_string())
        .collect();
    let result = "a line of some result\n".repeat(100);
    let setup = || {
        let resolved = resolve(Sources {
            home: Some(home.path()),
            ..Sources::default()
        });
        Setup::new("bench", resolved).directory("/srv/project")
    };
    let pair = |guard: &Guard, session: &str, i: usize| {
        let args = args[i % 64].as_str();
        let _ = black_box(guard.before(&Call::new(session, "read", args)));
        guard.after(&End::new(session, "read", args, Ended::ok(result.as_str())));
    };

    let mut fingerprinter = Fingerprinter::new().worktree("/srv/project");
    let mut session: Session<[u8; 32], [u8; 16]> = Session::new(Rules::default());
    let memory = Guard::new(Setup::in_memory("bench").directory("/srv/project"));
    let resident = Guard::new(setup());
    let store =
        FileStore::<State>::new(home.path().join(".cache/bizarharness"), Durability::Process);
    store.save(State::new("bare", "bench", "", 0)).unwrap();
    (0..64).for_each(|i| pair(&Guard::new(setup().form(Form::ONE_CALL)), "bare", i));

    let mut works = [
        Work::new("the parts in memory", 640, |i| {
            let fingerprint = fingerprinter.of_text("read", &args[i % 64]).unwrap();
            let judgement = session.before(&bizar_window::Call::new(*fingerprint.as_bytes(), 1));
            let digest = fingerprinter.digest_text(Some(true), &result);
            session.after(judgement.handle, Outcome::ok(*digest.as_bytes()));
        }),
        Work::new("resident, nothing on disk", 640, |i| pair(&memory, "s", i)),
        Work::new("resident, log and state", 640, |i| pair(&resident, "s", i)),
        Work::new("two updates of the store", 32, |_| {
            for _ in 0..2 {
                store
                    .update("bare", |state| black_box(state).as_mut().unwrap().touch(0))
                    .unwrap();
            }
        }),
        Work::new("a guard for one call", 32, |i| {
            pair(&Guard::new(setup().form(Form::ONE_CALL)), "bare", i)
        }),
    ];
    for _ in 0..ROUNDS {
        works.iter_mut().for_each(Work::round);
    }
    println!("before and after of one call           best       median   ratio");
    works[0].show(works[0].best());
    works[1].show(works[0].best());
    works[2].show(works[0].best());
    works[3].show(works[3].best());
    works[4].show(works[3].best());
}

struct Work<'a> {
    name: &'static str,
    runs: u32,
    work: Box<dyn FnMut(usize) + 'a>,
    times: Vec<Duration>,
}

impl<'a> Work<'a> {
    fn new(name: &'static str, runs: u32, work: impl FnMut(usize) + 'a) -> Self {
        Self {
            name,
            runs,
            work: Box::new(work),
            times: Vec::new(),
        }
    }

    fn round(&mut self) {
        let start = Instant::now();
        for i in 0..self.runs {
            (self.work)(i as usize);
        }
        self.times.push(start.elapsed() / self.runs);
        self.times.sort_unstable();
    }

    fn best(&self) -> f64 {
        self.times[0].as_secs_f64()
    }

    fn show(&self, floor: f64) {
        let median = self.times[self.times.len() / 2].as_secs_f64();
        let best = self.best();
        println!(
            "{:30} {:>9.1} us {:>9.1} us {:>6.2}",
            self.name,
            best * 1e6,
            median * 1e6,
            best / floor
        );
    }
}

const ROUNDS: usize = 41;
