//! Whatever is wrong, the call goes on: exit code 0 and the answer for a call that is allowed.

use std::{
    fs,
    fs::File,
    io::Write,
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    hosts::{ALL, Call, Host},
    rig::Rig,
};

fn allowed(host: &str) -> &'static str {
    if host == "cursor" {
        r#"{"permission":"allow"}"#
    } else {
        ""
    }
}

fn event(host: &str) -> &'static str {
    match host {
        "gemini" => "BeforeTool",
        "cursor" => "preToolUse",
        _ => "PreToolUse",
    }
}

#[test]
fn broken_documents_and_unknown_events() {
    let rig = Rig::new();
    for name in ALL {
        let inputs: [&[u8]; 14] = [
            b"",
            b"{",
            b"{}",
            b"[]",
            b"null",
            b"\"x\"",
            b"garbage",
            b"\xff\xfe\0",
            b"{\"session_id\":1}",
            b"{\"session_id\":\"s\"}",
            br#"{"session_id":"s","tool_name":"x"}"#,
            br#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":7,"tool_input":[}"#,
            br#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"x","tool_input":{"a":"#,
            br#"{"hook_event_name":"Sandwich","session_id":"s","tool_name":"x","tool_input":{}}"#,
        ];
        for input in inputs {
            let answer = rig.tell(name, event(name), input);
            let is_unknown = input.windows(8).any(|window| window == b"Sandwich");
            let expected = if is_unknown { "" } else { allowed(name) };
            assert_eq!(
                answer,
                expected,
                "{name} {:?}",
                String::from_utf8_lossy(input)
            );
        }
    }
}

#[test]
fn odd_command_lines() {
    let rig = Rig::new();
    for words in [
        &[][..],
        &["--harness"],
        &["--harness", "nope"],
        &["--nonsense", "-x", "y"],
        &["--harness=codex", "--event="],
    ] {
        assert_eq!(
            crate::rig::answer(rig.command(words), b"{}"),
            "",
            "{words:?}"
        );
    }
}

#[test]
fn a_state_that_cannot_be_used() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "codex",
    };
    let call = Call::new("c1", "ls");
    // Corrupt: put aside, and judged from the start.
    fs::create_dir_all(rig.cache()).unwrap();
    fs::write(rig.cache().join("s1.json"), "{broken").unwrap();
    assert_eq!(host.make(&call, "x"), ["", ""]);
    assert_eq!(rig.outcomes("s1"), ["ok"]);
    // A file where the directory should be.
    fs::remove_dir_all(rig.cache()).unwrap();
    fs::write(rig.cache(), "").unwrap();
    assert_eq!(host.make(&call, "x"), ["", ""]);
    fs::remove_file(rig.cache()).unwrap();
    // A directory where the document should be.
    fs::create_dir_all(rig.cache().join("s1.json/x")).unwrap();
    assert_eq!(host.make(&call, "x"), ["", ""]);
}

#[test]
fn a_full_disk() {
    let rig = Rig::new();
    rig.options(&json!({"stateDir": "/dev/full/x", "logDir": "/dev/full/y"}));
    let host = Host {
        rig: &rig,
        name: "claude",
    };
    assert_eq!(host.make(&Call::new("c1", "ls"), "x"), ["", ""]);
}

#[cfg(target_os = "linux")]
#[test]
fn no_home_and_an_odd_environment() {
    let rig = Rig::new();
    let document = json!({"hook_event_name": "PreToolUse", "session_id": "s", "turn_id": "t", "model": "m", "tool_name": "Bash", "tool_input": {}});
    let missing = rig.project().join("no/home").display().to_string();
    for home in [
        None,
        Some(""),
        Some("relative"),
        Some(missing.as_str()),
        Some("/dev/null"),
    ] {
        let mut command = rig.command(&["--harness", "codex"]);
        command
            .env_remove("HOME")
            .env("BIZAR_LOG_LEVEL", "shout")
            .env("BIZAR_DISABLE", "maybe");
        if let Some(home) = home {
            command.env("HOME", home);
        }
        command.current_dir(rig.project());
        assert_eq!(
            crate::rig::answer(command, document.to_string().as_bytes()),
            "",
            "{home:?}"
        );
    }
}

#[test]
fn options_of_any_shape() {
    for options in [
        "",
        "{",
        "[1]",
        "\u{feff}{}",
        r#"{"loopThresholdWarn":"x","loopMode":7}"#,
    ] {
        let rig = Rig::new();
        rig.options(&json!(null));
        fs::write(
            rig.home().join(".config/bizarharness/options.json"),
            options,
        )
        .unwrap();
        let host = Host {
            rig: &rig,
            name: "claude",
        };
        let answers: Vec<_> = (1..=12)
            .map(|n| host.make(&Call::new(&format!("c{n}"), "ls"), "x"))
            .collect();
        let last = answers.last().unwrap();
        assert!(
            last[0].contains("Loop protection: 12 identical"),
            "{options}: {last:?}"
        );
    }
}

/// The lock of a session is held by somebody who does not let go: the call goes on, and is noted.
#[test]
fn a_lock_that_is_not_given_back() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "codex",
    };
    host.make(&Call::new("c1", "ls"), "x");
    let locks: Vec<File> = fs::read_dir(rig.cache())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with(".lock")
        })
        .map(|path| File::open(path).unwrap())
        .collect();
    assert!(!locks.is_empty());
    for lock in &locks {
        lock.lock().unwrap();
    }
    let started = Instant::now();
    assert_eq!(host.before(&Call::new("c2", "ls")), "");
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
    drop(locks);
    let skipped = fs::read_to_string(rig.cache().join("bizar-hook.skipped")).unwrap();
    let words: Vec<&str> = skipped.split_whitespace().skip(1).collect();
    assert!(
        matches!(words[..], ["codex", "locked" | "late"]),
        "{skipped}"
    );
    assert!(rig.must(&["status"]).contains("not judged     1 calls"));
}

#[cfg(unix)]
#[test]
fn options_that_never_end() {
    let rig = Rig::new();
    let folder = rig.home().join(".config/bizarharness");
    fs::create_dir_all(&folder).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.join("options.json"))
        .status()
        .unwrap();
    assert!(made.success());
    let host = Host {
        rig: &rig,
        name: "claude",
    };
    let started = Instant::now();
    assert_eq!(host.before(&Call::new("c1", "ls")), "");
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
}

#[cfg(unix)]
fn make_pipe(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

/// The key is looked for before the session is, for a long result even while it is read.
#[cfg(unix)]
#[test]
fn a_key_that_never_ends() {
    let rig = Rig::new();
    let pipe = rig.home().join("key");
    make_pipe(&pipe);
    rig.options(&json!({"fingerprintKeyFile": pipe}));
    let host = Host {
        rig: &rig,
        name: "cursor",
    };
    host.make(&Call::new("c1", "ls"), &"x".repeat(5 << 20));
    assert!(!rig.cache().join("bizar-hook.skipped").exists());
}

/// Something that nobody foresaw never ends; the host still writes meanwhile.
#[cfg(unix)]
#[test]
fn what_takes_too_long_is_not_waited_for() {
    let rig = Rig::new();
    let host = Host {
        rig: &rig,
        name: "cursor",
    };
    host.make(&Call::new("c1", "ls"), "x");
    // A pipe in the place of a lock is waited for, as long as nobody reads it.
    for slot in 0..16 {
        let lock = rig.cache().join(format!(".lock-{slot:x}"));
        fs::remove_file(&lock).ok();
        make_pipe(&lock);
    }
    let mut document = json!({"hook_event_name": "preToolUse", "conversation_id": "s1", "tool_name": "Shell", "tool_input": {}})
        .to_string();
    document.push_str(&" ".repeat(1 << 20));
    let started = Instant::now();
    assert_eq!(
        rig.tell("cursor", "preToolUse", document.as_bytes()),
        allowed("cursor")
    );
    assert!(started.elapsed() >= Duration::from_millis(80));
    let skipped = fs::read_to_string(rig.cache().join("bizar-hook.skipped")).unwrap();
    let words: Vec<&str> = skipped.split_whitespace().skip(1).collect();
    assert_eq!(words, ["cursor", "late"]);
}

/// A host that keeps its end open is answered as soon as its document is whole.
#[test]
fn a_host_that_does_not_close_its_end() {
    let rig = Rig::new();
    let mut child = rig
        .command(&["--harness", "cursor", "--event", "preToolUse"])
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(
            br#"{"hook_event_name":"preToolUse","session_id":"s","tool_name":"x","tool_input":{}}"#,
        )
        .unwrap();
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert_eq!(output.stdout, br#"{"permission":"allow"}"#);
    assert!(output.status.success());
}

/// A host that does not read is no reason to fail.
#[test]
fn nobody_reads_the_answer() {
    let rig = Rig::new();
    let mut command = rig.command(&["--harness", "cursor", "--event", "preToolUse"]);
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(b"{}").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut command = rig.command(&["--harness", "cursor"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(0));
}

#[test]
fn switched_off() {
    let rig = Rig::new();
    for n in 1..=13 {
        let id = format!("c{n}");
        let document = json!({"hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": "p", "tool_name": "Bash", "tool_input": {}, "tool_use_id": id});
        let mut command = rig.command(&["--harness", "claude"]);
        command.env("BIZAR_DISABLE", "1");
        assert_eq!(
            crate::rig::answer(command, document.to_string().as_bytes()),
            ""
        );
    }
    assert!(!rig.cache().exists());
}

#[test]
fn observing_says_nothing() {
    let rig = Rig::new();
    rig.options(&json!({"loopObserveOnly": true}));
    let host = Host {
        rig: &rig,
        name: "gemini",
    };
    for n in 1..=14 {
        assert_eq!(host.make(&Call::new(&n.to_string(), "ls"), "x"), ["", ""]);
    }
}
