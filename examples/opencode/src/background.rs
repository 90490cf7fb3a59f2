//! The mode `background`: the four tools of background agents, one driver a directory.
//!
//! Newline-delimited JSON-RPC 2.0 like the mode `guard`, but calls are answered when they are done, in any order.
//! A call of a tool is answered with `text` for the model, or with `refused`: what is wrong and what to do instead.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use bizar_background::opencode::Opencode;
use bizar_background::{Agents, opencode};
use bizar_guard::{Environment, Options};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};

use crate::sidecar::{PROTOCOL, error, options_of, read_line};
use crate::tools::{self, Call, Tools};

/// The longest line that is read: a prompt of 1 MiB, however it is escaped.
const MOST: u64 = 8 << 20;

/// The argument that makes this program the watchdog of a server.
pub(crate) const WATCH: &str = "__watch";

/// Serves until the input ends, and then ends everything that runs.
///
/// # Errors
///
/// When there are no threads or timers to be had.
pub(crate) fn serve(
    home: Option<PathBuf>,
    env: Environment,
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write + Send + 'static,
) -> io::Result<()> {
    let (answers, queue) = mpsc::channel::<Value>();
    let writer = thread::spawn(move || {
        for answer in queue {
            // The host may be gone; the input then ends too.
            let written = output.write_all(format!("{answer}\n").as_bytes());
            written.and_then(|()| output.flush()).ok();
        }
    });
    let (lines, incoming) = unbounded_channel();
    thread::spawn(move || {
        let mut line = Vec::new();
        while read_line(&mut input, &mut line, MOST).is_ok_and(|more| more) {
            if lines.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let background = Background {
        home,
        env,
        projects: HashMap::new(),
        calls: HashMap::new(),
        closing: JoinSet::new(),
        answers,
    };
    runtime.block_on(background.run(incoming));
    drop(runtime);
    writer.join().ok();
    Ok(())
}

struct Background {
    home: Option<PathBuf>,
    env: Environment,
    projects: HashMap<String, Arc<Tools>>,
    /// Calls that are not answered yet, by the text of their id.
    calls: HashMap<String, AbortHandle>,
    /// Projects that were closed and are being ended.
    closing: JoinSet<()>,
    answers: mpsc::Sender<Value>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    id: Option<Value>,
    method: String,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// The parameters of every method; each uses its own few.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Params<'a> {
    directory: String,
    #[serde(borrow)]
    defaults: Option<&'a RawValue>,
    #[serde(borrow)]
    options: Option<&'a RawValue>,
    /// The opencode that is running.
    program: PathBuf,
    /// Its version.
    version: Option<String>,
    /// How long its server may take until it listens, in milliseconds; 30 s if absent.
    #[serde(rename = "readyMs")]
    ready_ms: Option<u64>,
    /// How long an agent may take until it begins, in milliseconds; 15 s if absent.
    #[serde(rename = "admissionMs")]
    admission_ms: Option<u64>,
    /// Of the call to cancel.
    id: Value,
    agent: String,
    session: String,
    args: Value,
}

impl Background {
    async fn run(mut self, mut lines: UnboundedReceiver<Vec<u8>>) {
        while let Some(line) = lines.recv().await {
            if let Some(answer) = self.answer(&line) {
                // The writer lives as long as there is somebody to write for.
                self.answers.send(answer).ok();
            }
        }
        for (_, project) in self.projects.drain() {
            self.closing.spawn(async move { project.shut_down().await });
        }
        while self.closing.join_next().await.is_some() {}
    }

    /// The answer to one line, if there is one at once.
    fn answer(&mut self, line: &[u8]) -> Option<Value> {
        let Ok(Line { id, method, params }) = serde_json::from_slice(line) else {
            return Some(error(Value::Null, -32_700, "not a message of one line"));
        };
        let params = params.map_or("{}", RawValue::get);
        let params = serde_json::from_str::<Params<'_>>(params);
        let Ok(params) = params else {
            return id.map(|id| error(id, -32_602, "parameters of a wrong type"));
        };
        let result = match method.as_str() {
            "hello" => json!({"protocol": PROTOCOL, "version": env!("CARGO_PKG_VERSION")}),
            "open" => self.open(params),
            "close" => {
                if let Some(project) = self.projects.remove(&params.directory) {
                    self.closing.spawn(async move { project.shut_down().await });
                }
                Value::Null
            }
            "cancel" => {
                if let Some(call) = self.calls.remove(&params.id.to_string()) {
                    call.abort();
                }
                Value::Null
            }
            _ => return self.call(id?, &method, params),
        };
        id.map(|id| json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn open(&mut self, params: Params<'_>) -> Value {
        let resolved = options_of(
            self.home.as_deref(),
            &self.env,
            params.defaults,
            params.options,
        );
        let notes: Vec<String> = resolved.notes.iter().map(ToString::to_string).collect();
        // A child of ours starts no children.
        if !self.env.background_child {
            let tools = open(&resolved.options, &params);
            if let Some(old) = self.projects.insert(params.directory, Arc::new(tools)) {
                self.closing.spawn(async move { old.shut_down().await });
            }
        }
        json!({"notes": notes})
    }

    fn call(&mut self, id: Value, method: &str, params: Params<'_>) -> Option<Value> {
        let tool = tools::Tool::named(method);
        let (Some(tool), Some(project)) = (tool, self.projects.get(&params.directory)) else {
            let text = "no such method, or its directory is not open";
            return Some(error(id, -32_601, text));
        };
        let (project, answers, key) = (Arc::clone(project), self.answers.clone(), id.to_string());
        let made = Call {
            agent: params.agent,
            session: params.session,
            args: params.args,
        };
        let call = tokio::spawn(async move {
            let result = match project.call(tool, made).await {
                Ok(value) => json!({"text": format!("{value:#}")}),
                Err(refused) => json!({"refused": refused}),
            };
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
            answers.send(answer).ok();
        });
        self.calls.retain(|_, call| !call.is_finished());
        self.calls.insert(key, call.abort_handle());
        None
    }
}

fn open(options: &Options, params: &Params<'_>) -> Tools {
    let mut limits = tools::limits(options);
    if let Some(admission) = params.admission_ms {
        limits.timing.admission = Duration::from_millis(admission);
    }
    let mut server = opencode::Options::new(&params.program, &params.directory);
    server.version.clone_from(&params.version);
    server.permissions = limits.permissions;
    server.is_child = options.background_parent;
    if let Some(ready) = params.ready_ms {
        server.patience.ready = Duration::from_millis(ready);
    }
    server.watchdog = std::env::current_exe()
        .ok()
        .map(|program| (program, vec![WATCH.to_owned()]));
    let records = options
        .state_dir
        .as_ref()
        .and_then(|path| path.check().ok());
    let records = records.map(|folder| folder.join("bg"));
    let agents = Agents::new(Opencode::new(server), limits.clone(), records);
    if options.background_eager {
        let agents = agents.clone();
        // If it fails, the first spawn tries again and says why.
        tokio::spawn(async move { agents.start().await.ok() });
    }
    Tools::new(agents, limits, options.background_agents.clone())
}
