//! The program in its mode `background`, with the test in the place of the plugin.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use bizar_testkit::{Client, ModelServer, Process, Sandbox, Script};
use serde_json::{Value, json};

use crate::rig::{PROGRAM, Rig};

pub(crate) struct Manager {
    process: Mutex<Process>,
    input: Mutex<ChildStdin>,
    answers: Arc<(Mutex<HashMap<u64, Value>>, Condvar)>,
    next: AtomicU64,
    opencode: String,
    directory: String,
}

impl Manager {
    /// Starts the program and opens the sandbox's project.
    pub(crate) fn start(rig: &Rig) -> Self {
        let mut command = rig.sandbox.command(Path::new(PROGRAM));
        command
            .arg("background")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = Process::start(&mut command).unwrap();
        let input = process.child().stdin.take().unwrap();
        let output = process.child().stdout.take().unwrap();
        let answers = Arc::new((Mutex::new(HashMap::new()), Condvar::new()));
        let sink: Arc<(Mutex<HashMap<u64, Value>>, Condvar)> = Arc::clone(&answers);
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let answer: Value = serde_json::from_str(&line).unwrap();
                sink.0
                    .lock()
                    .unwrap()
                    .insert(answer["id"].as_u64().unwrap(), answer);
                sink.1.notify_all();
            }
        });
        let manager = Self {
            process: Mutex::new(process),
            input: Mutex::new(input),
            answers,
            next: AtomicU64::new(1),
            opencode: rig.opencode.display().to_string(),
            directory: rig.sandbox.project().display().to_string(),
        };
        let hello = manager.ask("hello", json!({"protocol": 2, "version": ""}));
        assert_eq!(hello["result"]["protocol"], 2);
        manager.open(&rig.sandbox.project(), &json!({}));
        manager
    }

    /// The same, with a server that has run an agent: the limits of a test are not for cold starts.
    pub(crate) fn warm(rig: &Rig) -> Self {
        let manager = Self::start(rig);
        let _alone = start_alone();
        let first = manager.spawn(&Script::new().say("warm"));
        assert_eq!(manager.collect(&first)["result"], "warm");
        manager
    }

    /// Opens one more directory.
    pub(crate) fn open(&self, directory: &Path, options: &Value) {
        // Two busy cores: only the tests of patience test it.
        let patience = 120_000;
        let params = json!({
            "directory": directory,
            "options": options,
            "program": self.opencode,
            "readyMs": patience,
            "admissionMs": patience,
        });
        assert_eq!(self.ask("open", params)["result"]["notes"], json!([]));
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.lock().unwrap().id()
    }

    /// Kills the program (SIGKILL), and nothing that it started.
    pub(crate) fn kill(&self) {
        self.process.lock().unwrap().kill();
    }

    /// Ends the input, as opencode does when it goes, and waits until the program has ended.
    pub(crate) fn end(self) {
        drop(self.input);
        let ended = self
            .process
            .into_inner()
            .unwrap()
            .wait(Duration::from_secs(30));
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
    }

    /// A tool, called by odin: its result, or the refusal.
    pub(crate) fn tool(&self, tool: &str, args: &Value) -> Result<Value, String> {
        self.tool_of("odin", &self.directory, tool, args)
    }

    pub(crate) fn tool_of(
        &self,
        agent: &str,
        directory: &str,
        tool: &str,
        args: &Value,
    ) -> Result<Value, String> {
        let params =
            json!({"directory": directory, "agent": agent, "session": "ses_main", "args": args});
        let answer = self.ask(tool, params);
        match answer["result"]["text"].as_str() {
            Some(text) => Ok(serde_json::from_str(text).unwrap()),
            None => Err(answer["result"]["refused"].as_str().unwrap().to_owned()),
        }
    }

    /// Starts a run of a script; gives its id.
    pub(crate) fn spawn(&self, script: &Script) -> String {
        self.spawn_with(&self.directory, script, &json!({}))
    }

    pub(crate) fn spawn_with(&self, directory: &str, script: &Script, more: &Value) -> String {
        let mut args = json!({"agent": "build", "prompt": script.prompt("go ")});
        for (name, value) in more.as_object().unwrap() {
            args[name] = value.clone();
        }
        let run = self.tool_of("odin", directory, "spawn", &args).unwrap();
        assert!(run["sessionId"].is_string(), "{run}");
        run["instanceId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn status(&self, id: &str) -> Value {
        self.tool("status", &json!({"instanceId": id})).unwrap()
    }

    pub(crate) fn collect(&self, id: &str) -> Value {
        self.tool("collect", &json!({"instanceId": id})).unwrap()
    }

    /// Waits until the status of an instance is as wanted, and gives it.
    pub(crate) fn until(&self, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let view = self.status(id);
            if wanted(&view) {
                return view;
            }
            assert!(Instant::now() < end, "{what} did not come about: {view}");
            thread::sleep(Duration::from_millis(30));
        }
    }

    pub(crate) fn ask(&self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id, Duration::from_secs(300)).unwrap()
    }

    pub(crate) fn send(&self, method: &str, params: Value) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut input = self.input.lock().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
        id
    }

    pub(crate) fn answer(&self, id: u64, patience: Duration) -> Option<Value> {
        let answers = self.answers.0.lock().unwrap();
        let missing = |answers: &mut HashMap<u64, Value>| !answers.contains_key(&id);
        let waited = self
            .answers
            .1
            .wait_timeout_while(answers, patience, missing);
        waited.unwrap().0.remove(&id)
    }
}

/// One manager for many tests.
pub(crate) struct Warm {
    pub(crate) rig: Rig,
    pub(crate) manager: Manager,
    /// Written to by those who need all slots for themselves.
    pub(crate) slots: RwLock<()>,
}

/// The warm manager, or `None` if there is no opencode, which was said loudly then.
pub(crate) fn warm(test: &str) -> Option<&'static Warm> {
    static WARM: OnceLock<Option<Warm>> = OnceLock::new();
    let opencode = Client::Opencode.find(test)?;
    let start = || {
        let rig = rig(opencode, Sandbox::until_exit().unwrap());
        let manager = Manager::warm(&rig);
        let slots = RwLock::new(());
        Some(Warm {
            rig,
            manager,
            slots,
        })
    };
    WARM.get_or_init(start).as_ref()
}

/// Held while an opencode starts: several at once take longer than each is waited for.
pub(crate) fn start_alone() -> MutexGuard<'static, ()> {
    static GATE: Mutex<()> = Mutex::new(());
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A sandbox of its own, for a test that kills things.
pub(crate) fn fresh(test: &str) -> Option<Rig> {
    Some(rig(Client::Opencode.find(test)?, Sandbox::new().unwrap()))
}

/// A home with the plugin, an agent that may start others, and a tool that asks.
pub(crate) fn rig(opencode: std::path::PathBuf, sandbox: Sandbox) -> Rig {
    let model = ModelServer::start().unwrap();
    let config = json!({
        "agent": {"odin": {"mode": "primary", "description": "starts others", "prompt": "You are Odin."}},
        "permission": {"webfetch": "ask"},
    });
    sandbox.configure_opencode(&model, &config).unwrap();
    let rig = Rig {
        opencode,
        sandbox,
        model,
    };
    let installed = rig.bizar(&["install", "--force"]);
    assert!(installed.status.success(), "{installed:?}");
    rig.options(&json!({"verdictTimeoutMs": 5000}));
    rig
}

/// A shell command that runs until it is ended, and can be found by its text.
pub(crate) fn endless() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("sleep 9{:07}{number:02}", std::process::id())
}

/// Processes below one, with their command lines.
pub(crate) fn below(pid: u32) -> Vec<(u32, String)> {
    let output = Command::new("ps")
        .args(["-A", "-ww", "-o", "pid=,ppid=,stat=,args="])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let listed = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (pid, parent) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let runs = !words.next()?.starts_with('Z');
        runs.then(|| (pid, parent, words.collect::<Vec<_>>().join(" ")))
    });
    let listed: Vec<(u32, u32, String)> = listed.collect();
    let mut found: Vec<(u32, String)> = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for (pid, _, args) in listed.iter().filter(|(_, of, _)| *of == parent) {
            parents.push(*pid);
            found.push((*pid, args.clone()));
        }
    }
    found
}

/// The servers below a process.
pub(crate) fn servers(pid: u32) -> Vec<u32> {
    let is_server =
        |args: &str| args.contains("serve --hostname 127.0.0.1") && !args.contains("__watch");
    below(pid)
        .into_iter()
        .filter(|(_, args)| is_server(args))
        .map(|(pid, _)| pid)
        .collect()
}

/// Waits until something holds, and fails if that takes longer than it may.
pub(crate) fn within(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < limit, "{what} took longer than {limit:?}");
        thread::sleep(Duration::from_millis(20));
    }
    start.elapsed()
}

/// The record of an instance.
pub(crate) fn record(rig: &Rig, id: &str) -> Value {
    let folder = rig.cache().join("bg");
    let files = fs::read_dir(folder).unwrap().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    texts
        .filter_map(|text| serde_json::from_str::<Value>(&text).ok())
        .find(|record| record["instanceId"] == id)
        .unwrap_or_default()
}
