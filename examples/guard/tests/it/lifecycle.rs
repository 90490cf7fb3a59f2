//! Restarts, idle sessions, deleted ones, many of them.

use std::{collections::HashSet, fs};

use bizar_guard::{Args, Call, Ended, Form, Guard, Verdict};
use serde_json::json;

use crate::rig::{Rig, begin, end, make, repeat};

const HOUR: i64 = 3_600_000;

#[test]
fn repetition_survives_a_restart() {
    for form in [Form::Resident, Form::ONE_CALL] {
        let rig = Rig::new();
        let options = json!({"loopMode": "repetition"});
        let guard = Guard::new(rig.setup(form, &options, &[]));
        assert!(
            repeat(&guard, "s", 6)
                .iter()
                .all(|decision| !decision.refused)
        );
        drop(guard);
        let guard = Guard::new(rig.setup(form, &options, &[]));
        let counts: Vec<u32> = repeat(&guard, "s", 6)
            .iter()
            .map(|decision| decision.count)
            .collect();
        assert_eq!(counts, [7, 8, 9, 10, 11, 12]);
        assert!(repeat(&guard, "s", 1)[0].refused);
        assert_eq!(rig.log("s").matches("outcome=blocked").count(), 2);
    }
}

#[test]
fn progress_survives_a_restart_between_begin_and_end() {
    for form in [Form::Resident, Form::ONE_CALL] {
        let rig = Rig::new();
        let args = json!({"path": "a"});
        for i in 0..12 {
            let guard = Guard::new(rig.setup(form, &json!({}), &[]));
            let decision = begin(&guard, "s", &i.to_string(), &args);
            assert_eq!(decision.refused, i == 11, "{form:?} {i}");
            drop(guard);
            let guard = Guard::new(rig.setup(form, &json!({}), &[]));
            end(&guard, "s", &i.to_string(), Ended::ok("same"));
        }
    }
}

#[test]
fn other_options_after_a_restart() {
    let rig = Rig::new();
    drop(repeat(&rig.one_call(json!({})), "s", 6));
    // The same memory on other thresholds; another mode begins with an empty one.
    let strict =
        json!({"loopThresholdWarn": 2, "loopThresholdEscalate": 3, "loopThresholdBlock": 7});
    assert!(repeat(&rig.one_call(strict), "s", 1)[0].refused);
    assert_eq!(
        repeat(&rig.one_call(json!({"loopMode": "cycle"})), "s", 1)[0].count,
        1
    );
}

#[test]
fn a_resident_session_is_written_ten_times_a_second_at_most() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    let mut writes = 0;
    let mut last = None;
    for i in 0..200 {
        let _ = make(&guard, "s", "read", &json!({ "i": i }), "x");
        let now = fs::read(rig.state_dir().join("s.json")).unwrap();
        writes += usize::from(last.as_ref() != Some(&now));
        last = Some(now);
        rig.pass(10);
    }
    assert_eq!(writes, 20, "200 calls in two seconds");
    guard.idle("s");
    assert_eq!(
        rig.state("s").unwrap().tool_calls().last().unwrap().at,
        rig.time.load(std::sync::atomic::Ordering::Relaxed) - 10
    );
}

#[test]
fn a_clock_that_goes_back_stops_no_writing() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    repeat(&guard, "s", 1);
    rig.pass(-10 * HOUR);
    repeat(&guard, "s", 1);
    assert_eq!(rig.state("s").unwrap().tool_calls().len(), 2);
    assert!(
        rig.log("s")
            .lines()
            .all(|line| line.ends_with("duration=0ms"))
    );
}

#[test]
fn flush_and_drop_write() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    repeat(&guard, "s", 2);
    assert_eq!(
        rig.state("s").unwrap().tool_calls().len(),
        1,
        "the second was too soon"
    );
    guard.flush();
    assert_eq!(rig.state("s").unwrap().tool_calls().len(), 2);
    repeat(&guard, "s", 1);
    drop(guard);
    assert_eq!(rig.state("s").unwrap().tool_calls().len(), 3);
}

#[test]
fn more_sessions_than_fit_are_read_back() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    let sessions: Vec<String> = (0..Form::LIVE_SESSIONS * 2)
        .map(|i| format!("s{i}"))
        .collect();
    for count in 1..=12 {
        for session in &sessions {
            let decision = &repeat(&guard, session, 1)[0];
            assert_eq!(
                (decision.count, decision.refused),
                (count, count == 12),
                "{session}"
            );
        }
    }
    assert_eq!(guard.notes(), [""; 0]);
}

#[test]
fn sessions_that_cannot_be_written_stay() {
    let rig = Rig::new();
    fs::write(rig.home().join(".cache"), "").unwrap();
    let guard = rig.resident(json!({}));
    let sessions: Vec<String> = (0..Form::LIVE_SESSIONS * 2)
        .map(|i| format!("s{i}"))
        .collect();
    for session in &sessions {
        assert!(!repeat(&guard, session, 11)[10].refused);
    }
    for session in &sessions {
        assert!(repeat(&guard, session, 1)[0].refused, "{session}");
    }
}

/// It is read and written with every call of a host that starts a process for each.
#[test]
fn a_full_session_is_a_small_document() {
    let rig = Rig::new();
    let guard = rig.one_call(json!({}));
    let mut fingerprint = String::new();
    for i in 0..60 {
        let args = json!({"path": i});
        let decision = make(&guard, "s", "read", &args, &format!("result {i}"));
        fingerprint = decision.fingerprint.unwrap().to_string();
    }
    assert_eq!(rig.state("s").unwrap().tool_calls().len(), 50);
    let document = rig.document("s");
    let bytes = document.to_string().len();
    assert!(bytes < 10_000, "{bytes} bytes");
    let entries = &document["detector"]["session"]["memory"]["progress"]["entries"];
    let last = entries.as_array().unwrap().last().unwrap();
    assert_eq!(last["k"], fingerprint[..32]);
}

#[test]
fn a_refused_call_is_written_like_any_other() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    let _ = repeat(&guard, "s", 11);
    rig.pass(1000);
    assert!(repeat(&guard, "s", 1)[0].refused);
    assert_eq!(rig.state("s").unwrap().blocks_triggered, 1);
}

#[test]
fn open_calls_are_aborted_when_the_session_goes_idle() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    let _ = begin(&guard, "s", "a", &json!({}));
    rig.pass(700);
    guard.idle("s");
    let log = rig.log("s");
    assert!(log.contains("outcome=aborted duration=700ms"), "{log}");
    assert_eq!(log.lines().count(), 1);
    end(&guard, "s", "a", Ended::ok("late"));
    assert_eq!(rig.log("s").lines().count(), 1, "it has ended already");
}

#[test]
fn open_calls_are_aborted_when_the_host_shuts_down() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    for session in ["a", "b"] {
        let _ = begin(&guard, session, "open", &json!({}));
    }
    guard.shut_down();
    for session in ["a", "b"] {
        assert_eq!(rig.log(session).matches("outcome=aborted").count(), 1);
        assert_eq!(rig.state(session).unwrap().tool_calls().len(), 1);
    }
}

#[test]
fn silence_can_mean_failure() {
    let rig = Rig::new();
    let guard = rig.one_call(json!({}));
    let _ = begin(&guard, "s", "a", &json!({}));
    let _ = begin(&guard, "s", "b", &json!({"x": 1}));
    guard.end_open("s", &Ended::failed("no word of it"));
    assert_eq!(rig.log("s").matches("outcome=error").count(), 2);
}

#[test]
fn calls_that_never_end_are_bounded() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    for i in 0..1000 {
        let _ = begin(&guard, "s", &i.to_string(), &json!({ "i": i }));
    }
    guard.flush();
    let document = rig.document("s");
    assert_eq!(document["detector"]["open"].as_array().unwrap().len(), 64);
    assert_eq!(rig.log("s").matches("outcome=aborted").count(), 1000 - 64);
    assert!(fs::metadata(rig.state_dir().join("s.json")).unwrap().len() < 64 << 10);
}

#[test]
fn deleted_sessions_leave_their_log_only() {
    for form in [Form::Resident, Form::ONE_CALL] {
        let rig = Rig::new();
        let guard = Guard::new(rig.setup(form, &json!({}), &[]));
        repeat(&guard, "s", 11);
        let _ = begin(&guard, "s", "open", &json!({}));
        guard.deleted("s");
        guard.deleted("never seen");
        guard.flush();
        assert!(rig.state("s").is_none());
        assert_eq!(rig.log("s").lines().count(), 12);
        assert_eq!(repeat(&guard, "s", 1)[0].count, 1);
    }
}

#[test]
fn idle_clears_a_cycle() {
    let rig = Rig::new();
    let guard = rig.one_call(json!({"loopMode": "cycle"}));
    assert!(repeat(&guard, "s", 4)[3].refused);
    guard.idle("s");
    assert!(!repeat(&guard, "s", 3)[2].refused);
}

#[test]
fn the_document_is_as_it_is_promised() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    guard.user_message("s", Some("thor"));
    repeat(&guard, "s", 13);
    guard.user_message("s", Some("odin"));
    guard.idle("s");
    let document = rig.document("s");
    assert_eq!(document["sessionId"], "s");
    assert_eq!(document["parentAgent"], "thor");
    assert_eq!(document["host"], "test");
    assert_eq!(document["scope"].as_str().unwrap().len(), 12);
    assert_eq!(document["turnCount"], 2);
    assert_eq!(document["warningsIssued"], 2);
    assert_eq!(document["blocksTriggered"], 2);
    assert_eq!(document["version"], 1);
    let call = &document["toolCalls"][12];
    assert_eq!(
        (&call["tool"], &call["outcome"]),
        (&json!("read"), &json!("blocked"))
    );
    let line = rig.log("s").lines().last().unwrap().to_owned();
    assert!(
        line.contains(&format!(
            "fingerprint={} outcome=blocked",
            call["fingerprint"].as_str().unwrap()
        )),
        "{line}"
    );
}

#[test]
fn sweeping() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    for session in ["known", "unknown"] {
        repeat(&guard, session, 1);
    }
    let elsewhere = Guard::new(
        rig.setup(Form::Resident, &json!({}), &[])
            .directory("/srv/elsewhere"),
    );
    repeat(&elsewhere, "elsewhere", 1);
    drop(elsewhere);
    let known = HashSet::from(["known".to_owned()]);
    rig.pass(HOUR);
    assert_eq!(guard.sweep(Some(&known)), 0);
    rig.pass(1);
    assert_eq!(guard.sweep(None), 0);
    assert_eq!(guard.sweep(Some(&known)), 1);
    assert_eq!(
        (
            rig.state("unknown").is_none(),
            rig.state("known").is_some(),
            rig.state("elsewhere").is_some()
        ),
        (true, true, true)
    );
    rig.pass(7 * 24 * HOUR);
    assert_eq!(guard.sweep(None), 1);
    assert!(rig.state("elsewhere").is_some());
}

#[test]
fn sessions_do_not_touch_each_other() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    for i in 1..=11 {
        for session in ["a", "b"] {
            assert_eq!(repeat(&guard, session, 1)[0].count, i);
        }
    }
    guard.user_message("a", None);
    assert_eq!(repeat(&guard, "a", 1)[0].verdict, Verdict::Allow);
    assert!(repeat(&guard, "b", 1)[0].refused);
}

/// An end that nothing is known of changes nothing.
#[test]
fn unknown_ends() {
    let rig = Rig::new();
    let guard = rig.one_call(json!({}));
    end(&guard, "s", "never begun", Ended::ok("x"));
    assert_eq!(rig.log("s"), "");
    guard.after(&bizar_guard::End::new(
        "s",
        "read",
        Args::Text("{}"),
        Ended::ok("x"),
    ));
    assert_eq!(
        rig.log("s").lines().count(),
        1,
        "with its arguments it can at least be logged"
    );
    assert_eq!(guard.before(&Call::new("s", "read", "{}")).count, 1);
}
