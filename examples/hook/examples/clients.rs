//! Runs the real Claude Code and Qwen Code with our hook against a scripted model on loopback, in
//! homes that are thrown away: a loop of identical calls, and edit-and-test.
//!
//! `cargo run -p bizar-hook --example clients [claude|qwen]…`
//!
//! The exact versions below are installed from npm under `target/testkit/`, which needs the network
//! once. Exit code 77: not run, and it was said why.
#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for developers"
)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use bizar_testkit::{ModelServer, Process, Sandbox, Script, Step};
use serde_json::{Value, json};

/// A client from npm.
struct Client {
    name: &'static str,
    package: &'static str,
    version: &'static str,
    /// Within its package.
    program: &'static str,
    shell: &'static str,
    start: fn(&mut Command, &ModelServer, &str),
}

const CLIENTS: [Client; 2] = [
    Client {
        name: "claude",
        package: "@anthropic-ai/claude-code",
        version: "2.1.332",
        program: "claude",
        shell: "Bash",
        start: start_claude,
    },
    Client {
        name: "qwen",
        package: "@qwen-code/qwen-code",
        version: "0.24.4",
        program: "qwen",
        shell: "run_shell_command",
        start: start_qwen,
    },
];

/// Both say so themselves, or install an older version of themselves without a word.
const OLDEST_NODE: u32 = 22;

fn main() -> ExitCode {
    let wanted: Vec<String> = env::args().skip(1).collect();
    let hook = env::current_exe().unwrap();
    let hook = hook.ancestors().nth(2).unwrap().join("bizar-hook");
    if !hook.is_file() {
        println!(
            "not run: {} is not built: cargo build -p bizar-hook first",
            hook.display()
        );
        return ExitCode::from(77);
    }
    let node = node_version();
    if node < OLDEST_NODE {
        println!(
            "not run: these clients need Node {OLDEST_NODE} or newer and here is {node}; with an older one npm \
             chooses old versions of them in silence"
        );
        return ExitCode::from(77);
    }
    let chosen = CLIENTS
        .iter()
        .filter(|client| wanted.is_empty() || wanted.iter().any(|name| name == client.name));
    let mut is_fine = true;
    for client in chosen {
        match client.install() {
            Ok(program) => is_fine &= client.watch(&program, &hook),
            Err(why) => {
                println!("{}: not run: {why}", client.name);
                is_fine = false;
            }
        }
    }
    if is_fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl Client {
    fn install(&self) -> Result<PathBuf, String> {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/testkit");
        let folder = target.join(format!("{}-{}", self.name, self.version));
        let program = folder.join("node_modules/.bin").join(self.program);
        if !program.exists() {
            fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            let package = format!("{}@{}", self.package, self.version);
            let output = Command::new("npm")
                .args([
                    "install",
                    "--no-fund",
                    "--no-audit",
                    "--loglevel=error",
                    "--prefix",
                ])
                .arg(&folder)
                .arg(package)
                .output()
                .map_err(|error| format!("npm: {error}"))?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned());
            }
        }
        let manifest = folder
            .join("node_modules")
            .join(self.package)
            .join("package.json");
        let manifest = fs::read_to_string(manifest).map_err(|error| error.to_string())?;
        let manifest: Value = serde_json::from_str(&manifest).map_err(|error| error.to_string())?;
        if manifest["version"] != self.version {
            return Err(format!(
                "npm installed {} instead of {}",
                manifest["version"], self.version
            ));
        }
        Ok(program)
    }

    /// Whether all was as it should be.
    fn watch(&self, program: &Path, hook: &Path) -> bool {
        let call = |command: String| {
            Step::call(
                self.shell,
                json!({"command": command, "description": "run"}),
            )
        };
        let script = Script::new()
            .repeat(20, call("echo round".to_owned()))
            .say("the end");
        let seen = self.run(program, hook, &script);
        println!(
            "{} {}: a loop of 20 identical calls",
            self.name, self.version
        );
        println!(
            "    calls made: {}",
            seen.results
                .iter()
                .filter(|result| is_round(result))
                .count()
        );
        for word in WORDS {
            println!("    the model saw {word:?}: {}", seen.heard.contains(word));
        }
        println!("    it ended: {}", seen.ended);
        let last = seen
            .results
            .last()
            .map(|text| text.lines().next().unwrap_or_default());
        println!("    last result: {}", last.unwrap_or_default());
        let is_stopped = seen
            .results
            .iter()
            .filter(|result| is_round(result))
            .count()
            < 12
            && seen.heard.contains(WORDS[0]);

        let mut script = Script::new();
        for n in 0..6 {
            script = script
                .repeat(1, call(format!("echo v{n} > version")))
                .repeat(1, call("cat version".to_owned()));
        }
        let seen = self.run(program, hook, &script.say("the end"));
        let is_left_alone =
            !WORDS.iter().any(|word| seen.heard.contains(word)) && seen.results.len() == 12;
        println!("{} {}: edit and test, 12 calls", self.name, self.version);
        println!(
            "    calls made: {}; left alone: {is_left_alone}",
            seen.results.len()
        );
        if !is_stopped || !is_left_alone {
            println!(
                "    NOT as it should be; results and output:\n{:#?}\n{}",
                seen.results, seen.output
            );
        }
        is_stopped && is_left_alone
    }

    fn run(&self, program: &Path, hook: &Path, script: &Script) -> Seen {
        let model = ModelServer::start().unwrap();
        let sandbox = Sandbox::new().unwrap();
        let installed = Command::new(hook)
            .args(["install", self.name])
            .env_clear()
            .env("HOME", sandbox.home())
            .current_dir(sandbox.project())
            .stdout(Stdio::null())
            .status();
        assert!(installed.unwrap().success());
        let mut command = sandbox.command(program);
        (self.start)(&mut command, &model, &script.prompt("go "));
        let finished = Process::run(&mut command, Duration::from_secs(240)).unwrap();
        let requests = model.requests();
        let longest = requests
            .iter()
            .map(|request| request.results())
            .max_by_key(Vec::len);
        Seen {
            results: longest.unwrap_or_default(),
            heard: requests
                .iter()
                .map(|request| strings(&request.body))
                .collect(),
            ended: format!("{:?}, {:?}", finished.status, finished.stdout.trim()),
            output: format!("{}\n{}", finished.stdout, finished.stderr),
        }
    }
}

/// What the model was sent, and what became of the client.
struct Seen {
    results: Vec<String>,
    heard: String,
    ended: String,
    output: String,
}

const WORDS: [&str; 4] = [
    "[loop guard: 5 identical calls to ",
    "[loop guard: 8 identical calls to ",
    "Loop protection: 12 identical calls to ",
    "Loop protection: stopped after ",
];

fn is_round(result: &str) -> bool {
    result.contains("round") && !result.contains("Loop protection")
}

fn start_claude(command: &mut Command, model: &ModelServer, prompt: &str) {
    command
        .args([
            "-p",
            prompt,
            "--dangerously-skip-permissions",
            "--model",
            "claude-sonnet-4-5",
        ])
        .env("ANTHROPIC_BASE_URL", model.url())
        .env("ANTHROPIC_API_KEY", "x")
        .env("IS_SANDBOX", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1");
}

fn start_qwen(command: &mut Command, model: &ModelServer, prompt: &str) {
    command
        .args(["--yolo", "--auth-type", "openai", "-p", prompt])
        .env("OPENAI_API_KEY", "x")
        .env("OPENAI_MODEL", "qwen3-coder-plus")
        .env("OPENAI_BASE_URL", format!("{}/v1", model.url()));
}

/// 0 if there is none.
fn node_version() -> u32 {
    let output = Command::new("node")
        .args(["-p", "process.versions.node"])
        .output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let major = version
        .ok()
        .and_then(|version| version.split('.').next()?.parse().ok());
    major.unwrap_or(0)
}

/// All strings in a document, a line each.
fn strings(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(values) => values.iter().map(strings).collect(),
        Value::Object(members) => members.values().map(strings).collect(),
        _ => String::new(),
    }
}
