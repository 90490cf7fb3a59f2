//! What is judged, and how.

use bizar_guard::{Args, Call, End, Ended, Round, Rule, Status, Verdict};
use serde_json::{Value, json};

use crate::rig::{Rig, make, repeat};

#[test]
fn twelve_identical_calls() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    let decisions = repeat(&guard, "s", 16);
    let verdicts: Vec<Verdict> = decisions.iter().map(|decision| decision.verdict).collect();
    use Verdict::{Allow, Block, Escalate, Halt, Notice, Warn};
    assert_eq!(
        verdicts,
        [
            Allow, Allow, Notice, Notice, Warn, Warn, Warn, Escalate, Escalate, Escalate, Escalate,
            Block, Block, Block, Halt, Halt
        ]
    );
    assert!(
        decisions
            .iter()
            .enumerate()
            .all(|(i, decision)| decision.refused == (i >= 11) && decision.halted == (i >= 14))
    );
    let first = |i: usize| {
        decisions[i]
            .text
            .as_deref()
            .unwrap()
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    assert!(
        first(4)
            .starts_with("[loop guard: 5 identical calls to read]. Consider using the task tool")
    );
    assert!(first(7).starts_with("[loop guard: 8 identical calls to read]."));
    assert_eq!(
        first(11),
        "Loop protection: 12 identical calls to read. Use task to escalate."
    );
    assert_eq!(
        first(14),
        "Loop protection: stopped after 4 refused calls to read."
    );
    let with_text: Vec<usize> = (0..16).filter(|i| decisions[*i].text.is_some()).collect();
    assert_eq!(with_text, [4, 7, 11, 12, 13, 14, 15]);
    assert_eq!(decisions[11].rule, Some(Rule::Stale));
}

#[test]
fn a_cycle_names_its_shape() {
    let rig = Rig::new();
    let guard = rig.one_call(json!({"loopMode": "cycle"}));
    let mut last = None;
    for i in 0..6 {
        last = Some(make(
            &guard,
            "s",
            ["read", "edit"][i % 2],
            &json!({"n": i % 2}),
            "x",
        ));
    }
    let decision = last.unwrap();
    assert!(decision.refused);
    let text = decision.text.unwrap();
    assert!(
        text.starts_with(
            "Loop protection: a cycle of 2 calls around edit repeats. Use task to escalate.\n"
        ),
        "{text}"
    );
    assert!(text.contains("#1 read, #2 edit"), "{text}");
}

#[test]
fn cycle_mode_compares_strings_as_they_are() {
    let rig = Rig::new();
    for (mode, refused) in [("cycle", false), ("repetition", true)] {
        let guard = rig.resident(json!({"loopMode": mode, "loopThresholdBlock": 4, "loopThresholdWarn": 1, "loopThresholdEscalate": 2}));
        let args = |i: usize| json!({"command": "ls", "description": i});
        let decisions: Vec<_> = (0..4)
            .map(|i| make(&guard, mode, "bash", &args(i), "x"))
            .collect();
        assert_eq!(decisions[3].refused, refused, "{mode}");
    }
}

#[test]
fn paths_of_the_worktree_are_portable() {
    let rig = Rig::new();
    let setup = |worktree: &str| {
        rig.setup(bizar_guard::Form::Resident, &json!({}), &[])
            .worktree(worktree)
    };
    let of = |worktree: &str, path: &str| {
        let guard = bizar_guard::Guard::new(setup(worktree));
        guard
            .before(&Call::new("s", "read", &json!({"path": path})))
            .fingerprint
            .unwrap()
    };
    assert_eq!(of("/srv/a", "/srv/a/x.rs"), of("/srv/b", "/srv/b/x.rs"));
    assert_ne!(of("/srv/a", "/srv/a/x.rs"), of("/srv/b", "/srv/b/y.rs"));
    // The root of a file system is no worktree: the directory is used.
    assert_eq!(of("/", "/srv/project/x.rs"), of("/srv/a", "/srv/a/x.rs"));
}

#[test]
fn text_and_value_are_one_identity() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    let value = json!({"b": 1, "a": [1.0, "x"]});
    let texts = [
        r#"{"a":[1,"x"],"b":1}"#,
        r#" { "b" : 1.0, "a": [1e0, "\u0078"] } "#,
    ];
    let expected = guard.before(&Call::new("s", "t", &value)).fingerprint;
    for text in texts {
        assert_eq!(
            guard.before(&Call::new("s", "t", text)).fingerprint,
            expected
        );
    }
}

#[test]
fn calls_without_arguments_are_at_most_warned_about() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    let deep = "[".repeat(500) + &"]".repeat(500);
    for args in [
        Args::Missing,
        Args::Text("{\"a\":1,\"a\":2}"),
        Args::Text("not json"),
        Args::Text(&deep),
    ] {
        let session = format!("{args:?}")
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(20)
            .collect::<String>();
        for i in 0..30 {
            let decision = guard.before(&Call::new(&session, "read", args));
            assert!(!decision.refused && decision.verdict <= Verdict::Warn);
            assert_eq!(decision.verdict == Verdict::Warn, i >= 4, "{i}");
            guard.after(&End::new(&session, "read", args, Ended::ok("same")));
        }
    }
}

#[test]
fn polls_have_patience() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    let sleep = json!({"command": "sleep 30; tail log"});
    for _ in 0..23 {
        assert_eq!(
            make(&guard, "s", "bash", &sleep, "still running").verdict,
            Verdict::Allow
        );
        assert_eq!(
            make(&guard, "s", "agent_wait", &json!({}), "still running").verdict,
            Verdict::Allow
        );
    }
    // A list of one's own replaces the table.
    let guard = rig.resident(json!({"loopPollTools": ["watch*"]}));
    for _ in 0..20 {
        assert_eq!(
            make(&guard, "t", "watch_it", &json!({}), "nothing").verdict,
            Verdict::Allow
        );
    }
    let decisions: Vec<_> = (0..12)
        .map(|_| make(&guard, "u", "agent_wait", &json!({}), "nothing"))
        .collect();
    assert!(decisions[11].refused);
}

#[test]
fn new_results_are_progress() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    for i in 0..11 {
        let decision = make(
            &guard,
            "s",
            "bash",
            &json!({"command": "cargo test"}),
            &format!("{i} tests fail"),
        );
        assert_eq!(decision.verdict, Verdict::Allow);
    }
}

/// A result handed over in pieces is the same result.
#[test]
fn streamed_results() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    let args = json!({});
    let verdicts: Vec<Verdict> = (0..6)
        .map(|i| {
            let decision = guard.before(&Call::new("s", "t", &args));
            if i % 2 == 0 {
                guard.after(&End::new("s", "t", &args, Ended::ok("one result")));
            } else {
                let mut digester = guard.digester(Some(true));
                digester.update(b"one re");
                digester.update(b"sult");
                guard.after(&End::new("s", "t", &args, Ended::ok(digester.finish())));
            }
            decision.verdict
        })
        .collect();
    assert_eq!(verdicts[5], Verdict::Warn);
}

#[test]
fn an_error_and_a_success_with_one_text_differ() {
    let rig = Rig::new();
    let guard = rig.resident(json!({}));
    let args = json!({});
    for i in 0..10 {
        let status = if i % 2 == 0 {
            Status::Ok
        } else {
            Status::Failed
        };
        let decision = guard.before(&Call::new("s", "t", &args));
        // The second answer is news: it takes one call more than with one answer.
        assert_eq!(decision.verdict >= Verdict::Warn, i >= 5, "{i}");
        guard.after(&End::new("s", "t", &args, Ended::new(status, "text")));
    }
}

#[test]
fn copies_in_one_message_count_once() {
    let rig = Rig::new();
    for round in [Round::Message("m"), Round::Overlap] {
        let guard = rig.resident(json!({}));
        let session = format!("{round:?}")
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect::<String>();
        let args = json!({"q": 1});
        let begin = |id: usize| {
            guard.before(
                &Call::new(&session, "t", &args)
                    .id(&id.to_string())
                    .round(round),
            )
        };
        let verdicts: Vec<Verdict> = (0..8).map(|id| begin(id).verdict).collect();
        assert_eq!(
            (verdicts[3], verdicts[4], verdicts[7]),
            (Verdict::Allow, Verdict::Notice, Verdict::Warn)
        );
        for id in 0..8 {
            guard
                .after(&End::new(&session, "t", Args::Missing, Ended::ok("x")).id(&id.to_string()));
        }
        if matches!(round, Round::Overlap) {
            // All have ended, so this is another round: the second time that this call is made.
            assert_eq!(begin(9).count, 2);
        }
    }
}

#[test]
fn a_round_can_be_closed() {
    let rig = Rig::new();
    let guard = rig.one_call(json!({}));
    let begin = |id: &str, n: u32| {
        let args = json!({ "n": n });
        guard
            .before(&Call::new("s", "t", &args).id(id).round(Round::Overlap))
            .count
    };
    assert_eq!((begin("a", 1), begin("b", 1)), (1, 1));
    guard.round_ended("s");
    assert_eq!(begin("c", 1), 2);
    // A new turn begins with a round of its own, whatever is still open.
    guard.user_message("s", None);
    assert_eq!((begin("d", 1), begin("e", 1)), (1, 1));
}

/// Ends are found by id, or by tool and arguments.
#[test]
fn ends_find_their_calls() {
    let rig = Rig::new();
    let guard = rig.one_call(json!({}));
    let (a, b) = (json!({"x": 1}), json!({"x": 2}));
    let end = |args: &Value, id: Option<&str>| {
        rig.pass(10);
        let end = End::new("s", "t", args, Ended::ok("r"));
        guard.after(&End { id, ..end });
    };
    let _ = guard.before(&Call::new("s", "t", &a));
    rig.pass(1000);
    let _ = guard.before(&Call::new("s", "t", &b));
    let _ = guard.before(&Call::new("s", "t", &a).id("one"));
    end(&a, None);
    end(&b, Some("one"));
    end(&b, None);
    let durations: Vec<String> = rig
        .log("s")
        .lines()
        .map(|line| line.split_once("duration=").unwrap().1.to_owned())
        .collect();
    assert_eq!(durations, ["1010ms", "20ms", "30ms"]);
}

#[test]
fn a_call_that_never_ends_does_not_hide_a_loop_in_its_round() {
    let rig = Rig::new();
    let counts = |round: Round<'static>| {
        let guard = rig.resident(json!({}));
        let session = format!("{round:?}");
        let (server, args) = (json!({"command": "serve"}), json!({"command": "cat a"}));
        let _ = guard.before(
            &Call::new(&session, "bash", &server)
                .id("server")
                .round(round),
        );
        (0..4)
            .map(|n| {
                let id = n.to_string();
                let call = Call::new(&session, "bash", &args).id(&id).round(round);
                let decision = guard.before(&call);
                guard.after(&End::new(&session, "bash", &args, Ended::ok("a")).id(&id));
                decision.count
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(counts(Round::Overlap), [1, 1, 1, 1], "all in one round");
    assert_eq!(counts(Round::Burst), [1, 2, 3, 4]);
}
