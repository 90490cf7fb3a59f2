//! opencode with the plugin that `bizar-opencode install` put there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bizar_testkit::{Client, ModelServer, Opencode, Request, Sandbox, Script, Step};
use serde_json::{Value, json};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_bizar-opencode");

/// A home with the plugin in it, and a model.
pub(crate) struct Rig {
    pub(crate) opencode: PathBuf,
    pub(crate) sandbox: Sandbox,
    pub(crate) model: ModelServer,
}

impl Rig {
    /// `None` if there is no opencode, which was said loudly then.
    pub(crate) fn new(test: &str) -> Option<Self> {
        Some(Self::around(
            Client::Opencode.find(test)?,
            Sandbox::new().unwrap(),
        ))
    }

    fn around(opencode: PathBuf, sandbox: Sandbox) -> Self {
        let model = ModelServer::start().unwrap();
        sandbox.configure_opencode(&model, &json!({})).unwrap();
        let rig = Self {
            opencode,
            sandbox,
            model,
        };
        let installed = rig.bizar(&["install", "--force"]);
        assert!(installed.status.success(), "{installed:?}");
        // Two busy cores and a dozen tests: patience, so that only the tests of patience test it.
        rig.options(&json!({"verdictTimeoutMs": 5000}));
        rig
    }

    /// Runs our program in the sandbox.
    pub(crate) fn bizar(&self, args: &[&str]) -> Output {
        self.sandbox
            .command(Path::new(PROGRAM))
            .args(args)
            .output()
            .unwrap()
    }

    /// Writes the user's `options.json`.
    pub(crate) fn options(&self, options: &Value) {
        let folder = self.sandbox.home().join(".config/bizarharness");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("options.json"), options.to_string()).unwrap();
    }

    pub(crate) fn plugin(&self) -> PathBuf {
        self.sandbox.opencode_config().join("plugins/bizar.ts")
    }

    /// The file to name in `opencode.json`.
    pub(crate) fn entry(&self) -> PathBuf {
        self.sandbox
            .opencode_config()
            .join("plugins/bizar/index.ts")
    }

    pub(crate) fn serve(&self, env: &[(&str, &str)]) -> Opencode {
        Opencode::serve(&self.opencode, &self.sandbox, env).unwrap()
    }

    /// A project directory with options for the plugin in its `opencode.json`.
    pub(crate) fn project(&self, options: &Value) -> PathBuf {
        self.project_with(&json!({"plugin": [[self.entry(), options]]}))
    }

    /// A project directory with this `opencode.json`.
    pub(crate) fn project_with(&self, config: &Value) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = self.sandbox.root().join(format!("project{number}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("opencode.json"), config.to_string()).unwrap();
        folder
    }

    /// The lines of a session's log.
    pub(crate) fn log(&self, session: &str) -> Vec<String> {
        let path = self.cache().join("logs").join(format!("{session}.log"));
        fs::read_to_string(path)
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// The outcomes in a session's log.
    pub(crate) fn outcomes(&self, session: &str) -> Vec<String> {
        let field = |line: &String| {
            line.split(' ')
                .find_map(|field| field.strip_prefix("outcome="))
                .unwrap()
                .to_owned()
        };
        self.log(session).iter().map(field).collect()
    }

    /// A session's state, which is written when it goes idle.
    pub(crate) fn state(&self, session: &str) -> Option<Value> {
        let text = fs::read_to_string(self.cache().join(format!("{session}.json"))).ok()?;
        Some(serde_json::from_str(&text).unwrap())
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.sandbox.home().join(".cache/bizarharness")
    }

    /// What the plugin has said in opencode's log.
    pub(crate) fn said(&self) -> Vec<String> {
        let log = self.sandbox.opencode_log();
        log.lines()
            .filter(|line| line.contains("bizar: "))
            .map(str::to_owned)
            .collect()
    }
}

/// The one warm server of this test process.
pub(crate) struct Warm {
    pub(crate) rig: Rig,
    pub(crate) server: Opencode,
}

/// The warm server, or `None` if there is no opencode, which was said loudly then.
pub(crate) fn warm(test: &str) -> Option<&'static Warm> {
    static WARM: OnceLock<Option<Warm>> = OnceLock::new();
    let opencode = Client::Opencode.find(test)?;
    let start = || {
        let rig = Rig::around(opencode, Sandbox::until_exit().unwrap());
        let server = rig.serve(&[]);
        Some(Warm { rig, server })
    };
    WARM.get_or_init(start).as_ref()
}

/// A finished session.
pub(crate) struct Run {
    pub(crate) session: String,
    /// Tool parts, in order.
    pub(crate) calls: Vec<Value>,
    /// The steps of the agent, in order.
    pub(crate) requests: Vec<Request>,
    /// The last message.
    pub(crate) last: Value,
}

impl Warm {
    /// Plays a script in a session of its own, in the default project.
    pub(crate) fn play(&self, script: &Script) -> Run {
        self.play_in(&self.server, script)
    }

    /// Plays a script in a directory with options of its own.
    pub(crate) fn play_with(&self, options: &Value, script: &Script) -> Run {
        self.play_in(&self.server.at(&self.rig.project(options)), script)
    }

    pub(crate) fn play_in(&self, server: &Opencode, script: &Script) -> Run {
        let session = server.session().unwrap();
        play(&self.rig, server, &session, script)
    }
}

/// Plays a script in a session.
pub(crate) fn play(rig: &Rig, server: &Opencode, session: &str, script: &Script) -> Run {
    let before = rig.model.requests_of(session).len();
    let last = server.prompt(session, &script.prompt("go ")).unwrap();
    let requests = rig.model.requests_of(session).split_off(before);
    Run {
        session: session.to_owned(),
        calls: server.calls(session).unwrap(),
        requests: requests.into_iter().filter(Request::is_step).collect(),
        last,
    }
}

impl Run {
    /// What the call gave: its output, or `Error: ` and why it failed.
    pub(crate) fn result(&self, index: usize) -> String {
        result(&self.calls[index])
    }

    /// Indices of the calls that the guard refused.
    pub(crate) fn refused(&self) -> Vec<usize> {
        (0..self.calls.len())
            .filter(|&index| self.result(index).starts_with("Error: Loop protection: "))
            .collect()
    }

    pub(crate) fn ended_with(&self, text: &str) -> bool {
        self.last["parts"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|part| part["text"] == text)
    }

    /// How often the system text of each step of the agent holds `words`.
    pub(crate) fn told(&self, words: &str) -> Vec<usize> {
        self.requests
            .iter()
            .map(|request| request.system().matches(words).count())
            .collect()
    }
}

pub(crate) fn result(call: &Value) -> String {
    let state = &call["state"];
    match state["status"].as_str() {
        Some("completed") => state["output"].as_str().unwrap().to_owned(),
        _ => format!("Error: {}", state["error"].as_str().unwrap_or_default()),
    }
}

pub(crate) fn bash(command: &str) -> Step {
    Step::call("bash", json!({"command": command}))
}

/// Waits until something holds that another process brings about.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) const WARN: &str = "[loop guard: 5 identical calls to bash]. Consider using the task tool to report back to \
                               your parent with what you've learned and what you need.";
pub(crate) const ESCALATE: &str = "[loop guard: 8 identical calls to bash]. Consider using the task tool to report \
                                   back to your parent with what you've learned and what you need.";
pub(crate) const BLOCK: &str = "Loop protection: 12 identical calls to bash. Use task to escalate.";
