//! What one call costs in `progress`, beside a plain scan of as many keys.
//!
//! `cargo bench -p bizar-window`

use std::{collections::VecDeque, hint::black_box, time::Instant};

use bizar_window::{Call, Mode, Outcome, Rules, Session};

const CALLS: usize = 4096;
const ROUNDS: usize = 200;

fn main() {
    println!("ns for one call, best and median of {ROUNDS} passes over {CALLS} calls");
    let shapes: [(&str, fn(usize) -> (usize, usize)); 4] = [
        ("every call new", |i| (i, i)),
        ("one call, one answer, user speaks every 8", |_| (0, 0)),
        ("60 calls in turn, answers change", |i| (i % 60, i)),
        ("40 calls in turn, answers change", |i| (i % 40, i)),
    ];
    for (name, shape) in shapes {
        let calls: Vec<([u8; 32], [u8; 16])> = (0..CALLS)
            .map(shape)
            .map(|(key, answer)| (key_of(key), digest_of(answer)))
            .collect();
        let floor = measure(|| rescan(&calls));
        let ours = measure(|| pairs(&calls));
        println!(
            "{name:42} pair {:5.1} {:5.1}   rescan of 48 {:5.1} {:5.1}   ratio {:.2} (best), {:.2} (median)",
            ours.0,
            ours.1,
            floor.0,
            floor.1,
            ours.0 / floor.0,
            ours.1 / floor.1
        );
    }
}

/// One `before` and one `after` for each call.
fn pairs(calls: &[([u8; 32], [u8; 16])]) -> u64 {
    let mut session: Session<[u8; 32], [u8; 16]> = Session::new(Rules::new(Mode::Progress));
    let mut total = 0;
    for (i, (key, answer)) in calls.iter().enumerate() {
        if i % 8 == 0 && key[..8] == [0; 8] {
            session.user_message();
        }
        let judgement = session.before(&Call::new(*key, 7));
        total += u64::from(judgement.count);
        session.after(judgement.handle, Outcome::ok(*answer));
    }
    total
}

/// The least a detector without tags does: count the equal ones among the last 48 keys.
fn rescan(calls: &[([u8; 32], [u8; 16])]) -> u64 {
    let mut window: VecDeque<[u8; 32]> = VecDeque::with_capacity(48);
    let mut total = 0;
    for (key, _) in calls {
        if window.len() == 48 {
            window.pop_front();
        }
        window.push_back(*key);
        total += window.iter().filter(|other| *other == key).count() as u64;
    }
    total
}

fn measure(mut pass: impl FnMut() -> u64) -> (f64, f64) {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            black_box(pass());
            start.elapsed().as_nanos() as f64 / CALLS as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[0], times[ROUNDS / 2])
}

fn key_of(n: usize) -> [u8; 32] {
    let mut key = [0; 32];
    let mut word = n as u64;
    for chunk in key.chunks_exact_mut(8) {
        chunk.copy_from_slice(&word.to_le_bytes());
        word = (word + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    // A hash has no small numbers in front; only key 0 keeps its zeros, as a mark.
    if n > 0 {
        key[..8].copy_from_slice(&word.to_le_bytes());
    }
    key
}

fn digest_of(n: usize) -> [u8; 16] {
    let mut digest = [0; 16];
    digest[..8].copy_from_slice(&(n as u64).to_le_bytes());
    digest
}
