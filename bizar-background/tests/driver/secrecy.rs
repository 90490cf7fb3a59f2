//! The secret is in memory, in the environment of the child, and nowhere else.

use std::time::Duration;

use bizar_background::{Agents, Limits, Spawn, opencode::Opencode};

use crate::stage::{Stage, holds};

/// Reads the secret where it must be: in the environment of the child.
fn secret_of(pid: u32) -> String {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let variables = environment
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy);
    let mut secrets =
        variables.filter_map(|one| Some(one.strip_prefix("OPENCODE_SERVER_PASSWORD=")?.to_owned()));
    secrets.next().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn bg_071_nothing_writes_the_secret() {
    let stage = Stage::new();
    let records = tempfile::tempdir().unwrap();
    let agents = Agents::new(
        Opencode::new(stage.options("talks")),
        Limits::default(),
        Some(records.path().into()),
    );
    let run = agents.spawn(Spawn::new("mimir", "SLOW")).await.unwrap();
    let secret = secret_of(agents.server().pid().unwrap());
    assert_eq!(secret.len(), 43, "32 bytes, base64url without padding");
    crate::stage::until("output", || agents.server().output().len() > 60 << 10).await;
    let mut said = vec![
        agents.server().output(),
        format!("{:?} {agents:?}", agents.server()),
        format!("{run:?}"),
        serde_json::to_string(&agents.status(run.instance_id).await.unwrap()).unwrap(),
        serde_json::to_string(
            &agents
                .collect(run.instance_id, Some(Duration::ZERO))
                .await
                .unwrap(),
        )
        .unwrap(),
    ];
    // An error of every kind.
    for spawn in [
        Spawn::new("nosuch", "x"),
        Spawn {
            model: Some("a/b".parse().unwrap()),
            ..Spawn::new("mimir", "x")
        },
    ] {
        said.push(format!("{:?}", agents.spawn(spawn).await));
    }
    said.push(format!("{:?}", agents.kill(run.instance_id).await));
    agents.shutdown().await;
    for text in said {
        assert!(!text.contains(&secret), "{text}");
    }
    assert!(!holds(records.path(), &secret) && !holds(stage.directory.path(), &secret));
    assert!(
        holds(records.path(), "bizar.background"),
        "there was something to search"
    );
    let command = std::fs::read_to_string("/proc/self/cmdline").unwrap();
    assert!(!command.contains(&secret));
}

#[tokio::test]
async fn a_child_that_prints_its_secret_and_dies() {
    let stage = Stage::new();
    let agents = Agents::new(
        Opencode::new(stage.options("fails")),
        Limits::default(),
        None,
    );
    let run = agents.spawn(Spawn::new("mimir", "x")).await.unwrap();
    let error = run.error.unwrap();
    assert!(
        error.contains("serve child exited (code 1) before it was ready")
            && error.contains("ServeError [redacted]"),
        "{error}"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn bg_098_each_start_has_its_own_secret() {
    let stage = Stage::new();
    let mut secrets = Vec::new();
    for _ in 0..2 {
        let agents = Agents::new(Opencode::new(stage.options("")), Limits::default(), None);
        agents.spawn(Spawn::new("mimir", "PLAIN")).await.unwrap();
        secrets.push(secret_of(agents.server().pid().unwrap()));
        agents.shutdown().await;
    }
    assert_ne!(secrets[0], secrets[1]);
}
