//! What one call costs in `progress`, beside a plain scan of as many keys.
//!
//! `cargo bench -p bizar-window`
#![expect(
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench prints, and its indices are its own"
)]

use std::{collections::VecDeque, hint::black_box, time::Instant};

use bizar_window::{Call, Mode, Outcome, Rules, Session};

const CALLS: usize = 4096;
const PASSES: usize = 300;

/// A key and a digest for each call.
type Made = ([u8; 32], [u8; 16]);

fn main() {
    println!(
        "ns a call, best and median of {PASSES} passes over {CALLS} calls; median of the ratios"
    );
    report("every call new", |i| (i, i));
    report("24 calls in turn, new answers", |i| (i % 24, i));
    report("one call, answer changes each 4th time", |i| (0, i / 4));
    report("4 calls edited and tested in turn", |i| {
        if i % 2 == 0 { (i, 0) } else { (1, i / 8) }
    });
    report("one call, one answer (refused from the 12th)", |_| (0, 0));
}

fn report(name: &str, shape: impl Fn(usize) -> (usize, usize)) {
    let calls: Vec<Made> = (0..CALLS)
        .map(shape)
        .map(|(key, answer)| (bytes(key), bytes(answer)))
        .collect();
    // In turns, so that whatever slows the machine down slows both.
    let mut passes: Vec<(f64, f64)> = (0..PASSES)
        .map(|_| (measure(|| pairs(&calls)), measure(|| rescan(&calls))))
        .collect();
    let mut ratios: Vec<f64> = passes.iter().map(|(pair, scan)| pair / scan).collect();
    ratios.sort_by(f64::total_cmp);
    passes.sort_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)));
    let ((best, best_scan), (median, median_scan)) = (passes[0], passes[PASSES / 2]);
    println!(
        "{name:45} before + after {best:5.1} {median:5.1}   rescan of 48 {best_scan:5.1} {median_scan:5.1}   ratio {:.2}",
        ratios[PASSES / 2],
    );
}

/// One `before` and one `after` for each call.
fn pairs(calls: &[Made]) -> u64 {
    let mut session: Session<[u8; 32], [u8; 16]> = Session::new(Rules::new(Mode::Progress));
    let mut total = 0;
    for (key, answer) in calls {
        let judgement = session.before(&Call::new(*key, 7));
        total += u64::from(judgement.count);
        session.after(judgement.handle, Outcome::ok(*answer));
    }
    total
}

/// The least a detector without tags does: count the equal ones among the last 48 keys.
fn rescan(calls: &[Made]) -> u64 {
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

fn measure(pass: impl FnOnce() -> u64) -> f64 {
    let start = Instant::now();
    black_box(pass());
    start.elapsed().as_nanos() as f64 / CALLS as f64
}

/// Mixed bytes, as a hash would give them.
fn bytes<const N: usize>(n: usize) -> [u8; N] {
    let mut bytes = [0; N];
    let mut word = n as u64;
    for chunk in bytes.chunks_exact_mut(8) {
        word = (word ^ (word >> 31))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(0x2545_f491_4f6c_dd1d);
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
