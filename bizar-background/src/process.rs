//! What the standard library cannot do with processes, and the only unsafe code.
#![allow(unsafe_code, reason = "system calls that std does not offer")]

use std::{process::Command, sync::OnceLock, time::Duration};

use serde::{Deserialize, Serialize};

use crate::Owner;

mod table;

pub(crate) use table::{Descendants, Listed};

/// Time since the machine was started, its sleep included where the system tells it.
pub(crate) fn since_boot() -> Duration {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    #[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
    #[cfg(unix)]
    {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is a valid, writable timespec for the whole call.
        if unsafe { libc::clock_gettime(CLOCK, &raw mut time) } == 0 {
            let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
            let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
            return Duration::new(seconds, nanos);
        }
    }
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

/// A signal that ends processes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Signal {
    Terminate,
    Kill,
}

/// Signals a process group. Group 0 and 1 are never ours.
///
/// Windows knows neither groups nor gentle signals: there, a kill ends the process with all
/// below it whose parents still run.
pub(crate) fn signal_group(group: u32, signal: Signal) {
    #[cfg(unix)]
    if let Some(group) = target(group) {
        // SAFETY: kill takes no pointers; a group that is gone is an error that means nothing.
        unsafe { libc::kill(-group, number(signal)) };
    }
    #[cfg(windows)]
    if signal == Signal::Kill {
        // What is gone already cannot be ended, and nothing else can be done about the rest.
        let _ = Command::new("taskkill")
            .args(["/F", "/T", "/PID", &group.to_string()])
            .output();
    }
    #[cfg(not(any(unix, windows)))]
    let _ = (group, signal);
}

/// Signals one process.
pub(crate) fn signal_process(pid: u32, signal: Signal) {
    #[cfg(unix)]
    if let Some(pid) = target(pid) {
        // SAFETY: as in `signal_group`.
        unsafe { libc::kill(pid, number(signal)) };
    }
    #[cfg(not(unix))]
    let _ = (pid, signal);
}

/// Puts the command into a process group of its own.
///
/// With `dies_with_us` it is killed when the thread ends that starts it (Linux): so start
/// it from a thread that lives as long as the command may.
pub(crate) fn isolate(command: &mut Command, dies_with_us: bool) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(target_os = "linux")]
    if dies_with_us {
        let parent = std::process::id();
        // SAFETY: the closure runs between fork and exec and calls only prctl, getppid and
        // raise, which are async-signal-safe; it allocates nothing.
        unsafe {
            std::os::unix::process::CommandExt::pre_exec(command, move || {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
                // The parent may have died before the signal was armed.
                if u32::try_from(libc::getppid()).ok() != Some(parent) {
                    libc::raise(libc::SIGKILL);
                }
                Ok(())
            });
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (command, dies_with_us);
}

/// Makes orphans below this process its children. `false` where the system cannot do that.
pub(crate) fn adopt_orphans() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: prctl with integer arguments touches no memory of ours.
    return unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } == 0;
    #[cfg(not(target_os = "linux"))]
    false
}

/// Takes note of children that have ended, so that none stays a zombie.
pub(crate) fn reap(ended: impl Iterator<Item = u32>) {
    for pid in ended {
        #[cfg(unix)]
        if let Some(pid) = target(pid) {
            // SAFETY: a null status is allowed, WNOHANG never blocks, and who is no child of ours is an error that means nothing.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
        }
        #[cfg(not(unix))]
        let _ = pid;
    }
}

/// This process, told apart from others that had its number before.
pub(crate) fn owner() -> Owner {
    let pid = std::process::id();
    Owner {
        pid,
        started: started(pid).unwrap_or_default(),
        boot: boot(),
    }
}

/// Whether the process is still the same and alive. Where that cannot be known, it is.
pub(crate) fn is_alive(owner: &Owner) -> bool {
    if owner.boot != boot() {
        return false;
    }
    match started(owner.pid) {
        // Unknown when it was noted.
        Some(_) if owner.started == 0 => return true,
        Some(started) => return started == owner.started,
        None if cfg!(any(target_os = "linux", target_os = "android")) => return false,
        None => {}
    }
    #[cfg(unix)]
    if let Some(pid) = target(owner.pid) {
        // SAFETY: signal 0 only asks whether the process is there.
        let is_there = unsafe { libc::kill(pid, 0) } == 0;
        return is_there || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM);
    }
    true
}

/// What tells a process from others that are given its number later.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    /// As the system tells it, and the run of the machine where its clock begins again.
    pub(crate) started: String,
    pub(crate) command: String,
}

impl Identity {
    /// `None`: there is no such process, or the system does not tell.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return Some(Self {
            pid,
            started: format!("{} {}", boot(), started(pid)?),
            command: String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/cmdline")).ok()?)
                .replace('\0', " "),
        });
        #[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
        return Self::from_ps(pid);
        #[cfg(not(unix))]
        {
            let _ = pid;
            None
        }
    }

    /// Whether the number still belongs to the same process, with the same command line.
    pub(crate) fn is_running(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    #[cfg(all(unix, any(test, not(any(target_os = "linux", target_os = "android")))))]
    fn from_ps(pid: u32) -> Option<Self> {
        let (_, line) = table::ps(&[
            "-ww",
            "-o",
            "lstart=",
            "-o",
            "command=",
            "-p",
            &pid.to_string(),
        ])?;
        // A date in the C locale, like `Thu Jan  1 00:00:00 1970`.
        let (started, command) = line.trim().split_at_checked(24)?;
        Some(Self {
            pid,
            started: started.into(),
            command: command.trim().into(),
        })
    }
}

/// Whether a process leads a group of its own, which [`isolate`] makes it do.
pub(crate) fn leads_group(pid: u32) -> bool {
    #[cfg(unix)]
    // SAFETY: getpgid takes and gives numbers only.
    return target(pid).is_some_and(|pid| unsafe { libc::getpgid(pid) } == pid);
    #[cfg(not(unix))]
    {
        let _ = pid;
        false
    }
}

/// When a process was started, as in [`Listed`]. `None`: it does not run, or that cannot be told.
pub(crate) fn started(pid: u32) -> Option<u64> {
    Listed::read(pid)
        .filter(|process| !process.is_zombie)
        .map(|process| process.started)
}

fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(unix)]
fn target(pid: u32) -> Option<libc::pid_t> {
    libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 1)
}

#[cfg(unix)]
fn number(signal: Signal) -> libc::c_int {
    match signal {
        Signal::Terminate => libc::SIGTERM,
        Signal::Kill => libc::SIGKILL,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    impl Identity {
        /// A program that was started a moment ago may not have its own command line yet.
        pub(crate) fn when_it_is(pid: u32, command: &str) -> Self {
            loop {
                match Self::of(pid) {
                    Some(identity) if identity.command.trim() == command => return identity,
                    _ => std::thread::yield_now(),
                }
            }
        }
    }

    #[test]
    fn a_process_is_told_from_the_next_one() {
        let mut sleep = Command::new("sleep").arg("300").spawn().unwrap();
        Identity::when_it_is(sleep.id(), "sleep 300");
        for of in [Identity::of, Identity::from_ps] {
            let identity = of(sleep.id()).unwrap();
            assert_eq!(identity.command.trim(), "sleep 300");
            assert!(!identity.started.is_empty());
            assert_ne!(of(std::process::id()), Some(identity));
        }
        let identity = Identity::of(sleep.id()).unwrap();
        assert!(identity.is_running());
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        assert!(!identity.is_running());
        assert_eq!(Identity::from_ps(sleep.id()), None);
    }
}
