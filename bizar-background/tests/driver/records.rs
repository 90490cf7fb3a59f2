//! Records: what is on disk, whose it is, and what a restart makes of it.

use std::{path::Path, sync::atomic::Ordering::SeqCst, time::Duration};

use bizar_background::{Agents, InstanceId, Limits, Spawn, Status};
use serde_json::{Value, json};

use crate::puppet::Puppet;

fn agents(puppet: &Puppet, directory: &Path) -> Agents<Puppet> {
    Agents::new(
        puppet.clone(),
        Limits {
            live: 32,
            ..Limits::default()
        },
        Some(directory.into()),
    )
}

fn stored(directory: &Path) -> Vec<(std::path::PathBuf, Value)> {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let documents = entries.filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    documents
        .map(|path| {
            (
                path.clone(),
                serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap(),
            )
        })
        .collect()
}

/// Writes a record as another process would have left it.
fn plant(directory: &Path, id: InstanceId, status: &str, owner: Value, ended: Option<u64>) {
    let document = json!({
        "kind": "bizar.background", "version": 1, "instanceId": id, "sessionId": "ses_old", "agent": "mimir",
        "status": status, "startedAt": 1, "endedAt": ended, "owner": owner, "later": {"kept": true},
    });
    std::fs::create_dir_all(directory).unwrap();
    std::fs::write(directory.join(format!("{id}.json")), document.to_string()).unwrap();
}

#[tokio::test]
async fn bg_077_twelve_spawns_at_once_are_twelve_records() {
    let directory = tempfile::tempdir().unwrap();
    let puppet = Puppet::quick();
    let agents = agents(&puppet, directory.path());
    let spawns: Vec<_> = (0..12)
        .map(|_| {
            tokio::spawn({
                let agents = agents.clone();
                async move {
                    agents
                        .spawn(Spawn::new("mimir", "a prompt that is nobody's business"))
                        .await
                }
            })
        })
        .collect();
    let mut ids = Vec::new();
    for spawn in spawns {
        ids.push(spawn.await.unwrap().unwrap().instance_id.to_string());
    }
    for id in &ids {
        agents.collect(id.parse().unwrap(), None).await.unwrap();
    }
    agents.shutdown().await;
    let documents = stored(directory.path());
    let mut found: Vec<_> = documents
        .iter()
        .map(|(_, document)| document["instanceId"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    found.sort();
    assert_eq!(found, ids);
    for (path, document) in &documents {
        assert_eq!(document["status"], "done");
        assert!(!document.to_string().contains("nobody's business"));
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(path).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn bg_075_live_records_of_living_processes_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let first = Puppet::default();
    let one = agents(&first, directory.path());
    let run = one.spawn(Spawn::new("mimir", "go")).await.unwrap();
    // A second manager comes, in the same process: its owner is alive too.
    let two = agents(&Puppet::default(), directory.path());
    assert_eq!(two.statuses(false).await, []);
    let foreign = two.statuses(true).await;
    assert_eq!((foreign.len(), foreign[0].status.is_final()), (1, false));
    assert!(!one.status(run.instance_id).await.unwrap().status.is_final());
}

#[tokio::test]
async fn a_restart_fails_what_has_no_process_and_keeps_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let id = |n| InstanceId::new(n, [3; 10]);
    let dead = json!({"pid": 999_999_999, "started": 5, "boot": "another"});
    plant(directory.path(), id(1), "running", dead.clone(), None);
    plant(directory.path(), id(2), "pending", Value::Null, None);
    plant(
        directory.path(),
        id(3),
        "done",
        dead.clone(),
        Some(u64::MAX),
    );
    plant(directory.path(), id(4), "killed", dead, Some(5));
    std::fs::write(
        directory.path().join("bgr_00000000050C1G60R30C1G60R3.json"),
        "torn {",
    )
    .unwrap();
    let puppet = Puppet::default();
    puppet.0.sessions.lock().unwrap().insert(
        "ses_old".into(),
        (
            false,
            vec![crate::puppet::message(
                "ses_old",
                bizar_background::event::Role::Assistant,
                "still here",
            )],
        ),
    );
    let agents = agents(&puppet, directory.path());
    let views = agents.statuses(false).await;
    let seen: Vec<_> = views
        .iter()
        .map(|view| (view.instance_id, view.status, view.error.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            (id(1), Status::Failed, Some("plugin restarted")),
            (id(2), Status::Failed, Some("plugin restarted")),
            (id(3), Status::Done, None),
        ],
        "what ended more than seven days ago is gone"
    );
    // The session is still in the server's store: bg_019, bg_074.
    let collected = agents
        .collect(id(1), Some(Duration::from_secs(5)))
        .await
        .unwrap();
    assert_eq!(
        (collected.status, collected.result.as_str()),
        (Status::Failed, "still here")
    );
    assert_eq!(
        puppet.0.starts.load(SeqCst),
        1,
        "the server was started to read it"
    );
    let killed = agents.kill(id(3)).await.unwrap();
    assert_eq!(
        (killed.status, killed.already_terminal),
        (Status::Done, true)
    );
    let (_, document) = stored_one(directory.path(), id(1));
    assert_eq!(
        document["later"],
        json!({"kept": true}),
        "what a later version stored is kept"
    );
}

fn stored_one(directory: &Path, id: InstanceId) -> (std::path::PathBuf, Value) {
    let path = directory.join(format!("{id}.json"));
    let document = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    (path, document)
}

#[tokio::test]
async fn bg_021_an_instance_that_memory_has_forgotten_is_found_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits {
        remembered: 2,
        ..Limits::default()
    };
    let agents = Agents::new(Puppet::quick(), limits, Some(directory.path().into()));
    let mut ids = Vec::new();
    for _ in 0..5 {
        let run = agents.spawn(Spawn::new("mimir", "go")).await.unwrap();
        agents.collect(run.instance_id, None).await.unwrap();
        ids.push(run.instance_id);
    }
    for id in &ids {
        assert_eq!(agents.collect(*id, None).await.unwrap().result, "an answer");
    }
    let views: Vec<_> = agents
        .statuses(false)
        .await
        .into_iter()
        .map(|view| view.instance_id)
        .collect();
    ids.sort();
    assert_eq!(views, ids, "the newest last");
}

#[tokio::test]
async fn bg_072_a_directory_that_cannot_be_written_ends_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a file");
    std::fs::write(&file, "").unwrap();
    let agents = agents(&Puppet::quick(), &file.join("below"));
    let run = agents.spawn(Spawn::new("mimir", "go")).await.unwrap();
    assert_eq!(
        agents.collect(run.instance_id, None).await.unwrap().status,
        Status::Done
    );
    agents.shutdown().await;
}
