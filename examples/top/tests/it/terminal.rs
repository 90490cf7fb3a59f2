//! The terminal is given back as it was, whatever ends the view.

use std::{path::PathBuf, process::Command};

use serde_json::json;

use crate::rig::{demo, in_terminal, program};

#[test]
fn after_signals() {
    let home = demo();
    for (name, number) in [("SIGINT", 2), ("SIGTERM", 15), ("SIGHUP", 1)] {
        let steps = json!([["wait", "sessions"], ["signal", name]]);
        let Some(seen) = in_terminal(program(home.path()).arg("--mouse"), &steps) else {
            return;
        };
        assert!(seen.is_restored, "{name}: {:?}", seen.raw);
        assert_eq!(
            seen.code, -number,
            "whoever sent {name} sees that it did its work"
        );
    }
}

#[test]
fn after_leaving() {
    let home = demo();
    for key in ["q", "\u{3}"] {
        let steps = json!([["wait", "sessions"], ["send", key]]);
        let Some(seen) = in_terminal(program(home.path()).arg("--mouse"), &steps) else {
            return;
        };
        assert!(seen.is_restored);
        assert_eq!(seen.code, 0);
        assert!(
            seen.raw.contains("\u{1b}[?1000h"),
            "the mouse was asked for"
        );
    }
}

#[test]
fn after_a_panic_of_any_thread() {
    let program = example("panics");
    for arguments in [&[][..], &["thread"]] {
        let mut command = Command::new(&program);
        command.args(arguments).env("TERM", "xterm");
        let Some(seen) = in_terminal(&command, &json!([])) else {
            return;
        };
        assert!(seen.is_restored, "{:?}", seen.raw);
        assert_eq!(seen.code, 101);
        // What happened is said on the screen that the user sees again.
        let (_, after) = seen.raw.rsplit_once("\u{1b}[?1049l").unwrap();
        assert!(after.contains("panicked at"), "{after}");
    }
}

#[test]
fn no_colour_is_sent_where_none_is_wanted() {
    let home = demo();
    let steps = json!([
        ["wait", "sessions"],
        ["screen"],
        ["send", "\r"],
        ["wait", "Last calls"],
        ["send", "q"]
    ]);
    let colours = |command: &Command| -> Option<bool> {
        let raw = in_terminal(command, &steps)?.raw;
        let sequences = raw.split("\u{1b}[").skip(1);
        let mut selections = sequences.filter_map(|rest| {
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            (rest[end..].starts_with('m')).then(|| rest[..end].to_owned())
        });
        // 39 and 49 are the terminal's own.
        Some(selections.any(|codes| {
            codes
                .split(';')
                .any(|code| matches!(code.parse::<u32>(), Ok(30..=38 | 40..=48 | 90..=107)))
        }))
    };
    let Some(by_default) = colours(&program(home.path())) else {
        return;
    };
    assert!(by_default);
    assert_eq!(
        colours(program(home.path()).env("NO_COLOR", "1")),
        Some(false)
    );
    assert_eq!(
        colours(program(home.path()).args(["--color", "never"])),
        Some(false)
    );
    assert_eq!(
        colours(
            program(home.path())
                .env("NO_COLOR", "1")
                .args(["--color", "always"])
        ),
        Some(true)
    );
    // An empty NO_COLOR is none.
    assert_eq!(
        colours(program(home.path()).env("NO_COLOR", "")),
        Some(true)
    );
}

/// The examples of this package are built with its tests, beside the program.
fn example(name: &str) -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_bizar-top"));
    let path = program.parent().unwrap().join("examples").join(name);
    path.with_extension(std::env::consts::EXE_EXTENSION)
}
