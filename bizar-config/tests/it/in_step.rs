//! What is committed is what the code says.

use serde_json::Value;

#[test]
fn the_committed_schema_is_the_generated_one() {
    let committed = include_str!("../../options.schema.json");
    let committed: Value = serde_json::from_str(committed).expect("options.schema.json is JSON");
    assert_eq!(
        committed,
        bizar_config::json_schema(),
        "run `cargo run -p bizar-config --example schema > bizar-config/options.schema.json`"
    );
}

#[test]
fn the_front_page_has_the_generated_table() {
    assert!(
        include_str!("../../README.md").contains(&bizar_config::reference()),
        "{}",
        bizar_config::reference()
    );
}
