//! What the guards and the background agents of a busy afternoon leave on disk.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use bizar_background::{InstanceId, Record, Status};
use bizar_guard::{Call, End, Ended, Guard, Json, Resolved, Setup, Sources, resolve};
use serde_json::{Value, json};

/// Where everything lies below a home directory.
pub(crate) fn directory(home: &Path) -> PathBuf {
    home.join(".cache/bizarharness")
}

/// Options as they are under this home directory.
pub(crate) fn resolved(home: &Path, options: &str) -> Resolved {
    resolve(Sources {
        home: Some(home),
        host_options: Some(Json::Text(options)),
        ..Sources::default()
    })
}

/// Everything: seven sessions and four background agents, as at `now`.
pub(crate) fn make(home: &Path, now: i64) -> io::Result<()> {
    let minute = 60_000;
    // Two hours ago, and finished.
    let mut old = Agent::start(home, "opencode", "ses_2Jw8LmNcXe", "{}", now - 140 * minute);
    for file in 0..14 {
        let _ = old.call("read", json!({"path": format!("src/{file}.rs")}), "text");
    }
    old.guard.idle(&old.session);

    // Reads, edits, tests: much of the same, and news every time.
    let mut fine = Agent::start(home, "opencode", "ses_5Fb3kQvTzA", "{}", now - 31 * minute);
    fine.until(now - 2_000, 60);
    for edit in 0..30 {
        let _ = fine.call("edit", json!({"path": "src/lib.rs", "edit": edit}), "done");
        let _ = fine.call(
            "bash",
            json!({"command": "cargo test"}),
            &format!("{edit} of 30 passed"),
        );
    }

    let mut noticed = Agent::start(home, "kilo", "ses_9XcVbNmQwE", "{}", now - 3 * minute);
    noticed.until(now - 41_000, 3);
    noticed.repeat(3, "grep", &json!({"pattern": "TODO"}), "no match");

    let mut warned = Agent::start(
        home,
        "claude",
        "c0ffee12-77aa-4b1e-9d20-5d1f0e6ab3c4",
        "{}",
        now - 12 * minute,
    );
    warned.until(now - 3_000, 6);
    warned.repeat(6, "Read", &json!({"file_path": "/etc/hosts"}), "127.0.0.1");
    let _ = warned.begin("Read", &json!({"file_path": "/etc/hosts"}));

    let mut escalated = Agent::start(home, "opencode", "ses_7Hd9pZrYwK", "{}", now - 9 * minute);
    escalated.until(now - 7_000, 9);
    escalated.repeat(9, "bash", &json!({"command": "make"}), "error: no rule");

    let mut blocked = Agent::start(
        home,
        "codex",
        "019b2f6c-3d5a-7e01-8a44-b0c1d2e3f405",
        "{}",
        now - 7 * minute,
    );
    blocked.until(now - 4_000, 13);
    blocked.repeat(
        13,
        "shell",
        &json!({"command": ["pytest", "-x"]}),
        "1 failed",
    );

    let mut halted = Agent::start(home, "opencode", "ses_1Qa2Ws3EdR", "{}", now - 5 * minute);
    halted.until(now - 90_000, 16);
    halted.repeat(
        16,
        "webfetch",
        &json!({"url": "http://localhost:3000"}),
        "refused",
    );

    let mut observed = Agent::start(
        home,
        "opencode",
        "ses_0OpLiKuJyH",
        r#"{"loopObserveOnly":true}"#,
        now - 4 * minute,
    );
    observed.until(now - 12_000, 12);
    observed.repeat(12, "glob", &json!({"pattern": "**/*.rs"}), "src/lib.rs");

    for agent in [
        &old, &fine, &noticed, &warned, &escalated, &blocked, &halted, &observed,
    ] {
        agent.guard.flush();
    }
    background(&directory(home).join("bg"), now)
}

/// An agent under a guard of its own.
pub(crate) struct Agent {
    pub(crate) guard: Guard,
    pub(crate) session: String,
    pub(crate) time: Arc<AtomicI64>,
    next: u64,
}

impl Agent {
    pub(crate) fn start(home: &Path, host: &str, session: &str, options: &str, at: i64) -> Self {
        let time = Arc::new(AtomicI64::new(at));
        let clock = Arc::clone(&time);
        let setup = Setup::new(host, resolved(home, options))
            .directory("/home/me/project")
            .clock(move || clock.load(Ordering::Relaxed));
        let guard = Guard::new(setup);
        guard.user_message(session, Some("build"));
        Self {
            guard,
            session: session.to_owned(),
            time,
            next: 0,
        }
    }

    /// So many calls are made from now on, three seconds each, and the last of them ends then.
    pub(crate) fn until(&self, end: i64, calls: i64) {
        self.time.store(end - calls * 3_000, Ordering::Relaxed);
    }

    /// A call that begins, and the guard's word on it.
    pub(crate) fn begin(&mut self, tool: &str, args: &Value) -> bizar_guard::Decision {
        self.time.fetch_add(2_000, Ordering::Relaxed);
        self.next += 1;
        let id = self.next.to_string();
        self.guard
            .before(&Call::new(&self.session, tool, args).id(&id))
    }

    /// A call that is made and answered, unless it is refused.
    pub(crate) fn call(&mut self, tool: &str, args: Value, answer: &str) -> bizar_guard::Decision {
        let decision = self.begin(tool, &args);
        if !decision.refused {
            let id = self.next.to_string();
            self.time.fetch_add(1_000, Ordering::Relaxed);
            let ended = Ended::ok(answer);
            self.guard
                .after(&End::new(&self.session, tool, &args, ended).id(&id));
        }
        decision
    }

    /// The same call again and again, one in four seconds.
    pub(crate) fn repeat(&mut self, times: usize, tool: &str, args: &Value, answer: &str) {
        for _ in 0..times {
            let _ = self.call(tool, args.clone(), answer);
        }
    }
}

fn background(directory: &Path, now: i64) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let ago = |seconds: i64| u64::try_from(now - seconds * 1000).unwrap_or(0);
    let record = |number: u8, agent: &str, started: i64, status| Record {
        instance_id: InstanceId::new(ago(started), [number; 10]),
        session_id: Some(format!("ses_bg{number}")),
        agent: agent.to_owned(),
        parent_agent: Some("odin".to_owned()),
        status,
        started_at: ago(started),
        deadline_ms: 300_000,
        ..Record::default()
    };
    let asks = Record {
        tool_call_count: 17,
        cost_usd: 0.21,
        tokens: 48_200,
        ..record(0x11, "explore", 95, Status::Running)
    };
    let works = Record {
        tool_call_count: 4,
        cost_usd: 0.05,
        tokens: 9_100,
        ..record(0x22, "general", 20, Status::Running)
    };
    let done = Record {
        tool_call_count: 31,
        cost_usd: 0.64,
        tokens: 120_000,
        ended_at: Some(ago(300)),
        ..record(0x33, "general", 500, Status::Done)
    };
    let looped = Record {
        tool_call_count: 12,
        cost_usd: 0.11,
        tokens: 15_300,
        ended_at: Some(ago(600)),
        error: Some(
            "Loop protection: 12 identical calls to bash. Use task to escalate.".to_owned(),
        ),
        loop_guard_tool: Some("bash".to_owned()),
        ..record(0x44, "tester", 700, Status::Failed)
    };
    write(directory, &asks, Some("permission"))?;
    for record in [&works, &done, &looped] {
        write(directory, record, None)?;
    }
    Ok(())
}

fn write(directory: &Path, record: &Record, waiting_on: Option<&str>) -> io::Result<()> {
    let mut document = serde_json::to_value(record).map_err(io::Error::other)?;
    if let (Some(on), Value::Object(members)) = (waiting_on, &mut document) {
        members.insert("waitingOn".to_owned(), on.into());
    }
    let path = directory.join(format!("{}.json", record.instance_id));
    fs::write(path, document.to_string())
}
