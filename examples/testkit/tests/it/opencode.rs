use std::time::Duration;

use bizar_testkit::{Client, ModelServer, Opencode, Sandbox, Script, Step};
use serde_json::json;

#[test]
fn the_real_opencode_plays_a_script_offline() {
    let Some(opencode) = Client::Opencode.find("the_real_opencode_plays_a_script_offline") else {
        return;
    };
    let model = ModelServer::start().unwrap();
    let sandbox = Sandbox::new().unwrap();
    sandbox.configure_opencode(&model, &json!({})).unwrap();
    let server = Opencode::serve(&opencode, &sandbox, &[]).unwrap();
    let session = server.session().unwrap();
    let script = Script::new()
        .repeat(2, Step::call("bash", json!({"command": "echo hello"})))
        .say("the end");
    let last = server.prompt(&session, &script.prompt("go ")).unwrap();
    assert!(
        last["parts"]
            .as_array()
            .unwrap()
            .iter()
            .any(|part| part["text"] == "the end"),
        "{last}"
    );
    let calls = server.calls(&session).unwrap();
    assert_eq!(calls.len(), 2);
    assert!(
        calls
            .iter()
            .all(|call| call["state"]["output"] == "hello\n"),
        "{calls:?}"
    );
    let steps = model.requests_of(&session);
    assert_eq!(steps.last().unwrap().results(), ["hello\n", "hello\n"]);
    assert!(
        server
            .wait_for(Duration::from_secs(5), |event| event["type"]
                == "session.idle")
            .is_some()
    );
}
