//! Which processes there are, and what runs below which: from `/proc` on Linux, from `ps` on other Unix systems.

use std::process::{Command, Stdio};

/// A process and its parent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Listed {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) is_zombie: bool,
    /// Ticks since the machine was started (Linux), or the digits of the date and time in UTC. A later start is a larger number.
    pub(crate) started: u64,
}

impl Listed {
    /// One process. `None`: there is none, or the system does not tell.
    pub(super) fn read(pid: u32) -> Option<Self> {
        if HAS_PROC {
            Self::from_proc(pid)
        } else {
            Self::from_ps(&["-p", &pid.to_string()]).pop()
        }
    }

    /// All processes. Empty where the system does not tell.
    fn all() -> Vec<Self> {
        if HAS_PROC {
            let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
            let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            pids.filter_map(Self::from_proc).collect()
        } else {
            Self::from_ps(&["-A"])
        }
    }

    fn from_proc(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold anything, parentheses and blanks too: the fields follow the last one.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        Some(Self {
            pid,
            is_zombie: fields.next()? == "Z",
            parent: fields.next()?.parse().ok()?,
            // Field 22 of the whole line.
            started: fields.nth(17)?.parse().ok()?,
        })
    }

    fn from_ps(which: &[&str]) -> Vec<Self> {
        let columns = ["-o", "pid=", "-o", "ppid=", "-o", "stat=", "-o", "lstart="];
        let Some((ps, text)) = ps(&[which, &columns].concat()) else {
            return Vec::new();
        };
        let listed = text.lines().filter_map(Self::parse);
        listed.filter(|process| process.pid != ps).collect()
    }

    /// A line like `  17     1 Ss   Thu Jan  1 00:00:00 1970`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (pid, parent) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let is_zombie = words.next()?.starts_with('Z');
        let month = words.nth(1)?;
        let month = MONTHS.iter().position(|name| *name == month)? + 1;
        let (day, time, year) = (words.next()?, words.next()?, words.next()?);
        let digits = format!("{year}{month:02}{day:0>2}{}", time.replace(':', ""));
        Some(Self {
            pid,
            parent,
            is_zombie,
            started: digits.parse().ok()?,
        })
    }
}

/// What was seen below some process. Who was below it once stays in here when its parents have ended.
#[derive(Debug)]
pub(crate) struct Descendants {
    root: u32,
    seen: Vec<Listed>,
    list: fn() -> Vec<Listed>,
}

impl Descendants {
    pub(crate) fn of(root: u32) -> Self {
        Self {
            root,
            seen: Vec::new(),
            list: Listed::all,
        }
    }

    /// All there are, zombies too. Empty where the system does not tell.
    pub(crate) fn look(&mut self) -> &[Listed] {
        self.update(vec![self.root])
    }

    /// All that are left of those that were seen, and what they have started.
    pub(crate) fn left(&mut self) -> &[Listed] {
        self.update(Vec::new())
    }

    fn update(&mut self, mut parents: Vec<u32>) -> &[Listed] {
        let all = (self.list)();
        // A number that belongs to another process by now is none of ours, nor is what runs below it.
        let now = |seen: Listed| {
            all.iter()
                .find(|now| now.pid == seen.pid && now.started == seen.started)
        };
        self.seen = self.seen.drain(..).filter_map(now).copied().collect();
        parents.extend(self.seen.iter().map(|process| process.pid));
        while let Some(parent) = parents.pop() {
            for process in all.iter().filter(|process| process.parent == parent) {
                if !self.seen.iter().any(|seen| seen.pid == process.pid) {
                    self.seen.push(*process);
                    parents.push(process.pid);
                }
            }
        }
        &self.seen
    }
}

/// The number and the output of a `ps`, in the C locale and in UTC. `None` where there is none.
pub(super) fn ps(arguments: &[&str]) -> Option<(u32, String)> {
    if cfg!(not(unix)) {
        return None;
    }
    let child = Command::new("ps")
        .args(arguments)
        .env("LC_ALL", "C")
        .env("TZ", "UTC0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let pid = child.id();
    let output = child.wait_with_output().ok()?;
    Some((pid, String::from_utf8_lossy(&output.stdout).into_owned()))
}

const HAS_PROC: bool = cfg!(any(target_os = "linux", target_os = "android"));
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        process::Child,
    };

    use super::*;

    impl Descendants {
        /// As on systems without `/proc`.
        pub(crate) fn from_ps(root: u32) -> Self {
            // Linux computes the date anew each time, and may be a second off.
            let list = || {
                let all = Listed::from_ps(&["-A"]).into_iter();
                all.map(|process| Listed {
                    started: 0,
                    ..process
                })
                .collect()
            };
            Self {
                list,
                ..Self::of(root)
            }
        }
    }

    fn sh(script: &str) -> Child {
        let mut command = Command::new("sh");
        let command = command.args(["-c", script]).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn lines_of_ps() {
        let listed = |pid, is_zombie, started| Listed {
            pid,
            parent: 1,
            is_zombie,
            started,
        };
        for (line, process) in [
            (
                "    2     1 S    Fri Jan  2 03:04:05 2026",
                listed(2, false, 20_260_102_030_405),
            ),
            (
                "99999 1 Ss+  Thu Dec 31 23:59:59 2026",
                listed(99_999, false, 20_261_231_235_959),
            ),
            (
                "7 1 Z Thu Dec 31 23:59:59 2026    ",
                listed(7, true, 20_261_231_235_959),
            ),
        ] {
            assert_eq!(Listed::parse(line), Some(process));
        }
        for line in [
            "",
            "PID PPID STAT STARTED",
            "2 1 S",
            "2 1 S Fri Jan 2 03:04:05",
            "2 1 S Fri Mai 2 03:04:05 2026",
            "2 1 S Fri Jan 2 03:04:0x 2026",
            "-2 1 S Fri Jan 2 03:04:05 2026",
        ] {
            assert_eq!(Listed::parse(line), None, "{line}");
        }
    }

    #[test]
    fn ps_tells_what_proc_does() {
        let mut child = sh("read -r line");
        let id = child.id().to_string();
        let all = Listed::from_ps(&["-A"]);
        let one = Listed::from_ps(&["-p", &id]);
        for listed in [&all, &one] {
            let listed = listed
                .iter()
                .find(|process| process.pid == child.id())
                .unwrap();
            assert_eq!(
                (listed.parent, listed.is_zombie),
                (std::process::id(), false)
            );
            assert!(listed.started > 20_000_101_000_000);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(Listed::from_ps(&["-p", &id]), []);
        assert_eq!(Listed::read(child.id()), None);
    }

    /// As where nothing adopts orphans: the record is all there is to find them by.
    #[test]
    fn what_was_seen_is_found_when_its_parents_have_ended() {
        for of in [Descendants::of, Descendants::from_ps] {
            // It hands its child on to whoever adopts orphans, and waits.
            let mut parent = sh("sh -c 'sleep 300 & echo $!'; sleep 300 & echo; read -r line");
            let output = BufReader::new(parent.stdout.take().unwrap());
            let said: Vec<String> = output.lines().take(2).map(Result::unwrap).collect();
            let orphan: u32 = said[0].parse().unwrap();
            let mut below = of(parent.id());
            let found = below.look().to_vec();
            assert_eq!(found.len(), 1, "an orphan that was never seen is not found");
            let kept = found[0];
            assert_ne!(kept.pid, orphan);
            parent.kill().unwrap();
            parent.wait().unwrap();
            let left = below.left().to_vec();
            assert_eq!(
                left.iter().map(|left| left.pid).collect::<Vec<_>>(),
                [kept.pid]
            );
            assert_ne!(left[0].parent, parent.id());
            for pid in [kept.pid, orphan] {
                let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
                assert!(killed.unwrap().success());
            }
            while below.left().iter().any(|left| !left.is_zombie) {
                std::thread::yield_now();
            }
        }
    }
}
