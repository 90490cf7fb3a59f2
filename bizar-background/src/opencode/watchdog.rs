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
//! outlive the watchdog either. On other Unix systems the process group of the server is
//! ended; commands in sessions of their own stay, since nothing tells whose they were once
//! their parent is gone. On Windows, the server is killed with all below it whose parents
//! still run; there is no job object, which would need a call that std does not have. Only
//! Linux is tested.

use std::{
    ffi::OsString,
    io::Read,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    time::Duration,
};

use crate::process::{self, Signal};

/// Runs a command until it ends or the standard input does, and leaves nothing behind.
///
/// The first argument is the program. Blocks; the result is the exit code to end with: the command's, or
/// 128 and the number of the signal that ended it, or 127 if it could not be started.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let mut arguments = arguments.into_iter();
    let Some(program) = arguments.next() else {
        return 127;
    };
    process::adopt_orphans();
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
        match news.recv_timeout(REAP) {
            Ok(News::Ended(status)) => break status,
            Ok(News::Alone) | Err(RecvTimeoutError::Disconnected) => break end(pid, &news),
            Err(RecvTimeoutError::Timeout) => process::reap_orphans(pid),
        }
    };
    end_orphans();
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

/// Ends what has become ours because its parents have ended.
fn end_orphans() {
    for round in 0..ROUNDS {
        process::reap_orphans(0);
        let left = process::descendants(std::process::id());
        let left: Vec<_> = left
            .into_iter()
            .filter(|process| !process.is_zombie)
            .collect();
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

/// How often children that have ended are taken note of.
const REAP: Duration = Duration::from_secs(1);
/// How long the command gets after each signal.
const GENTLE: Duration = Duration::from_secs(2);
const ROUND: Duration = Duration::from_millis(50);
const GENTLE_ROUNDS: u32 = 10;
const ROUNDS: u32 = 40;
