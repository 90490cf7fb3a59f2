//! Starting the server: once at a time, not too often, and not for ever.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use super::{Events, Server, StartError};

pub(super) struct Starter<S> {
    pub(super) server: Arc<S>,
    events: Events,
    /// Held by whoever starts or stops the server.
    gate: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    stopping: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    is_running: bool,
    /// It still runs, and nobody is to use it any more.
    is_retired: bool,
    failures: Vec<Instant>,
    last: String,
}

impl<S: Server> Starter<S> {
    pub(super) fn new(server: Arc<S>, events: Events) -> Self {
        let (stopping, _) = watch::channel(false);
        Self {
            server,
            events,
            gate: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            stopping,
        }
    }

    /// Comes back when the server is ready. Whoever comes meanwhile waits for the same start.
    pub(super) async fn ensure(&self) -> Result<(), StartError> {
        if self.state().is_running {
            return Ok(());
        }
        let _gate = self.gate.lock().await;
        let mut stopping = self.stopping.subscribe();
        if *stopping.borrow_and_update() {
            return Err(StartError("they have been shut down".into()));
        }
        let Some(pause) = self.pause()? else {
            return Ok(());
        };
        self.end_retired().await;
        let start = async {
            tokio::time::sleep(pause).await;
            self.server.start(self.events.clone()).await
        };
        let started = tokio::select! {
            started = start => started,
            _ = stopping.changed() => return Err(StartError("they have been shut down".into())),
        };
        match &started {
            Ok(()) => self.state().is_running = true,
            Err(error) => self.state().failed(&error.0),
        }
        started
    }

    /// The server is gone: the next one who needs it starts it.
    pub(super) fn lost(&self, reason: &str) {
        let mut state = self.state();
        if mem::take(&mut state.is_running) {
            state.failed(reason);
        }
    }

    /// Nobody is to use the server any more: [`Self::clear`] ends it, or the next start does.
    pub(super) fn retire(&self) {
        let mut state = self.state();
        state.is_retired |= mem::take(&mut state.is_running);
    }

    /// Ends a retired server.
    pub(super) async fn clear(&self) {
        let _gate = self.gate.lock().await;
        self.end_retired().await;
    }

    /// The gate must be held.
    async fn end_retired(&self) {
        if mem::take(&mut self.state().is_retired) {
            self.server.stop().await;
        }
    }

    /// Ends the server, or the attempt to start it.
    pub(super) async fn stop(&self) {
        self.stopping.send_replace(true);
        let _gate = self.gate.lock().await;
        self.retire();
        self.end_retired().await;
    }

    /// How long to wait before the next attempt. `None`: somebody has started it meanwhile.
    fn pause(&self) -> Result<Option<Duration>, StartError> {
        let mut state = self.state();
        if state.is_running {
            return Ok(None);
        }
        state.failures.retain(|at| at.elapsed() < MEMORY);
        let count = state.failures.len();
        if count >= ATTEMPTS {
            return Err(StartError(format!(
                "off after {count} failures in 5 minutes, the last one: {}",
                state.last
            )));
        }
        Ok(Some(
            count
                .checked_sub(1)
                .map_or(Duration::ZERO, |doublings| PAUSE * (1 << doublings)),
        ))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn failed(&mut self, reason: &str) {
        self.failures.push(Instant::now());
        reason.clone_into(&mut self.last);
    }
}

const ATTEMPTS: usize = 3;
const MEMORY: Duration = Duration::from_secs(5 * 60);
const PAUSE: Duration = Duration::from_millis(250);
