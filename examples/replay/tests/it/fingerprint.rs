//! `bizar-replay fingerprint`: the canonical form and its hash.

use crate::run_on;

fn lines(input: &str, args: &[&str]) -> Vec<String> {
    let ran = run_on(input, &[&["fingerprint"], args].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{input}");
    ran.out.lines().map(str::to_owned).collect()
}

#[test]
fn prints_the_canonical_form_and_its_sha_256() {
    let got = lines(r#" { "b" : 1.0, "a" : "x" } "#, &["--tool", "read"]);
    assert_eq!(got[0], r#"{"args":{"a":"x","b":1},"tool":"read"}"#);
    let hash = <sha2::Sha256 as sha2::Digest>::digest(got[0].as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(got[1], hex);
    assert_eq!(got.len(), 2);
}

#[test]
fn nothing_is_absent_arguments() {
    for input in ["", " \n", "null", "{}"] {
        assert_eq!(
            lines(input, &[])[0],
            r#"{"args":{},"tool":""}"#,
            "{input:?}"
        );
    }
}

#[test]
fn worktree_and_ignored_names_apply() {
    let got = lines(
        r#"{"command":"ls","description":"look","cwd":"/w/x"}"#,
        &["--tool", "bash", "--worktree", "/w"],
    );
    assert_eq!(
        got[0],
        r#"{"args":{"command":"ls","cwd":"x"},"tool":"bash"}"#
    );
}

#[test]
fn a_bad_document_is_named_by_its_byte() {
    for (input, byte) in [
        (r#"{"a":1,,}"#, "7"),
        (r#"{"a":1,"a":2}"#, "7"),
        ("{\"a\":\"\u{fffd}", ""),
    ] {
        let ran = run_on(input, &["fingerprint"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{input}");
        assert!(
            ran.err.contains(&format!("byte {byte}")),
            "{input}: {}",
            ran.err
        );
    }
    assert_eq!(run_on(b"\xff\xfe", &["fingerprint"]).code, Some(2));
    assert_eq!(run_on("[".repeat(100_000), &["fingerprint"]).code, Some(2));
}
