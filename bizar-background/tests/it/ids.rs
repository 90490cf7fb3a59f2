//! Names of instances and of models.

use bizar_background::{InstanceId, InvalidId, InvalidModel, Limits, Model, Refusal, Spawn};
use proptest::prelude::*;
use serde_json::json;

#[test]
fn the_published_ulid() {
    let id: InstanceId = "bgr_01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
    assert_eq!(id.epoch_ms(), 1_469_922_850_259);
    assert_eq!(id.to_string(), "bgr_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    let most: InstanceId = "bgr_7ZZZZZZZZZZZZZZZZZZZZZZZZZ".parse().unwrap();
    assert_eq!(most, InstanceId::new(u64::MAX, [0xff; 10]));
}

#[test]
fn other_texts_are_no_names() {
    for text in [
        "",
        "bgr_",
        "bgr_8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        "bgr_01arz3ndektsv4rrffq69g5fav",
        "bgr_01ARZ3NDEKTSV4RRFFQ69G5FA",
        "bgr_01ARZ3NDEKTSV4RRFFQ69G5FAVV",
        "bgr_01ARZ3NDEKTSV4RRFFQ69G5FAI",
        "bgr_../../../../etc/passwd0000",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "bgr_01ARZ3NDEKTSV4RRFFQ69G5FA\u{e9}",
    ] {
        assert_eq!(text.parse::<InstanceId>(), Err(InvalidId), "{text}");
    }
}

proptest! {
    #[test]
    fn names_are_read_back_and_sort_by_time(ms in 0u64..1 << 48, later in 0u64..1 << 48, random: [u8; 10]) {
        let id = InstanceId::new(ms, random);
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        prop_assert_eq!(id.epoch_ms(), ms);
        prop_assert_eq!(serde_json::from_value::<InstanceId>(json!(id)).unwrap(), id);
        let other = InstanceId::new(later, random);
        prop_assert_eq!(ms.cmp(&later), id.cmp(&other));
        prop_assert_eq!(id.cmp(&other), id.to_string().cmp(&other.to_string()));
    }

    #[test]
    fn any_text_is_a_name_or_none(text in "\\PC{0,40}") {
        if let Ok(id) = text.parse::<InstanceId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }
}

#[test]
fn bg_084_a_model_keeps_its_slashes() {
    let model: Model = "openrouter/anthropic/claude-x".parse().unwrap();
    assert_eq!(
        (model.provider.as_str(), model.id.as_str()),
        ("openrouter", "anthropic/claude-x")
    );
}

#[test]
fn bg_085_a_model_may_be_a_path() {
    let model: Model = "local//models/q3".parse().unwrap();
    assert_eq!(
        (model.provider.as_str(), model.id.as_str()),
        ("local", "/models/q3")
    );
    assert_eq!(model.to_string(), "local//models/q3");
}

#[test]
fn bg_086_models_that_are_refused() {
    for text in [
        "",
        "model",
        "/model",
        "provider/",
        " provider/model",
        "provider/model ",
        "a b/c",
        "a/b\nc",
    ] {
        assert_eq!(text.parse::<Model>(), Err(InvalidModel), "{text:?}");
    }
    for text in [
        "a/b:free",
        "vertex/claude@20250101",
        "fireworks/accounts/x/models/y",
    ] {
        assert_eq!(text.parse::<Model>().unwrap().to_string(), text);
    }
    assert!(InvalidModel.to_string().contains("provider/model"));
}

#[test]
fn the_deadline_is_refused_out_of_range() {
    let limits = Limits::default();
    let spawn = |timeout: serde_json::Value| {
        Spawn::from_json(
            &json!({"agent": "mimir", "prompt": "go", "timeoutMs": timeout}),
            &limits,
        )
    };
    for good in [json!(1000), json!(1_800_000), json!(60_000.0), json!(null)] {
        assert!(spawn(good.clone()).is_ok(), "{good}");
    }
    for bad in [
        json!(999),
        json!(1_800_001),
        json!(1000.5),
        json!(-1),
        json!("1000"),
        json!(true),
        json!(1e300),
    ] {
        assert_eq!(spawn(bad.clone()), Err(Refusal::Deadline), "{bad}");
    }
    assert_eq!(spawn(json!(null)).unwrap().deadline.as_secs(), 300);
}

#[test]
fn arguments_are_refused_in_words() {
    let limits = Limits {
        reserved_agents: vec!["odin".into()],
        ..Limits::default()
    };
    let refusal = |arguments| {
        Spawn::from_json(&arguments, &limits)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refusal(json!({"prompt": "go"})),
        "agent is required: a text that is not blank"
    );
    assert_eq!(
        refusal(json!({"agent": "m", "prompt": " \n"})),
        "prompt is required: a text that is not blank"
    );
    assert_eq!(
        refusal(json!({"agent": 7, "prompt": "go"})),
        "agent is required: a text that is not blank"
    );
    assert_eq!(
        refusal(json!(null)),
        "agent is required: a text that is not blank"
    );
    let odin = refusal(json!({"agent": "odin", "prompt": "go"}));
    assert_eq!(
        odin,
        "agent odin cannot run in the background: name another agent"
    );
    let model = refusal(json!({"agent": "m", "prompt": "go", "model": "gpt"}));
    assert_eq!(
        model,
        "model must be written provider/model, such as openrouter/anthropic/claude-x"
    );
    let long = refusal(json!({"agent": "m", "prompt": "x".repeat((1 << 20) + 1)}));
    assert!(long.contains("1048577 bytes"), "{long}");
}
