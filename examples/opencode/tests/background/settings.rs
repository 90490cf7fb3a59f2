//! What options, environment and installation change, and what becomes of agents when their directory or their program goes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;
use std::time::Duration;

use bizar_testkit::{Client, Hang, Opencode, Sandbox, Script, Step, is_alive, processes_with};
use serde_json::{Value, json};

use crate::manager::{below, endless, fresh, rig, servers, warm, within};
use crate::plugin::{Host, play, serve, tool, warm_up};
use crate::rig::{bash, eventually, result};

/// One more opencode: the other one has agents in one directory only.
fn host(test: &str) -> Option<&'static Host> {
    static HOST: OnceLock<Option<Host>> = OnceLock::new();
    let opencode = Client::Opencode.find(test)?;
    HOST.get_or_init(|| Some(Host::start(opencode))).as_ref()
}

#[test]
fn a_session_is_a_child_of_its_caller_if_that_is_wanted() {
    let Some(host) = host("a_session_is_a_child_of_its_caller_if_that_is_wanted") else {
        return;
    };
    let task = |text: &str| {
        let child = Script::new().say("the subagent reports").prompt("go ");
        let task = json!({"description": "d", "prompt": child, "subagent_type": "general"});
        Script::new().call("task", task).say(text)
    };
    for (wanted, outcome) in [(false, "completed"), (true, "error")] {
        let options = json!({"backgroundParent": wanted});
        let server = host.server.at(&host.rig.project(&options));
        warm_up(&server, "odin");
        let caller = server.session().unwrap();
        let prompt = task("reported").prompt("go ");
        let args = json!({"agent": "build", "prompt": prompt});
        let run = tool(&server, &caller, "odin", "bizar_spawn_background", args).unwrap();
        let id = json!({"instanceId": run["instanceId"]});
        let done = tool(&server, &caller, "odin", "bizar_collect", id).unwrap();
        assert_eq!(
            (&done["status"], &done["result"]),
            (&json!("done"), &json!("reported")),
            "{done}"
        );

        let session = run["sessionId"].as_str().unwrap();
        let get = |path: &str| server.request("GET", path, None).unwrap().body;
        let info = get(&format!("/session/{session}"));
        let parent = if wanted { json!(caller) } else { Value::Null };
        assert_eq!(info["parentID"], parent, "{info}");
        assert_eq!(
            info["metadata"],
            json!({"bizarCaller": caller, "instanceId": run["instanceId"]})
        );
        let children = get(&format!("/session/{caller}/children"));
        assert_eq!(children.as_array().unwrap().len(), usize::from(wanted));
        // The price of it.
        let calls = server.calls(session).unwrap();
        assert_eq!(calls[0]["state"]["status"], outcome, "{calls:?}");
        let refused = result(&calls[0]).contains("Subagent depth limit reached");
        assert_eq!(refused, wanted, "{calls:?}");
        close(&server);
    }
}

#[test]
fn a_run_ends_at_its_last_dollar() {
    let Some(warm) = warm("a_run_ends_at_its_last_dollar") else {
        return;
    };
    // Dollars for a million tokens.
    let price = json!({"models": {"m": {"cost": {"input": 100, "output": 0}}}});
    let project = warm.rig.project_with(&json!({"provider": {"mock": price}}));
    let directory = project.display().to_string();
    let options = json!({"backgroundMaxCostUsd": 0.5});
    warm.manager.open(&project, &options);
    let run = |steps: [u64; 2]| {
        let call = |tokens| Step::call("todowrite", json!({"todos": []})).tokens(tokens);
        let script = steps
            .into_iter()
            .fold(Script::new(), |script, tokens| script.then(call(tokens)));
        let script = script.then(Step::say("within the budget").tokens(0));
        let id = warm.manager.spawn_with(&directory, &script, &json!({}));
        let args = json!({"instanceId": id});
        let tool = |name: &str| {
            warm.manager
                .tool_of("odin", &directory, name, &args)
                .unwrap()
        };
        (tool("collect"), tool("status"))
    };
    let (done, view) = run([2000, 1000]);
    assert_eq!(done["status"], "done", "{done}");
    assert!(
        (view["costUsd"].as_f64().unwrap() - 0.3).abs() < 1e-9,
        "{view}"
    );
    let (ended, view) = run([2000, 4000]);
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(
        ended["error"],
        "the cost of 0.6000 US dollars is over the limit of 0.5000"
    );
    assert_eq!(view["toolCallCount"], 2);
    warm.manager.ask("close", json!({"directory": directory}));
}

#[test]
fn the_environment_sets_slots_calls_and_permissions() {
    let Some(rig) = fresh("the_environment_sets_slots_calls_and_permissions") else {
        return;
    };
    let server = serve(
        &rig,
        &[
            ("BIZAR_MAX_CONCURRENT_INSTANCES", "1"),
            ("BIZAR_BACKGROUND_TOOL_CALL_CAP", "3"),
            ("BIZAR_BACKGROUND_SKIP_PERMISSIONS", "1"),
        ],
    );
    warm_up(&server, "odin");
    let session = server.session().unwrap();
    let call = |name: &str, args: Value| tool(&server, &session, "odin", name, args);
    let spawn = |script: &Script| {
        let args = json!({"agent": "general", "prompt": script.prompt("go ")});
        call("bizar_spawn_background", args)
    };

    // What asks is granted.
    let fetch = json!({"url": "http://127.0.0.1:9/", "format": "text"});
    let run = spawn(&Script::new().call("webfetch", fetch).say("granted")).unwrap();
    let id = json!({"instanceId": run["instanceId"]});
    let done = call("bizar_collect", id.clone()).unwrap();
    assert_eq!(
        (&done["status"], &done["result"]),
        (&json!("done"), &json!("granted")),
        "{done}"
    );
    let view = call("bizar_status", id).unwrap();
    assert_eq!(view["rejected"], json!([]));

    // One slot.
    let first = spawn(&Script::new().then(Step::say("never").hanging(Hang::Stream))).unwrap();
    let refused = spawn(&Script::new().say("no room")).unwrap_err();
    let taken = format!(
        "all 1 background slots are taken by {}",
        first["instanceId"].as_str().unwrap()
    );
    assert!(refused.contains(&taken), "{refused}");
    let id = json!({"instanceId": first["instanceId"]});
    assert_eq!(call("bizar_kill", id.clone()).unwrap()["status"], "killed");
    eventually("a free slot", || {
        call("bizar_status", id.clone()).unwrap()["draining"] == false
    });

    // Three calls.
    let calls = (0..5).fold(Script::new(), |script, number| {
        script.then(bash(&format!("echo {number}")))
    });
    let run = spawn(&calls.say("never")).unwrap();
    let id = json!({"instanceId": run["instanceId"]});
    let ended = call("bizar_collect", id).unwrap();
    assert_eq!(
        (&ended["status"], &ended["error"], &ended["toolCallCount"]),
        (
            &json!("failed"),
            &json!("the limit of 3 tool calls was reached"),
            &json!(3)
        ),
        "{ended}"
    );
}

#[test]
fn an_agent_that_was_named_at_installation_spawns() {
    let Some(opencode) = Client::Opencode.find("an_agent_that_was_named_at_installation_spawns")
    else {
        return;
    };
    let rig = rig(opencode, Sandbox::new().unwrap());
    let installed = rig.bizar(&["install", "--force", "--background-agent", "thor"]);
    assert!(installed.status.success(), "{installed:?}");
    let agents = json!({"agent": {"thor": {"mode": "primary", "description": "d", "prompt": "You are Thor."}}});
    let server = serve(&rig, &[]).at(&rig.project_with(&agents));
    warm_up(&server, "thor");
    let session = server.session().unwrap();
    let prompt = Script::new().say("home again").prompt("go ");
    let args = |agent: &str| json!({"agent": agent, "prompt": prompt});
    let spawn =
        |by: &str, agent: &str| tool(&server, &session, by, "bizar_spawn_background", args(agent));
    let run = spawn("thor", "general").unwrap();
    let id = json!({"instanceId": run["instanceId"]});
    let done = tool(&server, &session, "thor", "bizar_collect", id).unwrap();
    assert_eq!(
        (&done["status"], &done["result"]),
        (&json!("done"), &json!("home again")),
        "{done}"
    );
    // Nobody else, and not itself.
    let refused = spawn("odin", "general").unwrap_err();
    assert!(refused.contains("only thor may"), "{refused}");
    let refused = spawn("thor", "thor").unwrap_err();
    assert!(refused.contains("name another agent"), "{refused}");
}

#[test]
fn a_directory_that_is_disposed_of_takes_its_agents_with_it_and_no_others() {
    let test = "a_directory_that_is_disposed_of_takes_its_agents_with_it_and_no_others";
    let Some(host) = host(test) else {
        return;
    };
    let run = |server: &Opencode| {
        warm_up(server, "odin");
        let (session, command) = (server.session().unwrap(), endless());
        let script = Script::new().then(bash(&command)).say("never");
        let args = json!({"agent": "general", "prompt": script.prompt("go ")});
        let run = tool(server, &session, "odin", "bizar_spawn_background", args).unwrap();
        eventually("a running command", || !processes_with(&command).is_empty());
        let shell = processes_with(&command)[0];
        let runs_it = |server: &u32| below(*server).iter().any(|(pid, _)| *pid == shell);
        let server = servers(host.server.id()).into_iter().find(runs_it).unwrap();
        (
            session,
            json!({"instanceId": run["instanceId"]}),
            server,
            shell,
        )
    };
    let doomed = host.server.at(&host.rig.project(&json!({})));
    let (stays, goes) = (run(&host.server), run(&doomed));
    assert_ne!(stays.2, goes.2);
    close(&doomed);
    within(Duration::from_secs(15), "the end of its agents", || {
        !is_alive(goes.2) && !is_alive(goes.3)
    });
    assert!(is_alive(stays.2) && is_alive(stays.3));

    // It can be used again, and knows what became of them.
    let view = tool(&doomed, &goes.0, "odin", "bizar_status", goes.1).unwrap();
    assert_eq!(
        (&view["status"], &view["error"]),
        (&json!("failed"), &json!("background agents were shut down")),
        "{view}"
    );
    let killed = tool(&host.server, &stays.0, "odin", "bizar_kill", stays.1).unwrap();
    assert_eq!(killed["status"], "killed");
    close(&doomed);
}

#[test]
fn an_opencode_that_was_replaced_while_it_runs_starts_no_agents() {
    let test = "an_opencode_that_was_replaced_while_it_runs_starts_no_agents";
    let Some(opencode) = Client::Opencode.find(test) else {
        return;
    };
    let mut rig = rig(opencode, Sandbox::new().unwrap());
    let program = rig.sandbox.root().join("opencode");
    let real = rig.opencode.canonicalize().unwrap();
    fs::hard_link(&real, &program)
        .or_else(|_| fs::copy(&real, &program).map(drop))
        .unwrap();
    rig.opencode = program.clone();
    let server = serve(&rig, &[]);
    let session = server.session().unwrap();
    play(&server, &session, "odin", &Script::new().say("up"));

    // As an installer does it.
    let (marker, new) = (
        rig.sandbox.root().join("served"),
        program.with_extension("new"),
    );
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = serve ] && touch {}\necho 1.17.0\n",
        marker.display()
    );
    fs::write(&new, script).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&new, &program).unwrap();

    let args = json!({"agent": "general", "prompt": "p"});
    let run = tool(&server, &session, "odin", "bizar_spawn_background", args).unwrap();
    assert_eq!(run["status"], "failed", "{run}");
    let version = Client::Opencode.version();
    let error = run["error"].as_str().unwrap();
    assert!(
        error.ends_with(&format!("has version \"1.17.0\", not {version}")),
        "{error}"
    );
    assert!(!marker.exists(), "it was not started");
}

/// Makes opencode let go of a directory.
fn close(server: &Opencode) {
    let answer = server.request("POST", "/instance/dispose", None).unwrap();
    assert_eq!(answer.body, json!(true));
}
