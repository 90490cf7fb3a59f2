//! Any JSON gives valid options.

use std::{path::Path, sync::OnceLock};

use bizar_config::{Environment, Resolved, Sources, json_schema, resolve};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A marker that no note may show.
const SECRET: &str = "s3cr3t-Tok3n";

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-60_i32..6_000).prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(number.to_string())),
        any::<f64>().prop_map(|number| Value::from(number.to_string())),
        ".*".prop_map(Value::from),
        "(~|\\$HOME|/|\\.\\.|//|/\\.ssh|a|\\.kube){0,6}".prop_map(Value::from),
        Just(Value::from(SECRET)),
        Just(Value::from("repetition")),
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn options() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let schema = json_schema();
        let properties = schema["properties"].as_object().unwrap();
        properties.keys().cloned().collect()
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(options()),
        1 => prop::sample::select(vec!["warn", "escalate", "block", "gemini", "bash", "*"]).prop_map(str::to_owned),
        1 => ".{0,12}",
        1 => Just(SECRET.to_owned()),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::vec((key(), tree()), 0..12)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn assert_valid(resolved: &Resolved, home: &Path) {
    let options = &resolved.options;
    let thresholds = std::iter::once(options.thresholds);
    for ladder in thresholds.chain(
        options
            .loop_tool_thresholds
            .iter()
            .map(|tool| tool.thresholds),
    ) {
        assert!(1 <= ladder.warn() && ladder.warn() < ladder.escalate());
        assert!(ladder.escalate() < ladder.block() && ladder.block() <= 1_000_000);
    }
    assert!((3..=50).contains(&options.loop_window_size));
    assert!(options.loop_halt_after_blocks <= 1000);
    assert!(options.log_rotation_bytes >= 1024);
    assert!((50..=5000).contains(&options.verdict_timeout_ms));
    assert!((1..=32).contains(&options.max_concurrent_instances));
    assert!((1..=5000).contains(&options.background_tool_call_cap));
    assert!(
        options
            .background_max_tokens
            .is_none_or(|tokens| tokens >= 1)
    );
    assert!(
        options
            .background_max_cost_usd
            .is_none_or(|cost| cost.is_finite() && cost >= 0.0)
    );
    for path in [&options.log_dir, &options.state_dir] {
        let path = path
            .as_ref()
            .expect("the default is always there to fall back on");
        assert!(path.as_path().is_absolute());
        for secret in [".ssh", ".gnupg", ".aws", ".kube"] {
            assert!(!path.as_path().starts_with(home.join(secret)));
        }
    }
    assert!(
        options
            .loop_tool_thresholds
            .iter()
            .all(|tool| !tool.glob.is_empty())
    );
    let names = options
        .background_agents
        .iter()
        .chain(&options.loop_exempt_tools);
    assert!(
        names
            .chain(options.loop_poll_tools.iter().flatten())
            .all(|name| !name.is_empty())
    );
    assert!(resolved.notes.len() <= 100);
    for note in &resolved.notes {
        let text = note.to_string();
        assert!(!text.contains(SECRET), "{text}");
        assert!(!text.contains(char::is_control), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn any_json_gives_valid_options(file in tree(), host in tree(), defaults in object(), env in ".{0,8}") {
        let home = Path::new("/no/such/home");
        let file = file.to_string();
        let resolved = resolve(Sources {
            home: Some(home),
            host_defaults: Some((&defaults).into()),
            file: Some(&file),
            host: Some("gemini"),
            host_options: Some((&host).into()),
            env: Environment::from_pairs([
                ("BIZAR_LOG_LEVEL", env.as_str()),
                ("BIZAR_MAX_CONCURRENT_INSTANCES", env.as_str()),
            ]),
        });
        assert_valid(&resolved, home);
    }

    #[test]
    fn any_text_gives_valid_options(file in ".{0,200}", object in object()) {
        let home = Path::new("/no/such/home");
        let text = object.to_string();
        for file in [file.as_str(), text.as_str(), &text[..text.floor_char_boundary(text.len() / 2)]] {
            assert_valid(&resolve(Sources { home: Some(home), file: Some(file), ..Sources::default() }), home);
        }
    }

    /// Text and value of one document say the same; only the order of globs may differ.
    #[test]
    fn text_and_value_agree(object in object()) {
        let home = Some(Path::new("/no/such/home"));
        let text = object.to_string();
        let from_text = resolve(Sources { home, host_options: Some(text.as_str().into()), ..Sources::default() });
        let from_value = resolve(Sources { home, host_options: Some((&object).into()), ..Sources::default() });
        prop_assert_eq!(from_text.options, from_value.options);
        prop_assert_eq!(from_text.notes, from_value.notes);
    }
}

#[test]
fn every_wrong_type_at_every_key() {
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e308),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("12"),
        json!("-0.0"),
        json!(SECRET),
        json!([]),
        json!([null, 1, SECRET, []]),
        json!({}),
        json!({SECRET: SECRET}),
        json!({"a": {"warn": SECRET}}),
        json!({"a": [SECRET, 5]}),
        json!([[[[[[[[[[[[]]]]]]]]]]]]),
    ];
    let home = Path::new("/no/such/home");
    for option in options() {
        for value in &values {
            let object = json!({ option: value });
            let text = object.to_string();
            for sources in [
                Sources {
                    home: Some(home),
                    file: Some(&text),
                    ..Sources::default()
                },
                Sources {
                    home: Some(home),
                    host_options: Some((&object).into()),
                    ..Sources::default()
                },
            ] {
                assert_valid(&resolve(sources), home);
            }
        }
    }
}

#[test]
fn a_flood_of_keys_gives_a_hundred_notes() {
    let object: Map<String, Value> = (0..10_000)
        .map(|i| (format!("{}{i}", "x".repeat(1000)), json!(i)))
        .collect();
    let object = Value::Object(object);
    let resolved = resolve(Sources {
        home: Some(Path::new("/no/such/home")),
        host_options: Some((&object).into()),
        ..Sources::default()
    });
    assert_eq!(resolved.notes.len(), 100);
}
