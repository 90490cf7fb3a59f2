use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{self, Response};
use crate::process::Process;
use crate::sandbox::Sandbox;

/// A running `opencode serve`, ended when its last clone is dropped.
///
/// Sessions are cheap (a scripted tool call takes about 80 ms), starting the server is not (some
/// seconds), so tests share one and take a session each.
#[derive(Clone, Debug)]
pub struct Opencode {
    process: Arc<Mutex<Process>>,
    port: u16,
    directory: String,
    events: Arc<(Mutex<Vec<Value>>, Condvar)>,
}

impl Opencode {
    /// Starts the server in the project of a sandbox and waits until it listens.
    ///
    /// # Errors
    ///
    /// When it cannot be started or does not listen within a minute.
    pub fn serve(program: &Path, sandbox: &Sandbox, env: &[(&str, &str)]) -> io::Result<Self> {
        let mut command = sandbox.command(program);
        command
            .args(["serve", "--port", "0", "--hostname", "127.0.0.1"])
            .envs(env.iter().copied());
        let mut process = Process::start(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null()),
        )?;
        let stdout = process
            .child()
            .stdout
            .take()
            .ok_or(io::ErrorKind::BrokenPipe)?;
        let (found, port) = mpsc::channel();
        // Reads to the end, so that the server can always write.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some((_, port)) = line.rsplit_once("http://127.0.0.1:") {
                    found.send(port.trim().parse::<u16>()).ok();
                }
            }
        });
        let port = port
            .recv_timeout(Duration::from_secs(60))
            .map_err(io::Error::other)?
            .map_err(io::Error::other)?;
        let events = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let sink = Arc::clone(&events);
        thread::spawn(move || {
            http::follow(port, "/global/event", |event| {
                if let Some(payload) = event
                    .get("payload")
                    .filter(|payload| payload.get("type").is_some_and(|kind| kind != "sync"))
                {
                    sink.0
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(payload.clone());
                    sink.1.notify_all();
                }
            })
        });
        Ok(Self {
            process: Arc::new(Mutex::new(process)),
            port,
            directory: sandbox.project().display().to_string(),
            events,
        })
    }

    /// The same server, for the sessions of another project directory.
    #[must_use]
    pub fn at(&self, directory: &Path) -> Self {
        Self {
            directory: directory.display().to_string(),
            ..self.clone()
        }
    }

    /// The project directory that requests are for.
    #[must_use]
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// The server's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .id()
    }

    /// Kills the server (SIGKILL), and nothing that it started.
    pub fn kill(&self) {
        self.process
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .kill();
    }

    /// One request on behalf of the project directory.
    ///
    /// # Errors
    ///
    /// When the connection fails or nothing comes for two minutes.
    pub fn request(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Response> {
        let headers = [("x-opencode-directory", self.directory.as_str())];
        let patience = Duration::from_secs(120);
        http::request(self.port, method, path, &headers, body, patience)
    }

    /// A new session with a title.
    ///
    /// # Errors
    ///
    /// When there is no answer, or one without an id.
    pub fn session(&self) -> io::Result<String> {
        self.session_with(&json!({"title": "t"}))
    }

    /// A new session from a body of one's own, such as one without a title.
    ///
    /// # Errors
    ///
    /// When there is no answer, or one without an id.
    pub fn session_with(&self, body: &Value) -> io::Result<String> {
        let answer = self.request("POST", "/session", Some(body))?;
        answer
            .body
            .get("id")
            .and_then(Value::as_str)
            .map(str::to_owned)
            .ok_or_else(|| io::Error::other(answer.body.to_string()))
    }

    /// Sends a prompt and waits until the run is over; gives the last message.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub fn prompt(&self, session: &str, text: &str) -> io::Result<Value> {
        self.prompt_with(session, &json!({"parts": [{"type": "text", "text": text}]}))
    }

    /// Sends a prompt with a body of one's own and waits until the run is over.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub fn prompt_with(&self, session: &str, body: &Value) -> io::Result<Value> {
        Ok(self
            .request("POST", &format!("/session/{session}/message"), Some(body))?
            .body)
    }

    /// Sends a prompt and does not wait.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub fn send(&self, session: &str, text: &str) -> io::Result<Response> {
        let body = json!({"parts": [{"type": "text", "text": text}]});
        self.request(
            "POST",
            &format!("/session/{session}/prompt_async"),
            Some(&body),
        )
    }

    /// The tool parts of a session in order, each `{tool, callID, state: {status, ...}}`.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub fn calls(&self, session: &str) -> io::Result<Vec<Value>> {
        let messages = self
            .request(
                "GET",
                &format!("/session/{session}/message?limit=1000"),
                None,
            )?
            .body;
        let parts = messages
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|message| message.get("parts")?.as_array())
            .flatten();
        Ok(parts
            .filter(|part| part.get("type").is_some_and(|kind| kind == "tool"))
            .cloned()
            .collect())
    }

    /// All events so far, of all directories.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        self.events
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits for an event, past or future; `None` if none came in time.
    #[must_use]
    pub fn wait_for(&self, patience: Duration, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let events = self.events.0.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = |events: &mut Vec<Value>| !events.iter().any(&wanted);
        let (events, _) = self
            .events
            .1
            .wait_timeout_while(events, patience, missing)
            .unwrap_or_else(PoisonError::into_inner);
        events.iter().find(|event| wanted(event)).cloned()
    }
}
