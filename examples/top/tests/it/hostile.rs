//! Names that strangers chose are shown, and do nothing.

use std::{fs, path::Path};

use bizar_guard::{Call, Guard, Setup};
use bizar_log::{Outcome, SessionName};
use bizar_top::app::App;
use serde_json::{Value, json};

use crate::{
    demo::{directory, resolved},
    rig::{NOW, app, draw, in_terminal, line, press, program, run, text},
};

const NAMES: [&str; 8] = [
    "\u{1b}[2J\u{1b}[31mred\u{7}",
    "\u{9b}2J\u{9d}0;title\u{9c}",
    "line\nfeed\r\ttab",
    "\u{202e}desrever\u{202c}\u{200f}",
    "\u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{645}\u{631}\u{62d}",
    "\u{8aad}\u{3080}\u{8aad}\u{3080}\u{8aad}\u{3080}\u{8aad}\u{3080}\u{1f980}",
    "e\u{301}\u{301}\u{301}\u{200d}\u{fe0f}\u{feff}",
    "<b>&amp;\"'`$(reboot)",
];

/// Sessions, tools, hosts, agents and records with such names, and ids of 300 characters.
fn hostile_home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for (number, name) in NAMES.iter().enumerate() {
        let setup = Setup::new(*name, resolved(home.path(), "{}")).clock(|| NOW - 1000);
        let guard = Guard::new(setup);
        let id = format!("{name}{}", "i".repeat(300 * (number % 2)));
        guard.user_message(&id, Some(name));
        let args = json!({});
        let _ = guard.before(&Call::new(&id, name, &args));
        guard.idle(&id);
        guard.flush();
        record(home.path(), name, number);
    }
    home
}

fn record(home: &Path, name: &str, number: usize) {
    let id = format!("{name}{number}");
    let document = json!({
        "instanceId": id, "agent": name, "status": if number.is_multiple_of(2) { "running" } else { name },
        "waitingOn": name, "waitingFor": name, "error": name, "loopGuardTool": name, "parentAgent": name,
        "warnings": [name, "long ".repeat(1000)], "startedAt": i64::MAX, "deadlineMs": i64::MAX, "costUsd": 1e300,
        "toolCallCount": u64::MAX, "tokens": u64::MAX, "sessionId": name,
    });
    let bg = directory(home).join("bg");
    fs::create_dir_all(&bg).unwrap();
    let path = bg.join(format!("{}.json", SessionName::of(&id)));
    fs::write(path, document.to_string()).unwrap();
}

/// Nothing but visible characters that stay where they are put.
#[track_caller]
fn assert_inert(text: &str) {
    let is_active = |c: &char| {
        c.is_control() && *c != '\n'
            || matches!(c, '\u{590}'..='\u{8ff}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{300}'..='\u{36f}' | '\u{feff}' | '\u{fe0f}')
    };
    assert_eq!(text.chars().find(is_active), None, "{text:?}");
}

fn every_page(app: &mut App, columns: u16) -> String {
    let mut seen = String::new();
    for keys in ["", "\n", "\u{1b}", "?", "?\t", "\n", "\u{1b}\t"] {
        press(app, keys);
        for _ in 0..NAMES.len() {
            press(app, "j");
            let buffer = draw(app, columns, 40, crate::rig::PLAIN);
            for row in buffer.content.chunks(usize::from(columns)) {
                // A cell holds one character: nothing that joins others.
                assert!(row.iter().all(|cell| cell.symbol().chars().count() <= 1));
            }
            seen.push_str(&text(&buffer));
        }
    }
    seen
}

#[test]
fn hostile_names_are_drawn_as_text() {
    let home = hostile_home();
    let mut app = app(home.path());
    assert_eq!(app.counts().0, NAMES.len(), "{:?}", app.model.notes());
    assert_eq!(app.model.instances().count(), NAMES.len());
    for columns in [30, 80, 133, 300] {
        let seen = every_page(&mut app, columns);
        assert_inert(&seen);
    }
    let seen = every_page(&mut app, 300);
    assert!(seen.contains(r"\u{1b}[2J\u{1b}[31mred\u{7}"), "{seen}");
    assert!(seen.contains(r"\u{202e}desrever"));
    assert!(
        seen.contains("\u{8aad}\u{3080}"),
        "wide characters are legible"
    );
}

#[test]
fn wide_and_long_names_do_not_move_the_columns() {
    let home = hostile_home();
    let mut app = app(home.path());
    let buffer = draw(&mut app, 80, 24, crate::rig::PLAIN);
    // The column of verdicts begins where its title does, in every row.
    let column = |y: u16| -> String { (46..51).map(|x| buffer[(x, y)].symbol()).collect() };
    assert_eq!(column(1), "VERDI");
    for y in 2..2 + u16::try_from(NAMES.len()).unwrap() {
        assert_eq!(column(y), "allow", "{}", text(&buffer));
    }
}

#[test]
fn plain_output_is_inert_too() {
    let home = hostile_home();
    let (stdout, stderr, code) = run(program(home.path()).arg("--once"));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert_inert(&stdout);
    assert_eq!(stdout.lines().count(), 3 + 2 * NAMES.len());

    let (stdout, _, code) = run(program(home.path()).arg("--json"));
    assert_eq!(code, Some(0));
    assert!(
        stdout
            .bytes()
            .all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte))
    );
    let document: Value = serde_json::from_str(&stdout).unwrap();
    let hosts: Vec<&str> = document["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["host"].as_str().unwrap())
        .collect();
    for name in NAMES {
        assert!(hosts.contains(&name), "scripts get the very name: {name:?}");
    }
}

#[test]
fn a_real_terminal_gets_no_sequence_of_theirs() {
    let home = hostile_home();
    let steps = json!([
        ["wait", "bizar-top"],
        ["send", "\r"],
        ["wait", "Last calls"],
        ["send", "q"]
    ]);
    let Some(seen) = in_terminal(&program(home.path()), &steps) else {
        return;
    };
    for theirs in [
        "\u{1b}[31mred",
        "\u{9b}",
        "\u{9d}",
        "\u{202e}",
        "\u{7}",
        "\u{5e9}",
    ] {
        assert!(!seen.raw.contains(theirs), "{theirs:?}");
    }
    assert!(seen.is_restored);
}

#[test]
fn a_log_with_a_hostile_tool() {
    let home = tempfile::tempdir().unwrap();
    let logs = directory(home.path()).join("logs");
    fs::create_dir_all(&logs).unwrap();
    for name in NAMES {
        let line = line(NOW - 1000, "s", name, Outcome::Ok);
        fs::write(logs.join("s.log"), line).unwrap();
        let mut app = app(home.path());
        press(&mut app, "\n");
        assert_inert(&text(&draw(&mut app, 100, 24, crate::rig::PLAIN)));
    }
}
