use std::time::Duration;

use bizar_testkit::{Client, ModelServer, Opencode, Process, Sandbox, Script, Step};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(90);

#[test]
fn the_real_opencode_plays_a_script_offline() {
    let Some(opencode) = Client::Opencode.find("the_real_opencode_plays_a_script_offline") else {
        return;
    };
    let model = ModelServer::start().unwrap();
    let sandbox = Sandbox::new().unwrap();
    sandbox.configure_opencode(&model, &json!({})).unwrap();
    let server = Opencode::serve(&opencode, &sandbox, &[]).unwrap();
    let session = server.session().unwrap();
    let script = Script::new()
        .repeat(2, Step::call("bash", json!({"command": "echo hello"})))
        .say("the end");
    let last = server.prompt(&session, &script.prompt("go ")).unwrap();
    let parts = last["parts"].as_array().unwrap();
    assert!(parts.iter().any(|part| part["text"] == "the end"), "{last}");
    let calls = server.calls(&session).unwrap();
    let outputs: Vec<_> = calls
        .iter()
        .map(|call| call["state"]["output"].clone())
        .collect();
    assert_eq!(outputs, ["hello\n", "hello\n"]);
    let steps = model.requests_of(&session);
    assert_eq!(steps.last().unwrap().results(), ["hello\n", "hello\n"]);
    let idle = server.wait_for(Duration::from_secs(5), |event| {
        event["type"] == "session.idle"
    });
    assert!(idle.is_some());
}

#[test]
fn the_real_codex_plays_a_script_offline() {
    let Some(codex) = Client::Codex.find("the_real_codex_plays_a_script_offline") else {
        return;
    };
    let model = ModelServer::start().unwrap();
    let sandbox = Sandbox::new().unwrap();
    let script = Script::new()
        .repeat(2, Step::call("exec_command", json!({"cmd": "echo hello"})))
        .say("the end");
    let provider = format!(
        "model_providers.mock={{name=\"mock\",base_url=\"{}/v1\",wire_api=\"responses\"}}",
        model.url()
    );
    let mut command = sandbox.command(&codex);
    command
        .args([
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
        ])
        .args(["-m", "gpt-5", "-c", "model_provider=mock", "-c", &provider])
        .arg(script.prompt("go "));
    let finished = Process::run(&mut command, PATIENCE).unwrap();
    assert!(finished.stdout.contains("the end"), "{finished:?}");
    let results = model.requests().last().unwrap().results();
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(
        results.iter().all(|result| result.contains("hello")),
        "{results:?}"
    );
}

#[test]
fn the_real_gemini_plays_a_script_offline() {
    let Some(gemini) = Client::Gemini.find("the_real_gemini_plays_a_script_offline") else {
        return;
    };
    let model = ModelServer::start().unwrap();
    let sandbox = Sandbox::new().unwrap();
    let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
    std::fs::create_dir(sandbox.home().join(".gemini")).unwrap();
    std::fs::write(
        sandbox.home().join(".gemini/settings.json"),
        settings.to_string(),
    )
    .unwrap();
    let script = Script::new()
        .repeat(
            2,
            Step::call("run_shell_command", json!({"command": "echo hello"})),
        )
        .say("the end");
    let mut command = sandbox.command(&gemini);
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
    let finished = Process::run(&mut command, PATIENCE).unwrap();
    assert!(finished.stdout.contains("the end"), "{finished:?}");
    let requests = model.requests();
    let results = requests
        .iter()
        .map(|request| request.results())
        .max_by_key(Vec::len)
        .unwrap();
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(
        results.iter().all(|result| result.contains("hello")),
        "{results:?}"
    );
}
