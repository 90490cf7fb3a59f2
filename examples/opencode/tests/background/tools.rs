//! What the tools refuse, and what they keep to themselves.

use bizar_testkit::Script;
use serde_json::json;

use crate::manager::{servers, warm};
use crate::rig::bash;

#[test]
fn unknown_agents_and_models_are_named() {
    let Some(warm) = warm("unknown_agents_and_models_are_named") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let spawn = |agent: &str, model: &str| {
        let args = json!({"agent": agent, "prompt": "p", "model": model});
        let run = warm.manager.tool("spawn", &args).unwrap();
        assert_eq!(run["status"], "failed", "{run}");
        assert!(
            run["instanceId"].as_str().unwrap().starts_with("bgr_"),
            "{run}"
        );
        run["error"].as_str().unwrap().to_owned()
    };
    let error = spawn("loki", "mock/m");
    assert!(
        error.contains("there is no agent loki; available: ") && error.contains("general"),
        "{error}"
    );
    let error = spawn("general", "mock/other/model");
    assert!(
        error.contains("the provider mock has no model other/model"),
        "{error}"
    );
    let error = spawn("general", "nobody/m");
    assert!(
        error.contains("there is no provider nobody") && error.contains("mock"),
        "{error}"
    );
}

#[test]
fn wrong_arguments_are_refused_with_what_to_do() {
    let Some(warm) = warm("wrong_arguments_are_refused_with_what_to_do") else {
        return;
    };
    let cases = [
        ("spawn", json!({"prompt": "p"}), "agent is required"),
        (
            "spawn",
            json!({"agent": "general", "prompt": "  "}),
            "prompt is required",
        ),
        (
            "spawn",
            json!({"agent": "odin", "prompt": "p"}),
            "name another agent",
        ),
        (
            "spawn",
            json!({"agent": "general", "prompt": "p", "model": "m"}),
            "provider/model",
        ),
        (
            "spawn",
            json!({"agent": "general", "prompt": "p", "timeoutMs": 999}),
            "from 1000 to 1800000",
        ),
        (
            "spawn",
            json!({"agent": "general", "prompt": "p", "timeoutMs": 1_800_001}),
            "from 1000 to 1800000",
        ),
        (
            "spawn",
            json!({"agent": "general", "prompt": "p", "timeoutMs": "5000"}),
            "from 1000 to 1800000",
        ),
        (
            "spawn",
            json!({"agent": "general", "prompt": "p".repeat((1 << 20) + 1)}),
            "put the material in a file",
        ),
        ("collect", json!({}), "see bizar_status"),
        (
            "collect",
            json!({"instanceId": "../../etc/passwd"}),
            "not an instance id",
        ),
        (
            "collect",
            json!({"instanceId": "bgr_01ARZ3NDEKTSV4RRFFQ69G5FAV"}),
            "see bizar_status",
        ),
        (
            "collect",
            json!({"instanceId": "bgr_01ARZ3NDEKTSV4RRFFQ69G5FAV", "timeoutMs": -1}),
            "from 0 to 1800000",
        ),
        ("kill", json!({"instanceId": 7}), "see bizar_status"),
        ("status", json!({"all": "yes"}), "true or false"),
        (
            "status",
            json!({"instanceId": "bgr_x"}),
            "not an instance id",
        ),
    ];
    for (tool, args, words) in cases {
        let refused = warm.manager.tool(tool, &args).unwrap_err();
        assert!(refused.contains(words), "{tool}: {refused}");
    }
}

#[test]
fn only_the_named_agent_may_do_more_than_look() {
    let Some(warm) = warm("only_the_named_agent_may_do_more_than_look") else {
        return;
    };
    let project = warm.rig.sandbox.project().display().to_string();
    let args =
        json!({"agent": "general", "prompt": "p", "instanceId": "bgr_01ARZ3NDEKTSV4RRFFQ69G5FAV"});
    for tool in ["spawn", "collect", "kill"] {
        for agent in ["build", "Odin", "odin ", ""] {
            let refused = warm
                .manager
                .tool_of(agent, &project, tool, &args)
                .unwrap_err();
            assert!(
                refused.contains("only odin may (option backgroundAgents)"),
                "{refused}"
            );
        }
    }
    assert!(
        warm.manager
            .tool_of("build", &project, "status", &json!({}))
            .is_ok()
    );
}

#[test]
fn one_server_and_its_secret_stay_out_of_sight() {
    let Some(warm) = warm("one_server_and_its_secret_stay_out_of_sight") else {
        return;
    };
    let _slot = warm.slots.read().unwrap();
    let look =
        "echo \"[$OPENCODE_SERVER_PASSWORD]\"; env | grep -c OPENCODE_SERVER_PASSWORD=. ; true";
    let id = warm
        .manager
        .spawn(&Script::new().then(bash(look)).say("seen"));
    assert_eq!(warm.manager.collect(&id)["status"], "done");
    let session = warm.manager.status(&id)["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let requests = warm.rig.model.requests_of(&session);
    assert_eq!(requests[1].results()[0].trim(), "[]\n0");
    // The guard is on in there, the tools are not, and nothing starts a second server.
    assert!(requests[0].tools.iter().any(|tool| tool == "bash"));
    assert!(
        !requests[0]
            .tools
            .iter()
            .any(|tool| tool.starts_with("bizar_"))
    );
    assert!(warm.rig.outcomes(&session).contains(&"ok".to_owned()));
    for server in servers(warm.manager.pid()) {
        assert_eq!(servers(server), Vec::<u32>::new());
    }
}
