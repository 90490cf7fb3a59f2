use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::Message;
use crate::script::{Hang, Script, Step};
use crate::wire::{Api, Conversation, Turn};

/// A model server on loopback that plays the [`Script`] it finds in a prompt.
///
/// It speaks every [`Api`] at once; the path of a request decides. A request that offers no tools
/// (a title, a summary) is answered with a sentence that carries the script on, so a conversation
/// that was compacted goes on where it was. Dropping the server ends it and all hanging answers.
#[derive(Debug)]
pub struct ModelServer {
    port: u16,
    shared: Arc<Shared>,
}

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which interface it used.
    pub api: Api,
    /// The body.
    pub body: Value,
    /// The conversation in it.
    pub turns: Vec<Turn>,
    /// Names of the tools on offer; none for titles and summaries.
    pub tools: Vec<String>,
    /// The `x-session-id` header, where the client sends one.
    pub session: Option<String>,
    /// When it came.
    pub at: Instant,
}

impl ModelServer {
    /// Starts a server on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// When no port can be bound.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared::default());
        let server = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if server.lock().stopped {
                    return;
                }
                let server = Arc::clone(&server);
                // A client that goes away ends its connection; nobody has to know.
                thread::spawn(move || server.serve(stream).ok());
            }
        });
        Ok(Self { port, shared })
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `http://127.0.0.1:PORT`, without `/v1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Every request so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// The requests of one session, as the client names it in `x-session-id`.
    #[must_use]
    pub fn requests_of(&self, session: &str) -> Vec<Request> {
        self.shared
            .lock()
            .requests
            .iter()
            .filter(|request| request.session.as_deref() == Some(session))
            .cloned()
            .collect()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        // Wakes the listener, which then sees that it is over.
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok();
    }
}

impl Request {
    /// All system and developer texts, joined by newlines.
    #[must_use]
    pub fn system(&self) -> String {
        self.texts(|turn| {
            if let Turn::System(text) = turn {
                Some(text)
            } else {
                None
            }
        })
        .join("\n")
    }

    /// The results of tools, in order.
    #[must_use]
    pub fn results(&self) -> Vec<String> {
        self.texts(|turn| {
            if let Turn::Tool(text) = turn {
                Some(text)
            } else {
                None
            }
        })
    }

    /// Whether this is a step of an agent, and not a title or a summary.
    #[must_use]
    pub fn is_step(&self) -> bool {
        !self.tools.is_empty()
    }

    fn texts<'a>(&'a self, pick: impl Fn(&'a Turn) -> Option<&'a String>) -> Vec<String> {
        self.turns.iter().filter_map(pick).cloned().collect()
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    requests: Vec<Request>,
    /// Requests that failed, by script and step.
    failed: HashMap<(String, usize), u32>,
    /// Steps that are answered, by session and script.
    played: HashMap<(Option<String>, String), usize>,
    calls: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(message) = Message::read(&mut reader)? {
            self.answer(&message, &mut stream)?;
        }
        Ok(())
    }

    fn answer(&self, message: &Message, stream: &mut TcpStream) -> io::Result<()> {
        let path = message.start.split(' ').nth(1).unwrap_or_default();
        let Some(api) = Api::of(path) else {
            return send(stream, 200, &other(path));
        };
        let Ok(body) = serde_json::from_slice(&message.body) else {
            return send(
                stream,
                400,
                &json!({"error": {"message": "not JSON", "type": "invalid_request_error"}}),
            );
        };
        let conversation = api.read(path, &body);
        let (script, mut played) = position(&conversation.turns);
        let session = message.header("x-session-id").map(str::to_owned);
        let key = (session, script.marker(0));
        if conversation.tools.is_empty() {
            // A summary is asked for in a conversation of its own, where the steps cannot be counted.
            played = self.lock().played.get(&key).copied().unwrap_or(played);
        } else {
            self.lock().played.insert(key, played + 1);
        }
        let step = if conversation.tools.is_empty() {
            Step::say(&format!("A summary. {}", script.marker(played)))
        } else {
            script
                .step(played)
                .cloned()
                .unwrap_or_else(|| Step::say("done"))
        };
        let stream_wanted = conversation.stream;
        let (failure, ids) = self.record(api, body, conversation, message, &script, played, &step);
        self.wait(Duration::from_millis(step.delay_ms));
        if let Some(status) = failure {
            // Clients try again by this word, too.
            let kind = if (400..429).contains(&status) {
                "invalid_request_error"
            } else {
                "server_error"
            };
            return send(
                stream,
                status,
                &json!({"error": {"message": "scripted failure", "type": kind, "code": status}}),
            );
        }
        if step.hang == Some(Hang::Headers) {
            return self.hang(stream);
        }
        if !stream_wanted {
            return send(stream, 200, &api.whole(&step, &ids));
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")?;
        for event in api.events(&step, &ids) {
            stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
            if step.hang == Some(Hang::Stream) {
                return self.hang(stream);
            }
        }
        stream.write_all(b"0\r\n\r\n")
    }

    /// Notes the request; gives the status it fails with, if any, and ids for the calls.
    #[expect(
        clippy::too_many_arguments,
        reason = "one place that locks, called once"
    )]
    fn record(
        &self,
        api: Api,
        body: Value,
        conversation: Conversation,
        message: &Message,
        script: &Script,
        played: usize,
        step: &Step,
    ) -> (Option<u16>, Vec<String>) {
        let mut state = self.lock();
        state.requests.push(Request {
            api,
            body,
            turns: conversation.turns,
            tools: conversation.tools,
            session: message.header("x-session-id").map(str::to_owned),
            at: Instant::now(),
        });
        let failure = step.failure.and_then(|failure| {
            let failed = state.failed.entry((script.marker(0), played)).or_default();
            *failed += 1;
            (*failed <= failure.times).then_some(failure.status)
        });
        let ids = step
            .calls
            .iter()
            .map(|call| {
                state.calls += 1;
                call.id
                    .clone()
                    .unwrap_or_else(|| format!("call_{}", state.calls))
            })
            .collect();
        (failure, ids)
    }

    fn wait(&self, time: Duration) {
        if !time.is_zero() {
            let state = self.lock();
            drop(
                self.changed
                    .wait_timeout_while(state, time, |state| !state.stopped),
            );
        }
    }

    /// Holds the connection until the server ends. The client may leave earlier.
    fn hang(&self, stream: &TcpStream) -> io::Result<()> {
        drop(self.changed.wait_while(self.lock(), |state| !state.stopped));
        stream.shutdown(Shutdown::Both)
    }
}

/// The script of a conversation and how many of its steps are behind.
fn position(turns: &[Turn]) -> (Script, usize) {
    for (index, turn) in turns.iter().enumerate().rev() {
        let (Turn::User(text) | Turn::Assistant(text)) = turn else {
            continue;
        };
        let Some((script, from)) = Script::find(text) else {
            continue;
        };
        let mut played = from;
        let mut inside = matches!(turn, Turn::Assistant(_));
        for turn in turns.iter().skip(index + 1) {
            // Some interfaces split one answer into several items.
            let assistant = matches!(turn, Turn::Assistant(_));
            played += usize::from(assistant && !inside);
            inside = assistant;
        }
        return (script, played);
    }
    (Script::new(), 0)
}

/// Answers of the paths that are no conversation: a list of models, a count of tokens.
fn other(path: &str) -> Value {
    if path.contains(":countTokens") || path.ends_with("count_tokens") {
        return json!({"totalTokens": 10, "input_tokens": 10});
    }
    json!({"object": "list", "data": [{"id": "m", "object": "model"}], "models": []})
}

fn send(stream: &mut TcpStream, status: u16, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())
}
