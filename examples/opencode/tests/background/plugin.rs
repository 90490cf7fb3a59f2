//! The four tools inside a running opencode.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use bizar_testkit::{
    Client, Hang, Opencode, Sandbox, Script, Step, is_alive, processes_with, signal_process,
};
use serde_json::{Value, json};

use crate::manager::{below, endless, fresh, rig, servers, start_alone, within};
use crate::rig::{Rig, bash, eventually, result};

pub(crate) struct Host {
    pub(crate) rig: Rig,
    pub(crate) server: Opencode,
}

/// One warm opencode with an agent that may start others.
fn host(test: &str) -> Option<&'static Host> {
    static HOST: OnceLock<Option<Host>> = OnceLock::new();
    let opencode = Client::Opencode.find(test)?;
    HOST.get_or_init(|| Some(Host::start(opencode))).as_ref()
}

impl Host {
    pub(crate) fn start(opencode: PathBuf) -> Self {
        let rig = rig(opencode, Sandbox::until_exit().unwrap());
        let server = serve(&rig, &[]);
        warm_up(&server, "odin");
        Self { rig, server }
    }
}

pub(crate) fn serve(rig: &Rig, env: &[(&str, &str)]) -> Opencode {
    let _alone = start_alone();
    rig.serve(env)
}

/// Runs one agent. On a machine that does a lot else, a cold start may take longer than is waited for, so it may be tried again.
pub(crate) fn warm_up(server: &Opencode, agent: &str) {
    let _alone = start_alone();
    let session = server.session().unwrap();
    let prompt = Script::new().say("warm").prompt("go ");
    let args = json!({"agent": "general", "prompt": prompt});
    let attempt = || {
        let run = tool(
            server,
            &session,
            agent,
            "bizar_spawn_background",
            args.clone(),
        );
        let id = json!({"instanceId": run.unwrap()["instanceId"]});
        tool(server, &session, agent, "bizar_collect", id).unwrap()
    };
    let mut failed = Vec::new();
    while failed.len() < 3 {
        let run = attempt();
        if run["status"] == "done" {
            return;
        }
        failed.push(run);
    }
    unreachable!("no agent comes to its end: {failed:?}");
}

/// Lets an agent play a script in a session, and gives the calls that it made.
pub(crate) fn play(server: &Opencode, session: &str, agent: &str, script: &Script) -> Vec<Value> {
    let before = server.calls(session).unwrap().len();
    let text = script.prompt("go ");
    let body = json!({"agent": agent, "parts": [{"type": "text", "text": text}]});
    server.prompt_with(session, &body).unwrap();
    server.calls(session).unwrap().split_off(before)
}

/// One call of a tool by an agent.
pub(crate) fn tool(
    server: &Opencode,
    session: &str,
    agent: &str,
    tool: &str,
    args: Value,
) -> Result<Value, String> {
    let calls = play(
        server,
        session,
        agent,
        &Script::new().call(tool, args).say("noted"),
    );
    let text = result(&calls[0]);
    match text.strip_prefix("Error: ") {
        Some(refused) => Err(refused.to_owned()),
        None => Ok(serde_json::from_str(&text).unwrap()),
    }
}

#[test]
fn two_agents_work_while_the_main_session_goes_on() {
    let Some(host) = host("two_agents_work_while_the_main_session_goes_on") else {
        return;
    };
    let server = &host.server;
    let session = server.session().unwrap();
    let agent = |name: &str| {
        let script = Script::new()
            .then(bash(&format!("echo {name}; sleep 6")))
            .say(&format!("{name} has reported"));
        json!({"agent": "general", "prompt": script.prompt("go ")})
    };
    // One message asks for both, as a model does that splits its work.
    let both = Step::call("bizar_spawn_background", agent("huginn"))
        .and("bizar_spawn_background", agent("muninn"));
    let spawned = play(
        server,
        &session,
        "odin",
        &Script::new().then(both).say("they fly"),
    );
    let runs: Vec<Value> = spawned
        .iter()
        .map(|call| serde_json::from_str(&result(call)).unwrap())
        .collect();
    let ids: Vec<&str> = runs
        .iter()
        .map(|run| run["instanceId"].as_str().unwrap())
        .collect();
    assert!(ids.len() == 2 && ids[0] != ids[1], "{runs:?}");

    // The main session works and looks while both of them do.
    let work = Script::new()
        .then(bash("echo main work"))
        .call("bizar_status", json!({}))
        .say("on");
    let calls = play(server, &session, "odin", &work);
    assert_eq!(result(&calls[0]).trim(), "main work");
    let status: Value = serde_json::from_str(&result(&calls[1])).unwrap();
    let live = status["instances"].as_array().unwrap().iter();
    let live = live.filter(|view| ids.contains(&view["instanceId"].as_str().unwrap()));
    let words: Vec<&Value> = live.map(|view| &view["status"]).collect();
    assert!(
        words.len() == 2 && words.iter().all(|word| *word != "failed"),
        "{status}"
    );

    let collect = Script::new()
        .call("bizar_collect", json!({"instanceId": ids[0]}))
        .call(
            "bizar_collect",
            json!({"instanceId": ids[1], "timeoutMs": 60_000}),
        )
        .say("both are home");
    let calls = play(server, &session, "odin", &collect);
    for (call, name) in calls.iter().zip(["huginn", "muninn"]) {
        let collected: Value = serde_json::from_str(&result(call)).unwrap();
        assert_eq!(collected["status"], "done", "{collected}");
        assert_eq!(collected["result"], format!("{name} has reported"));
    }
    // Both ran at the same time, in sessions of their own.
    let views: Vec<Value> = ids
        .iter()
        .map(|id| {
            tool(
                server,
                &session,
                "build",
                "bizar_status",
                json!({"instanceId": id}),
            )
            .unwrap()
        })
        .collect();
    let [first, second] = [&views[0], &views[1]];
    assert!(
        second["startedAt"].as_u64() < first["endedAt"].as_u64(),
        "{views:?}"
    );
    assert!(
        first["startedAt"].as_u64() < second["endedAt"].as_u64(),
        "{views:?}"
    );
    assert_eq!(first["parentAgent"], "odin");
    assert_ne!(first["sessionId"], second["sessionId"]);

    // One program for both, and one server that starts no other.
    let programs = below(server.id());
    let count = |words: &str| {
        programs
            .iter()
            .filter(|(_, args)| args.contains(words))
            .count()
    };
    assert_eq!(
        (count("bizar-opencode background"), count("__watch")),
        (1, 1),
        "{programs:?}"
    );
    assert_eq!(servers(server.id()).len(), 1);
}

#[test]
fn a_conversation_that_is_aborted_while_it_waits_ends_no_agent() {
    let Some(host) = host("a_conversation_that_is_aborted_while_it_waits_ends_no_agent") else {
        return;
    };
    let server = &host.server;
    let session = server.session().unwrap();
    let hanging = Script::new().then(Step::say("never").hanging(Hang::Stream));
    let args = json!({"agent": "general", "prompt": hanging.prompt("go ")});
    let run = tool(server, &session, "odin", "bizar_spawn_background", args).unwrap();
    let id = json!({"instanceId": run["instanceId"]});

    let wait = Script::new().call("bizar_collect", id.clone()).say("never");
    let text = wait.prompt("go ");
    let body = json!({"agent": "odin", "parts": [{"type": "text", "text": text}]});
    let path = format!("/session/{session}/prompt_async");
    server.request("POST", &path, Some(&body)).unwrap();
    let last = || server.calls(&session).unwrap().pop().unwrap_or_default();
    eventually("a wait", || {
        last()["tool"] == "bizar_collect" && last()["state"]["status"] == "running"
    });
    server
        .request("POST", &format!("/session/{session}/abort"), None)
        .unwrap();
    eventually("the end of the wait", || {
        last()["state"]["status"] == "error"
    });

    let view = tool(server, &session, "odin", "bizar_status", id.clone()).unwrap();
    assert!(
        ["pending", "running"].contains(&view["status"].as_str().unwrap()),
        "{view}"
    );
    let killed = tool(server, &session, "odin", "bizar_kill", id).unwrap();
    assert_eq!(killed["status"], "killed");
}

#[test]
fn other_agents_may_only_look() {
    let Some(host) = host("other_agents_may_only_look") else {
        return;
    };
    let session = host.server.session().unwrap();
    let call = |name: &str, args: Value| tool(&host.server, &session, "build", name, args);
    let refused = call(
        "bizar_spawn_background",
        json!({"agent": "general", "prompt": "p"}),
    )
    .unwrap_err();
    assert!(
        refused.contains("agent build may not spawn") && refused.contains("backgroundAgents"),
        "{refused}"
    );
    assert!(refused.contains("only odin may"), "{refused}");
    for name in ["bizar_collect", "bizar_kill"] {
        let id = json!({"instanceId": "bgr_01ARZ3NDEKTSV4RRFFQ69G5FAV"});
        assert!(call(name, id).unwrap_err().contains("only odin may"));
    }
    assert!(call("bizar_status", json!({})).is_ok());
    // What the model is told about the tools.
    let request = host.rig.model.requests_of(&session).remove(0);
    let tools = request.body["tools"].as_array().unwrap();
    let spawn = tools
        .iter()
        .find(|tool| tool["function"]["name"] == "bizar_spawn_background")
        .unwrap();
    assert!(
        spawn["function"]["description"]
            .as_str()
            .unwrap()
            .contains("never put untrusted content")
    );
    assert_eq!(
        spawn["function"]["parameters"]["required"],
        json!(["agent", "prompt"])
    );
}

#[test]
fn without_its_agent_there_are_no_tools() {
    let Some(host) = host("without_its_agent_there_are_no_tools") else {
        return;
    };
    let offered = |options: Value| {
        let server = host.server.at(&host.rig.project(&options));
        let session = server.session().unwrap();
        play(&server, &session, "build", &Script::new().say("hello"));
        let tools = host.rig.model.requests_of(&session).remove(0).tools;
        assert!(tools.iter().any(|tool| tool == "bash"));
        tools
            .iter()
            .filter(|tool| tool.starts_with("bizar_"))
            .count()
    };
    assert_eq!(offered(json!({"backgroundAgents": ["thor"]})), 0);
    assert_eq!(offered(json!({"backgroundAgents": ["thor", "build"]})), 4);
}

#[test]
fn a_killed_opencode_leaves_nothing_running() {
    let Some(rig) = fresh("a_killed_opencode_leaves_nothing_running") else {
        return;
    };
    let server = serve(&rig, &[]);
    warm_up(&server, "odin");
    let (session, command) = (server.session().unwrap(), endless());
    let script = Script::new().then(bash(&command)).say("never");
    let args = json!({"agent": "general", "prompt": script.prompt("go ")});
    tool(&server, &session, "odin", "bizar_spawn_background", args).unwrap();
    eventually("a running command", || !processes_with(&command).is_empty());
    let all = below(server.id());
    assert!(all.len() >= 5, "{all:?}");
    signal_process("KILL", server.id());
    within(Duration::from_secs(15), "the end of everything", || {
        processes_with(&command).is_empty() && all.iter().all(|(pid, _)| !is_alive(*pid))
    });
}
