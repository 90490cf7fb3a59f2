//! Several writers, and writers that die.

use std::hint;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bizar_state::{Error, Store};

use crate::child::{plain, said};
use crate::counter::{Counter, add_one, files, store};

#[test]
fn eight_processes_count_to_8000() {
    let directory = tempfile::tempdir().unwrap();
    let children: Vec<Child> = (0..8)
        .map(|_| plain("count", directory.path()).spawn().unwrap())
        .collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let counter = store(directory.path()).load("c").unwrap().document.unwrap();
    assert_eq!(counter.count, 8000);
}

#[test]
fn eight_threads_count_to_2000() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..250 {
                    add_one(&store, "c").unwrap();
                }
            });
        }
    });
    assert_eq!(store.load("c").unwrap().document.unwrap().count, 2000);
}

#[test]
fn kill_9_tears_nothing_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let mut killed_between = 0;
    let mut count = 0;
    for round in 0..200 {
        let role = if round % 4 == 0 {
            "count synced for ever"
        } else {
            "count for ever"
        };
        let mut child = plain(role, directory.path()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = Vec::new();
        for _ in 0..3 + round % 7 {
            output.read_until(b'\n', &mut lines).unwrap();
        }
        // An update takes some 50 to 500 us: a different moment of it in each round.
        let moment = Instant::now() + Duration::from_micros(round * 37 % 400);
        while Instant::now() < moment {
            hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        while output.read_until(b'\n', &mut lines).unwrap() > 0 {}
        // A line that was cut off is no acknowledgement.
        let whole = lines.iter().rposition(|&byte| byte == b'\n').unwrap();
        let acknowledged = said(&lines[..whole]);
        let last: u64 = acknowledged
            .last()
            .map_or(count, |last| last.parse().unwrap());

        let seen = store.peek("c").unwrap();
        assert_eq!(seen.unusable, None, "round {round}: torn");
        count = seen.document.map_or(0, |counter| counter.count);
        assert!(
            count == last || count == last + 1,
            "round {round}: {last} -> {count}"
        );
        killed_between += u64::from(count > last);
    }
    assert!(count > 200, "{count}");

    let left = files(directory.path()).len() - 1;
    let report = store.sweep(|_| false).unwrap();
    assert!(report.errors.is_empty(), "{report:?}");
    assert_eq!((report.temporaries, report.kept), (left, 1));
    assert_eq!(files(directory.path()).len(), 1);
    println!("{count} updates, {left} temporaries, {killed_between} kills after the rename");
}

#[test]
fn readers_see_whole_documents() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    store.save(Counter::new("c", 0)).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for count in 1..=1000_u64 {
                let padding = "x".repeat(usize::try_from(count * 7919 % 50_000).unwrap());
                let id = "c".to_owned();
                store.save(Counter { id, count, padding }).unwrap();
            }
        });
        let mut last = 0;
        while !writer.is_finished() {
            let counter = store.peek("c").unwrap().document.unwrap();
            assert_eq!(counter.padding.len() as u64, counter.count * 7919 % 50_000);
            assert!(counter.count >= last);
            last = counter.count;
        }
    });
}

#[test]
fn a_wait_ends_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = &store(directory.path());
    let (entered, has_entered) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel::<()>();
    // The sender moves in, so that a failure here ends the writer too.
    thread::scope(move |scope| {
        let writer = scope.spawn(move || {
            store.update("c", |slot| {
                *slot = Some(Counter::new("c", 1));
                entered.send(()).unwrap();
                may_leave.recv().unwrap();
            })
        });
        has_entered.recv().unwrap();
        for wait in [Duration::ZERO, Duration::from_millis(50)] {
            let start = Instant::now();
            let error = store.update_within("c", wait, |_| ()).unwrap_err();
            let waited = start.elapsed();
            assert!(
                matches!(error, Error::Busy { waited } if waited == wait),
                "{error:?}"
            );
            assert!(waited >= wait, "{waited:?}");
            assert!(waited < wait + Duration::from_secs(5), "{waited:?}");
        }
        leave.send(()).unwrap();
        writer.join().unwrap().unwrap();
        let long = Duration::from_secs(60);
        let count = |slot: &mut Option<Counter>| slot.as_ref().map(|counter| counter.count);
        assert_eq!(
            store.update_within("c", long, count).unwrap().value,
            Some(1)
        );
    });
}

#[test]
fn a_reader_does_not_wait_for_the_lock_of_a_corrupt_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = &store(directory.path());
    let reading = store.update("c", |slot| {
        std::fs::write(store.path("c"), "torn").unwrap();
        let start = Instant::now();
        let error = store.load("c").unwrap_err();
        assert!(matches!(error, Error::Busy { .. }), "{error:?}");
        assert!(start.elapsed() < Duration::from_secs(5));
        *slot = None;
    });
    reading.unwrap();
    // What could not be moved aside then is moved aside now.
    assert!(store.load("c").unwrap().unusable.is_some());
}

#[test]
fn a_change_that_panics_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = &store(directory.path());
    add_one(store, "c").unwrap();
    let before = files(directory.path());
    let panic = thread::scope(|scope| {
        let change = |slot: &mut Option<Counter>| {
            *slot = None;
            std::panic::resume_unwind(Box::new("stop"))
        };
        scope.spawn(move || store.update::<()>("c", change)).join()
    });
    assert!(panic.is_err());
    assert_eq!(files(directory.path()), before);
    assert_eq!(add_one(store, "c").unwrap(), 2);
}
