//! Behaviour of `bizar-replay`, a file for each guarantee.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a helper of a test may panic and print as the test may"
)]

#[cfg(unix)]
mod browser;
mod bundled;
mod compare;
mod contract;
mod fingerprint;
mod formats;
mod hostile;
mod other_rules;
#[cfg(unix)]
mod report;
mod text;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What a run of the program gave.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The verdict lines, as (session, call, verdict, rule, count).
    fn verdicts(&self) -> Vec<(String, u64, String, String, u64)> {
        let lines = self.lines();
        let verdicts = lines.iter().filter(|line| line.get("summary").is_none());
        verdicts
            .map(|line| {
                let text = |name: &str| line[name].as_str().unwrap().to_owned();
                (
                    text("session"),
                    line["i"].as_u64().unwrap(),
                    text("verdict"),
                    text("rule"),
                    line["count"].as_u64().unwrap(),
                )
            })
            .collect()
    }

    fn summary(&self) -> serde_json::Value {
        self.lines().last().unwrap()["summary"].clone()
    }

    fn lines(&self) -> Vec<serde_json::Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bizar-replay"));
    command.stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Ran {
    Ran::of(&program().args(args).output().unwrap())
}

fn run_on(input: impl AsRef<[u8]>, args: &[&str]) -> Ran {
    let mut child = program()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.as_ref().to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ran::of(&output)
}

/// Call lines on standard input, verdicts as JSON Lines.
fn judge(input: impl AsRef<[u8]>, args: &[&str]) -> Ran {
    run_on(input, &[&["--format", "jsonl", "-"], args].concat())
}

/// The same call so many times.
fn same(times: usize) -> String {
    r#"{"session":"s","tool":"ls","args":{"p":1},"result":"a","ok":true}"#
        .to_owned()
        .repeat_line(times)
}

trait RepeatLine {
    fn repeat_line(self, times: usize) -> String;
}

impl RepeatLine for String {
    fn repeat_line(self, times: usize) -> String {
        (self + "\n").repeat(times)
    }
}

fn text_of(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
