//! Published answers of SHA-256 and HMAC-SHA-256, and a fingerprint that anyone can make with `sha256sum`.

use bizar_fingerprint::Fingerprinter;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

#[test]
fn sha_256_gives_the_published_answers() {
    let hash = |bytes: &[u8]| hex::encode(Sha256::digest(bytes));
    assert_eq!(
        hash(b""),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
    assert_eq!(
        hash(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        hash(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    );
    assert_eq!(
        hash(&[b'a'; 1_000_000]),
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
    );
    // Around the padding's block borders.
    assert_eq!(
        hash(&[b'x'; 55]),
        "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072"
    );
    assert_eq!(
        hash(&[b'x'; 56]),
        "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e"
    );
    assert_eq!(
        hash(&[b'x'; 64]),
        "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c"
    );
    assert_eq!(
        hash(&[b'x'; 120]),
        "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98"
    );
}

#[test]
fn hmac_sha_256_gives_the_answers_of_rfc_4231() {
    let mac = |key: &[u8], message: &[u8]| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(message);
        hex::encode(mac.finalize().into_bytes())
    };
    assert_eq!(
        mac(&[0x0b; 20], b"Hi There"),
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
    );
    assert_eq!(
        mac(b"Jefe", b"what do ya want for nothing?"),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
}

#[test]
fn a_fingerprint_is_the_sha_256_of_its_document() {
    let mut fingerprinter = Fingerprinter::new();
    let document = fingerprinter
        .canonical_text("bash", r#"{"timeout": 1e3, "command": "ls"}"#)
        .unwrap();
    assert_eq!(
        document,
        br#"{"args":{"command":"ls","timeout":1000},"tool":"bash"}"#
    );
    let fingerprint = fingerprinter
        .of_text("bash", r#"{"timeout": 1e3, "command": "ls"}"#)
        .unwrap();
    assert_eq!(
        fingerprint.to_string(),
        hex::encode(Sha256::digest(&document))
    );
    // printf '%s' '{"args":{"command":"ls","timeout":1000},"tool":"bash"}' | sha256sum
    assert_eq!(
        fingerprint.to_string(),
        "252a1f098a363451ec4ea53c009ccda91746dfaaecd92dabe8123f5e20e74970"
    );
}
