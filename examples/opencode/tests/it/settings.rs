//! Options and switches.

use std::fs;

use bizar_testkit::{Script, processes_with};
use serde_json::json;

use crate::rig::{Rig, bash, eventually, play, warm};

#[test]
fn options_come_from_opencode_json_and_nonsense_does_no_harm() {
    let Some(warm) = warm("options_come_from_opencode_json_and_nonsense_does_no_harm") else {
        return;
    };
    let script = Script::new().repeat(13, bash("echo hello")).say("the end");
    let strict = json!({"loopThresholdWarn": 2, "loopThresholdEscalate": 3, "loopThresholdBlock": 4, "loopHaltAfterBlocks": 0});
    let run = warm.play_with(&strict, &script);
    assert_eq!(run.refused(), (3..13).collect::<Vec<_>>());
    // The numbers in the texts do not follow the options.
    assert!(
        run.result(3)
            .contains("Loop protection: 12 identical calls to bash.")
    );

    let nonsense = json!({"loopThresholdWarn": "five", "loopThresholdBlock": {"a": 1}, "logDir": 7, "stateDir": "~/.ssh/x",
        "loopMode": "sometimes", "loopTresholdEscalate": 2, "loopToolThresholds": [1, 2], "": null});
    let run = warm.play_with(&nonsense, &script);
    assert_eq!(run.refused(), [11, 12]);
    let said = || warm.rig.said().join("\n");
    for note in [
        "loopThresholdWarn: ",
        "did you mean loopThresholdEscalate",
        "loopMode: ",
        "stateDir: ",
    ] {
        eventually(note, || said().contains(note));
    }
    assert!(!warm.rig.sandbox.home().join(".ssh").exists());
}

#[test]
fn observe_only_reports_and_does_nothing() {
    let Some(warm) = warm("observe_only_reports_and_does_nothing") else {
        return;
    };
    let run = warm.play_with(
        &json!({"loopObserveOnly": true}),
        &Script::new().repeat(18, bash("echo hello")).say("the end"),
    );
    assert_eq!((run.calls.len(), run.refused()), (18, vec![]));
    assert_eq!(run.told("[loop guard"), [0; 19]);
    assert_eq!(warm.rig.outcomes(&run.session), ["ok"; 18]);
    assert_eq!(warm.rig.state(&run.session).unwrap()["blocksTriggered"], 0);
    eventually("a report", || {
        warm.rig
            .said()
            .iter()
            .any(|line| line.contains(&run.session) && line.contains("observed only"))
    });
}

#[test]
fn a_second_copy_of_the_plugin_counts_nothing_twice() {
    let Some(warm) = warm("a_second_copy_of_the_plugin_counts_nothing_twice") else {
        return;
    };
    let project = warm.rig.project(&json!({}));
    let plugins = project.join(".opencode/plugins");
    bizar_testkit::Sandbox::seed(&project.join(".opencode")).unwrap();
    fs::create_dir(&plugins).unwrap();
    fs::copy(warm.rig.plugin(), plugins.join("copy.ts")).unwrap();
    let run = warm.play_in(
        &warm.server.at(&project),
        &Script::new().repeat(13, bash("echo hello")).say("the end"),
    );
    assert_eq!(run.refused(), [11, 12]);
    assert_eq!(run.told("[loop guard").into_iter().max(), Some(1));
    assert_eq!(warm.rig.log(&run.session).len(), 13);
}

#[test]
fn all_directories_of_a_process_share_one_sidecar() {
    let Some(rig) = Rig::new("all_directories_of_a_process_share_one_sidecar") else {
        return;
    };
    let server = rig.serve(&[]);
    let script = Script::new().repeat(2, bash("echo hello")).say("the end");
    let run = |server| {
        let session = bizar_testkit::Opencode::session(server).unwrap();
        play(&rig, server, &session, &script)
    };
    run(&server);
    let other = server.at(&rig.project(&json!({})));
    run(&other);
    let sidecars = sidecars(&rig);
    assert_eq!(sidecars.len(), 1, "{sidecars:?}");
    // A directory that is disposed of is opened anew at its next use, and the sidecar is still there.
    other.request("POST", "/instance/dispose", None).unwrap();
    let again = run(&other);
    assert_eq!(rig.outcomes(&again.session), ["ok", "ok"]);
    assert_eq!(self::sidecars(&rig), sidecars);
    // With the last directory it goes.
    server.request("POST", "/global/dispose", None).unwrap();
    eventually("the end of the sidecar", || self::sidecars(&rig).is_empty());
}

/// The sidecars that this rig's opencode started: they run in its project.
fn sidecars(rig: &Rig) -> Vec<u32> {
    let project = rig.sandbox.project();
    let here = |id: &u32| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd == project);
    processes_with("bizar-opencode guard")
        .into_iter()
        .filter(here)
        .collect()
}

#[test]
fn bizar_disable_means_no_hook_and_no_process() {
    let Some(rig) = Rig::new("bizar_disable_means_no_hook_and_no_process") else {
        return;
    };
    let server = rig.serve(&[
        ("BIZAR_DISABLE", "1"),
        ("BIZAR_LOG_LEVEL", "debug"),
        ("OPENCODE_LOG_LEVEL", "DEBUG"),
    ]);
    let session = server.session().unwrap();
    let run = play(
        &rig,
        &server,
        &session,
        &Script::new().repeat(13, bash("echo hello")).say("the end"),
    );
    assert_eq!(
        (run.refused(), run.told("[loop guard")),
        (vec![], vec![0; 14])
    );
    assert_eq!(sidecars(&rig), Vec::<u32>::new());
    assert!(!rig.cache().exists());
    eventually("one line", || rig.said().len() == 1);
    let said = rig.said().concat();
    assert!(
        said.contains("level=DEBUG") && said.contains("disabled by BIZAR_DISABLE"),
        "{said}"
    );
}

#[test]
fn bizar_disable_loop_still_logs_and_bizar_disable_log_still_guards() {
    let test = "bizar_disable_loop_still_logs_and_bizar_disable_log_still_guards";
    let Some(rig) = Rig::new(test) else { return };
    let script = Script::new().repeat(13, bash("echo hello")).say("the end");
    let server = rig.serve(&[("BIZAR_DISABLE_LOOP", "1")]);
    let session = server.session().unwrap();
    let run = play(&rig, &server, &session, &script);
    assert_eq!(
        (run.refused(), run.told("[loop guard")),
        (vec![], vec![0; 14])
    );
    assert_eq!(rig.outcomes(&session), ["ok"; 13]);
    drop(server);

    let server = rig.serve(&[("BIZAR_DISABLE_LOG", "1"), ("BIZAR_LOG_LEVEL", "error")]);
    let session = server.session().unwrap();
    let said = rig.said().len();
    let run = play(&rig, &server, &session, &script);
    assert_eq!(run.refused(), [11, 12]);
    assert_eq!(rig.log(&session), Vec::<String>::new());
    // Warnings are below the level that was asked for.
    assert_eq!(rig.said().len(), said);
}

#[test]
fn doom_loop_is_allowed_only_where_the_guard_is_on() {
    let Some(warm) = warm("doom_loop_is_allowed_only_where_the_guard_is_on") else {
        return;
    };
    let entry = warm.rig.entry();
    let cases = [
        (json!({}), "allow"),
        (json!({"permission": "ask"}), "allow"),
        (
            json!({"permission": {"doom_loop": "ask", "*": "ask"}}),
            "allow",
        ),
        (
            json!({"agent": {"build": {"permission": {"*": "ask"}}}}),
            "allow",
        ),
        (json!({"agent": {"build": {"permission": "ask"}}}), "allow"),
        (json!({"agent": {"build": {"permission": "deny"}}}), "deny"),
        (json!({"permission": {"doom_loop": "deny"}}), "deny"),
        (
            json!({"agent": {"build": {"permission": {"doom_loop": "deny"}}}}),
            "deny",
        ),
        (
            json!({"plugin": [[entry, {"opencodeDoomLoop": "leave"}]]}),
            "ask",
        ),
        (
            json!({"plugin": [[entry, {"loopObserveOnly": true}]]}),
            "ask",
        ),
    ];
    for (config, action) in cases {
        let server = warm.server.at(&warm.rig.project_with(&config));
        let agents = server.request("GET", "/agent", None).unwrap().body;
        let build = agents
            .as_array()
            .unwrap()
            .iter()
            .find(|agent| agent["name"] == "build")
            .unwrap();
        let mut rules = build["permission"].as_array().unwrap().iter();
        let last =
            rules.rfind(|rule| rule["permission"] == "doom_loop" || rule["permission"] == "*");
        assert_eq!(last.unwrap()["action"], action, "{config}");
    }
}
