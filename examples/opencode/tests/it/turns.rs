//! Turns, and calls that do not end by themselves.

use std::fs;
use std::path::Path;
use std::time::Duration;

use bizar_testkit::{Script, processes_with};
use serde_json::{Value, json};

use crate::rig::{Rig, WARN, bash, eventually, play, warm};

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
    let state = rig.state(&session).unwrap();
    age(&rig.cache(), &state, &session, 2);
    age(&rig.cache(), &state, "ses_unknown", 2);
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

#[test]
fn without_a_list_of_sessions_only_what_is_older_than_a_week_is_swept() {
    let test = "without_a_list_of_sessions_only_what_is_older_than_a_week_is_swept";
    let Some(warm) = warm(test) else { return };
    let script = Script::new().then(bash("echo hello")).say("the end");
    // A client that fails, and one that hands over what the server has refused.
    for list in [
        "throw Error()",
        "return { error: { name: 'UnknownError' } }",
    ] {
        let plugin = format!(
            "export const Broken = async ({{ client }}) => {{\n  client.session.list = async () => {{ {list} }}\n  return {{}}\n}}\n"
        );
        let project = warm.rig.project_with(&json!({"plugin": ["./broken.ts"]}));
        fs::write(project.join("broken.ts"), plugin).unwrap();
        let server = warm.server.at(&project);
        let run = warm.play_in(&server, &script);
        eventually("the state", || warm.rig.state(&run.session).is_some());
        // It is swept at the first message, once.
        server.request("POST", "/instance/dispose", None).unwrap();
        let state = warm.rig.state(&run.session).unwrap();
        let cache = warm.rig.cache();
        age(&cache, &state, "ses_of_six_days", 6 * 24);
        age(&cache, &state, "ses_of_eight_days", 8 * 24);
        age(&cache, &state, &run.session, 8 * 24);
        warm.play_in(&server, &script);
        eventually("the sweep", || {
            warm.rig.state("ses_of_eight_days").is_none() && warm.rig.state(&run.session).is_none()
        });
        assert!(warm.rig.state("ses_of_six_days").is_some(), "{list}");
    }
}

/// Writes a session's state under another name, as if nothing had happened for some hours.
fn age(cache: &Path, state: &Value, id: &str, hours: i64) {
    let mut state = state.clone();
    let ago = state["lastActivityAt"].as_i64().unwrap() - hours * 3_600_000;
    state["sessionId"] = json!(id);
    state["lastActivityAt"] = json!(ago);
    fs::write(cache.join(format!("{id}.json")), state.to_string()).unwrap();
}

#[test]
fn what_the_user_or_a_rule_refuses_is_logged_as_refused_and_repeats_like_any_failure() {
    let test = "what_the_user_or_a_rule_refuses_is_logged_as_refused_and_repeats_like_any_failure";
    let Some(warm) = warm(test) else { return };
    let rules = json!({"*": "allow", "echo ask": "ask", "echo never": "deny"});
    let project = warm
        .rig
        .project_with(&json!({"permission": {"bash": rules}}));
    let server = warm.server.at(&project);
    let play_refused = |command: &str, user: &(dyn Fn(&str) + Sync)| {
        let session = server.session().unwrap();
        let script = Script::new().repeat(6, bash(command)).say("the end");
        std::thread::scope(|scope| {
            scope.spawn(|| user(&session));
            play(&warm.rig, &server, &session, &script)
        })
    };
    let user = |session: &str| {
        for n in 0..6 {
            let asked = || {
                let mut asked = server.events();
                asked.retain(|event| {
                    event["type"] == "permission.asked"
                        && event["properties"]["sessionID"] == session
                });
                asked
            };
            eventually("a question", || asked().len() > n);
            let id = asked()[n]["properties"]["id"].as_str().unwrap().to_owned();
            let answer = json!({"reply": "reject", "message": "not this"});
            let path = format!("/permission/{id}/reply");
            server.request("POST", &path, Some(&answer)).unwrap();
        }
    };
    let by_user = play_refused("echo ask", &user);
    assert!(by_user.result(0).contains("The user rejected permission"));
    let by_rule = play_refused("echo never", &|_| ());
    assert!(by_rule.result(0).contains("a rule which prevents you"));
    for run in [by_user, by_rule] {
        assert_eq!(run.calls.len(), 6);
        assert_eq!(warm.rig.outcomes(&run.session), ["blocked"; 6]);
        assert_eq!(run.told(WARN), [0, 0, 0, 0, 0, 1, 1]);
        // The guard itself refused nothing.
        let state = warm.rig.state(&run.session).unwrap();
        assert_eq!(state["blocksTriggered"], 0);
    }
}
