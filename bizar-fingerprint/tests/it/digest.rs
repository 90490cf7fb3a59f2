//! Equal answers have equal digests, whatever time it was; different answers do not.

use bizar_fingerprint::{Digest, Fingerprinter};
use serde_json::{Value, json};
use sha2::Digest as _;

fn digest(text: impl AsRef<[u8]>) -> Digest {
    Fingerprinter::new().digest_text(None, text)
}

#[track_caller]
fn same(texts: &[&str]) {
    for text in texts {
        assert_eq!(
            digest(text),
            digest(texts[0]),
            "{text:?} and {:?}",
            texts[0]
        );
    }
}

#[track_caller]
fn all_differ(texts: &[&str]) {
    for (n, a) in texts.iter().enumerate() {
        for b in &texts[..n] {
            assert_ne!(digest(a), digest(b), "{a:?} and {b:?}");
        }
    }
}

#[test]
fn the_golden_digests_never_change() {
    let golden = include_str!("../data/digests.jsonl");
    let mut count = 0;
    for line in golden.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let digest = Fingerprinter::new()
            .digest_text(case["ok"].as_bool(), case["result"].as_str().unwrap());
        assert_eq!(digest.to_string(), case["digest"], "{line}");
        count += 1;
    }
    assert_eq!(count, 50);
}

#[test]
fn a_digest_of_plain_text_is_half_a_sha_256() {
    let hash = hex::encode(sha2::Sha256::digest(b"ok\0two words"));
    assert_eq!(digest("two words").to_string(), hash[..32]);
    let hash = hex::encode(sha2::Sha256::digest(b"error\0two words"));
    assert_eq!(
        Fingerprinter::new()
            .digest_text(Some(false), "two words")
            .to_string(),
        hash[..32]
    );
}

#[test]
fn unknown_outcome_digests_like_ok_and_unlike_an_error() {
    let fingerprinter = Fingerprinter::new();
    let [unknown, ok, error] =
        [None, Some(true), Some(false)].map(|ok| fingerprinter.digest_text(ok, "x"));
    assert_eq!(unknown, ok);
    assert_ne!(ok, error);
    assert_ne!(
        fingerprinter.digest_value(Some(true), &json!({})),
        fingerprinter.digest_value(Some(false), &json!({}))
    );
}

#[test]
fn terminal_codes_are_left_out() {
    same(&[
        "red\n",
        "\u{1b}[31mred\u{1b}[0m\n",
        "\u{1b}[1;38;5;9mr\u{1b}[Ked\u{1b}(B\n",
        "\u{1b}]0;title\u{7}red\n",
        "\u{1b}]8;;http://x\u{1b}\\red\u{1b}]8;;\u{1b}\\\n",
    ]);
    same(&["12ms", "\u{1b}[1m7\u{1b}[0mms"]);
    all_differ(&["", "\u{1b}[31mred", "\u{1b}[31mblue", "[31mred"]);
}

#[test]
fn times_are_left_out() {
    same(&[
        "2026-06-17T10:00:00Z up",
        "2025-01-02T23:59:59.123456Z up",
        "2026-06-17 10:00:00 up",
        "2026-06-17T10:00:00+02:00 up",
        "2026-06-17 10:00:00,123 +0200 up",
        "2026/06/17 10:00:00 up",
        "20260617T100000Z up",
        "10:00:01.5 up",
        "2026-06-17 10:00 UTC up",
    ]);
    same(&["[10:00:00] a", "[23:59:59.9] a"]);
    same(&[
        "log-2026-06-17T10:00:00Z.txt",
        "log-2026-06-18T10:00:01Z.txt",
    ]);
    all_differ(&[
        "2026-06-17",
        "2026-06-18",
        "10:20",
        "10:21",
        "a.rs:10:20:30:1",
        "a.rs:10:20:31:1",
        "1234567890",
        "1234567891",
        "1718600000000",
        "1718600000001",
    ]);
}

#[test]
fn durations_are_left_out() {
    same(&[
        "took 3ms",
        "took 12 ms",
        "took 1.25s",
        "took 4 seconds",
        "took 1m3.2s",
        "took 1h 2m 3s",
        "took 0.001 s",
        "took 7µs",
        "took 2 minutes",
    ]);
    same(&["ok (0.12s)", "ok (10.02s)"]);
    all_differ(&[
        "3 items", "4 items", "3m wide", "5 m", "6 m", "3st", "4st", "3 %", "4 %", "s3", "s4",
        "3sx", "4sx",
    ]);
}

#[test]
fn labelled_process_numbers_are_left_out_and_plain_integers_never() {
    same(&["pid 123 died", "pid 4 died", "pid 99999 died"]);
    same(&["[PID: 1]", "[PID: 22]"]);
    same(&["pid=1,", "pid=2,"]);
    same(&["process id 1", "process id 2"]);
    all_differ(&[
        "123 died",
        "4 died",
        "rapid 1",
        "rapid 2",
        "process 3",
        "process 4",
        "pids 3",
        "pids 4",
        "pid x",
        "pid y",
        "port 8080",
        "port 8081",
        "pid 1.5",
        "pid 2.5",
    ]);
    all_differ(&["0", "1", "12345678", "12345679", "-1", "1e5", "1.5", "1.6"]);
}

#[test]
fn random_ids_are_left_out() {
    same(&[
        "id 8f3a9c2d",
        "id 0123456789abcdef",
        "id DEADBEEF",
        "id 0x7ffd1234abcd",
        "id 550e8400-e29b-41d4-a716-446655440000",
        "id 11111111-2222-4333-8444-555555555555",
    ]);
    same(&["req_8f3a9c2d1e", "req_00000000000a"]);
    all_differ(&[
        "8f3a9c2",
        "8f3a9c3",
        "12345678",
        "abcdefgh",
        "abcdefgi",
        "deadbeefx",
        "deadbeefy",
        "8f3a9c2dz",
        "xdeadbeef",
        "xfeedface",
    ]);
}

#[test]
fn counters_of_attempts_are_left_out() {
    same(&["attempt 1 failed", "attempt 2 failed"]);
    same(&["Retrying (1/5)", "Retrying (2/5)"]);
    same(&["try 1 of 3", "try 2 of 3"]);
    same(&["retry #1", "retry #10"]);
    same(&["\"attempt\": 3,", "\"attempt\": 4,"]);
    all_differ(&[
        "try 1 thing",
        "try 2 thing",
        "attempt 1/3",
        "attempt 1/4",
        "entry 1",
        "entry 2",
        "attempt a",
        "attempt b",
    ]);
}

#[test]
fn lines_that_codex_puts_around_output_are_left_out() {
    let output = |id: &str, time: &str, tokens: u32, code: u8| {
        digest(format!(
            "Chunk ID: {id}\nWall time: {time} seconds\nProcess exited with code {code}\nOriginal token count: {tokens}\nOutput:\nhello\n"
        ))
    };
    assert_eq!(output("8a3f2c", "0.05", 3, 0), output("x1", "12.5", 400, 0));
    assert_ne!(
        output("8a3f2c", "0.05", 3, 0),
        output("8a3f2c", "0.05", 3, 1)
    );
    all_differ(&["say Wall time: a", "say Wall time: b"]);
}

#[test]
fn volatile_members_are_left_out_of_json_as_value_and_as_text() {
    let fingerprinter = Fingerprinter::new();
    let one = json!({"exitCode": 0, "text": "7 items", "durationMs": 30, "pid": 4000, "in": [{"timestamp": {"s": 1}, "a": 1}]});
    let two = json!({"exitCode": 0, "text": "7 items", "durationMs": 31, "pid": 4001, "in": [{"timestamp": {"s": 2}, "a": 1}]});
    let other = json!({"exitCode": 1, "text": "7 items", "durationMs": 30, "pid": 4000, "in": [{"timestamp": {"s": 1}, "a": 1}]});
    assert_eq!(
        fingerprinter.digest_value(None, &one),
        fingerprinter.digest_value(None, &two)
    );
    assert_ne!(
        fingerprinter.digest_value(None, &one),
        fingerprinter.digest_value(None, &other)
    );
    for text in [
        two.to_string(),
        serde_json::to_string_pretty(&two).unwrap(),
        format!(" {two}\n"),
    ] {
        assert_eq!(fingerprinter.digest_value(None, &one), digest(text));
    }
    // Inside other text, and inside a string of JSON.
    same(&[
        "result: {\"durationMs\": 30, \"n\": 1}",
        "result: {\"durationMs\": 3100, \"n\": 1}",
    ]);
    same(&[
        r#"[{"text":"{\"elapsed_ms\": 3}"}]"#,
        r#"[{"text":"{\"elapsed_ms\": 44}"}]"#,
    ]);
    all_differ(&[
        r#"{"id":1}"#,
        r#"{"id":2}"#,
        r#"{"updatedAt":1}"#,
        r#"{"updatedAt":2}"#,
        r#"{"rapid":1}"#,
        r#"{"rapid":2}"#,
        r#"{"count":1}"#,
        r#"{"count":2}"#,
    ]);
}

#[test]
fn a_string_value_digests_like_its_text() {
    for text in ["plain", "{\"a\":1}", "took 3ms", ""] {
        assert_eq!(
            Fingerprinter::new().digest_value(None, &json!(text)),
            digest(text)
        );
    }
}

#[test]
fn strings_inside_json_are_read_unescaped() {
    same(&[
        "{\"a\":\"x\\n2026-06-17T10:00:00Z\\u001b[0m\"}",
        "{\"a\":\"x\\n\\u001b[1m2026-06-18T10:00:00Z\"}",
    ]);
    all_differ(&["{\"a\":\"x\\n1\"}", "{\"a\":\"x\\n2\"}"]);
}

#[test]
fn white_space_and_case_count() {
    all_differ(&["a", "a ", "A", "a\n", "a\r\n", " a", "a  b", "a b"]);
}

#[test]
fn a_result_of_more_than_4_mib_is_its_start_its_end_and_its_length() {
    let size = (4 << 20) + 1;
    let text = |at: usize, byte: u8, size: usize| {
        let mut text = vec![b'.'; size];
        text[at] = byte;
        digest(text)
    };
    let plain = text(0, b'.', size);
    assert_eq!(text(2 << 20, b'x', size), plain, "the middle");
    assert_eq!(
        text((1 << 20) + 1, b'x', size),
        plain,
        "just behind the start"
    );
    assert_ne!(
        text((1 << 20) - 1, b'x', size),
        plain,
        "the last byte of the start"
    );
    assert_ne!(
        text(size - (64 << 10), b'x', size),
        plain,
        "the first byte of the end"
    );
    assert_eq!(
        text(size - (64 << 10) - 1, b'x', size),
        plain,
        "just before the end"
    );
    assert_ne!(text(0, b'.', size + 1), plain, "the length");
    // One byte less is read as a whole.
    assert_ne!(text(2 << 20, b'x', 4 << 20), text(0, b'.', 4 << 20));
}

#[test]
fn pieces_may_be_cut_anywhere() {
    let line = "2026-06-17T10:00:00Z pid 12 \u{1b}[31mé\u{1b}[0m took 3ms {\"durationMs\": 3}\n";
    for (size, pieces) in [
        (1, &[1][..]),
        (100, &[1, 7, 99]),
        (65_537, &[7, 65_535, 65_536]),
        (4 << 20, &[65_537]),
        ((4 << 20) + 1, &[1000, 65_537, 5 << 20]),
        (9_000_000, &[65_536, 5 << 20]),
    ] {
        let text: Vec<u8> = line.bytes().cycle().take(size).collect();
        let whole = digest(&text);
        for &piece in pieces {
            let mut digester = Fingerprinter::new().digester(Some(true));
            text.chunks(piece).for_each(|piece| digester.update(piece));
            assert_eq!(digester.finish(), whole, "{size} bytes by {piece}");
        }
    }
}

#[test]
fn awkward_text_takes_no_more_time_than_other_text() {
    for unit in [
        "1.",
        "1s1",
        "1.1s",
        "\u{1b}]",
        "\u{1b}[1",
        "a-",
        "aaaaaaaa-",
        "\"pid",
        "pid ",
        "1s ",
        "00:00:00.",
        "\"timestamp\":\"",
        "Wall time: ",
        "0x",
        "é1",
    ] {
        let text = unit.repeat((256 << 10) / unit.len());
        let start = std::time::Instant::now();
        let _ = digest(&text);
        assert!(
            start.elapsed().as_secs() < 20,
            "{unit:?} took {:?}",
            start.elapsed()
        );
    }
    let _ = digest((0..=255).cycle().take(1 << 16).collect::<Vec<u8>>());
}

#[test]
fn an_error_may_be_known_last() {
    let rules = Fingerprinter::new();
    let mut digester = rules.digester(None);
    digester.update(b"no such file");
    digester.ended(Some(false));
    assert_eq!(
        digester.finish(),
        rules.digest_text(Some(false), "no such file")
    );
}
