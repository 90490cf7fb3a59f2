//! One event in, one answer out.

use std::{
    env, fs,
    io::{self, Read, Write},
    panic,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use bizar_guard::{Args, Call, Delivery, End, Ended, Guard, Output, Status};

use crate::{
    answer,
    event::{Event, Kind, Outcome, WANTED},
    harness::{Context, Harness},
    scan::Scanner,
    settings, skipped,
};

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hook {
    pub(crate) harness: Option<Harness>,
    pub(crate) event: Option<String>,
}

impl Hook {
    /// Reads standard input, answers on standard output. Whatever goes wrong, the call goes on.
    pub(crate) fn run(&self) {
        // Some hosts show standard error to the model.
        panic::set_hook(Box::new(|_| {}));
        let bytes = Arc::new(AtomicU64::new(0));
        let document = read_document(self.harness, &bytes);
        if !document.is_complete() {
            // It came to its end.
            return say(&self.nothing());
        }
        let rest = || {
            let bytes = Arc::clone(&bytes);
            move || drain(&bytes)
        };
        let hook = self.clone();
        let (answer, mut reading) = limited(PATIENCE, move || hook.answer(document), rest());
        let answer = answer.unwrap_or_else(|trouble| {
            skipped::note(self.harness, trouble);
            let patience = Duration::ZERO;
            reading = limited(patience, || None, rest()).1;
            None
        });
        say(&answer.unwrap_or_else(|| self.nothing()));
        // A host that still writes must not find a closed pipe; one that never closes its end must
        // not wait for us. The thread that reads the rest lets go of the channel when it is done.
        let mut seen = bytes.load(Ordering::Relaxed);
        loop {
            match reading.recv_timeout(STILL) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let now = bytes.load(Ordering::Relaxed);
                    if now == seen {
                        return;
                    }
                    seen = now;
                }
            }
        }
    }

    fn nothing(&self) -> String {
        let event = self.event.as_deref().unwrap_or_default();
        answer::nothing(self.harness, event).to_owned()
    }

    /// `None` if the document is none that matters.
    fn answer(&self, document: Scanner) -> Option<String> {
        let event = Event::new(document, self.harness, self.event.as_deref())?;
        let guard = guard_for(&event);
        let said = judge(&guard, event);
        if guard.skipped() > 0 {
            skipped::note(self.harness, "locked");
        }
        if settings::is_debugging() {
            for note in guard.notes() {
                writeln!(io::stderr(), "bizar-hook: {note}").ok();
            }
        }
        Some(said)
    }
}

fn say(answer: &str) {
    let mut out = io::stdout().lock();
    out.write_all(answer.as_bytes())
        .and_then(|()| out.flush())
        .ok();
}

/// What `work` gives, unless it takes too long or panics. Its thread does `rest` afterwards, and
/// then the channel closes.
///
/// Time that our threads had to wait for a processor is not counted: on a busy machine everything
/// takes long, and a guard that gives up then is none.
fn limited<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
    rest: impl FnOnce() + Send + 'static,
) -> (Result<T, &'static str>, mpsc::Receiver<T>) {
    let (send, receive) = mpsc::sync_channel(1);
    let worker = thread::Builder::new().spawn(move || {
        if send.send(work()).is_ok() {
            rest();
        }
    });
    if worker.is_err() {
        return (Err("no thread"), receive);
    }
    let started = Instant::now();
    let mut left = patience;
    let outcome = loop {
        match receive.recv_timeout(left) {
            Ok(done) => break Ok(done),
            Err(RecvTimeoutError::Disconnected) => break Err("panicked"),
            Err(RecvTimeoutError::Timeout) => {
                let allowed = (patience + queued()).min(patience * MOST_TIMES);
                left = allowed.saturating_sub(started.elapsed());
                if left < Duration::from_millis(1) {
                    break Err("late");
                }
            }
        }
    };
    (outcome, receive)
}

/// How long our threads waited for a processor, as far as the system tells.
fn queued() -> Duration {
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let waits = threads.filter_map(|thread| {
        let times = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        times.split(' ').nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(waits.sum())
}

/// Reads until the document is whole, or to the end.
fn read_document(harness: Option<Harness>, bytes: &AtomicU64) -> Scanner {
    let digester = move || {
        let harness = harness.unwrap_or(Harness::Claude);
        Guard::new(settings::setup(harness)).digester(None)
    };
    let mut scanner = Scanner::new(WANTED, Box::new(digester));
    each_piece(bytes, |piece| {
        scanner.feed(piece);
        !scanner.is_complete()
    });
    scanner
}

fn drain(bytes: &AtomicU64) {
    each_piece(bytes, |_| true);
}

/// Hands out what comes on standard input while `goes_on` says so.
fn each_piece(bytes: &AtomicU64, mut goes_on: impl FnMut(&[u8]) -> bool) {
    let mut input = io::stdin().lock();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => {
                bytes.fetch_add(length as u64, Ordering::Relaxed);
                if !goes_on(buffer.get(..length).unwrap_or_default()) {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn guard_for(event: &Event) -> Guard {
    let harness = event.harness;
    let directory = event.directory.clone().unwrap_or_else(|| {
        let current = env::current_dir().unwrap_or_default();
        current.to_string_lossy().into_owned()
    });
    let mut setup = settings::setup(harness);
    if let Some(worktree) = settings::worktree(&directory) {
        setup = setup.worktree(worktree);
    }
    skipped::remember(setup.options_mut());
    Guard::new(setup.directory(directory))
}

fn judge(guard: &Guard, event: Event) -> String {
    let nothing = answer::nothing(Some(event.harness), &event.name).to_owned();
    let session = &*event.session;
    match event.kind {
        Kind::Before if !event.tool.is_empty() => before(guard, &event).unwrap_or(nothing),
        Kind::After if !event.tool.is_empty() => after(guard, event).unwrap_or(nothing),
        Kind::RoundEnded => {
            guard.round_ended(session);
            nothing
        }
        Kind::Turn => {
            guard.user_message(session, None);
            nothing
        }
        Kind::Start => {
            guard.sweep(None);
            nothing
        }
        Kind::Idle => {
            // droid says nothing of a call that failed.
            let is_stop = event.harness == Harness::Droid && event.name == "Stop";
            if is_stop {
                guard.end_open(session, &Ended::new(Status::Failed, Output::Missing));
            }
            guard.idle(session);
            if is_stop {
                guard.user_message(session, None);
            }
            nothing
        }
        Kind::Before | Kind::After | Kind::Other => nothing,
    }
}

fn before(guard: &Guard, event: &Event) -> Option<String> {
    let facts = event.harness.facts();
    let args = event.args.as_deref().map_or(Args::Missing, Args::Text);
    let mut call = Call::new(&event.session, &event.tool, args).round(facts.rounds);
    call.id = event.id.as_deref();
    let decision = guard.before(&call);
    let text = decision.text?;
    if decision.refused {
        return Some(answer::refusal(event, &text, decision.halted));
    }
    (facts.context == Context::Before).then(|| answer::context(event, &text))
}

fn after(guard: &Guard, event: Event) -> Option<String> {
    let args = match event.args.as_deref() {
        // Cline makes refused calls all the same: their ends are not to be found.
        Some(_) if event.harness == Harness::Cline && event.id.is_some() => Args::Missing,
        Some(args) => Args::Text(args),
        None => Args::Missing,
    };
    let digest;
    let output = match event.result {
        Outcome::Missing => Output::Missing,
        Outcome::Text(ref text) => Output::Text(text),
        Outcome::Digested(digester) => {
            let mut digester = digester;
            digester.ended(match event.status {
                Status::Ok => Some(true),
                Status::Failed | Status::Refused => Some(false),
                Status::Unknown | Status::Aborted => None,
            });
            digest = digester.finish();
            Output::Digest(digest)
        }
    };
    let mut ended = Ended::new(event.status, output);
    ended.duration = event.millis.map(Duration::from_millis);
    let mut end = End::new(&event.session, &event.tool, args, ended);
    end.id = event.id.as_deref();
    guard.after(&end);
    let facts = event.harness.facts();
    // Cursor has no place for a text after a failure.
    let is_heard = facts.context == Context::After
        && !(event.harness == Harness::Cursor && event.name == "postToolUseFailure");
    let text = is_heard.then(|| guard.request(&event.session, Delivery::WithResult))?;
    text.map(|text| {
        let event = Event {
            result: Outcome::Missing,
            ..event
        };
        answer::context(&event, &text)
    })
}

/// How long a host waits for us at most, once it has told everything.
const PATIENCE: Duration = Duration::from_millis(100);

/// However busy the machine is, it does not wait longer than so many times that.
const MOST_TIMES: u32 = 20;

/// A host that sent nothing for so long, after a whole document, sends nothing more.
const STILL: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_no_answer() {
        let patience = Duration::from_secs(30);
        assert_eq!(limited(patience, || "said", || {}).0, Ok("said"));
        let panicked = limited::<&str>(patience, || panic!("at the disco"), || {});
        assert_eq!(panicked.0, Err("panicked"));
    }

    #[test]
    fn who_is_late_is_not_waited_for() {
        let (_open, closed) = mpsc::channel::<()>();
        let started = Instant::now();
        let late = limited(
            Duration::from_millis(10),
            move || closed.recv().is_ok(),
            || {},
        );
        assert_eq!(late.0, Err("late"));
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}
