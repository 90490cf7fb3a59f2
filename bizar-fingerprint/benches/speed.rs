//! How long canonical bytes and fingerprints take, beside serde_json and the usual peers in the same run.
//!
//! Prints the best and the median of many samples, and their ratio. Fails if a promise of the README is broken:
//! ratios of best times hold on a busy machine too.

#![expect(clippy::print_stdout, reason = "a bench prints")]
#![expect(clippy::unwrap_used, reason = "inputs are our own")]
#![expect(clippy::indexing_slicing, reason = "inputs are our own")]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bizar_fingerprint::{Canonicaliser, Fingerprinter, canonical_from_value};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const SAMPLES: usize = 61;

fn main() -> ExitCode {
    let mut broken = 0;
    let mut promise = |what: &str, ratio: f64, holds: bool| {
        println!(
            "  {} {what}: {ratio:.2}",
            if holds { "ok    " } else { "BROKEN" }
        );
        broken += u32::from(!holds);
    };

    for (name, value, at_most) in [
        ("100 B", small(), Some(1.5)),
        ("4 KB of strings", strings(), Some(1.5)),
        ("4 KB of structure", structure(30), Some(1.5)),
        ("1 MB string", json!({"content": text(1 << 20)}), Some(0.8)),
        ("1 MB of structure", structure(7_000), None),
    ] {
        println!(
            "canonical bytes of a value, {name} ({} bytes)",
            serde_json::to_vec(&value).unwrap().len()
        );
        let mut canonicaliser = Canonicaliser::default();
        let times = race([
            ("serde_json::to_vec (floor)", &mut || {
                drop(black_box(serde_json::to_vec(black_box(&value))))
            }),
            ("canonical_from_value", &mut || {
                drop(black_box(canonical_from_value(black_box(&value))))
            }),
            ("Canonicaliser::from_value", &mut || {
                drop(black_box(canonicaliser.from_value(black_box(&value))))
            }),
            ("serde_json_canonicalizer", &mut || {
                drop(black_box(serde_json_canonicalizer::to_vec(black_box(
                    &value,
                ))));
            }),
        ]);
        let ratio = times[2] / times[0];
        if let Some(at_most) = at_most {
            promise(
                &format!("at most {at_most} x serde_json::to_vec"),
                ratio,
                ratio <= at_most,
            );
        }
    }

    for (name, value, at_least) in [
        ("100 B", small(), 6.0),
        ("4 KB of structure", structure(30), 8.0),
        ("1 MB string", json!({"content": text(1 << 20)}), 2.3),
    ] {
        println!("whole fingerprint, {name}");
        let json = serde_json::to_string(&value).unwrap();
        let call = json!({"args": value, "tool": "bash"});
        let (mut a, mut b, mut c) = (
            Fingerprinter::new(),
            Fingerprinter::new(),
            Fingerprinter::new(),
        );
        let times = race([
            ("serde_json_canonicalizer + sha2 + hex", &mut || {
                let canonical = serde_json_canonicalizer::to_vec(black_box(&call)).unwrap();
                drop(black_box(hex::encode(Sha256::digest(canonical))));
            }),
            ("of_value", &mut || {
                drop(black_box(a.of_value("bash", black_box(&value))))
            }),
            ("parse to a Value, then of_value", &mut || {
                let value: Value = serde_json::from_str(black_box(&json)).unwrap();
                drop(black_box(b.of_value("bash", &value)));
            }),
            ("of_text", &mut || {
                drop(black_box(c.of_text("bash", black_box(&json))))
            }),
        ]);
        let ratio = times[0] / times[1];
        promise(
            &format!("at least {at_least} x faster than the peer"),
            ratio,
            ratio >= at_least,
        );
        let ratio = times[2] / times[3];
        promise(
            "from text at least as fast as by way of a Value",
            ratio,
            ratio > 1.0,
        );
    }
    if broken > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Runs the candidates in turn, prints their times, and returns the best of each in nanoseconds.
fn race<const N: usize>(mut candidates: [(&str, &mut dyn FnMut()); N]) -> [f64; N] {
    // As many calls a sample as take about half a millisecond, so that each is measured as warm as the others.
    let calls = candidates.each_mut().map(|(_, call)| {
        call();
        let start = Instant::now();
        call();
        (Duration::from_micros(500).as_nanos() / start.elapsed().as_nanos().max(1)).clamp(1, 2_000)
    });
    let mut samples: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for _ in 0..SAMPLES {
        for ((times, (_, call)), &calls) in samples.iter_mut().zip(&mut candidates).zip(&calls) {
            let start = Instant::now();
            for _ in 0..calls {
                call();
            }
            times.push(start.elapsed().as_secs_f64() * 1e9 / calls as f64);
        }
    }
    for times in &mut samples {
        times.sort_by(f64::total_cmp);
    }
    let best = samples.each_ref().map(|times| times[0]);
    for (times, (name, _)) in samples.iter().zip(&candidates) {
        let median = times[SAMPLES / 2];
        println!(
            "  {name:<40} best {:>12.0} ns  median {median:>12.0} ns  ratio {:.2}",
            times[0],
            times[0] / best[0]
        );
    }
    best
}

fn small() -> Value {
    json!({"command": "cargo test -p parser -- --nocapture", "timeout": 120_000, "workdir": "crates/parser", "tty": false})
}

fn strings() -> Value {
    let edit = |n: usize| json!({"new": text(400 + n), "old": text(420 - n)});
    json!({"edits": [edit(1), edit(2), edit(3), edit(4)], "path": "src/main.rs", "note": text(600)})
}

fn structure(rows: usize) -> Value {
    let row = |n: usize| json!({"id": n, "name": format!("row {n}"), "size": n * 1000, "score": n as f64 / 7.0, "on": n.is_multiple_of(2), "tags": ["a", "b"], "next": null, "at": {"x": n, "y": 2 * n}});
    Value::Array((0..rows).map(row).collect())
}

/// Source text, with its quotes and line ends.
fn text(length: usize) -> String {
    "    let value = parse(\"input\", 42)?; // the first of many\n"
        .chars()
        .cycle()
        .take(length)
        .collect()
}
