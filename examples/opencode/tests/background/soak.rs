//! Many runs, and nothing that grows with them.

use std::fs;
use std::time::Instant;

use bizar_testkit::Script;
use serde_json::{Value, json};

use crate::manager::{Manager, warm};

#[test]
fn two_hundred_runs_through_eight_slots_leave_memory_and_handles_flat() {
    let Some(warm) = warm("two_hundred_runs_through_eight_slots_leave_memory_and_handles_flat")
    else {
        return;
    };
    let _all = warm.slots.write().unwrap();
    let start = Instant::now();
    // What is allocated once and then kept has been allocated by then.
    run(&warm.manager, 40);
    let early = usage(warm.manager.pid());
    run(&warm.manager, 160);
    let late = usage(warm.manager.pid());
    println!(
        "200 runs in {:?}; (KiB, handles) {early:?} after 40, {late:?} after 200",
        start.elapsed()
    );
    // The last 200 ended instances are remembered, with previews: some hundred bytes each.
    assert!(late.0 < early.0 + 2048, "{early:?} {late:?}");
    assert!(late.1 <= early.1 + 4, "{early:?} {late:?}");
}

/// Runs agents, always eight at a time, and checks each answer.
fn run(manager: &Manager, count: usize) {
    let mut live = std::collections::VecDeque::new();
    for number in 0..count {
        if live.len() == 8 {
            collect(manager, live.pop_front());
        }
        let text = format!("answer {number}");
        live.push_back((manager.spawn(&Script::new().say(&text)), text));
    }
    while !live.is_empty() {
        collect(manager, live.pop_front());
    }
}

fn collect(manager: &Manager, run: Option<(String, String)>) {
    let (id, text) = run.unwrap();
    let done = manager.tool("collect", &json!({"instanceId": id})).unwrap();
    assert_eq!(
        (&done["status"], &done["result"]),
        (&json!("done"), &Value::from(text)),
        "{done}"
    );
}

/// Resident memory in KiB and open handles. Where the system does not tell, nothing is compared.
fn usage(pid: u32) -> (u64, usize) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let memory = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let handles = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    (memory.unwrap_or_default(), handles)
}
