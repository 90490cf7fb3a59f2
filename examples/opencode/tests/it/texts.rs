//! What the model is told, and when.

use bizar_testkit::{Request, Script, Step};
use serde_json::json;

use crate::rig::{ESCALATE, WARN, bash, eventually, play, warm};

#[test]
fn warn_and_escalate_stand_in_each_request_of_their_level_once() {
    let Some(warm) = warm("warn_and_escalate_stand_in_each_request_of_their_level_once") else {
        return;
    };
    let run = warm.play(&Script::new().repeat(11, bash("echo hello")).say("the end"));
    // Request n comes after call n.
    assert_eq!(run.told(WARN), [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(run.told(ESCALATE), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(
        run.told("[loop guard"),
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1]
    );
}

#[test]
fn the_text_is_gone_after_news() {
    let Some(warm) = warm("the_text_is_gone_after_news") else {
        return;
    };
    let script = Script::new()
        .repeat(6, bash("echo hello"))
        .repeat(2, bash("echo news"))
        .say("the end");
    let run = warm.play(&script);
    assert_eq!(run.told("[loop guard"), [0, 0, 0, 0, 0, 1, 1, 0, 0]);
}

#[test]
fn a_title_request_neither_shows_nor_eats_the_text() {
    let Some(warm) = warm("a_title_request_neither_shows_nor_eats_the_text") else {
        return;
    };
    // Thresholds of one: the level is there from the first call on, while the title is still being made.
    let project = warm.rig.project(
        &json!({"loopThresholdWarn": 1, "loopThresholdEscalate": 50, "loopThresholdBlock": 60}),
    );
    let server = warm.server.at(&project);
    let session = server.session_with(&json!({})).unwrap();
    let run = play(
        &warm.rig,
        &server,
        &session,
        &Script::new().repeat(4, bash("echo hello")).say("the end"),
    );
    let titles: Vec<Request> = warm
        .rig
        .model
        .requests_of(&session)
        .into_iter()
        .filter(|request| !request.is_step())
        .collect();
    assert_eq!(titles.len(), 1, "one request for a title");
    assert!(titles[0].system().contains("title generator"));
    assert!(!titles[0].system().contains("[loop guard"));
    assert_eq!(run.told("[loop guard"), [0, 1, 1, 1, 1]);
}

#[test]
fn a_compaction_neither_shows_nor_eats_the_text_and_starts_no_turn() {
    let Some(warm) = warm("a_compaction_neither_shows_nor_eats_the_text_and_starts_no_turn") else {
        return;
    };
    // The sixth answer claims to have filled the context: opencode compacts, and then goes on with a message of its
    // own, which is no user's.
    let script = Script::new()
        .repeat(5, bash("echo hello"))
        .then(bash("echo hello").tokens(199_000))
        .repeat(6, bash("echo hello"))
        .say("the end");
    let run = warm.play(&script);
    let all = warm.rig.model.requests_of(&run.session);
    let summaries: Vec<&Request> = all.iter().filter(|request| !request.is_step()).collect();
    assert_eq!(summaries.len(), 1, "one compaction");
    assert!(!summaries[0].system().contains("[loop guard"));
    assert_eq!(run.refused(), [11]);
    assert_eq!(
        run.told("[loop guard"),
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    );
}

#[test]
fn the_third_repetition_is_one_line_in_the_log_and_nothing_else() {
    let Some(warm) = warm("the_third_repetition_is_one_line_in_the_log_and_nothing_else") else {
        return;
    };
    let run = warm.play(&Script::new().repeat(4, bash("echo hello")).say("the end"));
    assert_eq!(run.told("[loop guard"), [0; 5]);
    let mine = || -> Vec<String> {
        warm.rig
            .said()
            .into_iter()
            .filter(|line| line.contains(&run.session))
            .collect()
    };
    eventually("a line of the plugin in opencode's log", || {
        !mine().is_empty()
    });
    let mine = mine();
    assert_eq!(mine.len(), 1, "{mine:?}");
    assert!(
        mine[0].contains("WARN") && mine[0].contains("notice"),
        "{mine:?}"
    );
}

#[test]
fn reports_hold_no_argument_and_no_result() {
    let Some(warm) = warm("reports_hold_no_argument_and_no_result") else {
        return;
    };
    let secret = Step::call(
        "bash",
        json!({"command": "echo Xsecretargument; echo Xsecret''result"}),
    );
    let run = warm.play(&Script::new().repeat(13, secret).say("the end"));
    assert_eq!(run.refused(), [11, 12]);
    let files = [
        format!("{}.json", run.session),
        format!("logs/{}.log", run.session),
    ];
    for file in files.map(|file| warm.rig.cache().join(file)) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            !text.is_empty() && !text.contains("Xsecret"),
            "{}",
            file.display()
        );
    }
    assert!(warm.rig.said().iter().all(|line| !line.contains("Xsecret")));
    assert!(!run.result(11).contains("Xsecret"));
}
