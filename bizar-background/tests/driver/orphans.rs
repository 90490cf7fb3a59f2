//! What is left when an owner is killed: nothing, or only until the next start.
#![cfg(target_os = "linux")]

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use bizar_background::{
    Agents, Limits, Spawn,
    opencode::{Opencode, Options},
};

use crate::fake::{Stage, is_running, options, until};

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
        let serve = stage
            .read("starts")
            .trim()
            .rsplit(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let shell = stage.read("shells").trim().parse().unwrap();
        assert_eq!((is_running(serve), is_running(shell)), (true, true));
        until("a session of its own", || {
            session_of(shell) != session_of(serve)
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

fn session_of(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_ascii_whitespace().nth(3).unwrap().into()
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
        assert!(
            Command::new("kill")
                .arg(shell.to_string())
                .status()
                .unwrap()
                .success()
        );
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
        assert!(
            Command::new("kill")
                .arg(shell.to_string())
                .status()
                .unwrap()
                .success()
        );
    });
}

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(test);
}
