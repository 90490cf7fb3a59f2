//! Fifty fingerprints that never change: stored ones stay comparable for ever.

use bizar_fingerprint::Fingerprinter;
use serde_json::Value;

#[test]
fn fifty_fingerprints_never_change() {
    let golden = include_str!("../data/fingerprints.jsonl");
    let mut count = 0;
    for line in golden.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (tool, args) = (
            case["tool"].as_str().unwrap(),
            case["args"].as_str().unwrap(),
        );
        let mut fingerprinter =
            Fingerprinter::new().worktree(case["worktree"].as_str().unwrap_or(""));
        if case["keyed"] == true {
            fingerprinter = fingerprinter.keyed(&std::array::from_fn(|n| u8::try_from(n).unwrap()));
        }
        let value: Value = serde_json::from_str(args).unwrap();
        for fingerprint in [
            fingerprinter.of_text(tool, args).unwrap(),
            fingerprinter.of_value(tool, &value).unwrap(),
            fingerprinter.of_serialize(tool, &value).unwrap(),
        ] {
            assert_eq!(fingerprint.to_string(), case["fingerprint"], "{line}");
        }
        count += 1;
    }
    assert_eq!(count, 50);
}
