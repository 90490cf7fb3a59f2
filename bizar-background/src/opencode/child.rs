//! The child process: started, drained, watched and ended.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read},
    process::{ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use tokio::{sync::watch, time::timeout};

use super::{Options, Secret, client::Loopback, secret::USER};
use crate::{
    StartError,
    process::{self, Descendants, Signal},
};

/// A running child. When it is dropped, the child is ended without further ado.
#[derive(Debug)]
pub(super) struct Child {
    pid: u32,
    /// The watchdog ends everything when this is closed.
    leash: Mutex<Option<ChildStdin>>,
    is_watched: bool,
    output: Arc<Mutex<Ring>>,
    ended: watch::Receiver<Option<String>>,
}

/// A child that was never ready.
pub(super) enum Early {
    /// It ended by itself.
    Ended(StartError),
    /// Anything else.
    Other(StartError),
}

impl Child {
    /// Starts the child, and comes back when it says that it listens on the port it was given.
    pub(super) async fn start(
        options: &Options,
        port: Loopback,
        secret: &Arc<Secret>,
    ) -> Result<Self, Early> {
        let other = |text: String| Early::Other(StartError(text));
        let (child, mut ready) = Self::launch(options, port, secret).map_err(|error| {
            other(format!(
                "{} could not be started: {error}",
                options.program.display()
            ))
        })?;
        let announced = async {
            ready
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|port| *port)
        };
        let listens = tokio::select! {
            biased;
            listens = announced => listens,
            end = wait(child.ended.clone()) => {
                let output = child.settled_output().await;
                return Err(Early::Ended(StartError(format!("serve child exited ({end}) before it was ready: {output}"))));
            }
            () = tokio::time::sleep(options.patience.ready) => None,
        };
        match listens {
            Some(listens) if listens == port.port() => Ok(child),
            Some(listens) => Err(other(format!(
                "the server listens on port {listens}, not on {}",
                port.port()
            ))),
            None => {
                // It may have closed its output without ending.
                if let Some(end) = timeout(SETTLE, wait(child.ended.clone()))
                    .await
                    .ok()
                    .or_else(|| child.ended())
                {
                    let output = child.settled_output().await;
                    return Err(Early::Ended(StartError(format!(
                        "serve child exited ({end}) before it was ready: {output}"
                    ))));
                }
                Err(other(format!(
                    "the server was not ready in time: {}",
                    child.output()
                )))
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// How it ended, if it has.
    pub(super) fn ended(&self) -> Option<String> {
        self.ended.borrow().clone()
    }

    /// Comes back when it has ended, and says how.
    pub(super) fn wait(&self) -> impl Future<Output = String> + Send + 'static {
        wait(self.ended.clone())
    }

    /// The last it has printed.
    pub(super) fn output(&self) -> String {
        self.output
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .text()
    }

    /// What the watchdog has inherited, and what runs below that.
    pub(super) fn orphans(&self) -> Vec<u32> {
        if !self.is_watched || !cfg!(target_os = "linux") {
            return Vec::new();
        }
        let mut below = Descendants::of(self.pid);
        let below = below.look();
        // The watchdog's first child is the server.
        let own = |process: &&process::Listed| process.parent == self.pid;
        let Some(server) = below
            .iter()
            .filter(own)
            .min_by_key(|process| process.started)
        else {
            return Vec::new();
        };
        let of_server: Vec<u32> = Descendants::of(server.pid)
            .look()
            .iter()
            .map(|process| process.pid)
            .collect();
        let left = below
            .iter()
            .filter(|process| process.pid != server.pid && !of_server.contains(&process.pid));
        left.filter(|process| !process.is_zombie)
            .map(|process| process.pid)
            .collect()
    }

    /// Ends it and what it has started: gently, then not.
    pub(super) async fn stop(&self, patience: Duration) {
        let mut below = Descendants::of(self.pid);
        below.look();
        if self.is_watched {
            self.slip();
            let _ = timeout(patience + LEASH, self.wait()).await;
        } else {
            process::signal_group(self.pid, Signal::Terminate);
            let _ = timeout(patience, self.wait()).await;
        }
        if self.ended().is_none() {
            process::signal_group(self.pid, Signal::Kill);
            let _ = timeout(LEASH, self.wait()).await;
        }
        // Commands of agents are in groups of their own and survive their parent.
        for process in below.left().iter().filter(|process| !process.is_zombie) {
            process::signal_process(process.pid, Signal::Kill);
        }
    }

    fn launch(
        options: &Options,
        port: Loopback,
        secret: &Arc<Secret>,
    ) -> std::io::Result<(Self, watch::Receiver<Option<u16>>)> {
        let mut command = command(options, port, secret);
        let is_watched = options.watchdog.is_some();
        let (ready_sender, ready) = watch::channel(None);
        let (end_sender, ended) = watch::channel(None);
        let output = Arc::new(Mutex::new(Ring {
            bytes: VecDeque::new(),
            secret: Arc::clone(secret),
        }));
        let (started, starting) = mpsc::channel();
        let ring = Arc::clone(&output);
        // The thread that starts the child lives as long as the child: Linux kills the child when it ends.
        std::thread::Builder::new()
            .name("bizar-serve".into())
            .spawn(move || {
                process::isolate(&mut command, !is_watched);
                let mut child = match command.spawn() {
                    Ok(child) => child,
                    Err(error) => {
                        let _ = started.send(Err(error));
                        return;
                    }
                };
                // The secret is in the command's environment: let go of it.
                drop(command);
                let pipes = (child.stdout.take(), child.stderr.take());
                let _ = started.send(Ok((child.id(), child.stdin.take())));
                if let Some(stdout) = pipes.0 {
                    drain(stdout, Arc::clone(&ring), Some(ready_sender));
                }
                if let Some(stderr) = pipes.1 {
                    drain(stderr, ring, None);
                }
                let end = child
                    .wait()
                    .map_or_else(|error| error.to_string(), describe);
                end_sender.send_replace(Some(end));
            })?;
        let (pid, leash) = starting.recv().map_err(std::io::Error::other)??;
        Ok((
            Self {
                pid,
                leash: Mutex::new(leash),
                is_watched,
                output,
                ended,
            },
            ready,
        ))
    }

    fn slip(&self) {
        self.leash
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    /// The last it has printed, when the drains had a moment to read it.
    async fn settled_output(&self) -> String {
        tokio::time::sleep(SETTLE).await;
        self.output()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.slip();
        if !self.is_watched && self.ended().is_none() {
            process::signal_group(self.pid, Signal::Kill);
        }
    }
}

/// Refuses a program of another version than the expected one.
pub(super) async fn check_version(options: &Options, expected: &str) -> Result<(), StartError> {
    let program = options.program.clone();
    let run = move || {
        Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
    };
    let output = timeout(options.patience.ready, tokio::task::spawn_blocking(run)).await;
    let version = match output {
        Ok(Ok(Ok(output))) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => String::new(),
    };
    if version == expected {
        return Ok(());
    }
    let version: String = version.chars().take(40).collect();
    Err(StartError(format!(
        "{} has version {version:?}, not {expected}",
        options.program.display()
    )))
}

fn command(options: &Options, port: Loopback, secret: &Secret) -> Command {
    let mut command = match &options.watchdog {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command
                .args(arguments)
                .arg(&options.program)
                .stdin(Stdio::piped());
            command
        }
        None => {
            let mut command = Command::new(&options.program);
            command.stdin(Stdio::null());
            command
        }
    };
    command
        .args([
            "serve",
            "--hostname",
            "127.0.0.1",
            "--port",
            &port.port().to_string(),
        ])
        .current_dir(&options.directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // What the opencode around us was told is not for this one.
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("OPENCODE_SERVER_") || FOREIGN.contains(&name))
        {
            command.env_remove(name);
        }
    }
    for (name, value) in &options.environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .env("OPENCODE_SERVER_USERNAME", USER)
        .env("OPENCODE_SERVER_PASSWORD", secret.reveal())
        .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
        .env("BIZAR_BACKGROUND_CHILD", "1");
    command
}

/// Reads a pipe until its end, so that the child never waits for a reader.
fn drain(
    pipe: impl Read + Send + 'static,
    ring: Arc<Mutex<Ring>>,
    ready: Option<watch::Sender<Option<u16>>>,
) {
    // Without the thread the pipe is closed, which the child may notice; the start then fails by its line.
    let _ = std::thread::Builder::new()
        .name("bizar-drain".into())
        .spawn(move || {
            let mut reader = BufReader::new(pipe);
            let mut line = Vec::new();
            loop {
                line.clear();
                match reader.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                let text = String::from_utf8_lossy(&line);
                if let (Some(ready), Some(port)) = (&ready, announced(&text)) {
                    ready.send_replace(Some(port));
                }
                ring.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(&text);
            }
        });
}

/// The port in the line that says that the server listens.
fn announced(line: &str) -> Option<u16> {
    let (_, address) = line.split_once("listening on http://127.0.0.1:")?;
    let digits = address
        .split(|letter: char| !letter.is_ascii_digit())
        .next()?;
    digits.parse().ok()
}

async fn wait(mut ended: watch::Receiver<Option<String>>) -> String {
    match ended.wait_for(Option::is_some).await {
        Ok(end) => end.clone().unwrap_or_default(),
        Err(_) => "unknown".into(),
    }
}

fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status
        .code()
        .map_or_else(|| "unknown".into(), |code| format!("code {code}"))
}

/// The last that was printed, without the secret.
struct Ring {
    bytes: VecDeque<u8>,
    secret: Arc<Secret>,
}

impl Ring {
    fn push(&mut self, text: &str) {
        self.bytes.extend(self.secret.redact(text).bytes());
        let surplus = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..surplus);
    }

    fn text(&mut self) -> String {
        let text = String::from_utf8_lossy(self.bytes.make_contiguous()).into_owned();
        self.secret.redact(&text)
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// Variables of the opencode around us.
const FOREIGN: [&str; 2] = ["OPENCODE_PID", "OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS"];
/// Bytes of output that are kept.
const KEPT: usize = 64 << 10;
/// Bytes of a line that are read at once.
const LONGEST: u64 = 16 << 10;
/// For pipes to be read after an end.
const SETTLE: Duration = Duration::from_millis(100);
/// For a watchdog to end what is left, and for a killed child to be gone.
const LEASH: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_counts() {
        assert_eq!(
            announced("opencode server listening on http://127.0.0.1:41234\n"),
            Some(41234)
        );
        assert_eq!(
            announced("opencode server listening on http://127.0.0.1:41234/ (1.18)"),
            Some(41234)
        );
        for line in [
            "",
            "listening on http://0.0.0.0:41234",
            "listening on http://127.0.0.1:",
            "listening on http://127.0.0.1:99999",
        ] {
            assert_eq!(announced(line), None);
        }
    }

    #[test]
    fn the_ring_keeps_the_end_without_the_secret() {
        let secret = Arc::new(Secret::new().unwrap());
        let mut ring = Ring {
            bytes: VecDeque::new(),
            secret: Arc::clone(&secret),
        };
        for _ in 0..10_000 {
            ring.push(&format!("a line with {} in it\n", secret.reveal()));
        }
        ring.push("the end");
        let text = ring.text();
        assert!(text.len() <= KEPT && text.ends_with("the end") && !text.contains(secret.reveal()));
    }
}
