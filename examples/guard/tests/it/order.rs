//! Threads and processes on one session: the verdicts are those of the true order of calls.

use std::{cell::Cell, path::Path, sync::Mutex, thread, time::Duration};

use bizar_guard::{Decision, FileStore, Form, Guard, State, Store, Verdict};
use bizar_state::{Durability, Error, Listing, Loaded, SweepReport, Updated};
use serde_json::{Value, json};

use crate::rig::{Rig, child, make, repeat, said, setup};

/// Every call counts one more than the one before it, so the counts tell the order.
fn counting() -> Value {
    json!({"loopMode": "repetition", "loopHaltAfterBlocks": 0})
}

fn verdict_of(count: u32) -> Verdict {
    match count {
        0..3 => Verdict::Allow,
        3..5 => Verdict::Notice,
        5..8 => Verdict::Warn,
        8..12 => Verdict::Escalate,
        _ => Verdict::Block,
    }
}

fn assert_counts(all: &[Vec<u32>], total: u32) {
    for one in all {
        assert!(
            one.is_sorted_by(|a, b| a < b),
            "a caller's own calls are in its order"
        );
    }
    let mut counts: Vec<u32> = all.concat();
    counts.sort_unstable();
    assert!(
        counts.into_iter().eq(1..=total),
        "each call has a place of its own"
    );
}

#[test]
fn threads_on_a_resident_guard() {
    let rig = Rig::new();
    let guard = rig.resident(counting());
    let all = in_threads(|_| repeat(&guard, "s", 50));
    let counts: Vec<Vec<u32>> = all
        .iter()
        .map(|one| one.iter().map(|decision| decision.count).collect())
        .collect();
    assert_counts(&counts, 400);
    for decision in all.concat() {
        assert_eq!(decision.verdict, verdict_of(decision.count));
        assert_eq!(decision.refused, decision.count >= 12);
    }
    assert_eq!(guard.skipped(), 0);
}

#[test]
fn threads_with_a_guard_each_on_one_directory() {
    let rig = Rig::new();
    let form = Form::PerCall(Duration::from_secs(60));
    let all = in_threads(|_| repeat(&Guard::new(rig.setup(form, &counting(), &[])), "s", 25));
    let counts: Vec<Vec<u32>> = all
        .iter()
        .map(|one| one.iter().map(|decision| decision.count).collect())
        .collect();
    assert_counts(&counts, 200);
}

#[test]
fn processes_on_one_directory() {
    let rig = Rig::new();
    let children: Vec<_> = (0..8)
        .map(|_| child(&[], "repeat", rig.home()).spawn().unwrap())
        .collect();
    let counts: Vec<Vec<u32>> = children
        .into_iter()
        .map(|child| {
            said(&child.wait_with_output().unwrap().stdout)
                .iter()
                .map(|count| count.parse().unwrap())
                .collect()
        })
        .collect();
    assert_counts(&counts, 160);
    let state = rig.state("s").unwrap();
    assert_eq!(state.blocks_triggered, 160 - 11);
    assert_eq!(rig.log("s").lines().count(), 160);
}

/// The role of a child: 20 calls, each judged and ended by a guard of its own.
pub(crate) fn repeat_in_a_process(home: &Path) {
    for _ in 0..20 {
        let guard = Guard::new(setup(
            home,
            Form::PerCall(Duration::from_secs(60)),
            &counting(),
            &[],
        ));
        println!("say {}", repeat(&guard, "s", 1)[0].count);
    }
}

/// Different calls, and results that count: the store writes down in which order it was
/// asked, and one thread that repeats that order alone gets the same verdicts.
#[test]
fn one_thread_in_the_order_of_the_steps_gets_the_same_verdicts() {
    let rig = Rig::new();
    let order = Mutex::new(Vec::new());
    let per_thread = in_threads(|thread| {
        (0..40)
            .map(|step| {
                let store = Witness {
                    inner: FileStore::new(rig.state_dir(), Durability::Process),
                    order: &order,
                };
                let guard = Guard::with_store(
                    rig.setup(Form::PerCall(Duration::from_secs(60)), &json!({}), &[]),
                    store,
                );
                STEP.set((thread, step, 0));
                make_step(&guard, thread, step)
            })
            .collect::<Vec<_>>()
    });
    let order = order.into_inner().unwrap();

    let alone = Guard::new(bizar_guard::Setup::in_memory("test").directory("/srv/project"));
    let mut verdicts = 0;
    for (thread, step, half) in order {
        let (tool, args, result) = call(thread, step);
        let call = bizar_guard::Call::new("s", tool, &args);
        let expected = &per_thread[thread][step];
        if half == 0 {
            let decision = alone.before(&call);
            assert_eq!(
                (&decision.verdict, decision.count, decision.rule),
                (&expected.verdict, expected.count, expected.rule)
            );
            verdicts += usize::from(decision.verdict > Verdict::Allow);
        } else {
            alone.after(&bizar_guard::End::new(
                "s",
                tool,
                &args,
                bizar_guard::Ended::ok(result),
            ));
        }
    }
    assert!(verdicts > 20, "the scenario has loops in it: {verdicts}");
}

fn make_step<S: Store<State>>(guard: &Guard<S>, thread: usize, step: usize) -> Decision {
    let (tool, args, result) = call(thread, step);
    make(guard, "s", tool, &args, result)
}

/// Few calls, so that the threads make the same ones; now and then another answer.
fn call(thread: usize, step: usize) -> (&'static str, Value, &'static str) {
    let tool = if step.is_multiple_of(3) {
        "read"
    } else {
        "grep"
    };
    (
        tool,
        json!({"n": step % 4}),
        if (thread + step).is_multiple_of(29) {
            "news"
        } else {
            "the same"
        },
    )
}

thread_local! {
    /// Thread, step, and how often the store was asked in this step.
    static STEP: Cell<(usize, usize, usize)> = const { Cell::new((0, 0, 0)) };
}

/// A store that writes down who was served when.
struct Witness<'a> {
    inner: FileStore<State>,
    order: &'a Mutex<Vec<(usize, usize, usize)>>,
}

impl Store<State> for Witness<'_> {
    type Error = Error;

    fn update_within<R>(
        &self,
        id: &str,
        wait: Duration,
        change: impl FnOnce(&mut Option<State>) -> R,
    ) -> Result<Updated<R>, Error> {
        self.inner.update_within(id, wait, |slot| {
            let (thread, step, half) = STEP.get();
            self.order.lock().unwrap().push((thread, step, half));
            STEP.set((thread, step, half + 1));
            change(slot)
        })
    }

    fn load(&self, id: &str) -> Result<Loaded<State>, Error> {
        self.inner.load(id)
    }

    fn list(&self) -> Result<Listing<State>, Error> {
        self.inner.list()
    }

    fn remove(&self, id: &str) -> Result<bool, Error> {
        self.inner.remove(id)
    }

    fn sweep(&self, stale: impl FnMut(&State) -> bool) -> Result<SweepReport<Error>, Error> {
        self.inner.sweep(stale)
    }
}

fn in_threads<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|i| {
                let work = &work;
                scope.spawn(move || work(i))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}
