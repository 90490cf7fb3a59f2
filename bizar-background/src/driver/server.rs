//! What the driver needs of a server.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::mpsc;

use super::actor::Input;
use crate::{Event, Failure, InstanceId, Snapshot, Spawn, Transcript, event::Request};

/// A server that runs sessions of agents. Implement it to drive another harness.
///
/// Every call is given up after 30 s by the driver, so an implementation may simply
/// hang. Calls run at the same time.
pub trait Server: Send + Sync + 'static {
    /// Makes the server ready: at the first spawn, and at the next one after it was lost.
    ///
    /// From then on it tells all events to `events`: [`Event::Connected`] whenever some may
    /// have been missed, and [`Events::lost`] when the server has ended with all its runs.
    fn start(&self, events: Events) -> impl Future<Output = Result<(), StartError>> + Send;

    /// Makes a session for a run. What it says no to is [`Failure::Refused`].
    fn create(
        &self,
        id: InstanceId,
        spawn: &Spawn,
    ) -> impl Future<Output = Result<String, Failure>> + Send;

    /// Sends the prompt, and comes back when it was taken, before it is answered.
    fn prompt(
        &self,
        session: &str,
        spawn: &Spawn,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Ends the run of a session.
    fn abort(&self, session: &str) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Reads what is going on, and then the messages of a session and of those below it.
    fn observe(&self, session: &str) -> impl Future<Output = Result<Snapshot, Failure>> + Send;

    /// Reads the messages of a session, without those below it.
    fn transcript(
        &self,
        session: &str,
    ) -> impl Future<Output = Result<Transcript, Failure>> + Send {
        async {
            let root = self.observe(session).await?.sessions.into_iter().next();
            root.map(|root| root.transcript).ok_or(Failure::Gone)
        }
    }

    /// Grants a request once, or refuses it.
    fn respond(
        &self,
        request: &Request,
        grant: bool,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = (request, grant);
        async { Ok(()) }
    }

    /// Ends the server and everything it has started. It may be started again.
    fn stop(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// Why a server could not be started.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("background agents are not available: {0}")]
pub struct StartError(pub String);

/// Where a server tells its events.
#[derive(Clone, Debug)]
pub struct Events {
    inputs: mpsc::WeakUnboundedSender<Input>,
    waiting: Arc<AtomicUsize>,
}

impl Events {
    pub(super) fn new(inputs: mpsc::WeakUnboundedSender<Input>) -> Self {
        Self {
            inputs,
            waiting: Arc::default(),
        }
    }

    /// A place that nobody listens to, for a server that is used by itself.
    #[must_use]
    pub fn nowhere() -> Self {
        Self::new(mpsc::unbounded_channel().0.downgrade())
    }

    /// Tells an event. Never waits: when too many are waiting, pieces of text are dropped, and
    /// what has no meaning here; nothing else.
    pub fn tell(&self, event: Event<'_>) {
        let waiting = self.waiting.load(Ordering::Relaxed);
        let is_expendable = matches!(event, Event::Delta { .. } | Event::Unknown);
        if event == Event::Heartbeat || is_expendable && waiting > QUEUE {
            return;
        }
        if let Some(inputs) = self.inputs.upgrade() {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            // The driver may have ended; then nobody wants to know.
            let _ = inputs.send(Input::Event {
                event: event.into_owned(),
                waiting: Arc::clone(&self.waiting),
            });
        }
    }

    /// Tells that the server has ended, and why. All its runs have failed by that.
    pub fn lost(&self, reason: &str) {
        if let Some(inputs) = self.inputs.upgrade() {
            let _ = inputs.send(Input::Lost {
                reason: reason.into(),
            });
        }
    }
}

/// Events that may wait before pieces of text are dropped.
const QUEUE: usize = 4096;
