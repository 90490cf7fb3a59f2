//! Reported faults of hosts: what the detector makes of odd or missing information.

use bizar_window::Verdict::{self, Block, Halt, Warn};

use crate::play::{call, each, play, steps, times};

#[test]
fn fault_002_block_comes_at_the_twelfth_call() {
    play(times(12, call("Bash", "git checkout x").says("ran"))).by(12, Block);
}

#[test]
fn fault_003_no_end_is_reported() {
    play(call("read", "a")).never(Warn);
}

#[test]
fn fault_004_block_does_not_depend_on_how_it_is_enforced() {
    play(times(12, call("read", ".env").says("text"))).by(12, Block);
}

#[test]
fn fault_005_open_calls_expire() {
    play(steps![
        times(2, call("task", "t1")),
        call("task", "t1").says("ok")
    ])
    .never(Warn);
}

#[test]
fn fault_006_ends_are_never_reported() {
    play(times(12, call("bash", "ls"))).climbs();
}

#[test]
fn fault_007_arguments_are_never_told() {
    play(each(12, |i| {
        call("mcp_github_create_issue", "")
            .says(format!("#{i}"))
            .args_missing()
    }))
    .never(Block);
}

#[test]
fn fault_009_three_equal_calls() {
    play(times(3, call("bash", "x").says("same"))).never(Block);
}

#[test]
fn fault_010_sessions_share_nothing() {
    play(each(10, |i| {
        call("read", i).says("xxxx").session(&format!("s{i}"))
    }))
    .never(Warn);
}

#[test]
fn fault_012_switched_off_after_a_warning() {
    // Who is switched off asks no session; what remains is the warning before.
    play(times(5, call("read", "src/a.ts").says("text a"))).by(5, Warn);
}

#[test]
fn fault_015_halt_is_visible() {
    play(times(15, call("bash", "./generate.sh").fails("fail")))
        .by(12, Block)
        .by(15, Halt);
}

#[test]
fn fault_017_a_chatty_session_locks_nobody_out() {
    let verdicts = play(steps![
        each(14, |i| call("post", i).says("ok").session("A")),
        call("post", "hello").says("ok").session("B"),
    ]);
    verdicts.never(Block);
    assert_eq!(verdicts.0[14], Verdict::Allow);
}

#[test]
fn fault_018_four_calls_in_each_of_three_sessions() {
    play(times(
        4,
        steps![
            call("shell", "ls").says("a").session("A"),
            call("shell", "ls").says("a").session("B"),
            call("shell", "ls").says("a").session("C"),
        ],
    ))
    .never(Warn);
}

#[test]
fn fault_024_twelve_tickets() {
    play(each(12, |i| {
        call("get_issue", 100 + i).says(format!("issue {}", 100 + i))
    }))
    .never(Warn);
}

#[test]
fn fault_026_twelve_texts_for_one_file() {
    play(each(12, |i| {
        call("apply_edit", format!("a.ts body {i}")).says("ok")
    }))
    .never(Warn);
}

#[test]
fn fault_027_one_read_in_each_of_two_sessions() {
    play(steps![
        call("read", "a").says("x").session("A"),
        call("read", "a").says("x").session("B")
    ])
    .never(Warn);
}

#[test]
fn fault_028_settings_beside_state_are_no_call() {
    // A fault of clean-up on disk: there is no call in it, and a session without calls has no level.
    let session = bizar_window::Session::<u64, u64>::new(bizar_window::Rules::default());
    assert_eq!((session.level(), session.refused()), (Verdict::Allow, 0));
}
