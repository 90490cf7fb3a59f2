//! Real clients against a scripted model, in a home of their own.

use std::{fs, process::Command, time::Duration};

use bizar_testkit::{Client, ModelServer, Process, Sandbox, Script, Step};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(180);

/// Puts our hook where the client finds it, as a person would.
fn install(sandbox: &Sandbox, host: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_bizar-hook"))
        .args(["install", host])
        .env_clear()
        .env("HOME", sandbox.home())
        .current_dir(sandbox.project())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

struct Run {
    results: Vec<String>,
    /// All that the model was sent, in one text.
    heard: String,
    output: String,
}

fn codex(test: &str, script: &Script, bypasses_trust: bool) -> Option<Run> {
    let program = Client::Codex.find(test)?;
    let model = ModelServer::start().unwrap();
    let sandbox = Sandbox::new().unwrap();
    install(&sandbox, "codex");
    let provider = format!(
        "model_providers.mock={{name=\"mock\",base_url=\"{}/v1\",wire_api=\"responses\"}}",
        model.url()
    );
    let mut command = sandbox.command(&program);
    command.args([
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
    ]);
    if bypasses_trust {
        // Only here, where the home is thrown away: at home the user approves with /hooks.
        command.arg("--dangerously-bypass-hook-trust");
    }
    command
        .args(["-m", "gpt-5", "-c", "model_provider=mock", "-c", &provider])
        .arg(script.prompt("go "));
    Some(finish(&model, &mut command))
}

fn gemini(test: &str, script: &Script, own_guard: bool) -> Option<Run> {
    let program = Client::Gemini.find(test)?;
    let model = ModelServer::start().unwrap();
    let sandbox = Sandbox::new().unwrap();
    let folder = sandbox.home().join(".gemini");
    fs::create_dir(&folder).unwrap();
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "model": {"disableLoopDetection": !own_guard},
    });
    fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    install(&sandbox, "gemini");
    let mut command = sandbox.command(&program);
    command
        .args([
            "--yolo",
            "--skip-trust",
            "-m",
            "gemini-2.5-flash",
            "-p",
            &script.prompt("go "),
        ])
        .env("GEMINI_API_KEY", "x")
        .env("GOOGLE_GEMINI_BASE_URL", model.url());
    Some(finish(&model, &mut command))
}

fn finish(model: &ModelServer, command: &mut Command) -> Run {
    let finished = Process::run(command, PATIENCE).unwrap();
    let requests = model.requests();
    let steps = requests.iter().filter(|request| request.is_step());
    let last = steps.max_by_key(|request| request.results().len());
    Run {
        results: last.map(|request| request.results()).unwrap_or_default(),
        heard: requests
            .iter()
            .map(|request| strings(&request.body))
            .collect::<Vec<_>>()
            .concat(),
        output: format!("{}\n{}", finished.stdout, finished.stderr),
    }
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

fn codex_loop() -> Script {
    Script::new()
        .repeat(14, Step::call("exec_command", json!({"cmd": "echo round"})))
        .say("the end")
}

#[test]
fn the_real_codex_is_stopped_at_the_twelfth_call() {
    let Some(run) = codex(
        "the_real_codex_is_stopped_at_the_twelfth_call",
        &codex_loop(),
        true,
    ) else {
        return;
    };
    let refused = "Command blocked by PreToolUse hook: Loop protection: 12 identical calls to Bash. Use task to escalate.";
    let refusals: Vec<usize> = (1..)
        .zip(&run.results)
        .filter(|(_, result)| result.contains(refused))
        .map(|(n, _)| n)
        .collect();
    assert_eq!(refusals, [12, 13, 14], "{:?}\n{}", run.results, run.output);
    assert!(
        run.results[..11]
            .iter()
            .all(|result| result.contains("round")),
        "{:?}",
        run.results
    );
    for warning in [
        "[loop guard: 5 identical calls to Bash].",
        "[loop guard: 8 identical calls to Bash].",
    ] {
        assert!(run.heard.contains(warning), "the model saw {warning}");
    }
    assert!(run.output.contains("the end"));
}

/// What the installer explains: Codex runs nothing that its user did not approve.
#[test]
fn the_real_codex_runs_no_hook_without_its_users_word() {
    let test = "the_real_codex_runs_no_hook_without_its_users_word";
    let Some(run) = codex(test, &codex_loop(), false) else {
        return;
    };
    assert_eq!(run.results.len(), 14);
    assert!(!run.heard.contains("loop guard"), "{}", run.heard);
}

#[test]
fn the_real_codex_edits_and_tests_in_peace() {
    let mut script = Script::new();
    for n in 0..13 {
        script = script
            .repeat(
                1,
                Step::call(
                    "exec_command",
                    json!({"cmd": format!("echo {n} > version")}),
                ),
            )
            .repeat(1, Step::call("exec_command", json!({"cmd": "cat version"})));
    }
    let Some(run) = codex(
        "the_real_codex_edits_and_tests_in_peace",
        &script.say("the end"),
        true,
    ) else {
        return;
    };
    assert_eq!(run.results.len(), 26, "{}", run.output);
    assert!(run.results[25].contains("12"), "{:?}", run.results);
    assert!(!run.heard.contains("oop guard") && !run.heard.contains("Loop protection"));
    assert!(run.output.contains("the end"));
}

fn gemini_loop() -> Script {
    Script::new()
        .repeat(
            14,
            Step::call("run_shell_command", json!({"command": "echo round"})),
        )
        .say("the end")
}

/// With its own guard off, ours alone: warned at the second, blocked at the twelfth.
#[test]
fn the_real_gemini_is_stopped_at_the_twelfth_call() {
    let Some(run) = gemini(
        "the_real_gemini_is_stopped_at_the_twelfth_call",
        &gemini_loop(),
        false,
    ) else {
        return;
    };
    let refused = "Tool execution blocked: Loop protection: 12 identical calls to run_shell_command. Use task to escalate.";
    assert!(
        run.heard.contains(refused),
        "{:?}\n{}",
        run.results,
        run.output
    );
    let made = run
        .results
        .iter()
        .filter(|result| result.contains("round") && !result.contains("blocked"))
        .count();
    assert_eq!(made, 11, "{:?}", run.results);
    assert!(
        run.heard
            .contains("[loop guard: 5 identical calls to run_shell_command].")
    );
}

/// As it comes: its own guard ends the run at the fifth call, and ours has spoken before.
#[test]
fn the_real_gemini_hears_of_it_before_its_own_guard_acts() {
    let test = "the_real_gemini_hears_of_it_before_its_own_guard_acts";
    let Some(run) = gemini(test, &gemini_loop(), true) else {
        return;
    };
    assert!(run.results.len() < 12, "{:?}", run.results);
    assert!(
        run.heard
            .contains("[loop guard: 5 identical calls to run_shell_command]."),
        "{}",
        run.output
    );
}

#[test]
fn the_real_gemini_edits_and_tests_in_peace() {
    let mut script = Script::new();
    for n in 0..6 {
        script = script
            .repeat(
                1,
                Step::call(
                    "run_shell_command",
                    json!({"command": format!("echo v{n} > version")}),
                ),
            )
            .repeat(
                1,
                Step::call("run_shell_command", json!({"command": "cat version"})),
            );
    }
    let Some(run) = gemini(
        "the_real_gemini_edits_and_tests_in_peace",
        &script.say("the end"),
        true,
    ) else {
        return;
    };
    assert_eq!(run.results.len(), 12, "{}", run.output);
    assert!(
        !run.heard.contains("oop guard") && !run.heard.contains("Loop protection"),
        "{}",
        run.heard
    );
    assert!(run.output.contains("the end"));
}
