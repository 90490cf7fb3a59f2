//! Spawn, status, collect, kill, shutdown.

use std::{
    sync::atomic::Ordering::SeqCst,
    time::{Duration, Instant},
};

use bizar_background::{
    Agents, Event, InstanceId, Limits, Refusal, Spawn, Status,
    event::{Part, ToolState},
};

use crate::puppet::Puppet;

const SECOND: Duration = Duration::from_secs(1);

fn agents(puppet: &Puppet) -> Agents<Puppet> {
    Agents::new(puppet.clone(), Limits::default(), None)
}

fn go() -> Spawn {
    Spawn {
        caller: Some("odin".into()),
        ..Spawn::new("mimir", "go")
    }
}

#[tokio::test]
async fn a_run_from_spawn_to_collect() {
    let puppet = Puppet::default();
    let agents = agents(&puppet);
    let mut changes = agents.changes();
    assert_eq!(
        puppet.0.starts.load(SeqCst),
        0,
        "nothing is started before it is needed"
    );
    let run = agents.spawn(go()).await.unwrap();
    assert!(!run.status.is_final());
    let session = run.session_id.clone().unwrap();
    let waiting = agents.clone();
    let collector = tokio::spawn(async move { waiting.collect(run.instance_id, None).await });
    puppet.finish(&session, "hello world");
    let collected = collector.await.unwrap().unwrap();
    assert_eq!(
        (collected.status, collected.result.as_str()),
        (Status::Done, "hello world")
    );
    assert_eq!(
        (collected.final_text.as_str(), collected.error),
        ("hello world", None)
    );
    let view = agents.status(run.instance_id).await.unwrap();
    assert_eq!(
        (
            view.status,
            view.parent_agent.as_deref(),
            view.prompt_preview.as_deref()
        ),
        (Status::Done, Some("odin"), Some("go"))
    );
    let mut statuses = Vec::new();
    while let Ok(change) = changes.try_recv() {
        statuses.push(change.status);
    }
    assert_eq!(statuses, [Status::Pending, Status::Running, Status::Done]);
}

#[tokio::test]
async fn one_start_for_many_spawns() {
    let puppet = Puppet::quick();
    let agents = agents(&puppet);
    let spawns = (0..8).map(|_| {
        tokio::spawn({
            let agents = agents.clone();
            async move { agents.spawn(go()).await }
        })
    });
    let spawns: Vec<_> = spawns.collect();
    for spawn in spawns {
        let run = spawn.await.unwrap().unwrap();
        assert_eq!(
            agents.collect(run.instance_id, None).await.unwrap().status,
            Status::Done
        );
    }
    assert_eq!(puppet.0.starts.load(SeqCst), 1);
    assert_eq!(agents.statuses(false).await.len(), 8);
}

#[tokio::test]
async fn the_ninth_is_refused() {
    let puppet = Puppet::default();
    let agents = agents(&puppet);
    let mut last = None;
    for _ in 0..8 {
        last = Some(agents.spawn(go()).await.unwrap());
    }
    assert!(
        matches!(agents.spawn(go()).await, Err(Refusal::NoSlot { limit: 8, holders }) if holders.len() == 8)
    );
    puppet.finish(&last.clone().unwrap().session_id.unwrap(), "x");
    agents
        .collect(last.unwrap().instance_id, None)
        .await
        .unwrap();
    agents.spawn(go()).await.unwrap();
}

#[tokio::test]
async fn bg_054_a_short_wait_changes_nothing() {
    let puppet = Puppet::default();
    let agents = agents(&puppet);
    let run = agents.spawn(go()).await.unwrap();
    for _ in 0..3 {
        let collected = agents
            .collect(run.instance_id, Some(Duration::from_millis(30)))
            .await
            .unwrap();
        assert_eq!(
            collected.error.as_deref(),
            Some("collect timed out after 30ms")
        );
        assert_eq!(collected.status, Status::Running);
    }
    puppet.finish(&run.session_id.unwrap(), "at last");
    assert_eq!(
        agents
            .collect(run.instance_id, Some(SECOND * 9))
            .await
            .unwrap()
            .result,
        "at last"
    );
}

#[tokio::test]
async fn any_number_of_collectors_and_one_that_gives_up() {
    let puppet = Puppet::default();
    let agents = agents(&puppet);
    let run = agents.spawn(go()).await.unwrap();
    let collectors = (0..20).map(|_| {
        tokio::spawn({
            let agents = agents.clone();
            async move { agents.collect(run.instance_id, None).await }
        })
    });
    let collectors: Vec<_> = collectors.collect();
    let cancelled = tokio::time::timeout(
        Duration::from_millis(20),
        agents.collect(run.instance_id, None),
    )
    .await;
    assert!(cancelled.is_err());
    puppet.finish(&run.session_id.unwrap(), "x");
    for collector in collectors {
        assert_eq!(collector.await.unwrap().unwrap().status, Status::Done);
    }
}

#[tokio::test]
async fn a_kill_is_final_when_it_comes_back() {
    let puppet = Puppet::default();
    let agents = agents(&puppet);
    let run = agents.spawn(go()).await.unwrap();
    let killed = agents.kill(run.instance_id).await.unwrap();
    assert_eq!(
        (killed.status, killed.already_terminal),
        (Status::Killed, false)
    );
    assert_eq!(puppet.0.aborts.load(SeqCst), 1);
    let again = agents.kill(run.instance_id).await.unwrap();
    assert_eq!(
        (again.status, again.already_terminal),
        (Status::Killed, true)
    );
    let collected = agents.collect(run.instance_id, None).await.unwrap();
    assert_eq!(
        (collected.status, collected.error.as_deref()),
        (Status::Killed, Some("killed"))
    );
}

#[tokio::test]
async fn bg_038_a_kill_of_what_is_done_says_done() {
    let puppet = Puppet::quick();
    let agents = agents(&puppet);
    let run = agents.spawn(go()).await.unwrap();
    agents.collect(run.instance_id, None).await.unwrap();
    let killed = agents.kill(run.instance_id).await.unwrap();
    assert_eq!(
        (killed.status, killed.already_terminal),
        (Status::Done, true)
    );
}

#[tokio::test]
async fn unknown_instances() {
    let agents = agents(&Puppet::default());
    let id = InstanceId::new(1, [1; 10]);
    assert_eq!(agents.status(id).await.unwrap_err().0, id);
    assert_eq!(agents.collect(id, None).await.unwrap_err().0, id);
    assert_eq!(agents.kill(id).await.unwrap_err().0, id);
}

#[tokio::test]
async fn a_collected_loop_has_its_marker_once() {
    let puppet = Puppet::default();
    let agents = agents(&puppet);
    let run = agents.spawn(go()).await.unwrap();
    let session = run.session_id.unwrap();
    let refusal = "Loop protection: a cycle of 2 calls around bash repeats. Use task to escalate.";
    puppet
        .0
        .sessions
        .lock()
        .unwrap()
        .get_mut(&session)
        .unwrap()
        .1
        .push(crate::puppet::message(
            &session,
            bizar_background::event::Role::Assistant,
            "so far",
        ));
    let part = Part::Tool {
        call: "c".into(),
        tool: "bash".into(),
        state: ToolState::Failed(refusal.into()),
    };
    puppet.tell(Event::Part {
        session: session.clone(),
        message: "m".into(),
        part,
    });
    for _ in 0..2 {
        let collected = agents.collect(run.instance_id, None).await.unwrap();
        assert_eq!(collected.status, Status::Failed);
        assert_eq!(
            collected.result,
            "[loop guard: 12 identical calls to bash]\nso far"
        );
        assert_eq!(collected.final_text, "so far");
    }
    assert_eq!(
        agents
            .status(run.instance_id)
            .await
            .unwrap()
            .result_preview
            .as_deref(),
        Some("so far"),
        "the marker is not stored"
    );
}

#[tokio::test]
async fn a_text_that_cannot_be_read_is_a_preview_and_a_warning() {
    let puppet = Puppet::default();
    let agents = agents(&puppet);
    let run = agents.spawn(go()).await.unwrap();
    let session = run.session_id.unwrap();
    let info = bizar_background::event::MessageInfo {
        id: "m".into(),
        role: bizar_background::event::Role::Assistant,
        ..Default::default()
    };
    puppet.tell(Event::Message {
        session: session.clone(),
        info,
    });
    puppet.tell(Event::Delta {
        session: session.clone().into(),
        message: "m".into(),
        text: "seen".into(),
    });
    agents.kill(run.instance_id).await.unwrap();
    puppet.0.is_unreadable.store(true, SeqCst);
    let collected = agents.collect(run.instance_id, None).await.unwrap();
    assert_eq!(
        (collected.result.as_str(), collected.is_truncated),
        ("seen", true)
    );
    assert_eq!(
        collected.warnings,
        ["the messages could not be read: the result is a preview"]
    );
    assert_eq!(puppet.0.reads.load(SeqCst), 3, "it was tried three times");
}

#[tokio::test]
async fn bg_037_a_lost_server_fails_its_runs_and_the_next_spawn_works() {
    let puppet = Puppet::default();
    let agents = agents(&puppet);
    let run = agents.spawn(go()).await.unwrap();
    let start = Instant::now();
    puppet.lose();
    puppet.0.is_unreadable.store(true, SeqCst);
    let view = loop {
        let view = agents.status(run.instance_id).await.unwrap();
        if view.status.is_final() {
            break view;
        }
        tokio::task::yield_now().await;
    };
    assert!(start.elapsed() < 2 * SECOND);
    assert_eq!(
        (view.status, view.error.as_deref()),
        (Status::Failed, Some("serve child exited (signal 9)"))
    );
    let next = agents.spawn(go()).await.unwrap();
    assert_eq!(next.status, Status::Running);
    assert_eq!(puppet.0.starts.load(SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn bg_076_three_failed_starts_turn_it_off() {
    let puppet = Puppet::default();
    *puppet.0.start_error.lock().unwrap() = Some("no binary".into());
    let agents = agents(&puppet);
    let start = tokio::time::Instant::now();
    for expected in [
        "no binary",
        "no binary",
        "no binary",
        "off after 3 failures in 5 minutes, the last one: no binary",
    ] {
        let run = agents.spawn(go()).await.unwrap();
        assert_eq!(run.status, Status::Failed);
        let text = format!(
            "the session could not be made: background agents are not available: {expected}"
        );
        assert_eq!(run.error, Some(text));
    }
    assert_eq!(puppet.0.starts.load(SeqCst), 3);
    assert!(
        start.elapsed() >= Duration::from_millis(250 + 500),
        "the pauses grow"
    );
    // After a while it is tried again.
    tokio::time::advance(Duration::from_secs(301)).await;
    *puppet.0.start_error.lock().unwrap() = None;
    assert!(!agents.spawn(go()).await.unwrap().status.is_final());
}

#[tokio::test]
async fn shutdown_ends_runs_and_the_server_and_refuses_new_ones() {
    let puppet = Puppet::default();
    let agents = agents(&puppet);
    let run = agents.spawn(go()).await.unwrap();
    agents.shutdown().await;
    assert_eq!(
        (puppet.0.aborts.load(SeqCst), puppet.0.stops.load(SeqCst)),
        (1, 1)
    );
    let view = agents.status(run.instance_id).await.unwrap();
    assert_eq!(
        (view.status, view.error.as_deref()),
        (Status::Failed, Some("background agents were shut down"))
    );
    assert_eq!(agents.spawn(go()).await.unwrap_err(), Refusal::ShuttingDown);
    agents.shutdown().await;
    assert_eq!(puppet.0.stops.load(SeqCst), 1);
}

#[tokio::test]
async fn handles_that_are_dropped_shut_down() {
    let puppet = Puppet::default();
    let agents = agents(&puppet);
    agents.spawn(go()).await.unwrap();
    drop(agents.clone());
    assert_eq!(puppet.0.stops.load(SeqCst), 0, "there is another handle");
    drop(agents);
    let stopped = async {
        while puppet.0.stops.load(SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(5 * SECOND, stopped).await.unwrap();
    assert_eq!(puppet.0.aborts.load(SeqCst), 1);
}

#[tokio::test]
async fn bg_070_a_slow_driver_drops_text_and_nothing_else() {
    let puppet = Puppet::default();
    let agents = agents(&puppet);
    let run = agents.spawn(go()).await.unwrap();
    let session = run.session_id.unwrap();
    let id = "m".to_owned();
    let info = bizar_background::event::MessageInfo {
        id,
        role: bizar_background::event::Role::Assistant,
        ..Default::default()
    };
    puppet.tell(Event::Message {
        session: session.clone(),
        info,
    });
    // This task does not yield, so the driver cannot keep up.
    for n in 0..200_000 {
        puppet.tell(Event::Delta {
            session: session.clone().into(),
            message: "m".into(),
            text: "x".repeat(100).into(),
        });
        if n % 1_000 == 0 {
            let part = Part::Tool {
                call: format!("c{n}"),
                tool: "bash".into(),
                state: ToolState::Completed,
            };
            puppet.tell(Event::Part {
                session: session.clone(),
                message: "m".into(),
                part,
            });
        }
    }
    puppet.finish(&session, "all");
    let collected = agents.collect(run.instance_id, None).await.unwrap();
    assert_eq!(
        (collected.status, collected.tool_call_count),
        (Status::Done, 200)
    );
}
