//! The server of opencode: `opencode serve`, on 127.0.0.1 only.
//!
//! [`Opencode`] starts one child, proves that the right one answers, follows its one
//! event stream, and ends it with everything it has started.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::{
    Events, Failure, InstanceId, Permissions, Server, Snapshot, Spawn, StartError, Transcript,
    event::Request,
};

mod api;
mod child;
mod client;
mod notes;
mod secret;
mod stream;
pub mod watchdog;

use child::Child;
use client::{Client, Loopback};
use notes::{Noted, Notes};
use secret::Secret;

/// How to run `opencode serve`.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program: the opencode that is running, not whatever comes first on a path.
    pub program: PathBuf,
    /// The project. It is resolved once, and the same spelling is used in every call.
    pub directory: PathBuf,
    /// The version the program must have. Another one would convert the user's database.
    pub version: Option<String>,
    /// Who answers permission requests; give the machine the same.
    pub permissions: Permissions,
    /// Make sessions children of the session that asked for them. opencode refuses the
    /// `task` tool to such sessions.
    pub is_child: bool,
    /// A program and its first arguments that call [`watchdog::run`] with the rest.
    pub watchdog: Option<(PathBuf, Vec<String>)>,
    /// A directory of its own for notes on running servers, for owners without a watchdog.
    ///
    /// Each start then ends servers that dead owners have left: those whose process, start
    /// time, command line and port are as noted, with their process groups, and nothing else.
    pub notes: Option<PathBuf>,
    /// Variables to set for the child, and with `None` to remove, before our own.
    pub environment: Vec<(String, Option<String>)>,
    /// How long to wait for what.
    pub patience: Patience,
}

impl Options {
    /// The defaults for a program and a project.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            directory: directory.into(),
            version: None,
            permissions: Permissions::Reject,
            is_child: false,
            watchdog: None,
            notes: None,
            environment: Vec::new(),
            patience: Patience::default(),
        }
    }
}

/// How long to wait for what. The defaults are the rules; tests shorten them.
#[derive(Clone, Debug)]
pub struct Patience {
    /// For the line that says that the server listens.
    pub ready: Duration,
    /// For a whole answer.
    pub answer: Duration,
    /// For the first byte of an answer.
    pub first_byte: Duration,
    /// For the first event of a stream.
    pub connected: Duration,
    /// For the next byte of a stream: a heartbeat comes every 10 s.
    pub silence: Duration,
    /// Before the first attempt to connect again; each further one waits twice as long.
    pub reconnect: Duration,
    /// Before an attempt at most.
    pub reconnect_most: Duration,
    /// For the server to end by itself when it is told to.
    pub stop: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            ready: Duration::from_secs(30),
            answer: Duration::from_secs(30),
            first_byte: Duration::from_secs(10),
            connected: Duration::from_secs(5),
            silence: Duration::from_secs(30),
            reconnect: Duration::from_millis(250),
            reconnect_most: Duration::from_secs(5),
            stop: Duration::from_secs(3),
        }
    }
}

/// A [`Server`] that runs `opencode serve`.
#[derive(Debug)]
pub struct Opencode {
    options: Options,
    /// `None` until the first start, and after the end.
    run: Mutex<Option<Arc<Run>>>,
}

/// One child, the way to it, and what follows its stream.
#[derive(Debug)]
struct Run {
    child: Child,
    client: Client,
    stream: Mutex<Option<tokio::task::JoinHandle<()>>>,
    /// Dropped after the child.
    _noted: Option<Noted>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(stream) = self
            .stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            stream.abort();
        }
    }
}

impl Opencode {
    /// Prepares a server. Nothing is started.
    #[must_use]
    pub fn new(mut options: Options) -> Self {
        if let Ok(directory) = options.directory.canonicalize() {
            options.directory = directory;
        }
        Self {
            options,
            run: Mutex::new(None),
        }
    }

    /// The process of the server, while there is one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.run().map(|run| run.child.pid())
    }

    /// The port of the server, while there is one.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.run().map(|run| run.client.port())
    }

    /// The last lines the server has printed, without its secret.
    #[must_use]
    pub fn output(&self) -> String {
        self.run().map(|run| run.child.output()).unwrap_or_default()
    }

    /// Processes that agents have left running and that belong to nobody any more.
    ///
    /// They can be told with a watchdog on Linux only, and are ended with the server.
    #[must_use]
    pub fn orphans(&self) -> Vec<u32> {
        self.run()
            .map(|run| run.child.orphans())
            .unwrap_or_default()
    }

    /// Lets go of the server without asking it for anything, as if this process had been killed.
    ///
    /// With a watchdog, everything is ended by it; without, the server is killed.
    pub fn abandon(&self) {
        drop(
            self.run
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }

    fn run(&self) -> Option<Arc<Run>> {
        self.run
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn client(&self) -> Result<Arc<Run>, Failure> {
        self.run()
            .ok_or_else(|| Failure::Unclear("the server is not running".into()))
    }

    async fn begin(&self) -> Result<Run, StartError> {
        if let Some(expected) = &self.options.version {
            child::check_version(&self.options, expected).await?;
        }
        if let Some(notes) = self.notes() {
            let patience = self.options.patience.stop;
            // It is a help: what fails there does not keep anybody from starting.
            let _ = tokio::task::spawn_blocking(move || notes.reap(patience)).await;
        }
        let mut last = StartError("no attempt".into());
        for _ in 0..PORTS {
            let secret = Arc::new(
                Secret::new().map_err(|error| StartError(format!("no random bytes: {error}")))?,
            );
            let port =
                Loopback::free().map_err(|error| StartError(format!("no free port: {error}")))?;
            match Child::start(&self.options, port, &secret).await {
                Ok(child) => {
                    let noted = self.note(child.pid(), port).await;
                    let client = Client::new(port, secret, &self.options);
                    return self.prove(child, client, noted).await;
                }
                // Somebody may have taken the port in between.
                Err(child::Early::Ended(error)) => last = error,
                Err(child::Early::Other(error)) => return Err(error),
            }
        }
        Err(last)
    }

    /// Proves that what answers on the port is our child and lets us in.
    async fn prove(
        &self,
        child: Child,
        client: Client,
        noted: Option<Noted>,
    ) -> Result<Run, StartError> {
        let health = client.health().await;
        let health = health
            .map_err(|failure| StartError(format!("the server is not healthy: {failure}")))?;
        if let Some(expected) = &self.options.version
            && health != *expected
        {
            return Err(StartError(format!(
                "the server has version {health}, not {expected}"
            )));
        }
        if let Some(end) = child.ended() {
            return Err(StartError(format!("serve child exited ({end})")));
        }
        Ok(Run {
            child,
            client,
            stream: Mutex::new(None),
            _noted: noted,
        })
    }

    async fn note(&self, pid: u32, port: Loopback) -> Option<Noted> {
        let notes = self.notes()?;
        tokio::task::spawn_blocking(move || notes.add(pid, port))
            .await
            .ok()?
    }

    fn notes(&self) -> Option<Notes> {
        let directory = self.options.notes.clone()?;
        self.options
            .watchdog
            .is_none()
            .then(|| Notes::new(directory))
    }
}

impl Server for Opencode {
    async fn start(&self, events: Events) -> Result<(), StartError> {
        let run = Arc::new(self.begin().await?);
        let first = stream::open(&run.client, &self.options.patience, "").await;
        let first = first.map_err(|failure| StartError(format!("no event stream: {failure}")))?;
        let ended = run.child.wait();
        let following = stream::follow(
            run.client.clone(),
            self.options.patience.clone(),
            first,
            events.clone(),
        );
        let task = tokio::spawn(async move {
            tokio::select! {
                () = following => {}
                end = ended => events.lost(&format!("serve child exited ({end})")),
            }
        });
        *run.stream.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
        Ok(())
    }

    async fn create(&self, id: InstanceId, spawn: &Spawn) -> Result<String, Failure> {
        self.client()?.client.create(id, spawn, &self.options).await
    }

    async fn prompt(&self, session: &str, spawn: &Spawn) -> Result<(), Failure> {
        self.client()?.client.prompt(session, spawn).await
    }

    async fn abort(&self, session: &str) -> Result<(), Failure> {
        self.client()?.client.abort(session).await
    }

    async fn observe(&self, session: &str) -> Result<Snapshot, Failure> {
        self.client()?.client.observe(session).await
    }

    async fn transcript(&self, session: &str) -> Result<Transcript, Failure> {
        self.client()?.client.transcript(session).await
    }

    async fn respond(&self, request: &Request, grant: bool) -> Result<(), Failure> {
        self.client()?.client.respond(request, grant).await
    }

    async fn stop(&self) {
        let run = self
            .run
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(run) = run else { return };
        if let Some(stream) = run
            .stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            stream.abort();
        }
        run.client.dispose().await;
        run.child.stop(self.options.patience.stop).await;
    }
}

/// How often another port is tried.
const PORTS: usize = 3;
