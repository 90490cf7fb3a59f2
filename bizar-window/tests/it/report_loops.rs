//! Reported loops that other guards missed.

use bizar_window::Verdict::{Allow, Block, Escalate, Halt, Warn};

use crate::play::{call, each, play, steps, times};

#[test]
fn fn_001_one_equal_call_in_each_message() {
    play(each(12, |i| {
        call("read", "src/a.ts").says("text a").round(i)
    }))
    .climbs();
}

#[test]
fn fn_002_failed_edits_with_slightly_other_text() {
    let edit = |old: &str| call("edit", format!("a.ts {old}")).fails("old text not found");
    play(steps![
        times(2, edit("foo")),
        call("read", "a.ts").says("text"),
        edit("foo "),
        edit("foo;"),
        edit("foo()"),
        edit("foo ()"),
    ])
    .by(7, Warn);
}

#[test]
fn fn_003_two_calls_in_turn() {
    play(times(
        3,
        steps![
            call("lookup", "x").says("none"),
            call("search", "x").says("none")
        ],
    ))
    .by(6, Warn);
}

#[test]
fn fn_007_text_without_calls_is_out_of_reach() {
    // The model only announces; a detector of calls sees a single one.
    let verdicts = play(call("read", "src/lib/api/catalog.ts").fails("does not exist"));
    assert_eq!(verdicts.0, [Allow]);
}

#[test]
fn fn_008_edits_with_empty_strings() {
    play(times(8, call("edit", "a").fails("old and new must differ")))
        .by(5, Warn)
        .by(8, Escalate);
}

#[test]
fn fn_009_small_changes_of_a_failing_edit() {
    play(each(8, |i| call("edit", i).fails("line does not match"))).by(6, Warn);
}

#[test]
fn fn_010_one_approval_is_no_pass_for_ever() {
    play(times(
        14,
        call("bash", "git ls-files | census").says("2 lock"),
    ))
    .by(5, Warn)
    .by(8, Escalate)
    .by(13, Block);
}

#[test]
fn fn_013_identical_calls_are_bounded() {
    play(times(12, call("shell", "pwd").says("/w"))).climbs();
}

#[test]
fn fn_014_eight_copies_in_one_message() {
    play(times(8, call("shell", "mvn test").says("ok").round(1)))
        .by(8, Warn)
        .never(Block);
}

#[test]
fn fn_015_one_error_for_ever_new_ids() {
    play(each(6, |i| call("shell", i).fails("404 not found"))).by(5, Warn);
}

#[test]
fn fn_017_compaction_forgets_nothing() {
    play(times(12, call("mcp_list", "a").says("3 items"))).climbs();
}

#[test]
fn fn_018_results_equal_but_for_duration_and_pid() {
    // The digest leaves both out, so the results are one.
    play(times(12, call("exec", "graf list").says("7 items"))).climbs();
}

#[test]
fn fn_019_failures_equal_but_for_the_time() {
    play(times(12, call("exec", "connect db").fails("refused")))
        .by(5, Warn)
        .by(12, Block);
}

#[test]
fn fn_021_only_a_slice_length_differs() {
    play(each(12, |i| {
        call("exec", 50 + i).fails("FileNotFoundError: /x/y")
    }))
    .by(5, Warn)
    .by(12, Escalate);
}

#[test]
fn fn_022_warnings_do_not_stay_warnings() {
    play(times(13, call("exec", "df -h").says("80%"))).climbs();
}

#[test]
fn fn_023_every_member_of_the_cycle_is_blocked() {
    play(times(
        8,
        steps![
            call("memory_search", "k").says("id 4"),
            call("memory_get", 4).says("text")
        ],
    ))
    .by(6, Warn)
    .by(12, Block)
    .by(13, Block);
}

#[test]
fn fn_024_refused_calls_count() {
    play(steps![
        times(12, call("exec", "make x").fails("fail")),
        times(4, call("exec", "make x").refused("blocked by guard")),
    ])
    .by(12, Block)
    .by(15, Halt);
}

#[test]
fn fn_025_the_run_is_ended() {
    play(steps![
        times(12, call("exec", "t").says("same")),
        times(3, call("exec", "t").refused("blocked by guard")),
    ])
    .by(12, Block)
    .by(15, Halt);
}

#[test]
fn fn_027_a_warning_has_a_text() {
    play(times(6, call("exec", "u").says("same"))).by(5, Warn);
    let text = bizar_window::handoff::text(bizar_window::Rule::Stale, Warn, "exec", 5, &[]);
    assert!(text.starts_with("[loop guard: 5 identical calls to exec]"));
}

#[test]
fn fn_028_a_new_run_after_compaction_is_no_new_turn() {
    play(times(15, call("exec", "scan").says("none"))).climbs();
}

#[test]
fn fn_029_null_and_empty_arguments_are_one() {
    // One key for both is the caller's part.
    play(times(12, call("status", "").says("idle"))).climbs();
}

#[test]
fn fn_031_status_without_arguments() {
    play(times(13, call("session_status", "").says("47%"))).climbs();
}

#[test]
fn fn_033_results_are_compared_as_they_were() {
    play(times(
        6,
        call("bash", "cargo test").fails("same 300-line failure"),
    ))
    .by(5, Warn);
}

#[test]
fn fn_034_one_failure_between_ever_other_reads() {
    play(each(12, |i| {
        steps![
            call("bash", "cargo test").fails("3 failed: a b c"),
            call("read_file", i).says(format!("t{i}")),
        ]
    }))
    .by(9, Warn)
    .by(15, Escalate)
    .by(23, Escalate);
}

#[test]
fn fn_035_shifted_windows_of_one_file_are_out_of_reach() {
    // Neither a call nor a result repeats.
    let offsets = (0..8)
        .map(|i| 1 + 40 * i)
        .chain((0..8).map(|i| 20 + 40 * i))
        .collect::<Vec<u64>>();
    play(each(16, |i| {
        let offset = offsets[i as usize];
        call("read_file", offset).says(format!("win {offset}"))
    }))
    .never(Warn);
}

#[test]
fn fn_036_a_command_that_grows_is_out_of_reach() {
    // Neither a call nor a result repeats.
    play(each(10, |i| {
        call("bash", "grep a f;".repeat(i as usize + 1)).says(format!("x{i}"))
    }))
    .never(Warn);
}

#[test]
fn fn_037_endless_reading_is_out_of_reach() {
    // No different from exploring a large project.
    play(each(30, |i| call("read_file", i).says(format!("t{i}")))).never(Warn);
}

#[test]
fn fn_040_results_in_another_order_each_time() {
    play(each(12, |i| {
        call("web_search", "foo bar").says(format!("order {i}"))
    }))
    .by(12, Warn);
}

#[test]
fn fn_041_hints_are_followed_by_a_stop() {
    play(times(13, call("terminal", "cat log").says("same"))).climbs();
}

#[test]
fn fn_043_refusals_by_a_gate_count() {
    play(times(
        10,
        call("terminal", "rm x").refused("refused by policy"),
    ))
    .by(5, Warn)
    .by(8, Escalate);
}

#[test]
fn fn_045_keys_in_another_order() {
    // One key for both spellings is the caller's part.
    play(times(6, call("Grep", "path=. pattern=x").says("3"))).by(5, Warn);
}

#[test]
fn fn_050_a_progress_note_in_the_arguments() {
    // The note is not part of the key.
    play(times(6, call("read_file", "a.ts").says("text"))).by(5, Warn);
}

#[test]
fn fn_051_three_calls_in_turn() {
    let step = |tool: &str| call(tool, 1).says(tool);
    play(times(
        4,
        steps![step("search_files"), step("read_file"), step("list_files")],
    ))
    .by(9, Warn);
}

#[test]
fn fn_052_two_calls_in_each_message() {
    play(each(6, |i| {
        steps![
            call("read", 1).says("read").round(i),
            call("grep", 1).says("grep").round(i)
        ]
    }))
    .by(10, Warn);
}

#[test]
fn fn_055_a_reworded_thought() {
    // The thought is not part of the key.
    play(times(6, call("terminal", "ls").says("a b"))).by(5, Warn);
}

#[test]
fn fn_057_only_told_that_nothing_changed() {
    play(steps![
        call("Read", "/w/plan.md").says("full text"),
        times(
            7,
            call("Read", "/w/plan.md").fails("file unchanged, see earlier result")
        ),
    ])
    .by(6, Warn);
}

#[test]
fn fn_058_one_search_over_and_over() {
    play(times(12, call("Bash", "grep -rn cli src").says("5 hits"))).climbs();
}

#[test]
fn fn_061_call_ids_are_not_part_of_a_call() {
    play(times(6, call("list_directory", "/w").says("3 entries"))).by(5, Warn);
}

#[test]
fn fn_064_varied_actions_refused_with_one_text() {
    play(each(10, |i| call("probe", i % 5).refused("out of scope"))).by(8, Warn);
}

#[test]
fn fn_065_three_equal_calls_are_below_every_threshold() {
    play(times(3, call("bash", "pwd").says("/w"))).never(Block);
}

#[test]
fn fn_066_one_call_in_two_spellings() {
    play(times(6, call("read_file", "a=1 b=2").says("t"))).by(5, Warn);
}
