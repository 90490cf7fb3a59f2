//! `--once` and `--json`.

use std::{io::Read as _, process::Stdio};

use serde_json::{Value, json};

use crate::rig::{demo, program, run};

#[test]
fn once_prints_a_plain_table() {
    let home = demo();
    let (stdout, stderr, code) = run(program(home.path()).arg("--once"));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    // The demo is of June 2026, so nothing is active, and the newest activity comes first.
    let rows: Vec<Vec<&str>> = stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        [
            "SESSION", "HOST", "TOOL", "COUNT", "VERDICT", "WARN", "BLOCK", "/MIN", "IDLE", "AGE"
        ]
    );
    let of = |id: &str| -> &[&str] {
        let row = rows.iter().find(|row| row.first() == Some(&id));
        &row.unwrap()[1..8]
    };
    assert_eq!(
        of("ses_1Qa2Ws3EdR"),
        ["opencode", "webfetch", "14/12", "halt", "2", "5", "0"]
    );
    assert_eq!(
        of("ses_7Hd9pZrYwK"),
        ["opencode", "bash", "9/12", "escalate", "2", "0", "0"]
    );
    assert_eq!(
        of("ses_0OpLiKuJyH"),
        ["opencode", "glob", "12/12", "(block)", "0", "0", "0"]
    );
    assert!(stdout.contains("BACKGROUND"));
    assert!(stdout.contains("permission\n"));
    assert!(!stdout.contains('\u{1b}'), "no escape sequence");
    assert!(stdout.lines().all(|line| line == line.trim_end()));
}

#[test]
fn json_says_the_same_for_scripts() {
    let home = demo();
    let (stdout, stderr, code) = run(program(home.path()).args(["--json", "--sort", "name"]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert_eq!(stdout.lines().count(), 1);
    let document: Value = serde_json::from_str(&stdout).unwrap();
    let mut blocked = document["sessions"][0].clone();
    assert_eq!(blocked["session"], "019b2f6c-3d5a-7e01-8a44-b0c1d2e3f405");
    for volatile in ["scope", "startedAt", "lastActivityAt"] {
        assert!(blocked.as_object_mut().unwrap().remove(volatile).is_some());
    }
    assert_eq!(
        blocked,
        json!({
            "host": "codex", "agent": "build", "tool": "shell", "isRunning": false, "session": "019b2f6c-3d5a-7e01-8a44-b0c1d2e3f405",
            "count": 13, "ladder": {"warn": 5, "escalate": 8, "block": 12}, "verdict": "block", "rule": "stale",
            "mode": "progress", "observeOnly": false, "refusedInARow": 2, "warningsIssued": 2, "blocksTriggered": 2,
            "turnCount": 1, "callsAMinute": 0,
        })
    );
    let asks = document["instances"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["agent"] == "explore")
        .unwrap();
    assert_eq!(
        (&asks["waitingOn"], &asks["toolCallCount"], &asks["costUsd"]),
        (&json!("permission"), &json!(17), &json!(0.21))
    );
    assert_eq!(document["notes"], json!([]));
}

#[test]
fn the_filter_holds_there_too() {
    let home = demo();
    let (stdout, _, _) = run(program(home.path()).args(["--once", "--filter", "codex"]));
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
}

#[test]
fn directories_come_from_the_options_and_flags_win() {
    let home = demo();
    let other = tempfile::tempdir().unwrap();
    let state = crate::demo::directory(home.path());
    let options = other.path().join(".config/bizarharness");
    std::fs::create_dir_all(&options).unwrap();
    let text = json!({"stateDir": state, "logDir": state.join("logs")}).to_string();
    std::fs::write(options.join("options.json"), text).unwrap();
    let (from_options, _, _) = run(program(other.path()).args(["--json", "--sort", "name"]));
    let sessions = |text: &str| {
        serde_json::from_str::<Value>(text).unwrap()["sessions"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(sessions(&from_options), 8);

    let empty = tempfile::tempdir().unwrap();
    let flags = [
        "--json",
        "--state",
        empty.path().to_str().unwrap(),
        "--logs",
        empty.path().to_str().unwrap(),
    ];
    let (from_flags, _, _) = run(program(other.path()).args(flags));
    assert_eq!(sessions(&from_flags), 0);
}

#[test]
fn without_a_terminal_the_live_view_says_what_to_do() {
    let home = demo();
    let (stdout, stderr, code) = run(&mut program(home.path()));
    assert_eq!((stdout.as_str(), code), ("", Some(2)));
    assert_eq!(
        stderr,
        "bizar-top: no terminal to draw on: try --once or --json\n"
    );
    let (_, _, code) = run(program(home.path()).args(["--once", "--json"]));
    assert_eq!(code, Some(2));
}

#[test]
fn a_reader_that_stops_early_is_no_trouble() {
    let home = demo();
    let mut child = program(home.path())
        .arg("--json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(
        (stderr.as_str(), child.wait().unwrap().code()),
        ("", Some(0))
    );
}
