//! A home, and the program in it.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Rig {
    root: TempDir,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().unwrap();
        for folder in ["home", "project"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    pub(crate) fn options(&self, options: &Value) {
        let folder = self.home().join(".config/bizarharness");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("options.json"), options.to_string()).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bizar-hook"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.home())
            .current_dir(self.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The answer to one event. Whatever it was: exit code 0, and nothing on standard error.
    pub(crate) fn tell(&self, harness: &str, event: &str, stdin: &[u8]) -> String {
        let mut words = vec!["--harness", harness];
        if !event.is_empty() {
            words.extend(["--event", event]);
        }
        answer(self.command(&words), stdin)
    }

    /// What a person is told.
    pub(crate) fn ask(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The same, and it must work.
    pub(crate) fn must(&self, args: &[&str]) -> String {
        let output = self.ask(args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.home().join(".cache/bizarharness")
    }

    /// The outcomes in the log of a session, in order.
    pub(crate) fn outcomes(&self, session: &str) -> Vec<String> {
        let log = fs::read_to_string(self.cache().join(format!("logs/{session}.log")));
        let log = log.unwrap_or_default();
        let outcomes = log.lines().filter_map(|line| {
            let (_, outcome) = line.split_once("outcome=")?;
            Some(outcome.split(' ').next().unwrap().to_owned())
        });
        outcomes.collect()
    }

    /// A session's document.
    pub(crate) fn state(&self, session: &str) -> Value {
        let text = fs::read_to_string(self.cache().join(format!("{session}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// Gives a child its input and takes its answer.
pub(crate) fn answer(mut command: Command, stdin: &[u8]) -> String {
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(stdin).expect("standard input is drained");
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
