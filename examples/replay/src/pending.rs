//! Transcripts write calls and results apart; this joins them again, in the order of the calls.

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use crate::in_order::InOrder;
use crate::record::{Call, Event, Item, Recorded};

/// Calls that wait for their results, by session.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    sessions: InOrder<Open>,
}

#[derive(Debug, Default)]
struct Open {
    queue: VecDeque<Waiting>,
    /// Ids of calls ever seen: a resumed session repeats its own history.
    seen: HashSet<Box<str>>,
    began: Option<f64>,
}

#[derive(Debug)]
struct Waiting {
    id: Box<str>,
    call: Call,
    started: Option<f64>,
    done: bool,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) ok: Option<bool>,
    pub(crate) result: Recorded,
    /// Milliseconds since the epoch at its end.
    pub(crate) ended: Option<f64>,
    /// Milliseconds it took, where the harness says so itself.
    pub(crate) took: Option<f64>,
}

impl Pending {
    /// A call begins at `started` (milliseconds since the epoch). An id that was seen before is the same call again.
    pub(crate) fn begin(
        &mut self,
        id: &str,
        mut call: Call,
        started: Option<f64>,
        out: &mut Vec<Item>,
    ) {
        let open = self.open(&call.session);
        if !id.is_empty() && !open.seen.insert(id.into()) {
            return;
        }
        if open.began.is_none() {
            open.began = started;
        }
        call.at = started
            .zip(open.began)
            .map(|(now, began)| ((now - began) / 1000.0).max(0.0));
        open.queue.push_back(Waiting {
            id: id.into(),
            call,
            started,
            done: false,
        });
        // A result that never comes must not hold everything after it back.
        if open.queue.len() > MOST_WAITING
            && let Some(first) = open.queue.front_mut()
        {
            first.done = true;
        }
        open.drain(out);
    }

    /// The call `id` of a session ended.
    pub(crate) fn end(&mut self, session: &Rc<str>, id: &str, answer: Answer, out: &mut Vec<Item>) {
        let open = self.open(session);
        let Some(waiting) = open
            .queue
            .iter_mut()
            .find(|waiting| *waiting.id == *id && !waiting.done)
        else {
            return;
        };
        waiting.call.ok = answer.ok;
        waiting.call.result = answer.result;
        waiting.call.took = answer.took.or_else(|| {
            answer
                .ended
                .zip(waiting.started)
                .map(|(end, start)| (end - start).max(0.0))
        });
        waiting.done = true;
        open.drain(out);
    }

    /// Something happened that is not a call: what still waits has no result.
    pub(crate) fn event(&mut self, session: &Rc<str>, event: Event, out: &mut Vec<Item>) {
        let open = self.open(session);
        open.flush(out);
        out.push(Item::Event {
            session: session.clone(),
            event,
        });
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self, out: &mut Vec<Item>) {
        for open in self.sessions.iter_mut() {
            open.flush(out);
        }
    }

    fn open(&mut self, session: &Rc<str>) -> &mut Open {
        self.sessions.of(session, Open::default)
    }
}

impl Open {
    fn drain(&mut self, out: &mut Vec<Item>) {
        while self.queue.front().is_some_and(|first| first.done) {
            out.extend(
                self.queue
                    .pop_front()
                    .map(|waiting| Item::Call(waiting.call)),
            );
        }
    }

    fn flush(&mut self, out: &mut Vec<Item>) {
        out.extend(self.queue.drain(..).map(|waiting| Item::Call(waiting.call)));
    }
}

const MOST_WAITING: usize = 256;
