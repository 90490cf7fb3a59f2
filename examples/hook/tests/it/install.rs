//! Files of others: changed with care, and given back as they were.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    hosts::ALL,
    rig::{Rig, read},
};

fn file(rig: &Rig, host: &str) -> PathBuf {
    rig.home().join(match host {
        "claude" => ".claude/settings.json",
        "codex" => ".codex/hooks.json",
        "gemini" => ".gemini/settings.json",
        "qwen" => ".qwen/settings.json",
        "copilot" => ".copilot/hooks/bizar-hook.json",
        "kimi" => ".kimi-code/config.toml",
        "droid" => ".factory/settings.json",
        "cursor" => ".cursor/hooks.json",
        "goose" => ".agents/plugins/bizar-hook/hooks/hooks.json",
        "cline" => ".cline/hooks/PreToolUse",
        other => panic!("{other}"),
    })
}

/// Everything in a directory, with its content.
fn snapshot(rig: &Rig) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![rig.home(), rig.project()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.clone(), read(&path)));
            }
        }
    }
    found.sort();
    found
}

fn commands(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| match value.as_str() {
                Some(text) if name == "command" || name == "bash" => vec![text.to_owned()],
                _ => commands(value),
            })
            .collect(),
        Value::Array(values) => values.iter().flat_map(commands).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn in_a_clean_home_and_away_again() {
    for host in ALL {
        let rig = Rig::new();
        let said = rig.must(&["install", host, "--dry-run"]);
        assert!(said.contains("would be written"), "{host}: {said}");
        assert_eq!(snapshot(&rig), [], "{host}: a dry run writes nothing");
        rig.must(&["install", host]);
        let text = read(&file(&rig, host));
        assert!(
            text.contains(&format!("bizar-hook --harness {host} --event ")),
            "{host}: {text}"
        );
        let installed = snapshot(&rig);
        let said = rig.must(&["install", host]);
        assert!(said.contains("nothing to do"), "{host}: {said}");
        assert_eq!(snapshot(&rig), installed, "{host}: twice is once");
        let status = rig.must(&["status"]);
        assert_eq!(
            status.matches(" not installed (").count(),
            9,
            "{host}: {status}"
        );
        rig.must(&["uninstall", host]);
        assert_eq!(snapshot(&rig), [], "{host}");
        assert!(
            rig.must(&["uninstall", host])
                .contains("logs and state stay")
        );
    }
}

/// Every event that is written down is one that the program makes something of.
#[test]
fn what_is_written_works() {
    for host in ALL {
        let rig = Rig::new();
        rig.must(&["install", host]);
        let text = read(&file(&rig, host));
        let commands = match host {
            "kimi" => {
                let lines = text
                    .lines()
                    .filter_map(|line| line.strip_prefix("command = "));
                lines
                    .map(|line| line.trim_matches('"').to_owned())
                    .collect()
            }
            "cline" => vec![file(&rig, host).to_str().unwrap().to_owned()],
            _ => commands(&serde_json::from_str(&text).unwrap()),
        };
        assert!(!commands.is_empty());
        for command in commands {
            let mut shell = std::process::Command::new("sh");
            shell
                .args(["-c", &command])
                .env_clear()
                .env("HOME", rig.home())
                .env("PATH", "/usr/bin:/bin");
            let output = shell.stdin(std::process::Stdio::null()).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{command}");
            assert_eq!(output.stderr, b"", "{command}");
        }
    }
}

const COMMENTED: &str = r#"{
    // mine
    "theme": "dark", /* the best */
    "hooks": {
        "PreToolUse": [
            {"matcher": "Write", "hooks": [{"type": "command", "command": "mine.sh"}]}, // keep
        ],
        "Stop": [],
    },

    "z": [1,2,  3],
}
"#;

#[test]
fn comments_order_and_unknown_members_stay() {
    for host in ["claude", "gemini", "qwen", "droid"] {
        let rig = Rig::new();
        let path = file(&rig, host);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, COMMENTED).unwrap();
        rig.must(&["install", host]);
        let text = read(&path);
        for line in COMMENTED
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.contains("Stop"))
        {
            assert!(text.contains(line), "{host}: {line}\n{text}");
        }
        let backup = path.with_file_name("settings.json.before-bizar-hook");
        assert_eq!(read(&backup), COMMENTED);
        // A second installation after the user's edits keeps the first copy.
        fs::write(&path, text.replace("dark", "light")).unwrap();
        rig.must(&["uninstall", host]);
        let rest = read(&path);
        assert!(
            rest.contains("light") && rest.contains("mine.sh") && !rest.contains("bizar-hook"),
            "{rest}"
        );
        assert_eq!(read(&backup), COMMENTED);
    }
}

#[test]
fn what_was_there_comes_back_to_the_byte() {
    let plain = "{\n  \"version\": 1,\n  \"hooks\": {\n    \"Notification\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}]\n  }\n}\n";
    let toml = "# mine\nmodel = \"x\" # why\n\n[[hooks]]\nevent = \"Stop\"\ncommand = 'say done'\n\n[other]\na = 1\n";
    for host in ALL.into_iter().filter(|host| *host != "cline") {
        let rig = Rig::new();
        let path = file(&rig, host);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = if host == "kimi" { toml } else { plain };
        fs::write(&path, text).unwrap();
        rig.must(&["install", host]);
        assert!(read(&path).contains("bizar-hook"), "{host}");
        rig.must(&["uninstall", host]);
        assert_eq!(read(&path), text, "{host}");
        assert!(
            !path.with_extension("json.before-bizar-hook").exists(),
            "{host}: the copy is no longer needed"
        );
    }
}

#[test]
fn an_older_entry_of_ours_is_replaced_and_others_stay() {
    let rig = Rig::new();
    let path = file(&rig, "codex");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let old = json!({"hooks": {"PreToolUse": [{"hooks": [
        {"type": "command", "command": "'/old place/bizar-hook' --harness codex"},
        {"type": "command", "command": "echo bizar-hook --harness codex"},
    ]}], "Interrupt": [{"hooks": [{"type": "command", "command": "/old/bizar-hook --harness codex --event Interrupt"}]}]}});
    fs::write(&path, old.to_string()).unwrap();
    rig.must(&["install", "codex"]);
    let text = read(&path);
    assert!(!text.contains("/old"), "{text}");
    let all = commands(&serde_json::from_str(&text).unwrap());
    assert!(all.contains(&"echo bizar-hook --harness codex".to_owned()));
    assert_eq!(all.len(), 6, "{all:?}");
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone() {
    for (host, text, place) in [
        ("codex", "{\n  \"a\" 1}", "line 2, column 7"),
        ("codex", "{ // no comments here\n}", "line 1, column 3"),
        (
            "claude",
            "{\"hooks\": []}",
            "its member \"hooks\" is not an object",
        ),
        ("gemini", "[]", "its root is not an object"),
        (
            "cursor",
            "{\"hooks\": {\"preToolUse\": {}}}",
            "its member \"hooks.preToolUse\" is not an array",
        ),
        ("kimi", "a = 1\nb = = 2\n", "line 2, column 5"),
        (
            "kimi",
            "hooks = [{event = \"Stop\"}]\n",
            "not written as [[hooks]] tables",
        ),
        ("cline", "#!/bin/sh\necho mine\n", "is another hook"),
    ] {
        let rig = Rig::new();
        let path = file(&rig, host);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let before = snapshot(&rig);
        let output = rig.ask(&["install", host]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{host} {text}");
        assert!(
            error.contains(place) && error.contains(path.to_str().unwrap()),
            "{host}: {error}"
        );
        assert_eq!(snapshot(&rig), before, "{host}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_a_mode_stays() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let rig = Rig::new();
    let path = file(&rig, "claude");
    let real = rig.home().join("dotfiles/claude.json");
    for folder in [&path, &real] {
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
    }
    fs::write(&real, "{}").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&real, &path).unwrap();
    rig.must(&["install", "claude"]);
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert!(read(&real).contains("bizar-hook"));
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_project_names_the_program_and_no_path() {
    for host in ALL {
        let rig = Rig::new();
        let output = rig.ask(&["install", host, "--project"]);
        if host == "kimi" {
            assert_eq!(output.status.code(), Some(1));
            continue;
        }
        assert!(output.status.success(), "{host}: {output:?}");
        let files = snapshot(&rig);
        assert!(
            files
                .iter()
                .all(|(path, _)| path.starts_with(rig.project())),
            "{host}: {files:?}"
        );
        let text: String = files.iter().map(|(_, text)| text.as_str()).collect();
        assert!(
            text.contains(&format!("bizar-hook --harness {host}")),
            "{host}: {text}"
        );
        assert!(!text.contains("/bizar-hook"), "{host}: {text}");
        rig.must(&["uninstall", host, "--project"]);
        assert_eq!(snapshot(&rig), [], "{host}");
    }
}

#[test]
fn homes_of_harnesses_are_found() {
    for (variable, host, name) in [
        ("CLAUDE_CONFIG_DIR", "claude", "settings.json"),
        ("CODEX_HOME", "codex", "hooks.json"),
        ("COPILOT_HOME", "copilot", "hooks/bizar-hook.json"),
        ("KIMI_CODE_HOME", "kimi", "config.toml"),
    ] {
        let rig = Rig::new();
        let moved = rig.home().join("elsewhere");
        let mut command = rig.command(&["install", host]);
        command.env(variable, &moved);
        assert!(command.output().unwrap().status.success());
        assert!(moved.join(name).exists(), "{host}");
    }
}

#[test]
fn two_that_would_run_us_twice_are_named() {
    let rig = Rig::new();
    assert!(
        !rig.must(&["install", "claude"])
            .contains("count each call twice")
    );
    assert!(
        rig.must(&["install", "cursor"])
            .contains("installed for Claude Code and for Cursor")
    );
    assert!(
        rig.must(&["install", "claude"])
            .contains("installed for Claude Code and for Cursor")
    );
    let said = rig.must(&["install", "claude", "--project"]);
    assert!(
        said.contains("installed for the user and for this project"),
        "{said}"
    );
}

/// The gate is the user's: it is explained, and nothing is written that opens it.
#[test]
fn the_trust_of_codex_is_not_touched() {
    let rig = Rig::new();
    let config = rig.home().join(".codex/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "model = \"x\"\n").unwrap();
    let said = rig.must(&["install", "codex"]);
    assert!(
        said.contains("/hooks") && said.contains("the gate is yours"),
        "{said}"
    );
    assert_eq!(read(&config), "model = \"x\"\n");
    let output = rig.ask(&["doctor"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("BAD  Codex CLI: its hooks are not approved"),
        "{said}"
    );
    // As Codex writes it when the user approves.
    let hooks = file(&rig, "codex");
    let states: String = [
        "pre_tool_use",
        "post_tool_use",
        "user_prompt_submit",
        "session_start",
        "stop",
    ]
    .map(|event| {
        format!(
            "[hooks.state.\"{}:{event}:0:0\"]\ntrusted_hash = \"sha256:00\"\n",
            hooks.display()
        )
    })
    .concat();
    fs::write(&config, states).unwrap();
    let output = rig.ask(&["doctor"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && said.contains("hooks were approved"),
        "{said}"
    );
}

#[test]
fn a_doctor_sees_what_is_wrong() {
    let rig = Rig::new();
    let said = |rig: &Rig| String::from_utf8(rig.ask(&["doctor"]).stdout).unwrap();
    assert!(said(&rig).contains("BAD  installed nowhere"));
    rig.must(&["install", "claude"]);
    let path = file(&rig, "claude");
    let text = read(&path);
    assert!(!said(&rig).contains("BAD"), "{}", said(&rig));
    fs::write(&path, text.replacen('{', "{\"disableAllHooks\": true,", 1)).unwrap();
    assert!(said(&rig).contains("BAD  Claude Code: disableAllHooks is set"));
    let program = env!("CARGO_BIN_EXE_bizar-hook");
    fs::write(&path, text.replace(program, "/gone/bizar-hook")).unwrap();
    assert!(said(&rig).contains("BAD  Claude Code: /gone/bizar-hook does not start"));
    fs::write(&path, "{").unwrap();
    assert!(said(&rig).contains("was left alone: line 1"));
    rig.options(&json!({"loopThresholdWran": 3}));
    assert!(said(&rig).contains("BAD  options: "));
}

/// Nobody writes into the pipe: reading it would wait for ever.
#[test]
fn a_pipe_in_the_place_of_a_file_is_left_alone() {
    let rig = Rig::new();
    let path = file(&rig, "claude");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let trouble = format!("{} was left alone: is not a file", path.display());
    for words in [&["install", "claude"][..], &["uninstall", "claude"]] {
        let output = rig.ask(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(&trouble), "{words:?}: {error}");
    }
    let status = rig.must(&["status"]);
    assert_eq!(status.matches(&trouble).count(), 1, "{status}");
}

#[test]
fn usage_errors_of_people_are_told() {
    let rig = Rig::new();
    for words in [
        &["install"][..],
        &["install", "nope"],
        &["install", "codex", "--force"],
        &["uninstall", "codex", "claude"],
        &["status", "codex"],
        &["doctor", "--dry-run"],
        &["--version", "x"],
    ] {
        let output = rig.ask(words);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{words:?}: never 2, which is a refusal to some"
        );
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .starts_with("bizar-hook: "),
            "{words:?}"
        );
    }
    for words in [
        &["--help"][..],
        &["help"],
        &["status", "--help"],
        &["install", "-h"],
    ] {
        assert!(rig.must(words).contains("Usage:"), "{words:?}");
    }
    assert!(rig.must(&["--version"]).starts_with("bizar-hook 0."));
}

/// Nothing would be judged: that is to be known when it is installed, not when it is needed.
#[test]
fn without_a_place_for_sessions_nothing_is_installed() {
    let rig = Rig::new();
    let mut command = rig.command(&["install", "claude", "--project"]);
    let output = command.env_remove("HOME").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("no place to keep sessions in") && error.contains("stateDir: "),
        "{error}"
    );
    assert_eq!(snapshot(&rig), []);
    rig.options(&json!({"stateDir": rig.project().join("state")}));
    rig.must(&["install", "claude", "--project"]);
}

#[test]
fn people_are_shown_where_things_are() {
    let rig = Rig::new();
    let doctor = String::from_utf8(rig.ask(&["doctor"]).stdout).unwrap();
    for said in [rig.must(&["status"]), doctor] {
        assert!(said.contains(&rig.cache().display().to_string()), "{said}");
        assert!(
            said.contains(&rig.cache().join("logs").display().to_string()),
            "{said}"
        );
    }
}
