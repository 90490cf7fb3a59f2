//! Reported false alarms: useful work that must not be taken for a loop.

use bizar_window::Verdict::{Block, Escalate, Warn};

use crate::play::{call, each, play, steps, times, turn};

#[test]
fn fp_002_components_moved_one_by_one() {
    let names = ["Card", "Menu", "Nav", "Tabs"];
    play(each(4, |i| {
        let name = names[i as usize];
        steps![
            call("grep", name).says(format!("3 hits for {name}")),
            call("bash", format!("git mv {name}")).says(""),
            call("grep", format!("from {name}")).says(format!("2 imports of {name}")),
            call("edit", format!("use{name}")).says("1 replacement"),
        ]
    }))
    .never(Warn);
}

#[test]
fn fp_004_data_set_block_by_block() {
    play(each(12, |i| {
        call("read", i * 2000).says(format!("rows {i}"))
    }))
    .never(Escalate);
}

#[test]
fn fp_005_task_list_that_shrinks() {
    play(each(8, |i| {
        call("task_list", "in_progress").says(format!("{} open", 8 - i))
    }))
    .never(Warn);
}

#[test]
fn fp_007_long_verification_of_distinct_modules() {
    play(each(5, |i| {
        steps![
            call("read_file", i).says(format!("text {i}")),
            call("edit", i).says("1 replacement"),
            call("bash", format!("pytest {i}")).says(format!("{i} passed")),
        ]
    }))
    .never(Warn);
}

#[test]
fn fp_008_parallel_denials_with_one_text() {
    play(each(5, |i| {
        call("bash", i).fails("tool is denied").round(1)
    }))
    .never(Warn);
}

#[test]
fn fp_012_one_command_at_each_tick() {
    play(times(
        13,
        steps![turn(), call("exec", "./health.sh").says("ok")],
    ))
    .never(Warn);
}

#[test]
fn fp_013_output_still_streaming() {
    play(each(12, |i| {
        call("bash_output", "h1").says(format!("line {i}"))
    }))
    .never(Warn);
}

#[test]
fn fp_015_status_that_changes() {
    play(each(5, |i| {
        call("exec", "git status --short").says(format!("{i} files"))
    }))
    .never(Warn);
}

#[test]
fn fp_016_job_that_advances() {
    play(each(11, |i| {
        call("job_status", "j-9").says(format!("{i}0%"))
    }))
    .never(Warn);
}

#[test]
fn fp_017_file_read_again_after_each_compaction() {
    play(steps![
        each(4, |i| {
            steps![
                call("read_file", "spec.md").says("spec text"),
                call("write_file", i).says("ok")
            ]
        }),
        call("read_file", "spec.md").says("spec text"),
    ])
    .never(Escalate);
}

#[test]
fn fp_021_build_edit_build() {
    play(steps![
        call("bash", "./build.sh").fails("error L10"),
        call("edit", "x y").says("ok"),
        call("bash", "./build.sh").fails("error L42"),
        call("edit", "p q").says("ok"),
        call("bash", "./build.sh").says("ok"),
    ])
    .never(Warn);
}

#[test]
fn fp_023_tests_after_each_edit() {
    play(each(5, |i| {
        steps![
            call("edit", i).says("ok"),
            call("bash", "pytest -q").fails(format!("{} failed", 6 - i))
        ]
    }))
    .never(Warn);
}

#[test]
fn fp_024_sixteen_different_reads() {
    play(each(16, |i| call("read", i).says(format!("text {i}")))).never(Warn);
}

#[test]
fn fp_026_sleep_between_changing_polls() {
    play(each(7, |i| {
        steps![
            call("read_output", "p1").says(format!("built {}", 9 * i)),
            call("bash", "sleep 5").says("")
        ]
    }))
    .never(Warn);
}

#[test]
fn fp_028_tool_that_always_acknowledges() {
    play(each(9, |i| call("mcp_board_add_card", i).says("done"))).never(Escalate);
}

#[test]
fn fp_029_recall_between_steps() {
    play(each(4, |i| {
        steps![
            call("recall_history", "deploy steps").says("3 notes"),
            call("bash", format!("step {i}")).says(format!("ok {i}")),
        ]
    }))
    .never(Warn);
}

#[test]
fn fp_031_five_queries_in_one_message() {
    play(each(5, |i| call("execute_promql", i).says(i).round(1))).never(Warn);
}

#[test]
fn fp_032_parallel_reads_of_different_files() {
    play(each(3, |i| {
        call("read", i).says(format!("text {i}")).round(1)
    }))
    .never(Warn);
}

#[test]
fn fp_033_one_mistake_fanned_out() {
    play(steps![
        call("mcp_search", "x").says("ok").round(1),
        each(8, |i| call("mcp_aggregate", i)
            .fails("groupby must not be empty")
            .round(1)),
    ])
    .never(Warn);
}

#[test]
fn fp_035_router_tool_with_twenty_actions() {
    play(each(20, |i| {
        call("connector", i).says(format!("r{i}")).round(1)
    }))
    .never(Warn);
}

#[test]
fn fp_036_cluster_query_that_changes() {
    play(each(6, |i| {
        call("shell_exec", "kubectl get pods").says(format!("{i} ready"))
    }))
    .never(Warn);
}

#[test]
fn fp_037_burst_of_rate_limits() {
    play(steps![
        times(4, call("http_get", "x").fails("429 rate limited")),
        call("http_get", "x").says("200 body"),
    ])
    .never(Escalate);
}

#[test]
fn fp_038_one_question_in_each_of_six_turns() {
    play(times(
        6,
        steps![turn(), call("get_status", "db").says("up")],
    ))
    .never(Warn);
}

#[test]
fn fp_040_outage_that_ends() {
    play(steps![
        times(5, call("patch", "a").fails("io timeout")),
        call("patch", "b").says("applied"),
        call("patch", "a").says("applied"),
    ])
    .never(Block);
}

#[test]
fn fp_041_check_list_done_twice_and_begun_again() {
    play(each(21, |i| {
        call("step", i % 10).says(format!("r{}", i % 10))
    }))
    .never(Warn);
}

#[test]
fn fp_042_more_than_thirty_calls() {
    play(each(31, |i| call("read", i).says(format!("t{i}")))).never(Warn);
}
