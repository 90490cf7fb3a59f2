//! One event in, one answer out.

use std::{
    env,
    io::{self, BufRead, Write},
    panic::{self, AssertUnwindSafe},
    process,
    sync::Arc,
    thread,
    time::Duration,
};

use bizar_guard::{Args, Call, Delivery, End, Ended, Guard, Output, Status};

use crate::{
    answer,
    event::{Event, Kind, Outcome, WANTED},
    harness::{Context, Harness},
    patience::{self, Host},
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
        let host = Arc::new(Host::default());
        let document = caught(|| read_document(self.harness, &host));
        if document
            .as_ref()
            .is_ok_and(|document| !document.is_complete())
        {
            // It came to its end.
            return host.answer(self.nothing(), || {});
        }
        let answer = match patience::watch(&host, self.late(&host)) {
            Ok(()) => document.and_then(|document| caught(|| self.answer(document))),
            Err(_) => Err("no thread"),
        };
        let answer = answer.unwrap_or_else(|trouble| {
            skipped::note(self.harness, trouble);
            None
        });
        let nothing = self.nothing();
        host.answer(answer.as_deref().unwrap_or(nothing), || {});
        // A host that still writes must not find a closed pipe.
        drain(&host);
    }

    fn nothing(&self) -> &'static str {
        answer::nothing(self.harness, self.event.as_deref().unwrap_or_default())
    }

    /// What is done when the main thread takes too long.
    fn late(&self, host: &Arc<Host>) -> impl FnOnce() + Send + 'static {
        let (host, harness, nothing) = (Arc::clone(host), self.harness, self.nothing());
        move || {
            host.answer(nothing, || skipped::note(harness, "late"));
            // The main thread will not come to it.
            let rest = move || {
                drain(&host);
                process::exit(0);
            };
            thread::Builder::new().spawn(rest).ok();
        }
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

fn caught<T>(work: impl FnOnce() -> T) -> Result<T, &'static str> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| "panicked")
}

/// Reads until the document is whole, or to the end.
fn read_document(harness: Option<Harness>, host: &Host) -> Scanner {
    let digester = move || {
        let harness = harness.unwrap_or(Harness::Claude);
        Guard::new(settings::setup(harness)).digester(None)
    };
    let mut scanner = Scanner::new(WANTED, Box::new(digester));
    each_piece(host, |piece| {
        scanner.feed(piece);
        !scanner.is_complete()
    });
    scanner
}

fn drain(host: &Host) {
    each_piece(host, |_| true);
}

/// Hands out what comes on standard input while `goes_on` says so.
fn each_piece(host: &Host, mut goes_on: impl FnMut(&[u8]) -> bool) {
    let mut input = io::stdin().lock();
    loop {
        match input.fill_buf() {
            Ok([]) => return,
            Ok(piece) => {
                let length = piece.len();
                host.has_sent(length);
                let is_enough = !goes_on(piece);
                input.consume(length);
                if is_enough {
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
    let facts = event.harness.facts();
    // Cursor has no place for a text after a failure.
    let is_heard = facts.context == Context::After
        && !(event.harness == Harness::Cursor && event.name == "postToolUseFailure");
    if !is_heard {
        guard.after(&end);
        return None;
    }
    let text = guard.after_and_request(&end, Delivery::WithResult)?;
    let event = Event {
        result: Outcome::Missing,
        ..event
    };
    Some(answer::context(&event, &text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_no_answer() {
        assert_eq!(caught(|| "said"), Ok("said"));
        assert_eq!(caught::<&str>(|| panic!("at the disco")), Err("panicked"));
    }
}
