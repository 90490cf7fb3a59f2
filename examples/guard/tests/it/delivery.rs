//! When the text of a level goes to the model.

use bizar_guard::{Call, Delivery, End, Ended, Form, Guard};
use serde_json::json;

use crate::rig::{Rig, make, repeat};

fn forms() -> [Form; 2] {
    [Form::Resident, Form::ONE_CALL]
}

#[test]
fn a_host_that_forgets_gets_it_with_each_request() {
    for form in forms() {
        let rig = Rig::new();
        let guard = Guard::new(rig.setup(form, &json!({}), &[]));
        let ask = || guard.request("s", Delivery::Forgets);
        repeat(&guard, "s", 4);
        assert_eq!(ask(), None);
        repeat(&guard, "s", 1);
        for _ in 0..3 {
            assert!(
                ask()
                    .unwrap()
                    .starts_with("[loop guard: 5 identical calls to read].")
            );
        }
        repeat(&guard, "s", 3);
        assert!(
            ask()
                .unwrap()
                .starts_with("[loop guard: 8 identical calls to read].")
        );
        // News ends it, when its round has ended.
        let _ = make(&guard, "s", "read", &json!({"path": "b.rs"}), "news");
        let _ = make(&guard, "s", "read", &json!({"path": "c.rs"}), "more news");
        assert_eq!(ask(), None);
    }
}

#[test]
fn a_host_that_keeps_gets_it_once_a_rise() {
    for form in forms() {
        let rig = Rig::new();
        let guard = Guard::new(rig.setup(form, &json!({}), &[]));
        let mut texts = Vec::new();
        for i in 0..11 {
            repeat(&guard, "s", 1);
            if let Some(text) = guard.request("s", Delivery::Keeps) {
                texts.push((i, text));
            }
            assert_eq!(guard.request("s", Delivery::Keeps), None);
        }
        let at: Vec<usize> = texts.iter().map(|(i, _)| *i).collect();
        assert_eq!(at, [4, 7]);
    }
}

#[test]
fn a_user_message_takes_it_back() {
    for (form, delivery) in forms()
        .into_iter()
        .flat_map(|form| [(form, Delivery::Forgets), (form, Delivery::Keeps)])
    {
        let rig = Rig::new();
        let guard = Guard::new(rig.setup(form, &json!({}), &[]));
        repeat(&guard, "s", 6);
        guard.user_message("s", None);
        assert_eq!(guard.request("s", delivery), None);
        assert_eq!(repeat(&guard, "s", 1)[0].count, 1);
    }
}

#[test]
fn sessions_that_nobody_knows_have_no_text() {
    for form in forms() {
        let rig = Rig::new();
        let guard = Guard::new(rig.setup(form, &json!({}), &[]));
        assert_eq!(guard.request("s", Delivery::Forgets), None);
        repeat(&guard, "other", 6);
        assert_eq!(guard.request("s", Delivery::Keeps), None);
        // To ask is not to make one.
        guard.shut_down();
        guard.flush();
        assert!(rig.state("s").is_none());
    }
}

#[test]
fn what_was_due_before_a_restart_is_told_after_it() {
    for form in forms() {
        let rig = Rig::new();
        repeat(&Guard::new(rig.setup(form, &json!({}), &[])), "s", 5);
        let guard = Guard::new(rig.setup(form, &json!({}), &[]));
        assert!(guard.request("s", Delivery::Keeps).is_some());
        assert_eq!(guard.request("s", Delivery::Keeps), None);
    }
}

#[test]
fn with_a_result_only_what_brought_nothing() {
    let rig = Rig::new();
    let options =
        json!({"loopThresholdWarn": 2, "loopThresholdEscalate": 3, "loopThresholdBlock": 12});
    for form in [Form::Resident, Form::ONE_CALL] {
        let session = format!("{form:?}");
        let guard = Guard::new(rig.setup(form, &options, &[]));
        let texts: Vec<bool> = ["a", "b", "b", "b", "c"]
            .into_iter()
            .map(|result| {
                let _ = make(
                    &guard,
                    &session,
                    "bash",
                    &json!({"command": "test"}),
                    result,
                );
                guard.request(&session, Delivery::WithResult).is_some()
            })
            .collect();
        // The second and the last call brought something new.
        assert_eq!(texts, [false, false, true, true, false], "{form:?}");
    }
}

#[test]
fn one_step_says_what_two_would() {
    for form in forms() {
        for delivery in [Delivery::Forgets, Delivery::Keeps, Delivery::WithResult] {
            let (rig, other) = (Rig::new(), Rig::new());
            let one = Guard::new(rig.setup(form, &json!({}), &[]));
            let two = Guard::new(other.setup(form, &json!({}), &[]));
            let mut told = 0;
            for i in 0..16 {
                // News now and then.
                let result = if i % 7 == 6 { "news" } else { "the same" };
                let args = json!({});
                let end = End::new("s", "read", &args, Ended::ok(result));
                let _ = one.before(&Call::new("s", "read", &args));
                let _ = two.before(&Call::new("s", "read", &args));
                let text = one.after_and_request(&end, delivery);
                two.after(&end);
                assert_eq!(text, two.request("s", delivery), "{delivery:?} {i}");
                told += usize::from(text.is_some());
            }
            assert!(told > 0, "{delivery:?}");
        }
    }
}
