//! The machine interface: what goes in, what comes out, how it exits.

use serde_json::json;

use crate::{gzip, judge, run, run_on, same, text_of};

#[test]
fn verdicts_and_summary_have_the_promised_fields() {
    let ran = judge(same(13), &[]);
    let lines = ran.lines();
    let first = lines.first().unwrap().as_object().unwrap();
    let names: Vec<&str> = first.keys().map(String::as_str).collect();
    let mut expected = [
        "session",
        "i",
        "tool",
        "fingerprint",
        "count",
        "verdict",
        "rule",
    ];
    let mut sorted = names;
    sorted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sorted, expected);
    assert_eq!(first["fingerprint"].as_str().unwrap().len(), 64);
    let counts = json!({"sessions":1,"calls":13,"skipped":0,"notice":2,"warn":3,"escalate":4,"block":2,"halt":0});
    assert_eq!(ran.summary(), counts);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn equal_calls_climb_the_ladder() {
    let ran = judge(same(17), &[]);
    let levels: Vec<(u64, String, u64)> = ran
        .verdicts()
        .into_iter()
        .map(|(_, i, verdict, _, count)| (i, verdict, count))
        .collect();
    let first = |level: &str| {
        levels
            .iter()
            .find(|(_, verdict, _)| verdict == level)
            .cloned()
    };
    assert_eq!(first("notice"), Some((2, "notice".to_owned(), 3)));
    assert_eq!(first("warn"), Some((4, "warn".to_owned(), 5)));
    assert_eq!(first("escalate"), Some((7, "escalate".to_owned(), 8)));
    assert_eq!(first("block"), Some((11, "block".to_owned(), 12)));
    assert_eq!(
        first("halt").map(|(i, ..)| i),
        Some(14),
        "after three refused calls"
    );
}

#[test]
fn every_mode_judges_in_its_own_way() {
    for (mode, call, verdict, rule) in [
        ("progress", 4, "warn", "stale"),
        ("repetition", 4, "warn", "repetition"),
        ("cycle", 3, "block", "cycle"),
        ("opencode", 2, "block", "opencode"),
        ("gemini", 4, "block", "gemini"),
        ("openhands", 3, "block", "openhands"),
    ] {
        let ran = judge(same(8), &["--mode", mode]);
        let found = ran
            .verdicts()
            .into_iter()
            .find(|(.., verdict, _, _)| verdict != "notice")
            .unwrap();
        assert_eq!(
            (found.1, found.2.as_str(), found.3.as_str()),
            (call, verdict, rule),
            "{mode}"
        );
    }
}

#[test]
fn a_refused_call_does_not_use_its_recorded_result() {
    // The thirteenth call is refused, so what it answered in the recording was never seen.
    let news = r#"{"session":"s","tool":"ls","args":{"p":1},"result":"news","ok":true}"#;
    let text = same(12) + news + "\n" + &same(1);
    let verdicts = judge(text, &[]).verdicts();
    assert_eq!(verdicts.last().unwrap().2, "block");
    // Other systems' rules are not fed their own refusals: the same call goes on being recorded as it was.
    let ran = judge(same(6), &["--mode", "opencode"]);
    assert_eq!(
        ran.verdicts()
            .iter()
            .map(|verdict| verdict.4)
            .collect::<Vec<_>>(),
        [3, 4, 5, 6]
    );
}

#[test]
fn results_are_taken_from_the_first_field_that_has_one() {
    let line = |fields: &str| {
        format!(r#"{{"session":"s","tool":"ls","args":{{}},"ok":true,{fields}}}"#) + "\n"
    };
    let quiet = |text: String| judge(text, &[]).verdicts().is_empty();
    let changing: String = (0..6)
        .map(|n| {
            line(&format!(
                r#""result":"r{n}","result_norm":"x","result_sha256":"x""#
            ))
        })
        .collect();
    assert!(quiet(changing), "result comes before the hashes");
    let changing: String = (0..6)
        .map(|n| line(&format!(r#""result_norm":"n{n}","result_sha256":"x""#)))
        .collect();
    assert!(
        quiet(changing),
        "the normalised hash comes before the raw one"
    );
    let changing: String = (0..6)
        .map(|n| line(&format!(r#""result_sha256":"s{n}""#)))
        .collect();
    assert!(quiet(changing));
    let equal: String = (0..6)
        .map(|n| {
            line(&format!(
                r#""result":null,"result_norm":"x","result_sha256":"s{n}""#
            ))
        })
        .collect();
    assert!(!quiet(equal), "null is no result");
    let hashes: String = (0..6)
        .map(|n| line(&format!(r#""result_norm":"deadbeef0000000{n}""#)))
        .collect();
    assert!(
        quiet(hashes),
        "a hash is compared as it is, never normalised away"
    );
    let json: String = (0..6)
        .map(|n| line(&format!(r#""result":{{"rows":[1,{n}],"took":"1 s"}}"#)))
        .collect();
    assert!(quiet(json), "a result may be any JSON");
}

#[test]
fn arguments_are_compared_as_values() {
    let lines = [
        r#"{"session":"s","tool":"t","args":{"a":1,"b":[2,3]},"ok":true,"result":"x"}"#,
        r#"{"session":"s","tool":"t","args":{"b":[2.0,3],"a":1e0},"ok":true,"result":"x","unknown":{"field":1}}"#,
        r#"{"ok":true,"result":"x","args":{"a":1,"b":[2,3]},"tool":"t","session":"s"}"#,
    ];
    assert_eq!(
        judge(lines.join("\n"), &[]).verdicts().len(),
        1,
        "the third is the third"
    );
    let absent = [
        r#"{"session":"s","tool":"t","ok":true,"result":"x"}"#,
        r#"{"session":"s","tool":"t","args":null,"ok":true,"result":"x"}"#,
        r#"{"session":"s","tool":"t","args":{},"ok":true,"result":"x"}"#,
    ];
    assert_eq!(judge(absent.join("\n"), &[]).verdicts().len(), 1);
    let missing = r#"{"session":"s","tool":"t","args_missing":true,"result":"x","ok":true}"#
        .to_owned()
        + "\n";
    let ran = judge(missing.repeat(40), &[]);
    assert!(
        ran.verdicts()
            .iter()
            .all(|verdict| verdict.2 == "notice" || verdict.2 == "warn"),
        "{}",
        ran.out
    );
    assert_eq!(ran.summary()["warn"], 36, "at most a warning");
}

#[test]
fn sessions_turns_and_rounds_are_kept_apart() {
    let two: String = (0..8)
        .map(|n| {
            format!(
                r#"{{"session":"s{}","tool":"t","result":"x","ok":true}}"#,
                n % 2
            ) + "\n"
        })
        .collect();
    assert_eq!(judge(two, &[]).summary()["warn"], 0, "four calls each");
    let turns: String = (0..12)
        .map(|n| {
            format!(
                r#"{{"session":"s","tool":"t","result":"x","ok":true,"turn":{}}}"#,
                n / 4
            ) + "\n"
        })
        .collect();
    assert_eq!(
        judge(turns, &[]).summary()["warn"],
        0,
        "a changed turn is a new turn"
    );
    let event = r#"{"session":"s","event":"user_message"}"#.to_owned() + "\n";
    let talked: String = (0..3).map(|_| same(4) + &event).collect();
    assert_eq!(judge(talked, &[]).summary()["warn"], 0);
    let round: String = (0..5)
        .map(|_| r#"{"session":"s","tool":"t","result":"x","ok":true,"batch":7}"#.to_owned() + "\n")
        .collect();
    let verdicts = judge(round, &[]).verdicts();
    assert_eq!(
        (verdicts.len(), verdicts[0].3.as_str()),
        (1, "fanout"),
        "five copies in one round are one call"
    );
    let deleted = same(4) + r#"{"session":"s","event":"deleted"}"# + "\n" + &same(4);
    let ran = judge(deleted, &[]);
    assert_eq!(
        (
            ran.summary()["warn"].clone(),
            ran.summary()["sessions"].clone()
        ),
        (json!(0), json!(1))
    );
}

#[test]
fn the_same_session_name_in_two_files_is_two_sessions() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a.jsonl", "b.jsonl"] {
        std::fs::write(directory.path().join(name), same(3)).unwrap();
    }
    let ran = run(&["--format", "jsonl", text_of(directory.path())]);
    assert_eq!(ran.summary()["sessions"], 2);
    assert_eq!(ran.summary()["warn"], 0);
}

#[test]
fn a_missing_result_is_not_an_empty_one() {
    // No end was ever reported, so nothing is known to be stale but the calls themselves.
    let unanswered = r#"{"session":"s","tool":"t","args":{"n":1}}"#.to_owned() + "\n";
    assert_eq!(
        judge(unanswered.repeat(5), &[]).summary()["warn"],
        1,
        "missing equals missing"
    );
    let ended = r#"{"session":"s","tool":"t","args":{"n":1},"ok":true}"#.to_owned() + "\n";
    assert_eq!(judge(ended.repeat(5), &[]).summary()["warn"], 1);
    let mixed = ended.repeat(2)
        + r#"{"session":"s","tool":"t","args":{"n":1},"ok":false}"#
        + "\n"
        + &ended.repeat(2);
    assert_eq!(judge(mixed, &[]).summary()["warn"], 0, "a failure is news");
}

#[test]
fn directories_are_read_recursively_and_unknown_files_noted_once() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("deep")).unwrap();
    std::fs::write(directory.path().join("a.jsonl"), same(2)).unwrap();
    std::fs::write(
        directory.path().join("deep/b.jsonl.gz"),
        gzip(same(3).as_bytes()),
    )
    .unwrap();
    std::fs::write(
        directory.path().join("labels.jsonl"),
        r#"{"session":"s","i":1,"label":"true_loop"}"#,
    )
    .unwrap();
    std::fs::write(directory.path().join("deep/notes.md"), "# Notes").unwrap();
    let ran = run(&["--format", "jsonl", text_of(directory.path())]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        (
            ran.summary()["calls"].clone(),
            ran.summary()["skipped"].clone()
        ),
        (json!(5), json!(0))
    );
    let notes: Vec<&str> = ran.err.lines().collect();
    assert_eq!(notes.len(), 1, "{}", ran.err);
    assert!(
        notes[0].contains("labels.jsonl") && notes[0].contains("notes.md"),
        "{}",
        ran.err
    );
}

#[test]
fn exit_codes() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let good = path("good.jsonl", &same(5));
    let partly = path("partly.jsonl", &("nonsense\n".to_owned() + &same(1)));
    let bad = path("bad.jsonl", "nonsense\n{}\n");
    let wrong = path("wrong.jsonl", "{\"session\":1,\"tool\":\"t\"}\n");
    let empty = path("empty.jsonl", "");
    let code = |args: &[&str]| run(args).code;
    assert_eq!(code(&[text_of(&good)]), Some(0));
    assert_eq!(code(&[text_of(&partly)]), Some(0));
    assert_eq!(code(&["--fail-on", "warn", text_of(&good)]), Some(1));
    assert_eq!(code(&["--fail-on", "notice", text_of(&good)]), Some(1));
    assert_eq!(code(&["--fail-on", "escalate", text_of(&good)]), Some(0));
    for bad in [&bad, &wrong, &empty] {
        assert_eq!(code(&[text_of(bad)]), Some(2), "{}", bad.display());
    }
    assert_eq!(
        code(&[text_of(&good), text_of(&directory.path().join("absent"))]),
        Some(2)
    );
    assert_eq!(
        code(&["--fail-on", "warn", text_of(&good), text_of(&bad)]),
        Some(2),
        "trouble comes first"
    );
    let other = tempfile::tempdir().unwrap();
    assert_eq!(
        code(&[text_of(other.path())]),
        Some(2),
        "nothing in it could be used"
    );
    assert_eq!(code(&["--mode", "nonsense"]), Some(2));
    assert_eq!(
        code(&["--find", text_of(&good)]),
        Some(2),
        "either the usual places or the named ones"
    );
    assert_eq!(code(&[]), Some(0), "the bundled session");
}

#[test]
fn a_bad_line_is_named_skipped_and_counted() {
    let text = same(1)
        + "{\"session\":\"s\"}\n{broken\n{\"session\":\"s\",\"tool\":\"t\",\"ok\":\"yes\"}\n{\"session\":\"s\",\"event\":\"lunch\"}\n"
        + &same(1);
    let ran = judge(text, &[]);
    assert_eq!(
        (
            ran.summary()["skipped"].clone(),
            ran.summary()["calls"].clone()
        ),
        (json!(4), json!(2))
    );
    let expected = [
        "bizar-replay: -:2: no `tool`",
        "bizar-replay: -:3: not JSON (column 2)",
        "bizar-replay: -:4: `ok` has the wrong type",
        "bizar-replay: -:5: `event` has the wrong type",
    ];
    assert_eq!(ran.err.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn arguments_never_come_out_unasked() {
    let secret = r#"{"session":"s","tool":"t","args":{"k":"hunter2"},"result":"hunter2","ok":true}"#
        .to_owned() + "\n";
    let text = secret.repeat(14) + r#"{"session":"s","tool":"t","args":"hunter2","ok":"hunter2"}"#;
    for format in ["text", "jsonl"] {
        let ran = run_on(&text, &["--format", format, "-"]);
        assert!(
            !ran.out.contains("hunter2") && !ran.err.contains("hunter2"),
            "{format}"
        );
    }
    assert!(run_on(&text, &["--show-args", "-"]).out.contains("hunter2"));
}
