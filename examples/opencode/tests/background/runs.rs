//! How runs go, and all the ways in which they end.

use std::fs;
use std::time::{Duration, Instant};

use bizar_testkit::{Hang, Script, Step, processes_with};
use serde_json::{Value, json};

use crate::manager::{Warm, endless, warm, within};
use crate::rig::{bash, eventually};

fn hanging() -> Script {
    Script::new().then(Step::say("never").hanging(Hang::Stream))
}

/// A script that runs a command which does not end by itself, and how to find it.
fn running() -> (Script, String) {
    let command = endless();
    (Script::new().then(bash(&command)).say("never"), command)
}

fn is_running(command: &str) -> bool {
    !processes_with(command).is_empty()
}

/// A directory with a server, rules and limits of its own.
fn strict(warm: &Warm) -> String {
    static OPENED: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let open = || {
        let project = warm
            .rig
            .project_with(&json!({"permission": {"bash": "ask"}}));
        let options = json!({
            "backgroundPermissions": "wait",
            "backgroundToolCallCap": 4,
            "backgroundMaxTokens": 5000,
        });
        warm.manager.open(&project, &options);
        project.display().to_string()
    };
    OPENED.get_or_init(open).clone()
}

#[test]
fn a_run_is_spawned_watched_and_collected() {
    let Some(warm) = warm("a_run_is_spawned_watched_and_collected") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let manager = &warm.manager;
    let step = Step {
        text: "First I look. ".to_owned(),
        ..bash("echo one")
    };
    let script = Script::new()
        .then(step)
        .then(Step::say("Then I know.").after_ms(300));
    let prompt = script.prompt("go ");
    let args =
        json!({"agent": "general", "prompt": prompt, "model": "mock/m", "timeoutMs": 60_000});
    let run = manager.tool("spawn", &args).unwrap();
    let id = run["instanceId"].as_str().unwrap();
    assert!(
        ["pending", "running"].contains(&run["status"].as_str().unwrap()),
        "{run}"
    );
    assert!(
        run["sessionId"].as_str().unwrap().starts_with("ses_"),
        "{run}"
    );

    let done = manager.collect(id);
    assert_eq!(
        (&done["status"], &done["toolCallCount"]),
        (&json!("done"), &json!(1)),
        "{done}"
    );
    assert_eq!(done["result"], "First I look. \n\nThen I know.");
    assert_eq!(done["finalText"], "Then I know.");
    assert!(
        done["durationMs"].as_u64().unwrap() >= 300 && done.get("error").is_none(),
        "{done}"
    );

    let view = manager.status(id);
    assert_eq!(
        (&view["agent"], &view["parentAgent"]),
        (&json!("general"), &json!("odin"))
    );
    assert_eq!(view.get("parentInstanceId"), Some(&Value::Null));
    assert_eq!(
        view["promptPreview"],
        prompt.chars().take(200).collect::<String>()
    );
    assert!(
        view["resultPreview"]
            .as_str()
            .unwrap()
            .ends_with("Then I know."),
        "{view}"
    );
    let all = manager.tool("status", &json!({})).unwrap();
    assert!(
        all["instances"]
            .as_array()
            .unwrap()
            .iter()
            .any(|view| view["instanceId"] == id)
    );
    // What was said stays out of the record.
    let record = crate::manager::record(&warm.rig, id);
    assert_eq!(record["status"], "done");
    assert!(
        !record.to_string().contains("Then I know") && !record.to_string().contains("[[script")
    );
}

#[test]
fn eight_run_and_the_ninth_is_refused() {
    let Some(warm) = warm("eight_run_and_the_ninth_is_refused") else {
        return;
    };
    let _all = warm.slots.write().unwrap();
    let manager = &warm.manager;
    let ids: Vec<String> = (0..8).map(|_| manager.spawn(&hanging())).collect();
    let args = json!({"agent": "general", "prompt": "one too many"});
    let refused = manager.tool("spawn", &args).unwrap_err();
    assert!(
        refused.starts_with("all 8 background slots are taken by bgr_"),
        "{refused}"
    );
    assert!(
        ids.iter().all(|id| refused.contains(id.as_str())),
        "{refused}"
    );
    assert!(
        refused.ends_with("collect or kill one, or wait"),
        "{refused}"
    );
    for id in &ids {
        assert_eq!(
            manager.tool("kill", &json!({"instanceId": id})).unwrap()["status"],
            "killed"
        );
    }
    eventually("free slots", || {
        ids.iter().all(|id| manager.status(id)["draining"] == false)
    });
    let id = manager.spawn(&Script::new().say("there is room"));
    assert_eq!(manager.collect(&id)["result"], "there is room");
}

#[test]
fn killed_while_generating() {
    let Some(warm) = warm("killed_while_generating") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let manager = &warm.manager;
    let id = manager.spawn(&hanging());
    manager.until(&id, "a running run", |view| view["status"] == "running");
    let start = Instant::now();
    let killed = manager.tool("kill", &json!({"instanceId": id})).unwrap();
    assert_eq!(
        (&killed["status"], &killed["alreadyTerminal"]),
        (&json!("killed"), &json!(false))
    );
    assert!(
        start.elapsed() < Duration::from_millis(5500),
        "{:?}",
        start.elapsed()
    );
    let again = manager.tool("kill", &json!({"instanceId": id})).unwrap();
    assert_eq!(
        (&again["status"], &again["alreadyTerminal"]),
        (&json!("killed"), &json!(true))
    );
    assert_eq!(manager.collect(&id)["status"], "killed");
}

#[test]
fn killed_while_a_command_runs_and_the_command_is_gone_too() {
    let Some(warm) = warm("killed_while_a_command_runs_and_the_command_is_gone_too") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let (script, command) = running();
    let id = warm.manager.spawn(&script);
    eventually("a running command", || is_running(&command));
    let killed = warm
        .manager
        .tool("kill", &json!({"instanceId": id}))
        .unwrap();
    assert_eq!(killed["status"], "killed");
    within(Duration::from_secs(5), "the end of the command", || {
        !is_running(&command)
    });
}

#[test]
fn killed_while_a_permission_is_asked_for() {
    let Some(warm) = warm("killed_while_a_permission_is_asked_for") else {
        return;
    };
    let (directory, manager) = (strict(warm), &warm.manager);
    let script = Script::new().then(bash("echo allowed")).say("never");
    let id = manager.spawn_with(&directory, &script, &json!({}));
    let args = json!({"instanceId": id});
    let tool = |name: &str| manager.tool_of("odin", &directory, name, &args).unwrap();
    eventually("a question", || tool("status")["waitingOn"] == "permission");
    assert_eq!(tool("kill")["status"], "killed");
    assert_eq!(tool("status")["waitingOn"], Value::Null);
    assert_eq!(tool("collect")["status"], "killed");
}

#[test]
fn nobody_watches_so_what_asks_is_refused() {
    let Some(warm) = warm("nobody_watches_so_what_asks_is_refused") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let fetch = json!({"url": "http://127.0.0.1:9/", "format": "text"});
    let id = warm
        .manager
        .spawn(&Script::new().call("webfetch", fetch).say("never"));
    let ended = warm.manager.collect(&id);
    assert_eq!(ended["status"], "failed", "{ended}");
    let error = ended["error"].as_str().unwrap();
    assert!(
        error.starts_with("stopped at a rejected permission: webfetch"),
        "{error}"
    );
}

#[test]
fn a_run_ends_at_its_deadline() {
    let Some(warm) = warm("a_run_ends_at_its_deadline") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let (script, command) = running();
    let id = warm.manager.spawn_with(
        &warm.rig.sandbox.project().display().to_string(),
        &script,
        &json!({"timeoutMs": 2500}),
    );
    let ended = warm.manager.collect(&id);
    assert_eq!(ended["status"], "timed_out", "{ended}");
    let took = ended["durationMs"].as_u64().unwrap();
    assert!((2500..8000).contains(&took), "{ended}");
    within(Duration::from_secs(5), "the end of the command", || {
        !is_running(&command)
    });
}

#[test]
fn a_wait_that_is_too_short_changes_nothing() {
    let Some(warm) = warm("a_wait_that_is_too_short_changes_nothing") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let script = Script::new().then(Step {
        text: "so far, ".to_owned(),
        ..bash("echo")
    });
    let id = warm
        .manager
        .spawn(&script.then(Step::say("so good").after_ms(2500)));
    warm.manager
        .until(&id, "a call", |view| view["toolCallCount"] == 1);
    let args = json!({"instanceId": id, "timeoutMs": 100});
    let early = warm.manager.tool("collect", &args).unwrap();
    assert_eq!(early["status"], "running", "{early}");
    assert_eq!(early["error"], "collect timed out after 100ms");
    assert_eq!(early["result"], "so far, ");
    let late = warm.manager.collect(&id);
    assert_eq!(
        (&late["status"], &late["result"]),
        (&json!("done"), &json!("so far, \n\nso good"))
    );
}

#[test]
fn a_cancelled_wait_ends_nothing() {
    let Some(warm) = warm("a_cancelled_wait_ends_nothing") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let manager = &warm.manager;
    let id = manager.spawn(&Script::new().then(Step::say("late").after_ms(1200)));
    let params = json!({"directory": warm.rig.sandbox.project(), "agent": "odin", "args": {"instanceId": id}});
    let (one, other) = (
        manager.send("collect", params.clone()),
        manager.send("collect", params),
    );
    manager.ask("cancel", json!({"id": one}));
    assert!(manager.answer(other, Duration::from_secs(60)).is_some());
    assert!(manager.answer(one, Duration::ZERO).is_none());
    assert_eq!(manager.collect(&id)["status"], "done");
}

#[test]
fn a_run_ends_at_its_last_call() {
    let Some(warm) = warm("a_run_ends_at_its_last_call") else {
        return;
    };
    let directory = strict(warm);
    let mut script = Script::new();
    for number in 0..10 {
        let path = std::path::Path::new(&directory).join(format!("{number}.txt"));
        fs::write(&path, "content").unwrap();
        script = script.call("read", json!({"filePath": path}));
    }
    let id = warm.manager.spawn_with(&directory, &script, &json!({}));
    let args = json!({"instanceId": id});
    let ended = warm
        .manager
        .tool_of("odin", &directory, "collect", &args)
        .unwrap();
    assert_eq!(
        (&ended["status"], &ended["toolCallCount"]),
        (&json!("failed"), &json!(4)),
        "{ended}"
    );
    assert!(ended["error"].as_str().unwrap().contains('4'), "{ended}");
}

#[test]
fn a_run_ends_at_its_last_token() {
    let Some(warm) = warm("a_run_ends_at_its_last_token") else {
        return;
    };
    let directory = strict(warm);
    let call = Step::call("todowrite", json!({"todos": []})).tokens(6000);
    let id = warm.manager.spawn_with(
        &directory,
        &Script::new().then(call).then(hanging_step()),
        &json!({}),
    );
    let args = json!({"instanceId": id});
    let ended = warm
        .manager
        .tool_of("odin", &directory, "collect", &args)
        .unwrap();
    assert_eq!(ended["status"], "failed", "{ended}");
    assert!(
        ended["error"].as_str().unwrap().contains("token"),
        "{ended}"
    );
}

fn hanging_step() -> Step {
    Step::say("never").hanging(Hang::Stream)
}

#[test]
fn a_loop_is_stopped_at_its_twelfth_call_and_collected_with_the_marker() {
    let Some(warm) = warm("a_loop_is_stopped_at_its_twelfth_call_and_collected_with_the_marker")
    else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let manager = &warm.manager;
    let step = Step {
        text: "once more ".to_owned(),
        ..bash("echo round")
    };
    let id = manager.spawn(&Script::new().repeat(30, step).say("never"));
    let ended = manager.collect(&id);
    assert_eq!(
        (&ended["status"], &ended["toolCallCount"]),
        (&json!("failed"), &json!(12)),
        "{ended}"
    );
    let result = ended["result"].as_str().unwrap();
    let marker = "[loop guard: 12 identical calls to bash]\nonce more ";
    assert!(
        result.starts_with(marker) && result.matches("[loop guard").count() == 1,
        "{result}"
    );
    let view = manager.status(&id);
    assert_eq!(view["loopGuardTool"], "bash");
    // It is added when collecting and kept nowhere.
    assert!(
        !view["resultPreview"].to_string().contains("[loop guard"),
        "{view}"
    );
    assert_eq!(
        crate::manager::record(&warm.rig, &id)["loopGuardTool"],
        "bash"
    );
}

#[test]
fn an_error_of_the_provider_is_the_reason() {
    let Some(warm) = warm("an_error_of_the_provider_is_the_reason") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let id = warm
        .manager
        .spawn(&Script::new().then(Step::say("never").failing(400, 99)));
    let ended = warm.manager.collect(&id);
    assert_eq!(ended["status"], "failed", "{ended}");
    assert!(
        ended["error"]
            .as_str()
            .unwrap()
            .contains("scripted failure"),
        "{ended}"
    );
}

#[test]
fn a_storm_of_retries_is_shown_and_ends_at_the_deadline() {
    let Some(warm) = warm("a_storm_of_retries_is_shown_and_ends_at_the_deadline") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let project = warm.rig.sandbox.project().display().to_string();
    let script = Script::new().then(Step::say("never").failing(503, 99));
    let id = warm
        .manager
        .spawn_with(&project, &script, &json!({"timeoutMs": 5000}));
    let view = warm
        .manager
        .until(&id, "a retry", |view| view["waitingOn"] == "retry");
    assert_eq!(view["status"], "running");
    assert!(view["retry"]["attempt"].as_u64().unwrap() >= 1, "{view}");
    let ended = warm.manager.collect(&id);
    assert_eq!(ended["status"], "timed_out", "{ended}");
}

#[test]
fn a_provider_that_says_nothing_ends_at_the_deadline() {
    let Some(warm) = warm("a_provider_that_says_nothing_ends_at_the_deadline") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let project = warm.rig.sandbox.project().display().to_string();
    let script = Script::new().then(Step::say("never").hanging(Hang::Headers));
    let id = warm
        .manager
        .spawn_with(&project, &script, &json!({"timeoutMs": 2000}));
    assert_eq!(warm.manager.collect(&id)["status"], "timed_out");
}

#[test]
fn subagents_belong_to_their_instance() {
    let Some(warm) = warm("subagents_belong_to_their_instance") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let child = Script::new()
        .then(bash("echo child"))
        .say("the child reports");
    let task =
        json!({"description": "d", "prompt": child.prompt("go "), "subagent_type": "general"});
    let id = warm
        .manager
        .spawn(&Script::new().call("task", task).say("all done"));
    let ended = warm.manager.collect(&id);
    assert_eq!(
        (&ended["status"], &ended["toolCallCount"]),
        (&json!("done"), &json!(2)),
        "{ended}"
    );
    assert_eq!(ended["result"], "all done");

    // Killed together with what it has started.
    let (child, command) = running();
    let task =
        json!({"description": "d", "prompt": child.prompt("go "), "subagent_type": "general"});
    let id = warm
        .manager
        .spawn(&Script::new().call("task", task).say("never"));
    eventually("a running command", || is_running(&command));
    let killed = warm
        .manager
        .tool("kill", &json!({"instanceId": id}))
        .unwrap();
    assert_eq!(killed["status"], "killed");
    within(Duration::from_secs(5), "the end of the command", || {
        !is_running(&command)
    });
}
