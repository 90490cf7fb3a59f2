//! The live view hears of changes, in a real pseudo-terminal.

use std::{
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use bizar_log::Outcome;
use serde_json::{Value, json};

use crate::{
    demo::{self, directory},
    rig::{in_terminal, line, program},
};

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// A demo of right now.
fn current() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    demo::make(home.path(), now()).unwrap();
    home
}

fn append(path: &std::path::Path, tool: &str) -> Value {
    json!(["append", path, line(now(), "ses_live", tool, Outcome::Ok)])
}

#[test]
fn new_lines_and_new_sessions_appear_at_once() {
    follow(&[], "inotify");
}

#[test]
fn without_inotify_the_directories_are_listed_every_second() {
    follow(&["--poll"], "polling");
}

fn follow(flags: &[&str], heard_by: &str) {
    let home = current();
    let path = directory(home.path()).join("logs/ses_live.log");
    let steps = json!([
        ["wait", "8 sessions"],
        ["screen"],
        append(&path, "firsttool"),
        ["wait", "9 sessions"],
        ["wait", "firsttool"],
        append(&path, "secondtool"),
        ["wait", "secondtool"],
        ["send", "q"],
    ]);
    let Some(seen) = in_terminal(program(home.path()).args(flags), &steps) else {
        return;
    };
    assert_eq!((seen.code, seen.is_restored), (0, true));
    if cfg!(target_os = "linux") {
        assert!(seen.screens[0].contains(heard_by), "{}", seen.screens[0]);
    }
}

#[test]
fn a_directory_that_is_made_later_is_found() {
    let home = tempfile::tempdir().unwrap();
    let logs = home.path().join("later");
    let mut program = program(home.path());
    program
        .arg("--logs")
        .arg(&logs)
        .arg("--state")
        .arg(home.path());
    let made = home.path().join("made");
    fs::create_dir(&made).unwrap();
    fs::write(
        made.join("ses_live.log"),
        line(now(), "ses_live", "firsttool", Outcome::Ok),
    )
    .unwrap();
    let steps = json!([
        ["wait", "does not exist"],
        ["rename", made, logs],
        ["wait", "firsttool"],
        append(&logs.join("ses_live.log"), "secondtool"),
        ["wait", "secondtool"],
        ["rename", logs, made],
        ["wait", "does not exist"],
        ["wait", "0 sessions"],
        ["send", "q"],
    ]);
    if let Some(seen) = in_terminal(&program, &steps) {
        assert_eq!((seen.code, seen.is_restored), (0, true));
    }
}

#[test]
fn a_pause_holds_everything_back_and_nothing_is_lost() {
    let home = current();
    let path = directory(home.path()).join("logs/ses_live.log");
    let steps = json!([
        ["wait", "8 sessions"],
        ["send", "p"],
        ["wait", "PAUSED"],
        append(&path, "firsttool"),
        append(&path, "secondtool"),
        ["pause", 1.5],
        ["screen"],
        ["send", "p"],
        ["wait", "secondtool"],
        ["send", "q"],
    ]);
    let Some(seen) = in_terminal(&program(home.path()), &steps) else {
        return;
    };
    assert!(
        seen.screens[0].contains("8 sessions"),
        "{}",
        seen.screens[0]
    );
    assert_eq!(seen.code, 0);
}

#[test]
fn resizes_keys_and_pages_on_a_real_terminal() {
    let home = current();
    let steps = json!([
        ["wait", "8 sessions"],
        ["screen"],
        ["resize", 132, 40],
        ["wait", "LADDER"],
        ["screen"],
        ["resize", 40, 10],
        ["gone", "LADDER"],
        ["screen"],
        ["resize", 10, 3],
        ["wait", "too small"],
        ["resize", 80, 24],
        ["wait", "WAITS FOR"],
        ["send", "/codex\r"],
        ["gone", "ses_1Qa2Ws3EdR"],
        ["screen"],
        ["send", "\u{1b}"],
        ["wait", "ses_1Qa2Ws3EdR"],
        ["send", "\u{1b}[B\r"],
        ["wait", "Last calls"],
        ["screen"],
        ["send", "q"],
    ]);
    let Some(seen) = in_terminal(&program(home.path()), &steps) else {
        return;
    };
    assert_eq!((seen.code, seen.is_restored), (0, true));
    let [first, wide, narrow, filtered, details] = seen.screens.as_slice() else {
        panic!("{:?}", seen.screens);
    };
    assert!(
        first.contains("ses_1Qa2Ws3EdR") && first.contains("halt"),
        "{first}"
    );
    assert!(wide.contains("###### halt"), "{wide}");
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 40),
        "{narrow}"
    );
    assert!(
        filtered.contains("codex") && filtered.contains("13/12 block"),
        "{filtered}"
    );
    assert!(
        details.contains("019b2f6c-3d5a-7e01-8a44-b0c1d2e3f405"),
        "the second row: {details}"
    );
}

#[test]
fn the_mouse_of_a_real_terminal() {
    let home = current();
    // Pressed and released twice in the third row of the table.
    let click = "\u{1b}[<0;5;5M\u{1b}[<0;5;5m".repeat(2);
    let steps = json!([
        ["wait", "8 sessions"],
        ["send", click],
        ["wait", "Last calls"],
        ["screen"],
        ["send", "q"],
    ]);
    let Some(seen) = in_terminal(program(home.path()).arg("--mouse"), &steps) else {
        return;
    };
    assert!(
        seen.screens[0].contains("ses_0OpLiKuJyH"),
        "{}",
        seen.screens[0]
    );
    assert!(seen.is_restored);
}
