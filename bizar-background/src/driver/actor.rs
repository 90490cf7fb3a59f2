//! The one task that owns the machine.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{broadcast, mpsc, oneshot};

use super::{Records, Server, Starter, clock};
use crate::{
    Answer, Change, Counters, Effect, Event, Failure, InstanceId, Limits, Machine, Refusal, Spawn,
    Status, View,
};

/// Everything that reaches the machine.
pub(super) enum Input {
    Spawn {
        spawn: Box<Spawn>,
        reply: oneshot::Sender<Result<View, Refusal>>,
    },
    View {
        id: InstanceId,
        reply: oneshot::Sender<Option<View>>,
    },
    Views {
        reply: oneshot::Sender<Vec<View>>,
    },
    Counters {
        reply: oneshot::Sender<Counters>,
    },
    Kill {
        id: InstanceId,
        reply: oneshot::Sender<Option<Status>>,
    },
    /// `keep` holds the queue open until everything has ended.
    Shutdown {
        reply: Option<oneshot::Sender<()>>,
        keep: mpsc::UnboundedSender<Self>,
    },
    Event {
        event: Event<'static>,
        waiting: Arc<AtomicUsize>,
    },
    Answer(Answer),
    Lost {
        reason: String,
    },
}

pub(super) struct Actor<S: Server> {
    machine: Machine,
    starter: Arc<Starter<S>>,
    inputs: mpsc::WeakUnboundedSender<Input>,
    changes: broadcast::Sender<Change>,
    records: Records,
    /// Spawns that wait until their prompt is taken.
    spawning: HashMap<InstanceId, oneshot::Sender<Result<View, Refusal>>>,
    /// Who waits until everything has ended. `Some` even if nobody does.
    closing: Option<Vec<oneshot::Sender<()>>>,
    keep: Option<mpsc::UnboundedSender<Input>>,
}

impl<S: Server> Actor<S> {
    pub(super) fn new(
        starter: Arc<Starter<S>>,
        limits: Limits,
        inputs: mpsc::WeakUnboundedSender<Input>,
        changes: broadcast::Sender<Change>,
        records: Records,
    ) -> Self {
        let machine = Machine::new(limits);
        Self {
            machine,
            starter,
            inputs,
            changes,
            records,
            spawning: HashMap::new(),
            closing: None,
            keep: None,
        }
    }

    pub(super) async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Input>) {
        loop {
            let pause = self
                .machine
                .next_tick()
                .map(|due| due.saturating_sub(clock::now().clock));
            // The clock counts the sleep of the machine, tokio's timers do not: look up now and then.
            let pause = pause.map_or(IDLE, |pause| pause.min(AWAKE));
            tokio::select! {
                input = queue.recv() => match input {
                    Some(input) => self.take(input),
                    None => return,
                },
                () = tokio::time::sleep(pause) => {}
            }
            self.machine.tick(clock::now());
            self.flow();
            if self.closing.is_some()
                && self
                    .machine
                    .views(clock::now())
                    .all(|view| view.status.is_final())
            {
                return self.close(queue).await;
            }
        }
    }

    fn take(&mut self, input: Input) {
        let now = clock::now();
        match input {
            Input::Spawn { spawn, reply } => {
                let id = new_id(now.epoch_ms);
                match self.machine.spawn(now, id, *spawn) {
                    Ok(()) => {
                        self.spawning.insert(id, reply);
                    }
                    Err(refusal) => {
                        let _ = reply.send(Err(refusal));
                    }
                }
            }
            Input::View { id, reply } => {
                let _ = reply.send(self.machine.view(now, id));
            }
            Input::Views { reply } => {
                let _ = reply.send(self.machine.views(now).collect());
            }
            Input::Counters { reply } => {
                let _ = reply.send(self.machine.counters());
            }
            Input::Kill { id, reply } => {
                let _ = reply.send(self.machine.kill(now, id));
            }
            Input::Shutdown { reply, keep } => {
                self.machine.shutdown(now);
                self.keep = Some(keep);
                self.closing.get_or_insert_default().extend(reply);
            }
            Input::Event { event, waiting } => {
                waiting.fetch_sub(1, Ordering::Relaxed);
                self.machine.event(now, &event);
            }
            Input::Answer(answer) => {
                let taken = match &answer {
                    Answer::Prompted { id, taken: Ok(()) } => Some(*id),
                    _ => None,
                };
                self.machine.answer(now, answer);
                if let Some(id) = taken {
                    self.started(id);
                }
            }
            Input::Lost { reason } => {
                self.starter.lost(&reason);
                self.machine.server_lost(now, &reason);
            }
        }
    }

    /// Passes on what the machine says and wants.
    fn flow(&mut self) {
        while let Some(change) = self.machine.next_change() {
            let (id, status) = (change.instance_id, change.status);
            // Without a receiver nobody wants to know.
            let _ = self.changes.send(change);
            if status != Status::Pending {
                self.started(id);
            }
        }
        while let Some(effect) = self.machine.next_effect() {
            match effect {
                Effect::Persist { id } => {
                    if let Some(record) = self.machine.record(id) {
                        self.records.save(record);
                    }
                }
                Effect::Retire => {
                    // Known at once, so that nobody begins on it; the end itself takes its time.
                    self.starter.retire();
                    let starter = Arc::clone(&self.starter);
                    tokio::spawn(async move { starter.clear().await });
                }
                effect => {
                    let (starter, inputs) = (Arc::clone(&self.starter), self.inputs.clone());
                    tokio::spawn(async move {
                        if let Some(answer) = perform(&starter, effect).await
                            && let Some(inputs) = inputs.upgrade()
                        {
                            let _ = inputs.send(Input::Answer(answer));
                        }
                    });
                }
            }
        }
    }

    fn started(&mut self, id: InstanceId) {
        if let Some(reply) = self.spawning.remove(&id)
            && let Some(view) = self.machine.view(clock::now(), id)
        {
            let _ = reply.send(Ok(view));
        }
    }

    /// Everything has ended: stops the server, and answers until nobody asks any more.
    async fn close(mut self, mut queue: mpsc::UnboundedReceiver<Input>) {
        self.starter.stop().await;
        self.records.flush().await;
        for reply in self.closing.take().unwrap_or_default() {
            let _ = reply.send(());
        }
        self.keep = None;
        while let Some(input) = queue.recv().await {
            match input {
                Input::Shutdown { reply, .. } => {
                    let _ = reply.map(|reply| reply.send(()));
                }
                input => {
                    self.take(input);
                    self.flow();
                }
            }
        }
    }
}

/// Does one thing. A server that does not answer in time has not answered.
async fn perform<S: Server>(starter: &Starter<S>, effect: Effect) -> Option<Answer> {
    let server = &starter.server;
    let late = || Failure::Unclear("no answer in time".into());
    Some(match effect {
        Effect::Create { id, spawn } => {
            if let Err(error) = starter.ensure().await {
                return Some(Answer::Created {
                    id,
                    session: Err(Failure::Refused(error.to_string())),
                });
            }
            let session = tokio::time::timeout(CALL, server.create(id, &spawn)).await;
            Answer::Created {
                id,
                session: session.unwrap_or_else(|_| Err(late())),
            }
        }
        Effect::Prompt { id, session, spawn } => {
            let taken = tokio::time::timeout(CALL, server.prompt(&session, &spawn)).await;
            Answer::Prompted {
                id,
                taken: taken.unwrap_or_else(|_| Err(late())),
            }
        }
        Effect::Abort { id, session } => {
            // Whether it had an effect is seen by looking.
            let _ = tokio::time::timeout(ABORT, server.abort(&session)).await;
            Answer::Aborted { id }
        }
        Effect::Observe {
            id,
            session,
            ticket,
        } => {
            let snapshot = tokio::time::timeout(CALL, server.observe(&session)).await;
            Answer::Observed {
                id,
                ticket,
                snapshot: snapshot.unwrap_or_else(|_| Err(late())),
            }
        }
        Effect::Respond { request, grant, .. } => {
            // The next look shows it again if it was not heard.
            let _ = tokio::time::timeout(CALL, server.respond(&request, grant)).await;
            return None;
        }
        Effect::Persist { .. } | Effect::Retire => return None,
    })
}

fn new_id(epoch_ms: u64) -> InstanceId {
    let mut random = [0; 10];
    if getrandom::fill(&mut random).is_err() {
        // A name must be new, not secret: the clock's smallest digits do.
        let nanos = crate::process::since_boot().as_nanos().to_le_bytes();
        random.copy_from_slice(nanos.get(..10).unwrap_or(&[0; 10]));
    }
    InstanceId::new(epoch_ms, random)
}

const CALL: Duration = Duration::from_secs(30);
const ABORT: Duration = Duration::from_secs(5);
/// How long to wait when nothing is due.
const IDLE: Duration = Duration::from_secs(3600);
/// How long to wait at most while something is.
const AWAKE: Duration = Duration::from_secs(1);
