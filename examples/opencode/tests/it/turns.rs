//! Turns, and calls that do not end by themselves.

use std::fs;
use std::time::Duration;

use bizar_testkit::{Script, processes_with};
use serde_json::json;

use crate::rig::{Rig, bash, eventually, play, warm};

#[test]
fn a_user_message_starts_a_new_turn() {
    let Some(warm) = warm("a_user_message_starts_a_new_turn") else {
        return;
    };
    let session = warm.server.session().unwrap();
    let script = Script::new().repeat(8, bash("echo hello")).say("the end");
    play(&warm.rig, &warm.server, &session, &script);
    let run = play(&warm.rig, &warm.server, &session, &script);
    assert_eq!((run.calls.len(), run.refused()), (16, vec![]));
    assert_eq!(run.told("[loop guard"), [0, 0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(warm.rig.state(&session).unwrap()["turnCount"], 2);
}

#[test]
fn an_aborted_call_is_logged_as_aborted() {
    let Some(warm) = warm("an_aborted_call_is_logged_as_aborted") else {
        return;
    };
    let session = warm.server.session().unwrap();
    let script = Script::new()
        .then(bash("echo one"))
        .then(bash("sleep 31536018"))
        .say("never");
    warm.server.send(&session, &script.prompt("go ")).unwrap();
    eventually("the second call", || {
        !processes_with("sleep 31536018").is_empty()
    });
    warm.server
        .request("POST", &format!("/session/{session}/abort"), None)
        .unwrap();
    eventually("two lines", || warm.rig.log(&session).len() == 2);
    assert_eq!(warm.rig.outcomes(&session), ["ok", "aborted"]);
    eventually("the end of the command", || {
        processes_with("sleep 31536018").is_empty()
    });
}

#[test]
fn a_deleted_session_leaves_its_log_and_nothing_else() {
    let Some(warm) = warm("a_deleted_session_leaves_its_log_and_nothing_else") else {
        return;
    };
    let run = warm.play(&Script::new().repeat(3, bash("echo hello")).say("the end"));
    eventually("the state", || warm.rig.state(&run.session).is_some());
    warm.server
        .request("DELETE", &format!("/session/{}", run.session), None)
        .unwrap();
    let deleted = warm.server.wait_for(Duration::from_secs(10), |event| {
        event["type"] == "session.deleted"
            && event["properties"]["info"]["id"] == run.session.as_str()
    });
    assert!(deleted.is_some());
    eventually("the end of the state", || {
        warm.rig.state(&run.session).is_none()
    });
    assert_eq!(warm.rig.log(&run.session).len(), 3);
}

#[test]
fn old_state_of_sessions_that_opencode_does_not_know_is_swept() {
    let Some(rig) = Rig::new("old_state_of_sessions_that_opencode_does_not_know_is_swept") else {
        return;
    };
    let server = rig.serve(&[]);
    let session = server.session().unwrap();
    play(
        &rig,
        &server,
        &session,
        &Script::new().then(bash("echo hello")).say("the end"),
    );
    eventually("the state", || rig.state(&session).is_some());
    drop(server);
    // Two hours old, as another session's state would be that opencode knows, or does not.
    let mut state = rig.state(&session).unwrap();
    let two_hours_ago = state["lastActivityAt"].as_i64().unwrap() - 7_200_000;
    let mut write = |id: &str| {
        state["sessionId"] = json!(id);
        state["lastActivityAt"] = json!(two_hours_ago);
        fs::write(rig.cache().join(format!("{id}.json")), state.to_string()).unwrap();
    };
    write(&session);
    write("ses_unknown");
    let server = rig.serve(&[]);
    // More sessions than opencode lists unless it is asked for all.
    for _ in 0..105 {
        server.session().unwrap();
    }
    let other = server.session().unwrap();
    play(&rig, &server, &other, &Script::new().say("hello"));
    eventually("the sweep", || rig.state("ses_unknown").is_none());
    assert!(rig.state(&session).is_some());
}
