//! A whole hook process, from start to end, beside the same hook in Python and Node, and a Rust
//! program that only reads standard input.
//!
//! `cargo bench -p bizar-hook`
#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench"
)]

use std::{
    env,
    ffi::OsStr,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

fn main() {
    if env::args().nth(1).as_deref() == Some("floor") {
        let mut input = Vec::new();
        std::io::stdin().read_to_end(&mut input).unwrap();
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let floor = env::current_exe().unwrap();
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers");
    let mut runners = vec![
        Runner::new("reads stdin and exits", floor, ["floor"]),
        Runner::new(
            "bizar-hook",
            env!("CARGO_BIN_EXE_bizar-hook").into(),
            ["--harness", "claude"],
        ),
    ];
    for (name, program, script) in [
        ("Python", "python3", "hook.py"),
        ("Node", "node", "hook.js"),
    ] {
        match find(program) {
            Some(path) => runners.push(Runner::new(name, path, [peers.join(script)])),
            None => println!("{name} is not here: not measured"),
        }
    }
    // Turn by turn, so that each meets the same machine.
    for round in 0..CALLS + ROUNDS {
        for runner in &mut runners {
            if round == CALLS {
                runner.times.clear();
            }
            runner.round(home.path(), round);
        }
    }
    println!("{ROUNDS} rounds of two events each, in a session that has had {CALLS} calls");
    println!("{:<22} {:>22} {:>22}", "", "median", "best");
    let (floor_median, floor_best) = (runners[0].median(), runners[0].best());
    for runner in &mut runners {
        let median = shown(runner.median(), floor_median);
        println!(
            "{:<22} {median} {}",
            runner.name,
            shown(runner.best(), floor_best)
        );
    }
}

/// A time, and how it compares with the floor's.
fn shown(time: Duration, floor: Duration) -> String {
    let ratio = time.as_secs_f64() / floor.as_secs_f64();
    format!("{:>9.2} ms {ratio:>8.2} x", time.as_secs_f64() * 1e3)
}

struct Runner {
    name: &'static str,
    program: PathBuf,
    args: Vec<PathBuf>,
    times: Vec<Duration>,
}

impl Runner {
    fn new<A: AsRef<OsStr>>(
        name: &'static str,
        program: PathBuf,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            name,
            program,
            args: args.into_iter().map(|arg| arg.as_ref().into()).collect(),
            times: Vec::new(),
        }
    }

    /// A call and its end.
    fn round(&mut self, home: &Path, round: usize) {
        let common = format!(
            r#""session_id":"bench","prompt_id":"p","cwd":"/srv/project","tool_name":"Bash","tool_input":{{"command":"cargo test {}","description":"run"}},"tool_use_id":"call{round}""#,
            round % 7,
        );
        let lines = format!("test {round} ... ok\\n").repeat(50);
        let before = format!(r#"{{"hook_event_name":"PreToolUse",{common}}}"#);
        let after = format!(
            r#"{{"hook_event_name":"PostToolUse",{common},"tool_response":{{"stdout":"{lines}","stderr":""}}}}"#
        );
        for event in [before, after] {
            let started = Instant::now();
            let mut child = Command::new(&self.program)
                .args(&self.args)
                .env_clear()
                .env("HOME", home)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(event.as_bytes())
                .unwrap();
            let output = child.wait_with_output().unwrap();
            self.times.push(started.elapsed());
            assert!(output.status.success());
        }
    }

    fn median(&mut self) -> Duration {
        self.times.sort();
        self.times[self.times.len() / 2]
    }

    fn best(&self) -> Duration {
        self.times.iter().min().copied().unwrap_or_default()
    }
}

/// The real program, not a script that chooses one.
fn find(name: &str) -> Option<PathBuf> {
    let question = match name {
        "node" => vec!["-p", "process.execPath"],
        _ => vec!["-c", "import sys; print(sys.executable)"],
    };
    let output = Command::new(name).args(question).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(path.trim())).filter(|path| path.is_file())
}

const ROUNDS: usize = 60;

/// The detector looks back on 48.
const CALLS: usize = 50;
