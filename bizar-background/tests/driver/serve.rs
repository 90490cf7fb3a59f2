//! The child: started, proved to be ours, and ended with everything it has started.

use std::{
    net::{Ipv4Addr, TcpListener},
    time::{Duration, Instant},
};

use bizar_background::{
    Agents, Limits, Spawn, Status,
    opencode::{Opencode, Options},
};

use crate::stage::{Stage, is_running, until};

pub(crate) const WAIT: Option<Duration> = Some(Duration::from_secs(30));
const PREFIX: &str = "the session could not be made: background agents are not available: ";

pub(crate) fn agents(options: Options) -> Agents<Opencode> {
    Agents::new(Opencode::new(options), Limits::default(), None)
}

pub(crate) async fn refusal(options: Options, spawn: Spawn) -> String {
    let agents = agents(options);
    let run = agents.spawn(spawn).await.unwrap();
    agents.shutdown().await;
    assert_eq!(run.status, Status::Failed);
    run.error.unwrap()
}

pub(crate) fn go() -> Spawn {
    Spawn::new("mimir", "PLAIN")
}

#[tokio::test]
async fn a_run_on_a_child_of_our_own() {
    let stage = Stage::new();
    let agents = agents(stage.options(""));
    assert_eq!(
        agents.server().pid(),
        None,
        "nothing is started before it is needed"
    );
    let run = agents.spawn(go()).await.unwrap();
    let collected = agents.collect(run.instance_id, WAIT).await.unwrap();
    assert_eq!(
        (collected.status, collected.result.as_str()),
        (Status::Done, "hello world")
    );
    let pid = agents.server().pid().unwrap();
    agents.shutdown().await;
    until("the end of the child", || !is_running(pid)).await;
}

#[tokio::test]
async fn the_environment_of_the_child() {
    let stage = Stage::new();
    let mut options = stage.options("");
    options.environment.push(("OPENCODE_PID".into(), None));
    let agents = agents(options);
    agents.spawn(go()).await.unwrap();
    agents.shutdown().await;
    let environment = stage.read("environment");
    for name in [
        "OPENCODE_SERVER_PASSWORD",
        "OPENCODE_SERVER_USERNAME",
        "BIZAR_BACKGROUND_CHILD",
        "OPENCODE_DISABLE_AUTOUPDATE",
    ] {
        assert!(
            environment.lines().any(|line| line == name),
            "{name} is missing"
        );
    }
    assert!(!environment.contains("OPENCODE_PID"));
    assert!(!environment.contains("OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS"));
}

#[tokio::test]
async fn bg_060_a_wrapper_is_ended_with_what_it_started() {
    let stage = Stage::new();
    let mut options = stage.options("");
    let wrapper = stage.path("wrapper");
    // Not exec: the real server is a child of the shell.
    std::fs::write(
        &wrapper,
        format!(
            "#!/bin/sh\n'{}' \"$@\"\nexit 3\n",
            stage.path("opencode").display()
        ),
    )
    .unwrap();
    std::fs::set_permissions(
        &wrapper,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    options.program = wrapper;
    let agents = agents(options);
    agents.spawn(go()).await.unwrap();
    let (port, pid) = (
        agents.server().port().unwrap(),
        agents.server().pid().unwrap(),
    );
    agents.shutdown().await;
    until("the end of the wrapper", || !is_running(pid)).await;
    until("a free port", || {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
    })
    .await;
}

#[tokio::test]
async fn bg_062_a_command_of_an_agent_is_ended_by_a_shutdown() {
    let stage = Stage::new();
    let agents = agents(stage.options(""));
    agents.spawn(Spawn::new("mimir", "SHELL")).await.unwrap();
    let shell: u32 = stage.read("shells").trim().parse().unwrap();
    assert!(is_running(shell));
    agents.shutdown().await;
    assert!(!is_running(shell));
    assert!(
        stage.read("requests").contains("/abort"),
        "the session was aborted first"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn bg_073_what_an_agent_left_running_is_ended_with_the_watchdog() {
    let stage = Stage::new();
    let mut options = stage.options("");
    options.watchdog = Some((stage.path("watchdog"), vec![]));
    let agents = agents(options);
    let run = agents
        .spawn(Spawn::new("mimir", "LEAVE something running"))
        .await
        .unwrap();
    assert_eq!(
        agents.collect(run.instance_id, WAIT).await.unwrap().status,
        Status::Done
    );
    let shell: u32 = stage.read("shells").trim().parse().unwrap();
    assert!(is_running(shell));
    assert_eq!(agents.server().orphans(), [shell], "it is told");
    agents.shutdown().await;
    assert!(!is_running(shell));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn bg_061_a_dead_owner_takes_everything_with_it() {
    let stage = Stage::new();
    let mut options = stage.options("");
    options.watchdog = Some((stage.path("watchdog"), vec![]));
    let server = Opencode::new(options);
    let agents = Agents::new(server, Limits::default(), None);
    agents
        .spawn(Spawn::new("mimir", "SHELL that runs for long"))
        .await
        .unwrap();
    let shell: u32 = stage.read("shells").trim().parse().unwrap();
    let serve: u32 = stage
        .read("starts")
        .trim()
        .rsplit(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(is_running(shell) && is_running(serve));
    // As if we had been killed: the pipe is closed, and nobody asks the server for anything.
    let start = Instant::now();
    agents.server().abandon();
    until("the end of all", || {
        !is_running(shell) && !is_running(serve)
    })
    .await;
    assert!(start.elapsed() < Duration::from_secs(6));
}

#[tokio::test]
async fn bg_064_the_port_is_our_own() {
    let stage = Stage::new();
    let agents = agents(stage.options(""));
    agents.spawn(go()).await.unwrap();
    let port = agents.server().port().unwrap();
    assert!(port != 0 && port != 4096);
    assert!(
        stage
            .read("starts")
            .starts_with(&format!("serve --hostname 127.0.0.1 --port {port} "))
    );
    agents.shutdown().await;
}

#[tokio::test]
async fn bg_065_a_child_that_cannot_listen_gets_another_port() {
    let stage = Stage::new();
    let agents = agents(stage.options("fails-twice"));
    let run = agents.spawn(go()).await.unwrap();
    assert_eq!(
        agents.collect(run.instance_id, WAIT).await.unwrap().status,
        Status::Done
    );
    agents.shutdown().await;
    let starts = stage.read("starts");
    let ports: std::collections::BTreeSet<_> = starts
        .lines()
        .map(|line| line.split(' ').nth(4).unwrap().to_owned())
        .collect();
    assert_eq!((starts.lines().count(), ports.len()), (3, 3));
}

#[tokio::test]
async fn bg_067_a_child_that_ends_at_once_is_no_long_wait() {
    let stage = Stage::new();
    let start = Instant::now();
    let error = refusal(stage.options("exits"), go()).await;
    assert!(
        error.starts_with(&format!(
            "{PREFIX}serve child exited (code 0) before it was ready"
        )),
        "{error}"
    );
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(stage.read("starts").lines().count(), 3);
}

#[tokio::test]
async fn bg_063_a_server_that_rejects_our_secret_is_not_talked_to() {
    let stage = Stage::new();
    let error = refusal(stage.options("stranger"), go()).await;
    let expected = "the server is not healthy: the server rejects our secret: it is not our child";
    assert_eq!(error, format!("{PREFIX}{expected}"));
    assert_eq!(stage.read("requests").lines().count(), 1);
}

#[tokio::test]
async fn a_server_on_another_port_is_not_ours() {
    let stage = Stage::new();
    let error = refusal(stage.options("other-port"), go()).await;
    assert!(error.contains("the server listens on port"), "{error}");
    assert_eq!(stage.read("requests"), "");
}

#[tokio::test]
async fn bg_090_no_request_before_the_ready_line_and_a_limit_for_each() {
    let stage = Stage::new();
    let mut options = stage.options("mute");
    options.patience.ready = Duration::from_millis(300);
    let error = refusal(options, go()).await;
    assert!(
        error.contains("the server was not ready in time"),
        "{error}"
    );
    assert_eq!(stage.read("requests"), "", "nothing was asked");

    let stage = Stage::new();
    let mut options = stage.options("deaf");
    options.patience.first_byte = Duration::from_millis(300);
    let error = refusal(options, go()).await;
    assert_eq!(
        error,
        format!("{PREFIX}the server is not healthy: no first byte in time")
    );
}

#[tokio::test]
async fn bg_066_a_server_that_talks_a_lot_is_read_to_the_end() {
    let stage = Stage::new();
    let agents = agents(stage.options("talks"));
    let run = agents.spawn(go()).await.unwrap();
    assert_eq!(
        agents.collect(run.instance_id, WAIT).await.unwrap().status,
        Status::Done
    );
    let output = agents.server().output();
    assert!(output.len() <= 64 << 10 && output.contains("[redacted]"));
    agents.shutdown().await;
}

#[tokio::test]
async fn bg_068_the_child_outlives_the_worker_that_started_it() {
    let stage = Stage::new();
    let options = stage.options("");
    // A runtime whose threads end, while the child must not.
    let (agents, run) = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let server = Opencode::new(options);
        let pid = runtime.block_on(async {
            bizar_background::Server::start(&server, events())
                .await
                .unwrap();
            server.pid().unwrap()
        });
        (server, pid)
    })
    .join()
    .unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(is_running(run));
    drop(agents);
    until("the end of the child", || !is_running(run)).await;
}

/// Events that nobody listens to.
fn events() -> bizar_background::Events {
    bizar_background::Events::nowhere()
}

#[tokio::test]
async fn a_program_of_another_version_is_not_started() {
    let stage = Stage::new();
    let mut options = stage.options("");
    options.version = Some("1.19.0".into());
    let error = refusal(options, go()).await;
    assert!(
        error.ends_with("has version \"1.18.33\", not 1.19.0"),
        "{error}"
    );
    assert_eq!(stage.read("starts"), "");
    let mut options = stage.options("");
    options.version = Some("1.18.33".into());
    let agents = agents(options);
    assert!(!agents.spawn(go()).await.unwrap().status.eq(&Status::Failed));
    agents.shutdown().await;
}

#[tokio::test]
async fn a_missing_program_is_said() {
    let stage = Stage::new();
    let mut options = stage.options("");
    options.program = stage.path("missing");
    let error = refusal(options, go()).await;
    assert!(error.contains("missing could not be started"), "{error}");
}

#[tokio::test]
async fn a_crash_fails_the_run_and_the_next_spawn_works() {
    let stage = Stage::new();
    let agents = agents(stage.options(""));
    let slow = agents.spawn(Spawn::new("mimir", "SLOW")).await.unwrap();
    let crash = agents.spawn(Spawn::new("mimir", "CRASH")).await.unwrap();
    let start = Instant::now();
    for id in [slow.instance_id, crash.instance_id] {
        let view = loop {
            let view = agents.status(id).await.unwrap();
            if view.status.is_final() {
                break view;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert_eq!(
            (view.status, view.error.as_deref()),
            (Status::Failed, Some("serve child exited (code 9)"))
        );
    }
    assert!(start.elapsed() < Duration::from_secs(2));
    let run = agents.spawn(go()).await.unwrap();
    assert_eq!(
        agents.collect(run.instance_id, WAIT).await.unwrap().status,
        Status::Done
    );
    agents.shutdown().await;
}
