//! A project folder, and programs in it that become what a test needs.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use bizar_background::opencode::{Options, Patience};

/// A project folder with the two scripts in it.
pub(crate) struct Stage {
    pub(crate) directory: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let stage = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let this = std::env::current_exe().unwrap();
        let run = |test: &str| {
            format!(
                "exec '{}' fake::{test} --exact --nocapture --test-threads=1\n",
                this.display()
            )
        };
        stage.script("opencode", &format!("if [ \"$1\" = --version ]; then echo 1.18.33; exit 0; fi\nFAKE_ARGUMENTS=\"$*\" {}", run("a_fake_refuses_strangers")));
        stage.script(
            "watchdog",
            &format!(
                "WATCHDOG_ARGUMENTS=\"$*\" {}",
                run("a_watchdog_gives_the_exit_code")
            ),
        );
        stage
    }

    /// `mode`: how the program misbehaves, see `Fake::run`.
    pub(crate) fn options(&self, mode: &str) -> Options {
        options(self.directory.path(), mode)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn script(&self, name: &str, body: &str) {
        let path = self.path(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
}

pub(crate) fn options(directory: &Path, mode: &str) -> Options {
    let mut options = Options::new(directory.join("opencode"), directory);
    options.environment = vec![
        ("FAKE_MODE".into(), Some(mode.into())),
        (
            "FAKE_DIRECTORY".into(),
            Some(directory.display().to_string()),
        ),
    ];
    options.patience = Patience {
        reconnect: Duration::from_millis(20),
        reconnect_most: Duration::from_millis(200),
        ..Patience::default()
    };
    options
}

/// Whether a process is there and no zombie.
pub(crate) fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

pub(crate) async fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_true() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen in 10 s");
}

/// Whether `needle` stands in any file below `directory`.
pub(crate) fn holds(directory: &Path, needle: &str) -> bool {
    std::fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, needle);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes
            .windows(needle.len())
            .any(|window| window == needle.as_bytes())
    })
}
