//! Turns, and calls that do not end by themselves.

use std::time::Duration;

use bizar_testkit::{Script, processes_with};

use crate::rig::{bash, eventually, play, warm};

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
