//! Input that is broken, huge or meant to harm never ends in anything but a note.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::{gzip, judge, program, run, run_on, same, text_of};

#[test]
fn broken_lines_of_every_kind_are_skipped() {
    let mut text = Vec::new();
    text.extend(same(1).bytes());
    text.extend(b"\xff\xfe\x00 not text\n");
    text.extend(b"{\"session\":\"s\",\"tool\":\"t\",\"args\":{\"a\":\"\xff\"}}\n");
    text.extend(br#"{"session":"s","tool":"t","args":{"a":1,"a":2}}"#);
    text.push(b'\n');
    text.extend(br#"{"session":"s","tool":"t","args":{"a":"\ud800"}}"#);
    text.push(b'\n');
    text.extend(br#"{"session":"s","session":"r","tool":"t"}"#);
    text.push(b'\n');
    text.extend(b"[1,2,3]\n\"text\"\n17\nnull\n\n   \n");
    text.extend(same(1).bytes());
    let ran = judge(text, &[]);
    assert_eq!(ran.summary()["calls"], 2, "{}", ran.err);
    assert_eq!(ran.summary()["skipped"], 9, "{}", ran.err);
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.contains("-:2: not UTF-8 (column 1)"), "{}", ran.err);
    assert!(
        ran.err.contains("-:4: a call without identity"),
        "{}",
        ran.err
    );
}

#[test]
fn a_time_that_cannot_be_is_not_shown() {
    let call = |t: &str| format!("{{\"session\":\"s\",\"tool\":\"t\",\"args\":{{}},\"t\":{t}}}\n");
    let ran = run_on(call("0") + &call("90"), &["-"]);
    assert!(ran.out.contains("1 min 30 s"), "{}", ran.out);
    let ran = run_on(call("0") + &call("1e308"), &["-"]);
    assert!(ran.out.contains("2 calls"), "{}", ran.out);
    assert!(ran.out.len() < 500, "{}", ran.out);
}

#[test]
fn deep_json_is_a_bad_line_at_most() {
    for depth in [100, 120, 200, 100_000] {
        let deep = "[".repeat(depth) + &"]".repeat(depth);
        let text = format!(
            "{}{{\"session\":\"s\",\"tool\":\"t\",\"args\":{deep}}}\n",
            same(1)
        );
        let text = format!(
            "{text}{{\"session\":\"s\",\"tool\":\"t\",\"args\":{{}},\"result\":{deep}}}\n{{\"x\":{deep}}}\n{}",
            same(1)
        );
        let ran = judge(text, &[]);
        assert_eq!(ran.code, Some(0), "{depth}: {}", ran.err);
        let skipped = ran.summary()["skipped"].as_u64().unwrap();
        assert_eq!(skipped, 1 + u64::from(depth > 128), "{depth}: {}", ran.err);
    }
}

#[test]
fn a_huge_line_is_passed_over_without_being_kept() {
    let mut text = same(1).into_bytes();
    text.extend(br#"{"session":"s","tool":"t","args":{"a":""#);
    text.resize(text.len() + 65 * 1024 * 1024, b'x');
    text.extend(b"\"}}\n");
    text.extend(same(1).bytes());
    let ran = judge(text, &[]);
    assert_eq!(
        (
            ran.summary()["calls"].as_u64(),
            ran.summary()["skipped"].as_u64()
        ),
        (Some(2), Some(1))
    );
    assert!(ran.err.contains("-:2: longer than 64 MiB"), "{}", ran.err);
}

#[test]
fn many_bad_lines_are_all_counted_but_not_all_named() {
    let text = same(1) + &"nonsense\n".repeat(5_000);
    let ran = judge(text, &[]);
    assert_eq!(ran.summary()["skipped"], 5_000);
    assert_eq!(ran.err.lines().count(), 101);
    assert!(
        ran.err.contains("4900 more lines"),
        "{}",
        ran.err.lines().last().unwrap()
    );
}

#[test]
fn binary_files_and_broken_archives() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let bytes: Vec<u8> = (0..200_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(run(&[text_of(&path)]).code, Some(2));
    let packed = gzip(same(3000).as_bytes());
    std::fs::write(&path, &packed[..packed.len() - 40]).unwrap();
    let ran = run(&["--format", "jsonl", text_of(&path)]);
    assert!(
        ran.summary()["skipped"].as_u64().unwrap() <= 2,
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("cannot be read further") || ran.code == Some(2),
        "{}",
        ran.err
    );
    std::fs::write(&path, [0x1f, 0x8b, 1, 2, 3]).unwrap();
    assert_eq!(run(&[text_of(&path)]).code, Some(2));
}

#[test]
fn names_cannot_harm_a_terminal() {
    let evil = r#"{"session":"s\u001b[2J\u202e\n","tool":"\u001b]0;owned\u0007rm\u0000","args":{"a":"\u001b[31m"},"result":"x","ok":true}"#;
    let ran = run_on((evil.to_owned() + "\n").repeat(6), &["--show-args", "-"]);
    assert!(
        !ran.out.contains(['\u{1b}', '\u{7}', '\u{202e}', '\0']),
        "{:?}",
        ran.out
    );
    assert_eq!(ran.code, Some(0));
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    for format in ["text", "jsonl", "html"] {
        let mut child = program()
            .args(["--format", format, "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // Enough output that the pipe fills whoever is at its other end.
        let feeder = std::thread::spawn(move || {
            for session in 0..3_000 {
                let text = same(12).replace(r#""s""#, &format!(r#""session-{session}""#));
                if std::io::Write::write_all(&mut stdin, text.as_bytes()).is_err() {
                    break;
                }
            }
        });
        let mut first = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        if format == "jsonl" {
            stdout.read_line(&mut first).unwrap();
        }
        drop(stdout);
        let mut err = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        assert_eq!(
            (child.wait().unwrap().code(), err.as_str()),
            (Some(0), ""),
            "{format}"
        );
        feeder.join().unwrap();
    }
}

#[cfg(unix)]
#[test]
fn pipes_links_and_forbidden_files() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let directory = tempfile::tempdir().unwrap();
    let inside = |name: &str| directory.path().join(name);
    std::fs::write(inside("good.jsonl"), same(2)).unwrap();
    symlink(directory.path(), inside("circle")).unwrap();
    symlink(inside("good.jsonl"), inside("link.jsonl")).unwrap();
    symlink(inside("nowhere"), inside("broken")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(inside("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    std::fs::write(inside("secret.jsonl"), same(2)).unwrap();
    std::fs::set_permissions(
        inside("secret.jsonl"),
        std::fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    let readable = std::fs::read(inside("secret.jsonl")).is_ok();
    let ran = run(&["--format", "jsonl", text_of(directory.path())]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(
        ran.summary()["calls"],
        if readable { 6 } else { 4 },
        "a pipe in a directory is not waited for"
    );
    if !readable {
        assert!(ran.err.contains("secret.jsonl"), "{}", ran.err);
        assert_eq!(run(&[text_of(&inside("secret.jsonl"))]).code, Some(2));
    }
    // A pipe that was named is what `<(command)` gives, so it is read.
    let pipe = inside("pipe");
    let writer = std::thread::spawn(move || std::fs::write(pipe, same(3)).unwrap());
    let ran = run(&["--format", "jsonl", text_of(&inside("pipe"))]);
    writer.join().unwrap();
    assert_eq!(ran.summary()["calls"], 3);
}

/// Verdicts look like calls: reading what is just being written would never end.
#[cfg(unix)]
#[test]
fn its_own_output_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.jsonl"), same(12)).unwrap();
    let output = directory.path().join("b.jsonl");
    let status = program()
        .args(["--format", "jsonl"])
        .arg(directory.path())
        .stdout(std::fs::File::create(&output).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    let written = std::fs::read_to_string(output).unwrap();
    let summary: serde_json::Value =
        serde_json::from_str(written.lines().next_back().unwrap()).unwrap();
    assert_eq!(summary["summary"]["calls"], 12);
}
