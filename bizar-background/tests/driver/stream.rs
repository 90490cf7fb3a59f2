//! The event stream: cut, silent, and opened again.

use std::time::Duration;

use bizar_background::{Agents, Limits, Spawn, Status, opencode::Opencode};

use crate::stage::Stage;

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
    crate::stage::until("a new stream", || stage.read("streams").lines().count() > 3).await;
    assert_eq!(
        agents.status(run.instance_id).await.unwrap().status,
        Status::Running,
        "no run fails by that"
    );
    agents.shutdown().await;
}

#[tokio::test]
async fn bg_09_a_stream_that_is_closed_all_the_time() {
    let stage = Stage::new();
    let (agents, run) = turn(&stage, "closes", Limits::default()).await;
    assert!(stage.read("streams").lines().count() > 2);
    let last_ids = stage.read("last-event-ids");
    let last_ids: Vec<u32> = last_ids.lines().map(|id| id.parse().unwrap()).collect();
    assert!(last_ids.len() > 1 && last_ids.is_sorted(), "{last_ids:?}");
    assert_eq!(run, (Status::Done, "hello world".into()));
    agents.shutdown().await;
}

#[tokio::test]
async fn bg_09_a_stream_of_heartbeats_only() {
    let stage = Stage::new();
    let mut limits = Limits::default();
    limits.timing.reconcile = Duration::from_millis(300);
    let (agents, run) = turn(&stage, "heartbeats", limits).await;
    assert_eq!(
        run,
        (Status::Done, "hello world".into()),
        "it was found by reading"
    );
    assert_eq!(stage.read("streams").lines().count(), 1);
    agents.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_counted() {
    let stage = Stage::new();
    let (agents, run) = turn(&stage, "garbage", Limits::default()).await;
    assert_eq!(run, (Status::Done, "hello world".into()));
    let counters = agents.counters().await;
    assert_eq!(
        (counters.unknown, counters.unreadable),
        (1, 3),
        "a wrong shape, half an object, 17 MiB"
    );
    agents.shutdown().await;
}

/// A run that takes a moment.
async fn turn(stage: &Stage, mode: &str, limits: Limits) -> (Agents<Opencode>, (Status, String)) {
    let agents = Agents::new(Opencode::new(stage.options(mode)), limits, None);
    let run = agents.spawn(Spawn::new("mimir", "TURN")).await.unwrap();
    let collected = agents.collect(run.instance_id, WAIT).await.unwrap();
    (agents, (collected.status, collected.result))
}
