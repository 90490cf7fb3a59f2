//! A server in this process that does what a test tells it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};

use bizar_background::{
    Event, Events, Failure, InstanceId, Message, Server, Snapshot, Spawn, StartError, Transcript,
    event::{Activity, Role},
};

#[derive(Clone, Default)]
pub(crate) struct Puppet(pub(crate) Arc<Strings>);

#[derive(Default)]
pub(crate) struct Strings {
    pub(crate) events: Mutex<Option<Events>>,
    pub(crate) sessions: Mutex<HashMap<String, (bool, Vec<Message>)>>,
    pub(crate) starts: AtomicUsize,
    pub(crate) stops: AtomicUsize,
    pub(crate) aborts: AtomicUsize,
    pub(crate) reads: AtomicUsize,
    /// Starts fail with this.
    pub(crate) start_error: Mutex<Option<String>>,
    /// Reading messages fails.
    pub(crate) is_unreadable: AtomicBool,
    /// Answers every prompt at once.
    pub(crate) is_quick: AtomicBool,
}

impl Puppet {
    pub(crate) fn quick() -> Self {
        let puppet = Self::default();
        puppet.0.is_quick.store(true, SeqCst);
        puppet
    }

    pub(crate) fn tell(&self, event: Event<'_>) {
        self.0.events.lock().unwrap().as_ref().unwrap().tell(event);
    }

    /// The run of a session ends with an answer.
    pub(crate) fn finish(&self, session: &str, text: &str) {
        let message = message(session, Role::Assistant, text);
        let mut sessions = self.0.sessions.lock().unwrap();
        let known = sessions.get_mut(session).unwrap();
        known.0 = false;
        known.1.push(message);
        drop(sessions);
        self.tell(Event::Status {
            session: session.into(),
            activity: Activity::Idle,
        });
    }

    pub(crate) fn lose(&self) {
        let events = self.0.events.lock().unwrap().take().unwrap();
        self.0.sessions.lock().unwrap().clear();
        events.lost("serve child exited (signal 9)");
    }
}

pub(crate) fn message(session: &str, role: Role, text: &str) -> Message {
    Message::whole(&format!("{session}_{text}"), role, text)
}

impl Server for Puppet {
    async fn start(&self, events: Events) -> Result<(), StartError> {
        self.0.starts.fetch_add(1, SeqCst);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        if let Some(error) = self.0.start_error.lock().unwrap().clone() {
            return Err(StartError(error));
        }
        *self.0.events.lock().unwrap() = Some(events);
        Ok(())
    }

    async fn create(&self, id: InstanceId, _: &Spawn) -> Result<String, Failure> {
        let session = format!("ses_{id}");
        self.0
            .sessions
            .lock()
            .unwrap()
            .insert(session.clone(), (false, vec![]));
        Ok(session)
    }

    async fn prompt(&self, session: &str, spawn: &Spawn) -> Result<(), Failure> {
        let prompt = message(session, Role::User, &spawn.prompt);
        *self.0.sessions.lock().unwrap().get_mut(session).unwrap() = (true, vec![prompt]);
        self.tell(Event::Status {
            session: session.into(),
            activity: Activity::Busy,
        });
        if self.0.is_quick.load(SeqCst) {
            self.finish(session, "an answer");
        }
        Ok(())
    }

    async fn abort(&self, session: &str) -> Result<(), Failure> {
        self.0.aborts.fetch_add(1, SeqCst);
        if let Some(known) = self.0.sessions.lock().unwrap().get_mut(session) {
            known.0 = false;
        }
        self.tell(Event::Status {
            session: session.into(),
            activity: Activity::Idle,
        });
        Ok(())
    }

    async fn observe(&self, session: &str) -> Result<Snapshot, Failure> {
        let sessions = self.0.sessions.lock().unwrap();
        let (is_busy, messages) = sessions.get(session).cloned().ok_or(Failure::Gone)?;
        let mut snapshot = Snapshot::idle(session, messages);
        if is_busy {
            snapshot.active.insert(session.into(), Activity::Busy);
        }
        Ok(snapshot)
    }

    async fn transcript(&self, session: &str) -> Result<Transcript, Failure> {
        self.0.reads.fetch_add(1, SeqCst);
        if self.0.is_unreadable.load(SeqCst) {
            return Err(Failure::Unclear("reset".into()));
        }
        let sessions = self.0.sessions.lock().unwrap();
        let (_, messages) = sessions.get(session).cloned().ok_or(Failure::Gone)?;
        Ok(Transcript { messages })
    }

    async fn stop(&self) {
        self.0.stops.fetch_add(1, SeqCst);
    }
}
