//! What is killed, and what is found afterwards.

use std::thread;
use std::time::Duration;

use bizar_testkit::{Hang, Script, Step, is_alive, processes_with, signal_process};
use serde_json::{Value, json};

use crate::manager::{Manager, below, endless, fresh, record, servers, within};
use crate::rig::{bash, eventually};

#[test]
fn a_killed_server_fails_its_runs_and_the_next_spawn_works() {
    let Some(rig) = fresh("a_killed_server_fails_its_runs_and_the_next_spawn_works") else {
        return;
    };
    let manager = Manager::warm(&rig);
    let command = endless();
    let hanging = Script::new().then(Step::say("never").hanging(Hang::Stream));
    let busy = Script::new().then(bash(&command)).say("never");
    let ids = [manager.spawn(&hanging), manager.spawn(&busy)];
    for id in &ids {
        manager.until(id, "a run at work", |view| view["status"] != "pending");
    }
    eventually("a running command", || !processes_with(&command).is_empty());
    let [server] = servers(manager.pid())[..] else {
        unreachable!("one server")
    };
    signal_process("KILL", server);
    within(Duration::from_secs(2), "the end of all runs", || {
        ids.iter()
            .all(|id| manager.status(id)["status"] == "failed")
    });
    for id in &ids {
        let error = manager.status(id)["error"].to_string();
        assert!(error.contains("serve child exited"), "{error}");
    }
    within(Duration::from_secs(5), "the end of the command", || {
        processes_with(&command).is_empty()
    });
    let id = manager.spawn(&Script::new().say("a new server"));
    assert_eq!(manager.collect(&id)["result"], "a new server");
    assert!(!is_alive(server) && servers(manager.pid()).len() == 1);
    // The end of the input is the end of everything.
    let all = below(manager.pid());
    manager.end();
    for (pid, args) in all {
        assert!(!is_alive(pid), "{args}");
    }
}

#[test]
fn a_killed_manager_leaves_nothing_running_and_its_records_are_read() {
    let Some(rig) = fresh("a_killed_manager_leaves_nothing_running_and_its_records_are_read")
    else {
        return;
    };
    let manager = Manager::warm(&rig);
    let command = endless();
    let step = Step {
        text: "as far as I got".to_owned(),
        ..bash(&command)
    };
    let done = manager.spawn(&Script::new().say("the old answer"));
    let first = manager.collect(&done);
    assert_eq!(first["status"], "done", "{first}");
    let id = manager.spawn(&Script::new().then(step).say("never"));
    eventually("a running command", || !processes_with(&command).is_empty());
    let all = below(manager.pid());
    assert!(
        all.iter().any(|(_, args)| args.contains("__watch")),
        "{all:?}"
    );
    manager.kill();
    within(Duration::from_secs(5), "the end of everything", || {
        processes_with(&command).is_empty() && all.iter().all(|(pid, _)| !is_alive(*pid))
    });
    assert_eq!(record(&rig, &id)["status"], "running");

    let manager = Manager::start(&rig);
    let view = manager.status(&id);
    assert_eq!(
        (&view["status"], &view["error"]),
        (&json!("failed"), &json!("plugin restarted"))
    );
    let collected = manager.collect(&id);
    assert_eq!(
        (&collected["status"], &collected["result"]),
        (&json!("failed"), &json!("as far as I got"))
    );
    assert_eq!(manager.collect(&done)["result"], "the old answer");
    let all = manager.tool("status", &json!({})).unwrap();
    assert_eq!(all["instances"].as_array().unwrap().len(), 3);
}

#[test]
fn two_managers_leave_the_live_records_of_each_other_alone() {
    let Some(rig) = fresh("two_managers_leave_the_live_records_of_each_other_alone") else {
        return;
    };
    let one = Manager::warm(&rig);
    let slow = Script::new().then(Step::say("mine").after_ms(8000));
    let id = one.spawn(&slow);
    one.until(&id, "a running run", |view| view["status"] == "running");

    let other = Manager::start(&rig);
    // It has looked through the records by the time it answers.
    let listed = |all: bool| {
        let answer = other.tool("status", &json!({"all": all})).unwrap();
        let instances = answer["instances"].as_array().unwrap().clone();
        instances
            .into_iter()
            .find(|view| view["instanceId"] == id.as_str())
    };
    assert_eq!(listed(false), None);
    assert_eq!(listed(true).unwrap()["status"], "running");
    let refused = other.tool("kill", &json!({"instanceId": id})).unwrap_err();
    assert!(
        refused.contains("belongs to another running opencode"),
        "{refused}"
    );
    assert_eq!(record(&rig, &id)["status"], "running");

    // The server may be started before it is needed, and permissions be granted.
    let options = json!({"backgroundEager": true, "backgroundPermissions": "allow"});
    other.open(&rig.sandbox.project(), &options);
    eventually("a server", || servers(other.pid()).len() == 1);
    let fetch = json!({"url": "http://127.0.0.1:9/", "format": "text"});
    let script = Script::new()
        .call("webfetch", fetch)
        .say("asked and granted");
    let granted = other.collect(&other.spawn(&script));
    assert_eq!(
        (&granted["status"], &granted["result"]),
        (&json!("done"), &json!("asked and granted")),
        "{granted}"
    );
    other.end();

    let done = one.collect(&id);
    assert_eq!(
        (&done["status"], &done["result"]),
        (&json!("done"), &json!("mine"))
    );
    thread::sleep(Duration::from_millis(200));
    assert_eq!(record(&rig, &id)["error"], Value::Null);
    one.end();
}
