//! Transcripts of each harness, told apart by content. The samples tell one small story each: a message that makes two calls, a
//! command that fails, a call without an end.

use std::io;
use std::path::PathBuf;

use bizar_replay::{Event, Input, Mode, Output, Recorded, Replay, Seen, Summary};

use crate::{gzip, judge, run, same, text_of};

/// What a reader made of a file, a line an item.
#[derive(Default)]
struct Transcript {
    lines: Vec<String>,
    rounds: Vec<(String, Option<String>)>,
}

impl Output for Transcript {
    fn call(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        let call = seen.call;
        let session = match &call.parent {
            Some(parent) => format!("{}<{parent}", call.session),
            None => call.session.to_string(),
        };
        let args = call.args.as_deref().map_or("-", |args| args.get());
        let ok = match call.ok {
            Some(true) => "ok",
            Some(false) => "failed",
            None => "?",
        };
        let result = match &call.result {
            Recorded::Absent => "-".to_owned(),
            Recorded::Json(raw) => raw.get().to_owned(),
            Recorded::Text(text) => format!("{text:?}"),
            Recorded::Norm(hash) | Recorded::Sha256(hash) => format!("#{hash}"),
        };
        let took = call
            .took
            .map_or_else(|| "-".to_owned(), |took| format!("{took:.0}ms"));
        self.rounds
            .push((call.session.to_string(), call.batch.clone()));
        self.lines.push(format!(
            "{session} {} {args} {ok} {result} {took}",
            call.tool
        ));
        Ok(())
    }

    fn event(&mut self, session: &str, event: Event) -> io::Result<()> {
        self.lines.push(format!("{session} {event:?}"));
        Ok(())
    }
}

fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/samples")
        .join(name)
}

fn read(name: &str) -> (Transcript, Summary) {
    let mut transcript = Transcript::default();
    let summary = Replay::new(&[Mode::Progress])
        .run(Input::of_paths(&[sample(name)]), &mut transcript)
        .unwrap();
    (transcript, summary)
}

fn assert_reads(name: &str, expected: &[&str]) -> Transcript {
    let (transcript, summary) = read(name);
    assert_eq!(transcript.lines, expected, "{name}");
    assert_eq!((summary.skipped, summary.trouble), (0, false), "{name}");
    // The first two calls were made by one message.
    let first: Vec<_> = transcript.rounds.iter().take(2).collect();
    assert_eq!(first[0], first[1], "{name}: one round");
    assert_ne!(
        transcript.rounds.get(2),
        Some(first[0]),
        "{name}: the third call is another round"
    );
    transcript
}

#[test]
fn claude_code() {
    let root = "11111111-aaaa-4bbb-8ccc-000000000001";
    let child = format!("{root}/a77<{root}");
    let expected = [
        format!("{root} UserMessage"),
        format!(
            "{root} Read {{\"file_path\":\"/pantry/tea.txt\"}} ok [{{\"type\":\"text\",\"text\":\"tea: none\"}}] 500ms"
        ),
        format!("{root} Read {{\"file_path\":\"/pantry/rice.txt\"}} ok \"rice: 2 kg\" 300ms"),
        format!(
            "{root} Bash {{\"command\":\"weigh --all\",\"description\":\"weigh\"}} failed \"Exit code 3\\nno scale\" 250ms"
        ),
        format!("{child} Bash {{\"command\":\"shop tea\"}} ok \"bought\" 500ms"),
        format!(
            "{root} Agent {{\"prompt\":\"buy tea\"}} ok [{{\"type\":\"text\",\"text\":\"tea is here\"}}] 2000ms"
        ),
        format!(
            "{root} Edit {{\"file_path\":\"/pantry/list.txt\",\"old_string\":\"tea\",\"new_string\":\"\"}} ? - -"
        ),
    ];
    assert_reads("claude.jsonl", &expected.each_ref().map(String::as_str));
}

#[test]
fn codex() {
    let id = "22222222-aaaa-7bbb-8ccc-000000000002<root";
    let expected = [
        "22222222-aaaa-7bbb-8ccc-000000000002 UserMessage".to_owned(),
        format!(
            "{id} exec_command {{\"cmd\": \"cat tea.txt\"}} ok {:?} 400ms",
            "Chunk ID: 0a1b2c\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nnone\n"
        ),
        format!(
            "{id} exec_command {{\"cmd\": \"cat rice.txt\"}} failed {:?} 400ms",
            "Chunk ID: 3d4e5f\nWall time: 0.2 seconds\nProcess exited with code 2\nOutput:\nno rice\n"
        ),
        format!(
            "{id} apply_patch {{\"input\":\"*** Begin Patch\"}} ok {:?} 200ms",
            "{\"output\":\"done\",\"metadata\":{\"exit_code\":0}}"
        ),
        format!("{id} mcp__shop__lookup {{\"q\": 1}} failed \"unsupported call: lookup\" 100ms"),
        format!("{id} update_plan {{\"plan\": []}} ? - -"),
    ];
    assert_reads("codex.jsonl", &expected.each_ref().map(String::as_str));
}

#[test]
fn gemini_cli_lines_and_the_older_document() {
    let expected = [
        "gem-1 UserMessage",
        r#"gem-1 read_file {"file_path":"tea.txt"} ok "tea: none" 500ms"#,
        r#"gem-1 read_file {"file_path":"rice.txt"} ok "rice: 2 kg" 600ms"#,
        r#"gem-1 run_shell_command {"command":"weigh"} failed "Output: no scale\nExit Code: 3" 300ms"#,
        r#"gem-1 replace {"file_path":"list.txt"} failed "File not found" 100ms"#,
        r#"gem-1 glob {"pattern":"*"} ? - -"#,
    ];
    assert_reads("gemini.jsonl", &expected);
    let (transcript, _) = read("gemini-document.json");
    assert_eq!(
        transcript
            .lines
            .iter()
            .map(|line| without_spaces(line))
            .collect::<Vec<_>>(),
        expected.map(without_spaces)
    );
}

/// The document is indented, the arguments in it too.
fn without_spaces(line: &str) -> String {
    line.split_whitespace().collect()
}

#[test]
fn opencode_export() {
    let (transcript, summary) = read("opencode.json");
    let lines: Vec<String> = transcript
        .lines
        .iter()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let expected = [
        "ses_1 UserMessage",
        r#"ses_1<ses_0 read { "filePath": "tea.txt" } ok "none" 40ms"#,
        r#"ses_1<ses_0 read { "filePath": "rice.txt" } ok "2 kg" 50ms"#,
        r#"ses_1<ses_0 bash { "command": "weigh", "description": "weigh" } failed "no scale" 100ms"#,
        r#"ses_1<ses_0 edit { "filePath": "list.txt" } failed "no match" 5ms"#,
        r#"ses_1<ses_0 glob { "pattern": "*" } ? - -"#,
    ];
    assert_eq!(lines, expected, "a synthetic user message is none");
    assert_eq!((summary.sessions, summary.skipped), (1, 0));
    assert_eq!(transcript.rounds[0], transcript.rounds[1]);
}

#[test]
fn qwen_code() {
    assert_reads(
        "qwen.jsonl",
        &[
            "qw-1 UserMessage",
            r#"qw-1 read_file {"file_path":"tea.txt"} ok {"output":"none"} 400ms"#,
            r#"qw-1 read_file {"file_path":"rice.txt"} failed {"error":"File not found"} 500ms"#,
            r#"qw-1 run_shell_command {"command":"weigh"} ? - -"#,
        ],
    );
}

#[test]
fn copilot_cli() {
    assert_reads(
        "copilot.jsonl",
        &[
            "cop-1 UserMessage",
            r#"cop-1 view {"path":"tea.txt"} ok "none" 500ms"#,
            r#"cop-1 view {"path":"rice.txt"} failed "Path does not exist" 300ms"#,
            r#"cop-1 bash {"command":"weigh"} failed "no scale\n" 300ms"#,
            r#"cop-1/ag1<cop-1 bash {"command":"shop"} ok "ok" 200ms"#,
        ],
    );
}

#[test]
fn cline() {
    let (transcript, summary) = read("cline.messages.json");
    let starts = [
        "cl-1 UserMessage",
        "cl-1<cl-0 read_files",
        "cl-1<cl-0 run_commands",
        "cl-1<cl-0 spawn_agent",
    ];
    assert_eq!(transcript.lines.len(), starts.len());
    for (line, start) in transcript.lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    let failed: Vec<bool> = transcript
        .lines
        .iter()
        .map(|line| line.contains("} failed ["))
        .collect();
    assert_eq!(failed, [false, false, true, false]);
    assert_eq!((summary.calls, summary.skipped), (3, 0));
    assert_eq!(transcript.rounds[0], transcript.rounds[1]);
}

#[test]
fn kimi_code() {
    // The file's own path names the session where it lies in the usual place; here it does not.
    let (transcript, _) = read("kimi.wire.jsonl");
    let lines: Vec<&str> = transcript
        .lines
        .iter()
        .filter_map(|line| line.split_once("kimi.wire.jsonl "))
        .map(|(_, rest)| rest)
        .collect();
    let expected = [
        "UserMessage",
        r#"Read {"path":"tea.txt"} ok "none" 7ms"#,
        r#"Bash {"command":"weigh"} failed "no scale" 14ms"#,
        r#"Read {"path":"rice.txt"} ? - -"#,
    ];
    assert_eq!(lines, expected);
    let directory = tempfile::tempdir().unwrap();
    let agent = directory.path().join("session_9/agents/agent-0");
    std::fs::create_dir_all(&agent).unwrap();
    std::fs::copy(sample("kimi.wire.jsonl"), agent.join("wire.jsonl")).unwrap();
    let mut transcript = Transcript::default();
    Replay::new(&[Mode::Progress])
        .run(
            Input::of_paths(&[agent.join("wire.jsonl")]),
            &mut transcript,
        )
        .unwrap();
    assert!(
        transcript.lines[1].starts_with("session_9/agent-0<session_9 Read"),
        "{}",
        transcript.lines[1]
    );
}

#[test]
fn droid() {
    assert_reads(
        "droid.jsonl",
        &[
            "dr-1 UserMessage",
            r#"dr-1<dr-0 Read {"file_path":"tea.txt"} ok "none" 500ms"#,
            r#"dr-1<dr-0 Execute {"command":"weigh"} failed "Error: Command failed (exit code: 3)" 700ms"#,
            r#"dr-1<dr-0 Edit {"file_path":"list.txt"} ? - -"#,
        ],
    );
}

#[test]
fn names_of_files_play_no_part() {
    let directory = tempfile::tempdir().unwrap();
    for name in std::fs::read_dir(sample(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
    {
        let name = name.into_string().unwrap();
        let plain = std::fs::read(sample(&name)).unwrap();
        let other = directory.path().join("x");
        std::fs::write(&other, gzip(&plain)).unwrap();
        let renamed = run(&["--format", "jsonl", text_of(&other)]).summary();
        assert_eq!(
            renamed,
            run(&["--format", "jsonl", text_of(&sample(&name))]).summary(),
            "{name}"
        );
        assert!(renamed["calls"].as_u64().unwrap() >= 3, "{name}");
        let piped = judge(&plain, &[]);
        assert_eq!((piped.summary(), piped.code), (renamed, Some(0)), "{name}");
    }
}

#[test]
fn a_transcript_cut_anywhere_is_read_as_far_as_it_goes() {
    for name in [
        "claude.jsonl",
        "codex.jsonl",
        "gemini.jsonl",
        "qwen.jsonl",
        "copilot.jsonl",
        "kimi.wire.jsonl",
        "droid.jsonl",
    ] {
        let text = std::fs::read_to_string(sample(name)).unwrap();
        for end in (200..text.len()).step_by(97) {
            let ran = judge(&text.as_bytes()[..end], &[]);
            assert!(
                ran.code.is_some_and(|code| code == 0 || code == 2),
                "{name} cut at {end}: {:?} {}",
                ran.code,
                ran.err
            );
            assert!(
                ran.summary()["skipped"].as_u64().unwrap() <= 1,
                "{name} cut at {end}: {}",
                ran.err
            );
        }
    }
}

#[test]
fn find_looks_into_the_usual_places() {
    let home = tempfile::tempdir().unwrap();
    let put = |place: &str, name: &str| {
        let directory = home.path().join(place);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::copy(sample(name), directory.join("session.jsonl")).unwrap();
    };
    put(".claude/projects/-pantry", "claude.jsonl");
    put("elsewhere/sessions/2026/03/01", "codex.jsonl");
    let find = |variable: Option<&str>| {
        let mut command = crate::program();
        command
            .args(["--find", "--format", "jsonl"])
            .env("HOME", home.path())
            .env("USERPROFILE", home.path());
        command
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("CODEX_HOME");
        if let Some(value) = variable {
            command.env("CODEX_HOME", home.path().join(value));
        }
        crate::Ran::of(&command.output().unwrap())
    };
    assert_eq!(
        find(None).summary()["sessions"],
        2,
        "the root and its child"
    );
    assert_eq!(find(Some("elsewhere")).summary()["sessions"], 3);
    std::fs::remove_dir_all(home.path().join(".claude")).unwrap();
    let nothing = find(None);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(2), ""));
    assert!(
        nothing.err.contains("no recorded sessions"),
        "{}",
        nothing.err
    );
    assert_eq!(judge(same(1), &[]).code, Some(0));
}
