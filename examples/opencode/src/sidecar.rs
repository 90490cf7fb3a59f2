//! The mode `guard`: newline-delimited JSON-RPC 2.0 on standard input and output, one line at a time, in order.
//!
//! | method | parameters besides `directory` and `session` | answer, if one is asked for |
//! |---|---|---|
//! | `hello` | `protocol`, `version` (neither of the above) | `protocol`, `version`; a plugin that speaks another one says so and goes without |
//! | `open`, `close` | `worktree`, `defaults`, `options` (no session) | `verdictTimeoutMs` |
//! | `user` | `agent` | |
//! | `compacting` | | |
//! | `request` | `system`, the beginning of the system text | `text` for the model; `due`, whether the next request may need one |
//! | `pending` | `call`, `message` | |
//! | `before` | `call`, `tool`, `args` or `cut`; `message` if there was no `pending` | `verdict`, `due`, `log`; `text` if the call is refused, `halt` |
//! | `after` | `call`, `output`, `metadata` | |
//! | `failed` | `call`, `message`, `error` | |
//! | `idle`, `deleted` | | |
//! | `sweep` | `ids` of all sessions that are known, or `null` (no session) | |

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use bizar_config::LogLevel;
use bizar_guard::{
    Args, Call, Decision, Delivery, End, Ended, Environment, Guard, Json, Resolved, Round, Setup,
    Sources, Status, Verdict, resolve_with_file,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::session::Session;

/// Changed when an older plugin file could not talk to this program.
pub(crate) const PROTOCOL: u32 = 2;

/// The longest line that is read.
const MOST: u64 = 1 << 20;

/// Everything the sidecar knows besides its input.
pub(crate) struct Sidecar {
    home: Option<PathBuf>,
    env: Environment,
    guards: HashMap<String, Directory>,
}

struct Directory {
    guard: Guard,
    /// Sessions that were not idle since they were first heard of.
    sessions: HashMap<String, Session>,
    /// Lines for the user that weigh less are not handed out.
    log_level: LogLevel,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    id: Option<Value>,
    #[serde(borrow)]
    method: &'a str,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// The parameters of every method; each uses its own few.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Params<'a> {
    directory: String,
    worktree: String,
    #[serde(borrow)]
    defaults: Option<&'a RawValue>,
    #[serde(borrow)]
    options: Option<&'a RawValue>,
    session: String,
    agent: Option<String>,
    call: String,
    /// The message that asks for the call, where it is known.
    message: Option<String>,
    /// How the system text of a request begins.
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    tool: String,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    /// The arguments were too long to travel.
    cut: bool,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    metadata: Metadata,
    ids: Option<HashSet<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    #[serde(deserialize_with = "present")]
    exit: Option<Option<i64>>,
}

/// Tells an absent member from `null`. A tool of somebody else's may call anything an exit: what is no number is absent.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<i64>>, D::Error> {
    let exit = Value::deserialize(from)?;
    Ok(if exit.is_null() {
        Some(None)
    } else {
        exit.as_i64().map(Some)
    })
}

impl Sidecar {
    pub(crate) fn new(home: Option<PathBuf>, env: Environment) -> Self {
        Self {
            home,
            env,
            guards: HashMap::new(),
        }
    }

    /// Serves until the input ends.
    ///
    /// # Errors
    ///
    /// When the input cannot be read or the output not be written: the host is gone.
    pub(crate) fn serve(
        &mut self,
        mut input: impl BufRead,
        mut output: impl Write,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        while read_line(&mut input, &mut line, MOST)? {
            if let Some(answer) = self.answer(&line) {
                output.write_all(format!("{answer}\n").as_bytes())?;
                output.flush()?;
            }
        }
        Ok(())
    }

    /// The answer to one line; notifications have none.
    fn answer(&mut self, line: &[u8]) -> Option<Value> {
        let Ok(Line { id, method, params }) = serde_json::from_slice(line) else {
            return Some(error(Value::Null, -32_700, "not a message of one line"));
        };
        let params = params.map_or(Ok(Params::default()), |params| {
            serde_json::from_str(params.get())
        });
        let Ok(params) = params else {
            return id.map(|id| error(id, -32_602, "parameters of a wrong type"));
        };
        let result = self.call(method, &params);
        id.map(|id| match result {
            Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            None => error(id, -32_601, "no such method, or its directory is not open"),
        })
    }

    fn call(&mut self, method: &str, params: &Params<'_>) -> Option<Value> {
        match method {
            "hello" => {
                return Some(json!({"protocol": PROTOCOL, "version": env!("CARGO_PKG_VERSION")}));
            }
            "open" => return Some(self.open(params)),
            "close" => {
                self.guards.remove(&params.directory);
                return Some(Value::Null);
            }
            _ => {}
        }
        self.guards.get_mut(&params.directory)?.call(method, params)
    }

    fn open(&mut self, params: &Params<'_>) -> Value {
        let home = self.home.as_deref();
        let resolved = options_of(home, &self.env, params.defaults, params.options);
        let patience = resolved.options.verdict_timeout_ms;
        let setup = Setup::new(HOST, resolved)
            .directory(&params.directory)
            .worktree(&params.worktree);
        let opened = Directory {
            guard: Guard::new(setup),
            sessions: HashMap::new(),
            log_level: self.env.log_level,
        };
        self.guards.insert(params.directory.clone(), opened);
        json!({"verdictTimeoutMs": patience})
    }
}

impl Directory {
    fn call(&mut self, method: &str, params: &Params<'_>) -> Option<Value> {
        let id = params.session.as_str();
        match method {
            "before" => return Some(self.before(params)),
            "request" => return Some(self.request(params)),
            "pending" => {
                if let Some(message) = &params.message {
                    self.session(id).call_appeared(&params.call, message);
                }
            }
            "after" => {
                self.session(id).call_ended(&params.call, None);
                self.end(params, params.output, succeeded(params));
            }
            "failed" => {
                let message = params.message.as_deref();
                if self.session(id).call_ended(&params.call, message) {
                    self.end(params, params.error, failed(params));
                }
            }
            "user" => self.guard.user_message(id, params.agent.as_deref()),
            "compacting" => self.session(id).compaction_begins(),
            "idle" => {
                self.sessions.remove(id);
                self.guard.idle(id);
            }
            "deleted" => {
                self.sessions.remove(id);
                self.guard.deleted(id);
            }
            "sweep" => {
                self.guard.sweep(params.ids.as_ref());
            }
            _ => return None,
        }
        Some(Value::Null)
    }

    fn session(&mut self, id: &str) -> &mut Session {
        self.sessions.entry(id.to_owned()).or_default()
    }

    /// A request to the model is about to be made. `due` says whether the next one is to be told of with an answer.
    fn request(&mut self, params: &Params<'_>) -> Value {
        let system = params.system.map_or("", RawValue::get);
        let is_step = self.session(&params.session).request(system);
        let text = self.guard.request(&params.session, Delivery::Forgets);
        json!({"due": text.is_some(), "text": text.filter(|_| is_step)})
    }

    fn before(&mut self, params: &Params<'_>) -> Value {
        let args = match params.args {
            _ if params.cut => Args::Missing,
            Some(json) => Args::Text(json.get()),
            None => Args::Text("null"),
        };
        let named = params.message.clone();
        let message = named.unwrap_or_else(|| self.session(&params.session).message(&params.call));
        let call = Call::new(&params.session, &params.tool, args)
            .id(&params.call)
            .round(Round::Message(&message));
        let decision = self.guard.before(&call);
        let is_due = self
            .guard
            .request(&params.session, Delivery::Forgets)
            .is_some();
        let mut answer = json!({"verdict": decision.verdict.as_str(), "due": is_due});
        let log = self.log(params, &decision);
        if let Some(members) = answer.as_object_mut() {
            if decision.refused {
                members.insert("text".to_owned(), json!(decision.text));
            }
            if decision.halted {
                members.insert("halt".to_owned(), json!(true));
            }
            if !log.is_empty() {
                members.insert("log".to_owned(), json!(log));
            }
        }
        answer
    }

    /// Lines for the user, each with its level.
    fn log(&mut self, params: &Params<'_>, decision: &Decision) -> Vec<(&'static str, String)> {
        let notes = self.guard.notes().into_iter();
        let mut lines: Vec<_> = notes.map(|note| (LogLevel::Warn, note)).collect();
        let level = if decision.halted {
            LogLevel::Error
        } else {
            LogLevel::Warn
        };
        lines.extend(self.news(params, decision).map(|line| (level, line)));
        lines.retain(|(level, _)| *level >= self.log_level);
        let lines = lines.into_iter();
        lines.map(|(level, line)| (level.as_str(), line)).collect()
    }

    /// A line when the verdict rises, and for each refusal.
    fn news(&mut self, params: &Params<'_>, decision: &Decision) -> Option<String> {
        let verdict = decision.verdict;
        let has_risen = self.session(&params.session).judged(verdict);
        if verdict < Verdict::Block && !has_risen {
            return None;
        }
        let tool: String = params
            .tool
            .chars()
            .filter(|c| !c.is_control())
            .take(64)
            .collect();
        let rule = decision.rule.map_or("", |rule| rule.as_str());
        let acted = match verdict {
            Verdict::Block | Verdict::Halt if !decision.refused => ", observed only",
            Verdict::Halt => ", the run is ended",
            Verdict::Block => ", the call is refused",
            _ => "",
        };
        Some(format!(
            "loop guard: {}: {tool} in {}, rule {rule}, count {}{acted}",
            verdict.as_str(),
            params.session,
            decision.count
        ))
    }

    fn end(&self, params: &Params<'_>, result: Option<&RawValue>, status: Status) {
        // A text is digested as text, without its quotes; the ends of a long one as they are.
        let text = result.and_then(|json| serde_json::from_str::<String>(json.get()).ok());
        let result = text.as_deref().or_else(|| result.map(RawValue::get));
        let ended = Ended::new(status, result.unwrap_or_default());
        let end = End::new(&params.session, &params.tool, Args::Missing, ended).id(&params.call);
        self.guard.after(&end);
    }
}

impl Drop for Directory {
    /// What is still open when a directory closes was aborted.
    fn drop(&mut self) {
        for (id, session) in &self.sessions {
            if session.has_calls() {
                self.guard.idle(id);
            }
        }
    }
}

/// A tool ran. Shell commands say how they ended.
fn succeeded(params: &Params<'_>) -> Status {
    match params.metadata.exit {
        None | Some(Some(0)) => Status::Ok,
        Some(None) if says(params.output, "aborted the command") => Status::Aborted,
        Some(_) => Status::Failed,
    }
}

/// A tool did not run to its end.
fn failed(params: &Params<'_>) -> Status {
    if says(params.error, "\"Tool execution aborted") {
        Status::Aborted
    } else if says(params.error, "\"The user rejected permission")
        || says(
            params.error,
            "\"The user has specified a rule which prevents you",
        )
    {
        Status::Refused
    } else {
        Status::Failed
    }
}

/// Whether a value's JSON holds these words; those of opencode itself begin with a quotation mark.
fn says(json: Option<&RawValue>, words: &str) -> bool {
    json.is_some_and(|json| json.get().contains(words))
}

/// Reads a line without its end. One that is too long is read to its end and left empty.
pub(crate) fn read_line(
    input: &mut impl BufRead,
    line: &mut Vec<u8>,
    most: u64,
) -> io::Result<bool> {
    line.clear();
    if io::Read::take(&mut *input, most).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() != Some(&b'\n') {
        line.clear();
        input.skip_until(b'\n')?;
    }
    Ok(true)
}

pub(crate) fn error(id: Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// The options of a directory: of the installation, of the user, and of the host.
pub(crate) fn options_of(
    home: Option<&Path>,
    env: &Environment,
    defaults: Option<&RawValue>,
    options: Option<&RawValue>,
) -> Resolved {
    resolve_with_file(Sources {
        home,
        host_defaults: defaults.map(|json| Json::Text(json.get())),
        file: None,
        host: Some(HOST),
        host_options: options.map(|json| Json::Text(json.get())),
        env: env.clone(),
    })
}

pub(crate) const HOST: &str = "opencode";
