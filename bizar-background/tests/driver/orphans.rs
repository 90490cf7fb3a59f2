//! What is left when an owner is killed: nothing, or only until the next start.
#![cfg(target_os = "linux")]

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use bizar_background::{
    Agents, Limits, Spawn, Status,
    opencode::{Opencode, Options},
};

use crate::stage::{Stage, is_running, options, until};

/// A process that owns a server on which a shell command runs, until it is killed.
struct Owner(Child);

impl Owner {
    /// `test` is the test that becomes the owner when it is started again.
    fn new(test: &str, stage: &Stage) -> Self {
        let owner = Command::new(std::env::current_exe().unwrap())
            .args([&format!("orphans::{test}"), "--exact"])
            .env("OWNER_DIRECTORY", stage.directory.path())
            .stdout(Stdio::null())
            .spawn();
        Self(owner.unwrap())
    }

    /// Never comes back in the process that is to be the owner.
    fn become_one(change: impl FnOnce(&mut Options, &Path)) {
        let Some(directory) = std::env::var_os("OWNER_DIRECTORY") else {
            return;
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let directory = Path::new(&directory);
            let mut options = options(directory, "");
            change(&mut options, directory);
            let agents = Agents::new(Opencode::new(options), Limits::default(), None);
            agents.spawn(Spawn::new("mimir", "SHELL")).await.unwrap();
            std::fs::write(directory.join("owned"), "").unwrap();
            std::future::pending::<()>().await;
        });
    }

    /// SIGKILL, as soon as the shell command runs. Gives the server and the shell.
    async fn kill_midrun(mut self, stage: &Stage) -> (u32, u32) {
        until("a shell command", || stage.path("owned").exists()).await;
        let serve = started(stage);
        let shell = stage.read("shells").trim().parse().unwrap();
        assert_eq!((is_running(serve), is_running(shell)), (true, true));
        until("a session of its own", || {
            field(shell, SESSION) != field(serve, SESSION)
        })
        .await;
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        (serve, shell)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// A field of `/proc/<pid>/stat`, counted from the one after the name.
fn field(pid: u32, which: usize) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_ascii_whitespace().nth(which).unwrap().into()
}

const GROUP: usize = 2;
const SESSION: usize = 3;

/// The process of the last server that was started.
fn started(stage: &Stage) -> u32 {
    let starts = stage.read("starts");
    starts.trim().rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn bg_05_a_killed_owner_leaves_neither_server_nor_shell() {
    let test = "bg_05_a_killed_owner_leaves_neither_server_nor_shell";
    Owner::become_one(|options, directory| {
        options.watchdog = Some((directory.join("watchdog"), vec![]));
    });
    let stage = Stage::new();
    block_on(async {
        let (serve, shell) = Owner::new(test, &stage).kill_midrun(&stage).await;
        let start = Instant::now();
        until("the end of all", || {
            !is_running(serve) && !is_running(shell)
        })
        .await;
        assert!(start.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn bg_05_without_a_watchdog_the_server_ends_with_its_owner() {
    Owner::become_one(|_, _| {});
    let stage = Stage::new();
    block_on(async {
        let test = "bg_05_without_a_watchdog_the_server_ends_with_its_owner";
        let (serve, shell) = Owner::new(test, &stage).kill_midrun(&stage).await;
        until("the end of the server", || !is_running(serve)).await;
        assert!(is_running(shell), "what only a watchdog can do");
        end(shell);
    });
}

#[test]
fn bg_05_a_server_that_was_left_is_ended_at_the_next_start() {
    let stage = Stage::new();
    // Where there is no death signal, a server outlives its owner.
    let survive = |options: &mut Options, directory: &Path| {
        options.program = directory.join("surviving");
        options.notes = Some(directory.join("notes"));
    };
    Owner::become_one(survive);
    let opencode = stage.path("opencode");
    stage.script(
        "surviving",
        &format!(
            "exec setpriv --pdeathsig clear '{}' \"$@\"",
            opencode.display()
        ),
    );
    block_on(async {
        let test = "bg_05_a_server_that_was_left_is_ended_at_the_next_start";
        let (serve, shell) = Owner::new(test, &stage).kill_midrun(&stage).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(is_running(serve));
        let mut options = options(stage.directory.path(), "");
        survive(&mut options, stage.directory.path());
        let agents = Agents::new(Opencode::new(options), Limits::default(), None);
        agents.start().await.unwrap();
        assert!(
            !is_running(serve),
            "it was ended before another was started"
        );
        let notes = || {
            std::fs::read_dir(stage.path("notes"))
                .unwrap()
                .filter(|entry| {
                    entry
                        .as_ref()
                        .unwrap()
                        .path()
                        .extension()
                        .is_some_and(|end| end == "json")
                })
                .count()
        };
        assert_eq!(notes(), 1, "the new one is noted");
        agents.shutdown().await;
        assert_eq!(notes(), 0, "what was ended is not");
        end(shell);
    });
}

#[tokio::test]
async fn bg_06_a_wrapper_that_outlives_the_first_signal_is_killed_with_its_group() {
    let stage = Stage::new();
    let wrapper = "trap 'echo TERM >> \"$FAKE_DIRECTORY/signals\"' TERM
        (trap '' TERM; exec \"$FAKE_DIRECTORY/opencode\" \"$@\") &
        wait; wait; sleep 60";
    stage.script("wrapper", wrapper);
    let mut options = stage.options("");
    options.program = stage.path("wrapper");
    options.patience.stop = Duration::from_millis(500);
    let agents = Agents::new(Opencode::new(options), Limits::default(), None);
    agents.start().await.unwrap();
    let (wrapper, serve) = (agents.server().pid().unwrap(), started(&stage));
    assert_ne!(wrapper, serve);
    for pid in [wrapper, serve] {
        assert_eq!(field(pid, GROUP), wrapper.to_string());
    }
    agents.shutdown().await;
    assert_eq!(stage.read("signals"), "TERM\n", "it was asked first");
    until("the end of both", || {
        !is_running(wrapper) && !is_running(serve)
    })
    .await;
}

#[tokio::test]
async fn bg_036_a_command_that_survives_its_abort_is_ended_when_nothing_else_runs() {
    let stage = Stage::new();
    let mut limits = Limits::default();
    limits.timing.abort = Duration::from_millis(200);
    limits.timing.drain = Duration::from_millis(200);
    let agents = Agents::new(Opencode::new(stage.options("stubborn")), limits, None);
    let other = agents.spawn(Spawn::new("mimir", "SLOW")).await.unwrap();
    let run = agents.spawn(Spawn::new("mimir", "SHELL")).await.unwrap();
    let shell: u32 = stage.read("shells").trim().parse().unwrap();
    let killed = agents.kill(run.instance_id).await.unwrap();
    assert_eq!(killed.status, Status::Killed);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(is_running(shell), "ending it would end the other run");
    agents.kill(other.instance_id).await.unwrap();
    until("the end of the command", || !is_running(shell)).await;
    let run = agents.spawn(Spawn::new("mimir", "PLAIN")).await.unwrap();
    let collected = agents.collect(run.instance_id, None).await.unwrap();
    assert_eq!(collected.status, Status::Done, "on another server");
    agents.shutdown().await;
}

fn end(pid: u32) {
    let status = Command::new("kill").arg(pid.to_string()).status();
    assert!(status.unwrap().success());
}

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(test);
}
