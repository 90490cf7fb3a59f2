//! With a key, nothing that leaves the process can be found out by trying.

use bizar_fingerprint::{Digest, ErrorKind, Fingerprint, Fingerprinter};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

const KEY: [u8; 32] = [7; 32];

fn mac(message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&KEY).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

#[test]
fn a_keyed_fingerprint_is_the_hmac_of_the_document() {
    let mut keyed = Fingerprinter::new().keyed(&KEY);
    assert_eq!(
        keyed.of_absent("t").as_bytes()[..],
        mac(br#"{"args":{},"tool":"t"}"#)
    );
    assert_ne!(keyed.of_absent("t"), Fingerprinter::new().of_absent("t"));
    assert_ne!(
        keyed.of_absent("t"),
        Fingerprinter::new().keyed(&[8; 32]).of_absent("t")
    );
}

#[test]
fn outside_paths_and_digests_are_keyed_too() {
    let mut keyed = Fingerprinter::new().worktree("/w").keyed(&KEY);
    let document =
        String::from_utf8(keyed.canonical_text("t", r#"["/etc/passwd"]"#).unwrap()).unwrap();
    assert_eq!(
        document,
        format!(
            r#"{{"args":["path:{}"],"tool":"t"}}"#,
            &hex::encode(mac(b"/etc/passwd"))[..16]
        )
    );
    assert_ne!(
        keyed.digest_text(None, "x"),
        Fingerprinter::new().digest_text(None, "x")
    );
    assert_ne!(
        keyed.digest_value(None, &json!([1])),
        Fingerprinter::new().digest_value(None, &json!([1]))
    );
    let mut digester = keyed.digester(None);
    digester.update(b"x");
    assert_eq!(digester.finish(), keyed.digest_text(None, "x"));
}

#[test]
fn the_key_is_not_printed() {
    let shown = format!("{:?}", Fingerprinter::new().keyed(&KEY));
    assert!(
        shown.contains("Key(secret)") && !shown.contains("7, 7"),
        "{shown}"
    );
}

#[test]
fn hashes_print_and_parse_as_hex() {
    let fingerprint =
        Fingerprint::from_bytes(std::array::from_fn(|n| u8::try_from(n * 8).unwrap()));
    let text = "0008101820283038404850586068707880889098a0a8b0b8c0c8d0d8e0e8f0f8";
    assert_eq!(fingerprint.to_string(), text);
    assert_eq!(format!("{:>70}", fingerprint), format!("      {text}"));
    assert_eq!(fingerprint.short().as_str(), "000810182028");
    assert_eq!(fingerprint.short().to_string(), "000810182028");
    assert_eq!(text.parse::<Fingerprint>().unwrap(), fingerprint);
    assert_eq!(
        text.to_uppercase().parse::<Fingerprint>().unwrap(),
        fingerprint
    );
    assert_eq!(serde_json::to_value(fingerprint).unwrap(), json!(text));
    assert_eq!(
        serde_json::from_value::<Fingerprint>(json!(text)).unwrap(),
        fingerprint
    );

    let digest = Digest::from_bytes([0xab; 16]);
    assert_eq!(
        serde_json::to_string(&digest).unwrap(),
        format!("\"{}\"", "ab".repeat(16))
    );
    assert_eq!(
        serde_json::from_str::<Digest>(&format!("\"{digest}\"")).unwrap(),
        digest
    );

    for (bad, offset) in [
        ("", 0),
        ("00", 2),
        (&text[1..], 63),
        (&format!("{text}00"), 64),
        (&text.replace("28", "2x"), 11),
    ] {
        let error = bad.parse::<Fingerprint>().unwrap_err();
        assert_eq!(
            (error.kind(), error.offset()),
            (ErrorKind::Hex, Some(offset)),
            "{bad}"
        );
        assert!(serde_json::from_value::<Fingerprint>(json!(bad)).is_err());
    }
}
