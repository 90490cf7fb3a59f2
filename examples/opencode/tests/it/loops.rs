//! What is refused, and what is not, in the default mode.

use std::fs;
use std::time::Duration;

use bizar_testkit::{Script, Step};
use serde_json::json;

use crate::rig::{BLOCK, bash, eventually, warm};

#[test]
fn the_twelfth_identical_call_is_refused_and_the_run_goes_on() {
    let Some(warm) = warm("the_twelfth_identical_call_is_refused_and_the_run_goes_on") else {
        return;
    };
    let run = warm.play(&Script::new().repeat(13, bash("echo hello")).say("the end"));
    assert_eq!(run.calls.len(), 13);
    assert_eq!(run.refused(), [11, 12]);
    assert!(
        run.result(11).starts_with(&format!("Error: {BLOCK}\n")),
        "{}",
        run.result(11)
    );
    // The model saw the literal text as the call's result, and could go on.
    let seen = run.requests[12].results().pop().unwrap();
    assert!(seen.contains(BLOCK), "{seen}");
    assert!(run.ended_with("the end"), "{}", run.last);

    assert_eq!(
        warm.rig.outcomes(&run.session),
        [vec!["ok"; 11], vec!["blocked"; 2]].concat()
    );
    let state = warm.rig.state(&run.session).unwrap();
    assert_eq!(
        (&state["blocksTriggered"], &state["warningsIssued"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(
        (&state["parentAgent"], &state["host"]),
        (&json!("build"), &json!("opencode"))
    );
}

#[test]
fn a_cycle_of_two_is_refused_at_its_twelfth_call() {
    let Some(warm) = warm("a_cycle_of_two_is_refused_at_its_twelfth_call") else {
        return;
    };
    let mut script = Script::new();
    for _ in 0..7 {
        script = script.then(bash("echo a")).then(bash("echo b"));
    }
    let run = warm.play(&script.say("the end"));
    assert_eq!(run.refused(), [11, 12, 13]);
    let text = "Loop protection: a cycle of 2 calls around bash repeats. Use task to escalate.";
    assert!(run.result(11).contains(text), "{}", run.result(11));
}

#[test]
fn editing_and_testing_is_no_loop() {
    let Some(warm) = warm("editing_and_testing_is_no_loop") else {
        return;
    };
    let project = warm.rig.project(&json!({}));
    let file = project.join("n.txt");
    fs::write(&file, "value 0\n").unwrap();
    let mut script = Script::new().call("read", json!({"filePath": file}));
    for n in 0..15 {
        let edit = json!({"filePath": file, "oldString": format!("value {n}"), "newString": format!("value {}", n + 1)});
        script = script.call("edit", edit).then(bash("cat n.txt; exit 1"));
    }
    let run = warm.play_in(&warm.server.at(&project), &script.say("the end"));
    assert_eq!(run.refused(), Vec::<usize>::new());
    assert_eq!(fs::read_to_string(&file).unwrap(), "value 15\n");
    assert_eq!(run.told("[loop guard"), [0; 32]);
}

#[test]
fn polling_something_that_changes_is_never_refused() {
    let Some(warm) = warm("polling_something_that_changes_is_never_refused") else {
        return;
    };
    let project = warm.rig.project(&json!({}));
    let run = warm.play_in(
        &warm.server.at(&project),
        &Script::new()
            .repeat(20, bash("echo x >> progress; wc -l < progress"))
            .say("the end"),
    );
    assert_eq!(run.refused(), Vec::<usize>::new());
    assert_eq!(run.result(19).trim(), "20");
    // From the twelfth on it is told that it makes one call again and again, and nothing more.
    let told = run.told("[loop guard: the same call to bash again and again].");
    assert_eq!(told, [vec![0; 12], vec![1; 9]].concat());
}

#[test]
fn equal_calls_in_one_message_count_once() {
    let Some(warm) = warm("equal_calls_in_one_message_count_once") else {
        return;
    };
    let mut round = bash("echo hello");
    for _ in 0..9 {
        round = round.and("bash", json!({"command": "echo hello"}));
    }
    let run = warm.play(&Script::new().then(round).say("the end"));
    // Ten copies: nothing is refused, opencode's own question stays silent, the model is told.
    assert_eq!((run.calls.len(), run.refused()), (10, vec![]));
    assert!(
        run.calls
            .iter()
            .all(|call| call["state"]["status"] == "completed"),
        "{:?}",
        run.calls
    );
    assert_eq!(
        run.told("[loop guard: equal calls to bash in one message]."),
        [0, 1]
    );
    let asked = |event: &serde_json::Value| {
        event["properties"]["sessionID"] == run.session.as_str()
            && event["type"] == "permission.asked"
    };
    assert!(!warm.server.events().iter().any(asked));
}

#[test]
fn changed_arguments_are_another_call() {
    let Some(warm) = warm("changed_arguments_are_another_call") else {
        return;
    };
    let mut script = Script::new();
    for n in 0..14 {
        script = script.then(bash(&format!("echo same >/dev/null # {n}")));
    }
    let run = warm.play(&script.say("the end"));
    assert_eq!((run.calls.len(), run.refused()), (14, vec![]));
    assert_eq!(run.told("[loop guard"), [0; 15]);
}

#[test]
fn a_model_that_ignores_the_block_is_stopped() {
    let Some(warm) = warm("a_model_that_ignores_the_block_is_stopped") else {
        return;
    };
    let run = warm.play(&Script::new().repeat(30, bash("echo stubborn")).say("never"));
    // Eleven calls, three refusals, and the fourth ends the run.
    assert_eq!(run.refused(), [11, 12, 13, 14]);
    assert_eq!(run.last["info"]["error"]["name"], "MessageAbortedError");
    let text = "Loop protection: stopped after 4 refused calls to bash.";
    assert!(run.result(14).contains(text), "{}", run.result(14));
    let said = |line: &String| line.contains(&run.session) && line.contains("the run is ended");
    eventually("a line in opencode's log", || {
        warm.rig.said().iter().any(said)
    });
    let toast = warm.server.wait_for(Duration::from_secs(30), |event| {
        event["type"] == "tui.toast.show"
    });
    assert_eq!(toast.unwrap()["properties"]["title"], "Bizar");
}

#[test]
fn a_looping_subagent_is_refused_in_its_own_session() {
    let Some(warm) = warm("a_looping_subagent_is_refused_in_its_own_session") else {
        return;
    };
    let child = Script::new()
        .repeat(13, bash("echo child"))
        .say("the child gives up");
    let task =
        json!({"description": "d", "prompt": child.prompt("go "), "subagent_type": "general"});
    let run = warm.play(&Script::new().call("task", task).say("the end"));
    assert!(
        run.result(0).contains("the child gives up"),
        "{}",
        run.result(0)
    );
    assert!(run.ended_with("the end"));
    let children = warm
        .server
        .request("GET", &format!("/session/{}/children", run.session), None)
        .unwrap()
        .body;
    let id = children[0]["id"].as_str().unwrap();
    assert_eq!(
        warm.rig.outcomes(id),
        [vec!["ok"; 11], vec!["blocked"; 2]].concat()
    );
    assert_eq!(warm.rig.outcomes(&run.session), ["ok"]);
    let agent = |session: &str| warm.rig.state(session).unwrap()["parentAgent"].clone();
    assert_eq!(
        (agent(&run.session), agent(id)),
        (json!("build"), json!("general"))
    );
}

#[test]
fn two_sessions_at_once_do_not_add_up() {
    let Some(warm) = warm("two_sessions_at_once_do_not_add_up") else {
        return;
    };
    let script = Script::new().repeat(11, bash("echo both")).say("the end");
    let runs = std::thread::scope(|scope| {
        let other = scope.spawn(|| warm.play(&script));
        [warm.play(&script), other.join().unwrap()]
    });
    for run in runs {
        assert_eq!((run.calls.len(), run.refused()), (11, vec![]));
        assert_eq!(warm.rig.outcomes(&run.session), ["ok"; 11]);
    }
}

#[test]
fn a_failing_command_repeated_is_a_loop_and_logged_as_errors() {
    let Some(warm) = warm("a_failing_command_repeated_is_a_loop_and_logged_as_errors") else {
        return;
    };
    let run = warm.play(
        &Script::new()
            .repeat(12, bash("echo broken >&2; exit 3"))
            .say("the end"),
    );
    assert_eq!(run.refused(), [11]);
    assert_eq!(
        warm.rig.outcomes(&run.session),
        [vec!["error"; 11], vec!["blocked"; 1]].concat()
    );
    // A tool that fails by itself is seen too, though opencode tells plugins only of successes.
    let missing = Step::call(
        "read",
        json!({"filePath": warm.rig.sandbox.project().join("no-such-file")}),
    );
    let run = warm.play(&Script::new().repeat(12, missing).say("the end"));
    assert_eq!(run.refused(), [11]);
    assert_eq!(
        warm.rig.outcomes(&run.session),
        [vec!["error"; 11], vec!["blocked"; 1]].concat()
    );
}
