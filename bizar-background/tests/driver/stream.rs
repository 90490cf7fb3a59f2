//! The event stream: cut, silent, and opened again.

use std::time::Duration;

use bizar_background::{Agents, Limits, Spawn, Status, opencode::Opencode};

use crate::fake::Stage;

const WAIT: Option<Duration> = Some(Duration::from_secs(30));

#[tokio::test]
async fn bg_01_a_run_that_ends_in_a_gap() {
    let stage = Stage::new();
    let agents = Agents::new(Opencode::new(stage.options("")), Limits::default(), None);
    let run = agents
        .spawn(Spawn::new("mimir", "CUT the stream and finish"))
        .await
        .unwrap();
    let collected = agents.collect(run.instance_id, WAIT).await.unwrap();
    assert_eq!(
        (collected.status, collected.result.as_str()),
        (Status::Done, "hello world")
    );
    agents.shutdown().await;
}

#[tokio::test]
async fn twenty_cuts_lose_no_call_and_no_text() {
    let stage = Stage::new();
    let agents = Agents::new(Opencode::new(stage.options("")), Limits::default(), None);
    let run = agents
        .spawn(Spawn::new("mimir", "CUTS all the time"))
        .await
        .unwrap();
    let collected = agents.collect(run.instance_id, WAIT).await.unwrap();
    assert_eq!(
        (
            collected.status,
            collected.result.as_str(),
            collected.tool_call_count
        ),
        (Status::Done, "hello world", 20)
    );
    agents.shutdown().await;
    assert!(stage.read("streams").lines().count() > 2);
}

#[tokio::test]
async fn bg_07_a_stream_that_says_nothing_is_no_stream() {
    let stage = Stage::new();
    let mut options = stage.options("no-hello");
    options.patience.connected = Duration::from_millis(200);
    let agents = Agents::new(Opencode::new(options), Limits::default(), None);
    let run = agents.spawn(Spawn::new("mimir", "PLAIN")).await.unwrap();
    let expected = "the session could not be made: background agents are not available: \
        no event stream: the event stream did not say that it is connected";
    assert_eq!(
        (run.status, run.error.as_deref()),
        (Status::Failed, Some(expected))
    );
}

#[tokio::test]
async fn a_silent_stream_is_opened_again() {
    let stage = Stage::new();
    let mut options = stage.options("");
    // Shorter than the pause between two heartbeats.
    options.patience.silence = Duration::from_millis(30);
    let agents = Agents::new(Opencode::new(options), Limits::default(), None);
    let run = agents.spawn(Spawn::new("mimir", "SLOW")).await.unwrap();
    crate::fake::until("a new stream", || stage.read("streams").lines().count() > 3).await;
    assert_eq!(
        agents.status(run.instance_id).await.unwrap().status,
        Status::Running,
        "no run fails by that"
    );
    agents.shutdown().await;
}
