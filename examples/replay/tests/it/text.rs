//! Text for people.

use crate::{run, run_on, same};

#[test]
fn a_loop_reads_like_a_story() {
    let text = run_on(same(13), &["--show-args", "-"]).out;
    let expected = "
● s
  ▁▁▂▂▄▄▄▆▆▆▆██  13 calls · 12 brought nothing new
  · notice    call 2     3 calls and nothing new
       notice again: call 3
  ▲ warn      call 4     5 calls and nothing new
       A  ls               FINGERPRINT_  ×5   {\"p\":1}
       warn again: calls 5 to 6
  ▲ escalate  call 7     8 calls and nothing new
       escalate again: calls 8 to 10
  ■ block     call 11    12 calls and nothing new
       block again: call 12

1 session, 13 calls: 2 block, 4 escalate, 3 warn, 2 notice
";
    let line = text.lines().find(|line| line.contains("  A  ls")).unwrap();
    let fingerprint = line.split_whitespace().nth(2).unwrap();
    assert_eq!(fingerprint.len(), 12);
    assert_eq!(text.replace(fingerprint, "FINGERPRINT_"), expected);
}

#[test]
fn a_circle_shows_its_shape() {
    let lap = [("a", 1), ("b", 2), ("c", 3)].map(|(tool, n)| {
        format!(r#"{{"session":"s","tool":"{tool}","args":{{"n":{n}}},"result":"r{n}","ok":true}}"#)
            + "\n"
    });
    let text = run_on(lap.concat().repeat(5), &["-"]).out;
    assert!(text.contains("nothing new: a circle of 3"), "{text}");
    assert!(text.contains("       A B C A B C"), "{text}");
}

#[test]
fn the_readme_shows_what_is_printed() {
    let readme = include_str!("../../README.md");
    let (_, block) = readme.split_once("```console\n$ bizar-replay\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let printed = run(&[]).out;
    for line in block.lines().filter(|line| *line != "...") {
        assert!(printed.lines().any(|other| other == line), "{line}");
    }
}

#[test]
fn no_colours_and_no_progress_where_no_terminal_is() {
    let ran = run(&[]);
    assert!(!ran.out.contains('\u{1b}'));
    assert_eq!(ran.err, "");
}

#[cfg(target_os = "linux")]
#[test]
fn colours_on_a_terminal_unless_refused() {
    let on_a_terminal = |no_color: Option<&str>| {
        let mut command = std::process::Command::new("script");
        command
            .args(["-qec", env!("CARGO_BIN_EXE_bizar-replay"), "/dev/null"])
            .env_remove("NO_COLOR");
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(
        on_a_terminal(None).contains("\u{1b}[1;31m"),
        "needs `script` of util-linux"
    );
    assert!(on_a_terminal(Some("")).contains("\u{1b}["));
    assert!(!on_a_terminal(Some("1")).contains("\u{1b}["));
}
