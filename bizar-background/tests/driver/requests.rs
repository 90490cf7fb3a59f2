//! What the server is asked for, and what is refused before.

use bizar_background::{Permissions, Spawn, Status};

use crate::{
    serve::{WAIT, agents, go, refusal},
    stage::Stage,
};

#[tokio::test]
async fn bg_069_and_097_one_spelling_of_the_directory() {
    let stage = Stage::new();
    let link = stage.path("link");
    std::os::unix::fs::symlink(stage.directory.path(), &link).unwrap();
    let mut options = stage.options("");
    options.directory = link.join("../").join(link.file_name().unwrap()).join(".");
    options.directory = link;
    let agents = agents(options);
    let run = agents.spawn(go()).await.unwrap();
    agents.collect(run.instance_id, WAIT).await.unwrap();
    agents.shutdown().await;
    let requests = stage.read("requests");
    let spellings: std::collections::BTreeSet<_> = requests
        .lines()
        .filter_map(|line| line.split("directory=").nth(1)?.split(' ').next())
        .collect();
    let real = stage
        .directory
        .path()
        .canonicalize()
        .unwrap()
        .display()
        .to_string()
        .replace('/', "%2F")
        .replace('.', "%2E");
    assert_eq!(spellings.into_iter().collect::<Vec<_>>(), [real]);
    assert!(
        requests.contains("GET /global/event "),
        "the stream carries every directory"
    );
}

#[tokio::test]
async fn bg_087_each_call_has_its_own_shape_of_a_model() {
    let stage = Stage::new();
    let agents = agents(stage.options(""));
    let spawn = Spawn {
        model: Some("mock/m/x".parse().unwrap()),
        caller: Some("odin".into()),
        caller_session: Some("ses_caller".into()),
        ..go()
    };
    let run = agents.spawn(spawn).await.unwrap();
    assert_eq!(
        agents.collect(run.instance_id, WAIT).await.unwrap().status,
        Status::Done
    );
    agents.shutdown().await;
    let requests = stage.read("requests");
    let body = |path: &str| -> serde_json::Value {
        let line = requests
            .lines()
            .find(|line| line.starts_with(path))
            .unwrap();
        serde_json::from_str(line.splitn(4, ' ').nth(3).unwrap()).unwrap()
    };
    let created = body("POST /session ");
    assert_eq!(
        created["model"],
        serde_json::json!({"id": "m/x", "providerID": "mock"})
    );
    assert_eq!(created["title"], format!("bgr:mimir:{}", run.instance_id));
    assert_eq!(
        created["metadata"],
        serde_json::json!({"bizarCaller": "ses_caller", "instanceId": run.instance_id})
    );
    assert_eq!(created.get("parentID"), None);
    let prompted = body("POST /session/ses_1/prompt_async ");
    assert_eq!(
        prompted,
        serde_json::json!({"agent": "mimir", "model": {"providerID": "mock", "modelID": "m/x"}, "parts": [{"type": "text", "text": "PLAIN"}]})
    );
}

#[tokio::test]
async fn bg_092_permissions_are_rules_of_the_session() {
    let question = serde_json::json!({"permission": "question", "pattern": "*", "action": "deny"});
    let all = serde_json::json!({"permission": "*", "pattern": "*", "action": "allow"});
    for (permissions, rules) in [
        (Permissions::Reject, serde_json::json!([question])),
        (Permissions::Wait, serde_json::json!([])),
        (Permissions::Allow, serde_json::json!([all, question])),
    ] {
        let stage = Stage::new();
        let mut options = stage.options("");
        options.permissions = permissions;
        options.is_child = true;
        let agents = agents(options);
        agents
            .spawn(Spawn {
                caller_session: Some("ses_caller".into()),
                ..go()
            })
            .await
            .unwrap();
        agents.shutdown().await;
        let requests = stage.read("requests");
        let line = requests
            .lines()
            .find(|line| line.starts_with("POST /session "))
            .unwrap();
        let body: serde_json::Value =
            serde_json::from_str(line.splitn(4, ' ').nth(3).unwrap()).unwrap();
        assert_eq!(
            (&body["permission"], &body["parentID"]),
            (&rules, &serde_json::json!("ses_caller"))
        );
        assert!(!stage.read("starts").contains("skip-permissions"));
    }
}

#[tokio::test]
async fn bg_099_an_unknown_agent_is_refused_with_the_list() {
    let stage = Stage::new();
    let error = refusal(stage.options(""), Spawn::new("nosuch", "x")).await;
    assert_eq!(
        error,
        "the session could not be made: there is no agent nosuch; available: build, mimir"
    );
    assert!(
        !stage.read("requests").contains("POST /session "),
        "no session was made"
    );
}

#[tokio::test]
async fn an_unknown_model_is_refused_before_it_is_tried() {
    let stage = Stage::new();
    let model = |text: &str| Spawn {
        model: Some(text.parse().unwrap()),
        ..go()
    };
    let error = refusal(stage.options(""), model("mock/nosuch")).await;
    assert_eq!(
        error,
        "the session could not be made: the provider mock has no model nosuch"
    );
    let error = refusal(stage.options(""), model("nosuch/m")).await;
    assert_eq!(
        error,
        "the session could not be made: there is no provider nosuch; available: mock"
    );
}
