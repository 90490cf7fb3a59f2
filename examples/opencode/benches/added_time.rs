//! What the plugin costs inside the real opencode: the same scripted run without a plugin, with an empty one and with
//! ours, in turn. Then memory, start-up, and a verdict on the pipe alone.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench prints, and stops when it cannot measure"
)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bizar_testkit::{
    Client, ModelServer, Opencode, Process, Sandbox, Script, Step, processes_with,
};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bizar-opencode");
const ROUNDS: usize = 5;
const CALLS: usize = 30;
const STARTS: usize = 5;

/// An opencode, its model, and what is measured of it.
struct Subject {
    name: &'static str,
    sandbox: Sandbox,
    model: ModelServer,
    server: Option<Opencode>,
    starts: Vec<Duration>,
    turns: Vec<Duration>,
}

fn main() {
    verdicts_on_the_pipe();
    let Some(opencode) = Client::Opencode.find("added_time") else {
        return;
    };
    let mut subjects = ["no plugin", "empty plugin", "bizar-opencode"].map(Subject::new);
    for round in 0..STARTS {
        for subject in &mut subjects {
            // One at a time: the last round's servers stay.
            subject.server = None;
            subject.start(&opencode);
            if round + 1 < STARTS {
                subject.server = None;
            }
        }
    }
    for _ in 0..ROUNDS {
        for subject in &mut subjects {
            subject.play();
        }
    }
    println!(
        "\n{CALLS} `read` calls in one run, {ROUNDS} runs each in turn; time from one model request to the next:"
    );
    table(&subjects, |subject| &subject.turns);
    println!("\nserver start to the end of a first prompt, {STARTS} times each in turn:");
    table(&subjects, |subject| &subject.starts);
    let sidecar = processes_with("bizar-opencode guard")
        .into_iter()
        .map(resident)
        .max();
    let opencode = subjects[2]
        .server
        .as_ref()
        .map(|server| resident(server.id()));
    println!(
        "\nresident memory: sidecar {} KiB, opencode {} KiB",
        sidecar.unwrap(),
        opencode.unwrap()
    );
}

impl Subject {
    fn new(name: &'static str) -> Self {
        let sandbox = Sandbox::new().unwrap();
        let model = ModelServer::start().unwrap();
        sandbox.configure_opencode(&model, &json!({})).unwrap();
        let plugins = sandbox.opencode_config().join("plugins");
        match name {
            "empty plugin" => {
                fs::create_dir(&plugins).unwrap();
                let hooks = r#"{ "tool.execute.before": async () => {}, "tool.execute.after": async () => {} }"#;
                fs::write(
                    plugins.join("empty.ts"),
                    format!("export const Empty = async () => ({hooks})\n"),
                )
                .unwrap();
            }
            "bizar-opencode" => {
                let installed = sandbox
                    .command(Path::new(PROGRAM))
                    .args(["install", "--force"])
                    .output()
                    .unwrap();
                assert!(installed.status.success());
            }
            _ => {}
        }
        for n in 0..CALLS {
            fs::write(sandbox.project().join(format!("{n}.txt")), "a line\n").unwrap();
        }
        Self {
            name,
            sandbox,
            model,
            server: None,
            starts: Vec::new(),
            turns: Vec::new(),
        }
    }

    fn start(&mut self, opencode: &Path) {
        let start = Instant::now();
        let server = Opencode::serve(opencode, &self.sandbox, &[]).unwrap();
        server
            .prompt(
                &server.session().unwrap(),
                &Script::new().say("hello").prompt("go "),
            )
            .unwrap();
        self.starts.push(start.elapsed());
        self.server = Some(server);
    }

    fn play(&mut self) {
        let server = self.server.as_ref().unwrap();
        let session = server.session().unwrap();
        let step = |n: usize| {
            Step::call(
                "read",
                json!({"filePath": self.sandbox.project().join(format!("{n}.txt"))}),
            )
        };
        let script = (0..CALLS)
            .fold(Script::new(), |script, n| script.then(step(n)))
            .say("the end");
        server.prompt(&session, &script.prompt("go ")).unwrap();
        let requests = self.model.requests_of(&session);
        assert_eq!(requests.len(), CALLS + 1);
        // The first steps load things.
        self.turns.extend(
            requests
                .windows(2)
                .skip(2)
                .map(|pair| pair[1].at - pair[0].at),
        );
    }
}

fn table(subjects: &[Subject; 3], times: impl Fn(&Subject) -> &Vec<Duration>) {
    let sorted = |subject: &Subject| {
        let mut times = times(subject).clone();
        times.sort();
        times
    };
    let floor = sorted(&subjects[0]);
    println!("| | best | ratio | median | ratio |\n|---|---|---|---|---|");
    let middle = |times: &[Duration]| times[times.len() / 2];
    for subject in subjects {
        let times = sorted(subject);
        let [best, median] = [times[0], middle(&times)];
        let [best_ratio, median_ratio] = [(best, floor[0]), (median, middle(&floor))]
            .map(|(time, floor)| time.as_secs_f64() / floor.as_secs_f64());
        println!(
            "| {} | {best:.1?} | {best_ratio:.2} | {median:.1?} | {median_ratio:.2} |",
            subject.name
        );
    }
}

/// Start of the program to its first answer, and a call's two messages when it is warm.
fn verdicts_on_the_pipe() {
    let home = tempfile::tempdir().unwrap();
    let line = |id: Option<usize>, method: &str, params: serde_json::Value| {
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if let Some(id) = id {
            message["id"] = json!(id);
        }
        format!("{message}\n")
    };
    let mut starts = Vec::new();
    let mut verdicts = Vec::new();
    for _ in 0..21 {
        let start = Instant::now();
        let mut command = Command::new(PROGRAM);
        command
            .arg("guard")
            .env("HOME", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = Process::start(&mut command).unwrap();
        let mut input = process.child().stdin.take().unwrap();
        let mut output = BufReader::new(process.child().stdout.take().unwrap());
        let mut answer = String::new();
        input
            .write_all(
                line(
                    Some(1),
                    "open",
                    json!({"directory": "/p", "worktree": "/p"}),
                )
                .as_bytes(),
            )
            .unwrap();
        output.read_line(&mut answer).unwrap();
        starts.push(start.elapsed());
        for n in 0..200 {
            let call = json!({"directory": "/p", "session": "s", "call": n.to_string(), "message": n.to_string(), "tool": "read",
                "args": {"filePath": format!("/p/{n}.txt")}, "output": "a line", "metadata": {}});
            let start = Instant::now();
            input
                .write_all(line(Some(n), "before", call.clone()).as_bytes())
                .unwrap();
            output.read_line(&mut answer).unwrap();
            verdicts.push(start.elapsed());
            input
                .write_all(line(None, "after", call).as_bytes())
                .unwrap();
        }
    }
    starts.sort();
    verdicts.sort();
    let median = |times: &[Duration]| times[times.len() / 2];
    println!(
        "program start to first answer: best {:.1?}, median {:.1?}",
        starts[0],
        median(&starts)
    );
    println!(
        "verdict on the pipe: best {:.1?}, median {:.1?}",
        verdicts[0],
        median(&verdicts)
    );
}

/// Kibibytes of a process in memory.
fn resident(id: u32) -> u64 {
    let output = Command::new("ps")
        .args(["-o", "rss=", "-p", &id.to_string()])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap_or(0)
}
