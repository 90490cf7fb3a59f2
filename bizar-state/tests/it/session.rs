//! What is kept of a session.

use std::fs;

use bizar_state::{
    Durability, FileStore, Outcome, Reason, SessionState, Store, TOOL_CALLS, ToolCall,
};
use serde_json::{Value, json};

type Session = SessionState<Value>;

fn call(at: i64) -> ToolCall {
    ToolCall {
        tool: "read".to_owned(),
        fingerprint: "ab12cd34ef56".to_owned(),
        at,
        outcome: Outcome::Ok,
    }
}

fn session() -> Session {
    let mut session = Session::new("ses_1", "opencode", "5f2c", 1000);
    session.user_message(Some("build"), 1001);
    session.tool_call(call(1002));
    session.warnings_issued = 1;
    session.detector = Some(json!({"ring": [1, 2]}));
    session
}

#[test]
fn the_file_has_the_agreed_members() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::new(directory.path(), Durability::Power);
    store.save(session()).unwrap();
    let file = fs::read(directory.path().join("ses_1.json")).unwrap();
    let expected = json!({
        "kind": "bizar.session",
        "version": 1,
        "sessionId": "ses_1",
        "host": "opencode",
        "scope": "5f2c",
        "parentAgent": "build",
        "startedAt": 1000,
        "lastActivityAt": 1002,
        "turnCount": 1,
        "toolCalls": [{"tool": "read", "fingerprint": "ab12cd34ef56", "at": 1002, "outcome": "ok"}],
        "warningsIssued": 1,
        "blocksTriggered": 0,
        "detector": {"ring": [1, 2]},
    });
    assert_eq!(serde_json::from_slice::<Value>(&file).unwrap(), expected);
    assert_eq!(store.load("ses_1").unwrap().document, Some(session()));
}

#[test]
fn unknown_members_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::<Session>::new(directory.path(), Durability::Process);
    store.save(session()).unwrap();
    let path = store.path("ses_1");
    let text = fs::read_to_string(&path).unwrap();
    // Numbers that no Rust type holds, spacing, nesting beyond what a recursive reader takes.
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let later = format!(
        r#""later": {{ "n":1e999, "m" :123456789012345678901234567890.10, "s":"\u00e9"}}, "deep":{deep},"#
    );
    fs::write(&path, text.replacen('{', &format!("{{{later}"), 1)).unwrap();

    store
        .update("ses_1", |slot| {
            slot.as_mut().unwrap().user_message(None, 2000)
        })
        .unwrap();
    store.save(session()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(r#"{ "n":1e999, "m" :123456789012345678901234567890.10, "s":"\u00e9"}"#));
    assert!(text.contains(&deep));
    assert_eq!(store.load("ses_1").unwrap().document, Some(session()));
}

#[test]
fn the_parent_agent_is_that_of_the_first_message() {
    let mut session = Session::new("ses_1", "opencode", "5f2c", 0);
    assert_eq!(session.parent_agent(), None);
    session.user_message(Some("build"), 1);
    session.user_message(Some("plan"), 2);
    assert_eq!(
        (session.parent_agent(), session.turn_count()),
        (Some("build"), 2)
    );

    let mut session = Session::new("ses_1", "claude", "5f2c", 0);
    session.user_message(None, 1);
    session.user_message(Some("plan"), 2);
    assert_eq!(session.parent_agent(), None);
}

#[test]
fn only_the_last_calls_are_kept() {
    let mut session = session();
    (0..200).for_each(|at| session.tool_call(call(at)));
    let kept: Vec<i64> = session.tool_calls().map(|call| call.at).collect();
    assert_eq!(TOOL_CALLS, 50);
    assert_eq!(kept, (150..200).collect::<Vec<_>>());

    let mut file = serde_json::to_value(&session).unwrap();
    file["toolCalls"] = (0..60)
        .map(|at| serde_json::to_value(call(at)).unwrap())
        .collect();
    let read: Session = serde_json::from_value(file).unwrap();
    assert_eq!(read.tool_calls().next().unwrap().at, 10);
    assert_eq!(read.tool_calls().len(), 50);
}

#[test]
fn activity_never_goes_back() {
    let mut session = Session::new("ses_1", "opencode", "5f2c", 1000);
    session.touch(3000);
    session.touch(2000);
    session.tool_call(call(10));
    session.user_message(None, -5);
    assert_eq!(
        (session.started_at(), session.last_activity_at()),
        (1000, 3000)
    );
}

#[test]
fn a_snapshot_that_does_not_fit_is_kept_and_the_session_starts_empty() {
    let directory = tempfile::tempdir().unwrap();
    FileStore::new(directory.path(), Durability::Process)
        .save(session())
        .unwrap();
    let other = FileStore::<SessionState<u32>>::new(directory.path(), Durability::Process);
    let loaded = other.load("ses_1").unwrap();
    assert_eq!(loaded.document, None);
    let unusable = loaded.unusable.unwrap();
    assert!(
        matches!(unusable.reason, Reason::WrongShape { .. }),
        "{unusable:?}"
    );
    // The report is fit for a log: it quotes nothing of the document.
    assert!(!unusable.to_string().contains("ring"), "{unusable}");
    let kept: Value = serde_json::from_slice(&fs::read(unusable.path).unwrap()).unwrap();
    assert_eq!(kept["detector"], json!({"ring": [1, 2]}));
}
