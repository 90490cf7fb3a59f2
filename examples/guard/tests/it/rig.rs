//! Guards on temporary homes, and other processes.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use bizar_guard::{
    Args, Call, Decision, End, Ended, Environment, FileStore, Form, Guard, Setup, Sources, State,
    Store, resolve,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A home directory, and a clock that stands still until it is moved.
pub(crate) struct Rig {
    pub(crate) root: TempDir,
    pub(crate) time: Arc<AtomicI64>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self {
            root: TempDir::new().unwrap(),
            time: Arc::new(AtomicI64::new(1_700_000_000_000)),
        }
    }

    pub(crate) fn home(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn setup(&self, form: Form, options: &Value, env: &[(&str, &str)]) -> Setup {
        let time = Arc::clone(&self.time);
        setup(self.home(), form, options, env).clock(move || time.load(Ordering::Relaxed))
    }

    /// A resident guard.
    pub(crate) fn resident(&self, options: Value) -> Guard {
        Guard::new(self.setup(Form::Resident, &options, &[]))
    }

    /// A guard that lives for one call.
    pub(crate) fn one_call(&self, options: Value) -> Guard {
        Guard::new(self.setup(Form::ONE_CALL, &options, &[]))
    }

    pub(crate) fn pass(&self, ms: i64) {
        self.time.fetch_add(ms, Ordering::Relaxed);
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.home().join(".cache/bizarharness")
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.state_dir().join("logs")
    }

    pub(crate) fn log(&self, session: &str) -> String {
        fs::read_to_string(self.log_dir().join(format!("{session}.log"))).unwrap_or_default()
    }

    pub(crate) fn state(&self, session: &str) -> Option<State> {
        FileStore::new(self.state_dir(), bizar_state::Durability::Process)
            .load(session)
            .unwrap()
            .document
    }

    /// The session's document as anyone reads it.
    pub(crate) fn document(&self, session: &str) -> Value {
        let text = fs::read_to_string(self.state_dir().join(format!("{session}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

pub(crate) fn setup(home: &Path, form: Form, options: &Value, env: &[(&str, &str)]) -> Setup {
    let resolved = resolve(Sources {
        home: Some(home),
        host_options: Some(options.into()),
        env: Environment::from_pairs(env.iter().copied()),
        ..Sources::default()
    });
    assert_eq!(resolved.notes, []);
    Setup::new("test", resolved)
        .directory("/srv/project")
        .form(form)
}

/// Makes a call that answers `result`, unless it is refused.
pub(crate) fn make<S: Store<State>>(
    guard: &Guard<S>,
    session: &str,
    tool: &str,
    args: &Value,
    result: &str,
) -> Decision {
    let decision = guard.before(&Call::new(session, tool, args));
    if !decision.refused {
        guard.after(&End::new(session, tool, args, Ended::ok(result)));
    }
    decision
}

/// The same call with the same answer, `n` times.
pub(crate) fn repeat<S: Store<State>>(guard: &Guard<S>, session: &str, n: usize) -> Vec<Decision> {
    let args = json!({"path": "a.rs"});
    (0..n)
        .map(|_| make(guard, session, "read", &args, "the same"))
        .collect()
}

pub(crate) fn begin(guard: &Guard, session: &str, id: &str, args: &Value) -> Decision {
    guard.before(&Call::new(session, "read", args).id(id))
}

pub(crate) fn end(guard: &Guard, session: &str, id: &str, ended: Ended<'_>) {
    guard.after(&End::new(session, "read", Args::Missing, ended).id(id));
}

const ROLE: &str = "BIZAR_GUARD_TEST_ROLE";
const HOME: &str = "BIZAR_GUARD_TEST_HOME";

/// This test program again, in a role. `wrapper` is a program that runs it, with arguments.
pub(crate) fn child(wrapper: &[&str], role: &str, home: &Path) -> Command {
    let program = env::current_exe().unwrap();
    let words = [
        wrapper,
        &[
            program.to_str().unwrap(),
            "--exact",
            "rig::roles",
            "--nocapture",
            "--test-threads=1",
        ],
    ]
    .concat();
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env(ROLE, role)
        .env(HOME, home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a child said, a string a line.
pub(crate) fn said(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    text.lines()
        .filter_map(|line| Some(line.split_once("say ")?.1.to_owned()))
        .collect()
}

/// Plays the role that the variable names; without one, sees whether children play theirs.
#[test]
fn roles() {
    let Ok(role) = env::var(ROLE) else {
        let home = TempDir::new().unwrap();
        let output = child(&[], "greet", home.path()).output().unwrap();
        assert_eq!(said(&output.stdout), ["hello"]);
        return;
    };
    let home = PathBuf::from(env::var_os(HOME).unwrap());
    match role.as_str() {
        "greet" => println!("say hello"),
        "repeat" => crate::order::repeat_in_a_process(&home),
        "user" => crate::switches::say_what_the_user_set(),
        "scenario" => crate::writes::scenario(&home),
        other => panic!("no such role: {other}"),
    }
}
