//! How long a host waits for us: not as long as we might take.

use std::{
    fs,
    io::{self, Write},
    process,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// The host, as both threads see it.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// Held while it is answered.
    is_answered: Mutex<bool>,
    /// How much it has sent.
    bytes: AtomicU64,
}

impl Host {
    /// Answers, unless that was done; `and` comes right behind.
    pub(crate) fn answer(&self, text: &str, and: impl FnOnce()) {
        let mut is_answered = self
            .is_answered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *is_answered {
            return;
        }
        *is_answered = true;
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .ok();
        and();
    }

    pub(crate) fn has_sent(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn is_answered(&self) -> bool {
        *self
            .is_answered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a thread that calls `late` once the main thread has had more than its time without an answer, and that ends
/// the process when the host was answered, sends nothing and does not close its end.
///
/// `late` is to answer. It is a second thread that does this, and not the work, because then the usual process, which is over
/// long before, hands nothing from one thread to another.
pub(crate) fn watch(host: &Arc<Host>, late: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let host = Arc::clone(host);
    let watch = move || {
        let mut late = Some(late);
        let mut time = OwnTime::default();
        let mut before = Instant::now();
        let mut sent = None;
        loop {
            thread::sleep(TICK);
            let now = Instant::now();
            if host.is_answered() {
                let sent_now = Some(host.bytes.load(Ordering::Relaxed));
                if sent == sent_now {
                    process::exit(0);
                }
                sent = sent_now;
            } else if time.is_over(now - before, main_thread())
                && let Some(late) = late.take()
            {
                late();
            }
            before = now;
        }
    };
    thread::Builder::new()
        .stack_size(STACK)
        .spawn(watch)
        .map(drop)
}

/// The time that the main thread had, of its own and of others that it waited for.
///
/// Time in which it waited for a processor or a disk does not count, up to two seconds: on a busy machine everything
/// takes long, and a guard that gives up then is none.
#[derive(Debug, Default)]
struct OwnTime {
    own: Duration,
    all: Duration,
    /// On a processor, since the process began.
    worked: Duration,
}

/// What the system tells of a thread.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Time on a processor, since it began.
    worked: Duration,
    /// It waits for somebody, and not for a disk.
    is_asleep: bool,
}

impl OwnTime {
    /// Whether it is over, when another `step` has passed.
    fn is_over(&mut self, step: Duration, seen: Option<Seen>) -> bool {
        self.all += step;
        self.own += match seen {
            Some(seen) if !seen.is_asleep => step.min(seen.worked.saturating_sub(self.worked)),
            _ => step,
        };
        self.worked = seen.map_or(self.worked, |seen| seen.worked);
        self.own >= PATIENCE || self.all >= MOST
    }
}

/// Linux tells; elsewhere all time counts.
fn main_thread() -> Option<Seen> {
    let times = fs::read_to_string("/proc/self/schedstat").ok()?;
    let status = fs::read_to_string("/proc/self/stat").ok()?;
    Some(Seen {
        worked: Duration::from_nanos(times.split(' ').next()?.parse().ok()?),
        // The name before it may have anything in it.
        is_asleep: status.rsplit_once(") ")?.1.starts_with('S'),
    })
}

/// How long a host waits for us at most, once it has told everything.
const PATIENCE: Duration = Duration::from_millis(100);

/// However busy the machine is, it does not wait longer than this.
const MOST: Duration = Duration::from_secs(2);

/// A host that sent nothing for so long, after its answer, sends nothing more.
const TICK: Duration = Duration::from_millis(20);

/// Enough to write a line.
const STACK: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(20);

    /// The number of the step at which the time is over.
    fn over_at(mut seen: impl FnMut(u32) -> Option<Seen>) -> u32 {
        let mut time = OwnTime::default();
        (1..).find(|n| time.is_over(STEP, seen(*n))).unwrap()
    }

    #[test]
    fn who_works_or_waits_for_others_has_100_ms() {
        let worked = |n| STEP * n;
        assert_eq!(
            over_at(|n| Some(Seen {
                worked: worked(n),
                is_asleep: false
            })),
            5
        );
        assert_eq!(
            over_at(|_| Some(Seen {
                worked: worked(1),
                is_asleep: true
            })),
            5
        );
        assert_eq!(over_at(|_| None), 5);
        // What it did before the watch began is not held against it for longer than a step.
        let before = Duration::from_secs(9);
        assert_eq!(
            over_at(|n| Some(Seen {
                worked: before + worked(n),
                is_asleep: false
            })),
            5
        );
    }

    #[test]
    fn who_waits_for_a_processor_or_a_disk_has_two_seconds() {
        let still = Some(Seen {
            worked: Duration::from_millis(2),
            is_asleep: false,
        });
        assert_eq!(over_at(|_| still), 100);
        let slow = |n| {
            Some(Seen {
                worked: STEP * n / 10,
                is_asleep: false,
            })
        };
        assert_eq!(over_at(slow), 50);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_tells_what_a_thread_does() {
        // The main thread of a test program waits for its tests, when it is not about to start one.
        let started = Instant::now();
        while !main_thread().unwrap().is_asleep {
            assert!(started.elapsed() < Duration::from_secs(60));
            thread::sleep(TICK);
        }
        assert!(main_thread().unwrap().worked > Duration::ZERO);
    }
}
