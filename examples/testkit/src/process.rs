use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A running program that never outlives its test.
///
/// It leads a process group of its own. The group is killed when this value is dropped, and also
/// when the test process itself dies in any way: a shell holds a pipe to the test process and
/// kills the group when the pipe closes.
#[derive(Debug)]
pub struct Process {
    child: Child,
    leash: Child,
}

/// What a program left behind.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended; `None` if it had to be killed because its time was over.
    pub status: Option<ExitStatus>,
    /// Everything on standard output.
    pub stdout: String,
    /// Everything on standard error.
    pub stderr: String,
}

impl Process {
    /// Starts a program. Set its standard streams before; input is `null` unless it is piped.
    ///
    /// # Errors
    ///
    /// When the program, or `sh`, cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let leash = Command::new("/bin/sh")
            .args(["-c", "read -r _; kill -KILL -$0", &child.id().to_string()])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match leash {
            Ok(leash) => Ok(Self { child, leash }),
            Err(error) => {
                kill_group(child.id());
                Err(error)
            }
        }
    }

    /// Runs a program to its end, at most for `patience`.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn run(command: &mut Command, patience: Duration) -> io::Result<Finished> {
        let mut process = Self::start(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        )?;
        let stdout = process.child.stdout.take().map(collect);
        let stderr = process.child.stderr.take().map(collect);
        let status = process.wait(patience);
        drop(process);
        let text = |reader: Option<thread::JoinHandle<String>>| {
            reader
                .and_then(|reader| reader.join().ok())
                .unwrap_or_default()
        };
        Ok(Finished {
            status,
            stdout: text(stdout),
            stderr: text(stderr),
        })
    }

    /// The process id, which is also the id of its group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The child, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for the end, at most for `patience`.
    pub fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                _ if Instant::now() >= end => return None,
                _ => thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Kills the program itself (SIGKILL), and nothing that it started.
    pub fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.leash.kill().ok();
        self.leash.wait().ok();
        kill_group(self.child.id());
        self.child.wait().ok();
    }
}

/// Sends a signal, `KILL` or `STOP`, to one process.
pub fn signal_process(name: &str, id: u32) {
    signal(name, &id.to_string());
}

/// Whether a process of this id runs. A zombie does not.
#[must_use]
pub fn is_alive(id: u32) -> bool {
    ps(&["-o", "stat=", "-p", &id.to_string()])
        .iter()
        .any(|stat| !stat.trim().starts_with('Z'))
}

/// Ids of the running processes whose command line contains `needle`.
#[must_use]
pub fn processes_with(needle: &str) -> Vec<u32> {
    ps(&["-A", "-ww", "-o", "pid=,stat=,args="])
        .iter()
        .filter_map(|line| {
            let (id, rest) = line.trim_start().split_once(' ')?;
            (rest.contains(needle) && !rest.trim_start().starts_with('Z'))
                .then(|| id.parse().ok())?
        })
        .filter(|id| *id != std::process::id())
        .collect()
}

fn ps(args: &[&str]) -> Vec<String> {
    let output = Command::new("ps")
        .args(args)
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    String::from_utf8_lossy(&output)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// `std` can kill a child, but no group.
fn kill_group(id: u32) {
    signal("KILL", &format!("-{id}"));
}

fn signal(name: &str, target: &str) {
    Command::new("/bin/sh")
        .args(["-c", "kill -$0 $1", name, target])
        .stderr(Stdio::null())
        .status()
        .ok();
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).ok();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
