//! The program by itself, on a pipe.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use bizar_testkit::{Process, Sandbox};
use serde_json::{Value, json};

use crate::rig::PROGRAM;

/// A sidecar with one open directory.
struct Sidecar {
    process: Process,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    sandbox: Sandbox,
    id: u64,
}

impl Sidecar {
    fn start(options: &Value) -> Self {
        let sandbox = Sandbox::new().unwrap();
        let mut command = sandbox.command(PROGRAM.as_ref());
        let mut process = Process::start(
            command
                .arg("guard")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped()),
        )
        .unwrap();
        let input = process.child().stdin.take();
        let output = BufReader::new(process.child().stdout.take().unwrap());
        let mut sidecar = Self {
            process,
            input,
            output,
            sandbox,
            id: 0,
        };
        sidecar.ask("open", &json!({"worktree": "/", "options": options}));
        sidecar
    }

    fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn tell(&mut self, method: &str, params: &Value) {
        let mut params = params.clone();
        params["directory"] = json!("/project");
        self.write(
            format!(
                "{}\n",
                json!({"jsonrpc": "2.0", "method": method, "params": params})
            )
            .as_bytes(),
        );
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let mut params = params.clone();
        params["directory"] = json!("/project");
        let request = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        self.write(format!("{request}\n").as_bytes());
        let answer = self.read();
        assert_eq!(answer["id"], self.id);
        answer
    }

    fn before(&mut self, n: usize, params: &Value) -> Value {
        let mut all = json!({"session": "s", "call": format!("c{n}"), "message": format!("m{n}"), "tool": "bash"});
        all.as_object_mut()
            .unwrap()
            .extend(params.as_object().unwrap().clone());
        self.ask("before", &all)["result"].clone()
    }

    fn after(&mut self, n: usize, params: &Value) {
        let mut all = json!({"session": "s", "call": format!("c{n}"), "tool": "bash"});
        all.as_object_mut()
            .unwrap()
            .extend(params.as_object().unwrap().clone());
        self.tell("after", &all);
    }

    /// The outcomes in the log, once the program has ended.
    fn end(mut self) -> Vec<String> {
        drop(self.input.take());
        let status = self.process.wait(Duration::from_secs(20)).unwrap();
        assert!(status.success());
        let log = self.sandbox.home().join(".cache/bizarharness/logs/s.log");
        let log = std::fs::read_to_string(log).unwrap_or_default();
        let outcome = |line: &str| {
            line.split(' ')
                .find_map(|field| field.strip_prefix("outcome="))
                .unwrap()
                .to_owned()
        };
        log.lines().map(outcome).collect()
    }
}

#[test]
fn garbage_is_answered_and_survived() {
    let mut sidecar = Sidecar::start(&json!({}));
    for (line, code) in [
        ("", -32_700),
        ("}{", -32_700),
        ("[1]", -32_700),
        ("\u{0}", -32_700),
    ] {
        sidecar.write(format!("{line}\n").as_bytes());
        assert_eq!(sidecar.read()["error"]["code"], code, "{line:?}");
    }
    // A line of more than a mebibyte is skipped, and the next one is read.
    sidecar.write(format!("{}\n", "x".repeat(3 << 20)).as_bytes());
    assert_eq!(sidecar.read()["error"]["code"], -32_700);
    assert_eq!(sidecar.ask("nothing", &json!({}))["error"]["code"], -32_601);
    assert_eq!(
        sidecar.ask("before", &json!({"session": 5}))["error"]["code"],
        -32_602
    );
    let hello = sidecar.ask("hello", &json!({"protocol": 2, "version": "0"}));
    assert_eq!(
        hello["result"],
        json!({"protocol": 2, "version": env!("CARGO_PKG_VERSION")})
    );
    assert_eq!(sidecar.before(0, &json!({"args": {}}))["verdict"], "allow");
}

#[test]
fn a_plugin_that_speaks_another_protocol_is_told_which_one_this_is() {
    let mut sidecar = Sidecar::start(&json!({}));
    let hello = sidecar.ask("hello", &json!({"protocol": 99, "version": "9"}));
    assert_eq!(hello["result"]["protocol"], 2);
}

#[test]
fn a_directory_that_is_not_open_has_no_verdict() {
    let mut sidecar = Sidecar::start(&json!({}));
    assert_eq!(sidecar.ask("close", &json!({}))["result"], Value::Null);
    assert_eq!(
        sidecar.ask("before", &json!({"session": "s"}))["error"]["code"],
        -32_601
    );
}

#[test]
fn outcomes_are_read_from_what_opencode_says() {
    let mut sidecar = Sidecar::start(&json!({}));
    let ends = [
        (
            "after",
            json!({"output": "fine", "metadata": {"exit": 0}}),
            "ok",
        ),
        ("after", json!({"output": "fine", "metadata": {}}), "ok"),
        (
            "after",
            json!({"output": "fine", "metadata": {"exit": "by the stairs"}}),
            "ok",
        ),
        (
            "after",
            json!({"output": "bad", "metadata": {"exit": 2}}),
            "error",
        ),
        (
            "after",
            json!({"output": "User aborted the command", "metadata": {"exit": null}}),
            "aborted",
        ),
        (
            "after",
            json!({"output": "it took too long", "metadata": {"exit": null}}),
            "error",
        ),
        ("failed", json!({"error": "File not found"}), "error"),
        (
            "failed",
            json!({"error": "Tool execution aborted"}),
            "aborted",
        ),
        (
            "failed",
            json!({"error": "The user rejected permission to use this specific tool call."}),
            "blocked",
        ),
        (
            "failed",
            json!({"error": "File not found: The user rejected permission.txt"}),
            "error",
        ),
    ];
    for (n, (method, params, _)) in ends.iter().enumerate() {
        sidecar.before(n, &json!({"args": {"n": n}}));
        let mut all = json!({"session": "s", "call": format!("c{n}"), "tool": "bash"});
        all.as_object_mut()
            .unwrap()
            .extend(params.as_object().unwrap().clone());
        sidecar.tell(method, &all);
    }
    // A call that is open when the host goes away was aborted.
    sidecar.before(99, &json!({"args": {}}));
    let expected: Vec<&str> = ends
        .iter()
        .map(|(_, _, outcome)| *outcome)
        .chain(["aborted"])
        .collect();
    assert_eq!(sidecar.end(), expected);
}

#[test]
fn arguments_that_were_too_long_to_travel_warn_and_never_block() {
    let mut sidecar = Sidecar::start(&json!({}));
    let mut verdicts = Vec::new();
    for n in 0..20 {
        verdicts.push(
            sidecar.before(n, &json!({"cut": true}))["verdict"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
        sidecar.after(n, &json!({"output": "the same"}));
    }
    assert!(verdicts.contains(&"warn".to_owned()), "{verdicts:?}");
    assert!(
        !verdicts.contains(&"escalate".to_owned()) && !verdicts.contains(&"block".to_owned()),
        "{verdicts:?}"
    );
}

#[test]
fn the_ends_of_a_long_result_are_told_apart() {
    let mut sidecar = Sidecar::start(&json!({}));
    let output =
        |hash: usize| json!({"output": {"head": "a", "tail": "z", "length": 9, "hash": hash}});
    for n in 0..12 {
        // The middle differs each time: that is news.
        assert_eq!(
            sidecar.before(n, &json!({"args": {}}))["text"],
            Value::Null,
            "{n}"
        );
        sidecar.after(n, &output(n));
    }
    for n in 12..23 {
        sidecar.before(n, &json!({"args": {"other": 1}}));
        sidecar.after(n, &output(0));
    }
    let answer = sidecar.before(23, &json!({"args": {"other": 1}}));
    assert_eq!(answer["verdict"], "block");
    assert!(
        answer["text"]
            .as_str()
            .unwrap()
            .starts_with("Loop protection: 12 identical calls to bash.")
    );
}

#[test]
fn a_line_of_the_log_says_what_and_not_with_what() {
    let mut sidecar = Sidecar::start(
        &json!({"loopThresholdWarn": 1, "loopThresholdEscalate": 2, "loopThresholdBlock": 3}),
    );
    let mut said = Vec::new();
    for n in 0..4 {
        let answer = sidecar.before(
            n,
            &json!({"args": {"command": "Xsecret"}, "tool": "ba\nsh"}),
        );
        said.push(answer["log"].to_string());
        sidecar.after(n, &json!({"output": "Xsecret", "tool": "ba\nsh"}));
    }
    let last = said.last().unwrap();
    assert!(
        last.starts_with(r#"[["warn","loop guard: block: bash"#)
            && last.contains("the call is refused"),
        "{said:?}"
    );
    assert!(
        !said.concat().contains("Xsecret") && !said.concat().contains("\\n"),
        "{said:?}"
    );
}

#[test]
fn calls_of_one_message_are_one_round_however_it_is_told() {
    // Equal calls of one message count once, so that twelve of them are no loop.
    let mut sidecar = Sidecar::start(&json!({}));
    let mut verdicts = |prepare: &dyn Fn(&mut Sidecar, usize)| {
        sidecar.tell("deleted", &json!({"session": "s"}));
        let calls = 0..12;
        let mut last = Value::Null;
        for n in calls {
            prepare(&mut sidecar, n);
            last = sidecar.before(n, &json!({"message": null, "args": {}}));
        }
        last["verdict"].clone()
    };
    let named = |message: String, n: usize| json!({"session": "s", "call": format!("c{n}"), "message": message});
    let one = |sidecar: &mut Sidecar, n| sidecar.tell("pending", &named("m".to_owned(), n));
    let many = |sidecar: &mut Sidecar, n| sidecar.tell("pending", &named(format!("m{n}"), n));
    // Where no message was named, a request to the model begins a round, and a title is none.
    let title = |sidecar: &mut Sidecar, _| {
        let system = "You are a title generator. You output";
        sidecar.tell("request", &json!({"session": "s", "system": system}));
    };
    let step = |sidecar: &mut Sidecar, _| {
        let system = "You are opencode";
        sidecar.tell("request", &json!({"session": "s", "system": system}));
    };
    assert_eq!(verdicts(&one), "warn");
    assert_eq!(verdicts(&many), "block");
    assert_eq!(verdicts(&title), "warn");
    assert_eq!(verdicts(&step), "block");
}

#[test]
fn a_text_is_due_until_a_step_of_the_agent_has_nothing_to_be_told() {
    let mut sidecar = Sidecar::start(
        &json!({"loopThresholdWarn": 1, "loopThresholdEscalate": 50, "loopThresholdBlock": 60}),
    );
    let request = |sidecar: &mut Sidecar, system: &str| {
        let params = json!({"session": "s", "system": system});
        sidecar.ask("request", &params)["result"].clone()
    };
    let nothing = json!({"due": false, "text": null});
    let kept = json!({"due": true, "text": null});
    assert_eq!(request(&mut sidecar, "You are opencode"), nothing);
    assert_eq!(sidecar.before(0, &json!({"args": {}}))["due"], true);
    // Neither a title nor a compaction shows it or uses it up, whatever their prompts are.
    assert_eq!(request(&mut sidecar, "You are a title generator."), kept);
    sidecar.tell("compacting", &json!({"session": "s"}));
    assert_eq!(request(&mut sidecar, "my own words"), kept);
    let told = request(&mut sidecar, "You are opencode");
    assert_eq!(told["due"], true);
    assert!(
        told["text"].as_str().unwrap().starts_with("[loop guard: 5"),
        "{told}"
    );
    sidecar.tell("user", &json!({"session": "s"}));
    assert_eq!(request(&mut sidecar, "You are opencode"), nothing);
}
