//! Many hooks at once.

use std::{fs, sync::Mutex, thread};

use serde_json::json;

use crate::{
    hosts::{Call, Host},
    rig::Rig,
};

/// 200 equal calls of one session, eight hooks at a time: each was counted, or let through and noted.
#[test]
fn no_call_is_lost() {
    let rig = Rig::new();
    // From the second call on each is refused, so that their number says how many were counted.
    rig.options(&json!({
        "loopThresholdWarn": 1, "loopThresholdEscalate": 2, "loopThresholdBlock": 3, "loopHaltAfterBlocks": 0,
    }));
    let refusals = Mutex::new(0);
    let next = Mutex::new(0..200);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let host = Host {
                    rig: &rig,
                    name: "kimi",
                };
                loop {
                    let Some(n) = next.lock().unwrap().next() else {
                        break;
                    };
                    let answer = host.before(&Call::new(&format!("c{n}"), "ls"));
                    *refusals.lock().unwrap() += u64::from(answer.contains("deny"));
                }
            });
        }
    });
    let skipped = fs::read_to_string(rig.cache().join("bizar-hook.skipped")).unwrap_or_default();
    let (locked, late) = (
        skipped.matches(" locked\n").count() as u64,
        skipped.matches(" late\n").count() as u64,
    );
    assert_eq!(locked + late, skipped.lines().count() as u64, "{skipped}");
    let state = rig.state("s1");
    let counted = state["blocksTriggered"].as_u64().unwrap() + 2;
    // A hook that was given up on may have been counted all the same; its answer was not waited for.
    let expected = 200 - locked - late..=200 - locked;
    assert!(
        expected.contains(&counted),
        "{counted}, {locked} locked, {late} late"
    );
    let refusals = *refusals.lock().unwrap();
    assert!(
        (counted - 2 - late.min(counted - 2)..=counted - 2).contains(&refusals),
        "{refusals}"
    );
    println!("counted {counted}, locked {locked}, late {late}");
}

/// Two subagents at once do not disturb each other.
#[test]
fn two_agents_at_once() {
    let rig = Rig::new();
    thread::scope(|scope| {
        let runs = ["a", "b"].map(|agent| {
            let rig = &rig;
            scope.spawn(move || {
                let host = Host {
                    rig,
                    name: "claude",
                };
                let mut refused = None;
                for n in 1..=12 {
                    let id = format!("{agent}{n}");
                    let call = Call {
                        agent: Some(agent),
                        ..Call::new(&id, "ls")
                    };
                    if host.make(&call, "x")[0].contains("deny") {
                        refused = Some(n);
                    }
                }
                refused
            })
        });
        for run in runs {
            assert_eq!(run.join().unwrap(), Some(12));
        }
    });
}
