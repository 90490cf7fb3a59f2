//! The modes `cycle` and `repetition`.

use bizar_testkit::{Script, Step};
use serde_json::{Value, json};

use crate::rig::{Rig, Run, bash, play, warm};

fn cycle(test: &str, script: &Script) -> Option<Run> {
    Some(warm(test)?.play_with(
        &json!({"loopMode": "cycle", "loopHaltAfterBlocks": 0}),
        script,
    ))
}

/// Plays `names` in turn, `laps` times and then the first few of them.
fn laps(names: &[&str], calls: usize) -> Script {
    let names = names.iter().cycle().take(calls);
    names
        .fold(Script::new(), |script, name| {
            script.then(bash(&format!("echo {name}")))
        })
        .say("the end")
}

#[test]
fn cycle_the_call_that_completes_a_cycle_is_refused() {
    let Some(warm) = warm("cycle_the_call_that_completes_a_cycle_is_refused") else {
        return;
    };
    let project = warm
        .rig
        .project(&json!({"loopMode": "cycle", "loopHaltAfterBlocks": 0}));
    let server = warm.server.at(&project);
    // Three complete repetitions, and at least four calls.
    for (names, refused) in [
        (vec!["a"], 3),
        (vec!["a", "b"], 5),
        (vec!["a", "b", "c"], 8),
        (vec!["a", "b", "c", "d"], 11),
    ] {
        let run = warm.play_in(&server, &laps(&names, refused + 1));
        assert_eq!(run.refused(), [refused], "{names:?}");
    }
    // A cycle of five is none.
    let run = warm.play_in(&server, &laps(&["a", "b", "c", "d", "e"], 20));
    assert_eq!(run.refused(), Vec::<usize>::new());
}

#[test]
fn cycle_the_message_names_the_shape_and_no_argument() {
    let script = Script::new();
    let pair = [
        bash("echo Xsecret"),
        Step::call("read", json!({"filePath": "Xsecret.txt"})),
    ];
    let script = (0..6)
        .fold(script, |script, n| script.then(pair[n % 2].clone()))
        .say("the end");
    let Some(run) = cycle("cycle_the_message_names_the_shape_and_no_argument", &script) else {
        return;
    };
    assert_eq!(run.refused(), [5]);
    let text = run.result(5);
    assert!(
        text.contains("bash") && text.contains("read") && text.contains("materially different"),
        "{text}"
    );
    assert!(
        text.contains("reassess the evidence") && !text.contains("Xsecret"),
        "{text}"
    );
    // The model could go on with something else.
    assert!(run.ended_with("the end"));
}

#[test]
fn cycle_key_order_plays_no_part_and_strings_are_compared_exactly() {
    let test = "cycle_key_order_plays_no_part_and_strings_are_compared_exactly";
    let text = |json: &str| Step::call("bash", Value::String(json.to_owned()));
    let orders = [
        r#"{"command":"echo a","timeout":9000}"#,
        r#"{"timeout":9000,"command":"echo a"}"#,
    ];
    let script = (0..4)
        .fold(Script::new(), |script, n| script.then(text(orders[n % 2])))
        .say("the end");
    let Some(run) = cycle(test, &script) else {
        return;
    };
    assert_eq!(run.refused(), [3]);

    let spaces = (0..8)
        .fold(Script::new(), |script, n| {
            script.then(bash(&format!("echo a{}", " ".repeat(n))))
        })
        .say("the end");
    let run = cycle(test, &spaces).unwrap();
    assert_eq!(run.refused(), Vec::<usize>::new());
}

#[test]
fn cycle_changed_arguments_are_allowed() {
    let script = (0..9)
        .fold(Script::new(), |script, n| {
            script.then(bash(&format!("echo {n}")))
        })
        .say("the end");
    let Some(run) = cycle("cycle_changed_arguments_are_allowed", &script) else {
        return;
    };
    assert_eq!(run.refused(), Vec::<usize>::new());
}

#[test]
fn cycle_sessions_are_apart_and_idle_clears_the_history() {
    let Some(warm) = warm("cycle_sessions_are_apart_and_idle_clears_the_history") else {
        return;
    };
    let server = warm
        .server
        .at(&warm.rig.project(&json!({"loopMode": "cycle"})));
    let three = Script::new().repeat(3, bash("echo a")).say("the end");
    let session = server.session().unwrap();
    for run in [
        play(&warm.rig, &server, &session, &three),
        warm.play_in(&server, &three),
        play(&warm.rig, &server, &session, &three),
    ] {
        assert_eq!(run.refused(), Vec::<usize>::new());
    }
    // A refused call stays in the history: all members of the cycle stay refused until something else is called.
    let run = warm.play_in(
        &server,
        &Script::new()
            .repeat(5, bash("echo a"))
            .then(bash("echo b"))
            .then(bash("echo a"))
            .say("the end"),
    );
    assert_eq!(run.refused(), [3, 4]);
}

#[test]
fn cycle_needs_no_configuration() {
    let Some(rig) = Rig::new("cycle_needs_no_configuration") else {
        return;
    };
    let installed = rig.bizar(&["install", "--force", "--mode", "cycle"]);
    assert!(installed.status.success());
    let server = rig.serve(&[]);
    let session = server.session().unwrap();
    let run = play(
        &rig,
        &server,
        &session,
        &Script::new().repeat(4, bash("echo a")).say("the end"),
    );
    assert_eq!(run.refused(), [3]);
}

#[test]
fn repetition_survives_a_restart_of_opencode() {
    let Some(rig) = Rig::new("repetition_survives_a_restart_of_opencode") else {
        return;
    };
    let server = rig
        .serve(&[])
        .at(&rig.project(&json!({"loopMode": "repetition"})));
    let session = server.session().unwrap();
    let six = Script::new().repeat(6, bash("echo a")).say("the end");
    play(&rig, &server, &session, &six);
    server.kill();
    let server = rig.serve(&[]).at(std::path::Path::new(&server.directory()));
    let run = play(&rig, &server, &session, &six);
    assert_eq!((run.calls.len(), run.refused()), (12, vec![11]));
}

#[test]
fn repetition_looks_at_arguments_only() {
    let Some(warm) = warm("repetition_looks_at_arguments_only") else {
        return;
    };
    let options = json!({"loopMode": "repetition", "loopWindowSize": 6, "loopThresholdWarn": 3, "loopThresholdEscalate": 4, "loopThresholdBlock": 5});
    // The result changes each time, which the default mode would call progress.
    let script = Script::new()
        .repeat(5, bash("echo x >> progress; wc -l < progress"))
        .say("the end");
    let run = warm.play_with(&options, &script);
    assert_eq!(run.refused(), [4]);
    assert_eq!(
        run.told("[loop guard: 5 identical calls to bash]"),
        [0, 0, 0, 1, 0, 0]
    );
}
