//! Nothing is orphaned: a small process between us and the server.
//!
//! Agents run shell commands in sessions of their own, which outlive the server, and a
//! server outlives a parent that is killed. So the server is started through a watchdog:
//! a process that holds one end of a pipe. When the other end is closed, for whatever
//! reason, it ends the server and everything that the server has left behind.
//!
//! A program offers this by calling [`run`] first thing when it is started with an
//! argument of its choice, and names itself in [`Options::watchdog`](super::Options::watchdog).
//!
//! On Linux, everything below is ended, however it was started, and the server does not
//! outlive the watchdog either. Other Unix systems do not hand orphans on: there, the
//! watchdog asks `ps` once a second what runs below it, and once more when its input has
//! ended, and ends what it has seen. So a command that was started in the last second before
//! the *server* died may stay, and one whose parent ended before it was seen. On Windows, the
//! server is killed with all below it whose parents still run; there is no job object, which
//! would need a call that std does not have. Only Linux is tested, the way of the other Unix
//! systems included.

use std::{
    ffi::OsString,
    io::Read,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    time::Duration,
};

use crate::process::{self, Descendants, Listed, Signal};

/// Runs a command until it ends or the standard input does, and leaves nothing behind.
///
/// The first argument is the program. Blocks; the result is the exit code to end with: the command's, or
/// 128 and the number of the signal that ended it, or 127 if it could not be started.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    process::adopt_orphans();
    watch(
        arguments.into_iter(),
        &mut Descendants::of(std::process::id()),
    )
}

fn watch(mut arguments: impl Iterator<Item = OsString>, below: &mut Descendants) -> u8 {
    let Some(program) = arguments.next() else {
        return 127;
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    // This thread lives as long as the watchdog: the server does not outlive it.
    process::isolate(&mut command, true);
    let Ok(child) = command.spawn() else {
        return 127;
    };
    let pid = child.id();
    let (sender, news) = mpsc::channel();
    watch_input(sender.clone());
    watch_child(child, sender);
    let status = loop {
        match news.recv_timeout(LOOK) {
            Ok(News::Ended(status)) => break status,
            Err(RecvTimeoutError::Timeout) => reap(below.look(), Some(pid)),
            Ok(News::Alone) | Err(RecvTimeoutError::Disconnected) => {
                // Once the server has ended, nothing may tell any more what it had started.
                below.look();
                break end(pid, &news);
            }
        }
    };
    end_left(below);
    code(status)
}

enum News {
    /// Nobody holds the other end of the pipe any more.
    Alone,
    /// The command has ended.
    Ended(Option<ExitStatus>),
}

fn watch_input(sender: Sender<News>) {
    std::thread::spawn(move || {
        let mut byte = [0; 64];
        loop {
            match std::io::stdin().read(&mut byte) {
                Ok(0) => break,
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => break,
                _ => {}
            }
        }
        let _ = sender.send(News::Alone);
    });
}

fn watch_child(mut child: Child, sender: Sender<News>) {
    std::thread::spawn(move || {
        let _ = sender.send(News::Ended(child.wait().ok()));
    });
}

/// Ends the command: gently, then not.
fn end(pid: u32, news: &Receiver<News>) -> Option<ExitStatus> {
    for signal in [Signal::Terminate, Signal::Kill] {
        process::signal_group(pid, signal);
        if let Ok(News::Ended(status)) = news.recv_timeout(GENTLE) {
            return status;
        }
    }
    None
}

/// Ends what the command has left behind.
fn end_left(below: &mut Descendants) {
    for round in 0..ROUNDS {
        let left = below.look();
        reap(left, None);
        let left: Vec<_> = left.iter().filter(|process| !process.is_zombie).collect();
        if left.is_empty() {
            return;
        }
        let signal = if round < GENTLE_ROUNDS {
            Signal::Terminate
        } else {
            Signal::Kill
        };
        left.iter()
            .for_each(|process| process::signal_process(process.pid, signal));
        std::thread::sleep(ROUND);
    }
}

/// Takes note of adopted children that have ended, so that none stays a zombie.
fn reap(below: &[Listed], except: Option<u32>) {
    let own = std::process::id();
    let ended = below
        .iter()
        .filter(|process| process.parent == own && process.is_zombie);
    let ended = ended.map(|process| process.pid);
    process::reap(ended.filter(|pid| Some(*pid) != except));
}

fn code(status: Option<ExitStatus>) -> u8 {
    let Some(status) = status else { return 137 };
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status
        .code()
        .map_or(1, |code| u8::try_from(code & 0xff).unwrap_or(1))
}

/// How often it is looked what runs below.
const LOOK: Duration = Duration::from_secs(1);
/// How long the command gets after each signal.
const GENTLE: Duration = Duration::from_secs(2);
const ROUND: Duration = Duration::from_millis(50);
const GENTLE_ROUNDS: u32 = 10;
const ROUNDS: u32 = 40;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{collections::HashMap, io::BufRead, time::Instant};

    use super::*;

    const TEST: &str = "opencode::watchdog::tests::without_adoption_what_was_seen_is_ended";

    /// What runs on a system without `/proc` and without adoption, run here: `ps` tells, and what was seen is kept in mind.
    #[test]
    fn without_adoption_what_was_seen_is_ended() {
        if let Some(script) = std::env::var_os("WATCHED") {
            let mut below = Descendants::from_ps(std::process::id());
            let arguments = ["sh".into(), "-c".into(), script];
            watch(arguments.into_iter(), &mut below);
            let left = below.look();
            assert!(
                left.iter().all(|left| left.is_zombie),
                "not even the `ps` runs: {left:?}"
            );
            return;
        }
        // A command in a session of its own, and one whose parent ends at once.
        let script = "echo; echo server $$
            setsid sh -c 'echo command $$; exec sleep 300' &
            setsid sh -c 'sleep 300 & echo orphan $!; sleep 8' &
            wait";
        for is_owner_dead in [true, false] {
            let mut watchdog = Command::new(std::env::current_exe().unwrap())
                .args([TEST, "--exact", "--nocapture"])
                .env("WATCHED", script)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let output = std::io::BufReader::new(watchdog.stdout.take().unwrap());
            let said = output.lines().map_while(Result::ok);
            let mut named = said.filter_map(|line| {
                let (name, pid) = line.split_once(' ')?;
                Some((name.to_owned(), pid.parse().ok()?))
            });
            let pids: HashMap<String, u32> = named.by_ref().take(3).collect();
            assert_eq!(pids.len(), 3);
            // Long enough for several looks at all of it, and for the parent to end.
            std::thread::sleep(Duration::from_secs(9));
            if is_owner_dead {
                drop(watchdog.stdin.take());
            } else {
                process::signal_process(pids["server"], Signal::Kill);
            }
            let start = Instant::now();
            assert!(watchdog.wait().unwrap().success());
            assert!(start.elapsed() < Duration::from_secs(60));
            for (name, pid) in pids {
                assert_eq!(process::started(pid), None, "{name}");
            }
        }
    }
}
