//! A machine with a server beside it that knows what the events have told.

use std::{collections::BTreeMap, time::Duration};

use bizar_background::{
    Answer, Change, Effect, Event, Failure, InstanceId, Limits, Machine, Message, Now,
    SessionSnapshot, Snapshot, Spawn, Status, View,
    event::{Activity, MessageInfo, Part, Request},
};

mod events;

pub(crate) use events::*;

pub(crate) struct Rig {
    pub(crate) machine: Machine,
    pub(crate) now: Now,
    pub(crate) world: World,
    /// Everything the machine wanted, in order.
    pub(crate) effects: Vec<Effect>,
    pub(crate) changes: Vec<Change>,
    /// Answers that are held back.
    pub(crate) holds: Holds,
    spawned: u8,
}

#[derive(Default)]
pub(crate) struct Holds {
    pub(crate) create: bool,
    pub(crate) prompt: bool,
    pub(crate) abort: bool,
    pub(crate) observe: bool,
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) requests: Vec<Request>,
    pub(crate) is_down: bool,
}

#[derive(Clone, Default)]
pub(crate) struct Session {
    pub(crate) parent: Option<String>,
    pub(crate) activity: Option<Activity>,
    pub(crate) messages: Vec<Message>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        Self {
            machine: Machine::new(limits),
            now: Now {
                clock: Duration::from_secs(100),
                epoch_ms: 1_000_000,
            },
            world: World::default(),
            effects: Vec::new(),
            changes: Vec::new(),
            holds: Holds::default(),
            spawned: 0,
        }
    }

    /// Spawns an instance whose session is `ses_<number>`; the first is `ses_1`.
    pub(crate) fn spawn(&mut self) -> InstanceId {
        self.spawn_with(Spawn::new("mimir", "go"))
    }

    pub(crate) fn spawn_with(&mut self, spawn: Spawn) -> InstanceId {
        self.spawned += 1;
        let id = InstanceId::new(1, [self.spawned; 10]);
        self.machine.spawn(self.now, id, spawn).unwrap();
        self.settle();
        id
    }

    pub(crate) fn events(&mut self, events: impl IntoIterator<Item = Event<'static>>) {
        for event in events {
            self.event(event);
        }
    }

    /// Something happens on the server, and the stream tells it.
    pub(crate) fn event(&mut self, event: Event<'static>) {
        self.world.apply(&event);
        self.tell(&event);
    }

    /// The stream tells something; the server knows it already, or never will.
    pub(crate) fn tell(&mut self, event: &Event<'_>) {
        self.machine.event(self.now, event);
        self.settle();
    }

    /// Something happens on the server while the stream is down.
    pub(crate) fn unseen(&mut self, events: impl IntoIterator<Item = Event<'static>>) {
        for event in events {
            self.world.apply(&event);
        }
    }

    /// Lets time pass, with all ticks that fall into it.
    pub(crate) fn pass(&mut self, ms: u64) {
        let end = self.now.clock + Duration::from_millis(ms);
        loop {
            match self.machine.next_tick() {
                Some(due) if due <= end => {
                    // A tick that changes nothing must not be asked for again at the same time.
                    let step = due.max(self.now.clock);
                    self.go_to(step);
                    if self.machine.next_tick().is_some_and(|again| again <= step) {
                        self.go_to(step + Duration::from_millis(1));
                    }
                }
                _ => break,
            }
        }
        if self.now.clock < end {
            self.go_to(end);
        }
    }

    fn go_to(&mut self, clock: Duration) {
        self.now.epoch_ms += u64::try_from((clock - self.now.clock).as_millis()).unwrap();
        self.now.clock = clock;
        self.machine.tick(self.now);
        self.settle();
    }

    pub(crate) fn kill(&mut self, id: InstanceId) {
        self.machine.kill(self.now, id);
        self.settle();
    }

    pub(crate) fn answer(&mut self, answer: Answer) {
        self.machine.answer(self.now, answer);
        self.settle();
    }

    pub(crate) fn view(&self, id: InstanceId) -> View {
        self.machine.view(self.now, id).unwrap()
    }

    pub(crate) fn status(&self, id: InstanceId) -> Status {
        self.view(id).status
    }

    /// The status and the reason, to be compared as a whole.
    pub(crate) fn end(&self, id: InstanceId) -> (Status, String) {
        let view = self.view(id);
        (view.status, view.error.unwrap_or_default())
    }

    pub(crate) fn aborts(&self) -> Vec<&str> {
        let aborts = self.effects.iter().filter_map(|effect| match effect {
            Effect::Abort { session, .. } => Some(session.as_str()),
            _ => None,
        });
        aborts.collect()
    }

    pub(crate) fn prompts(&self) -> usize {
        self.effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Prompt { .. }))
            .count()
    }

    pub(crate) fn responses(&self) -> Vec<(&str, bool)> {
        let responses = self.effects.iter().filter_map(|effect| match effect {
            Effect::Respond { request, grant, .. } => Some((request.id.as_str(), *grant)),
            _ => None,
        });
        responses.collect()
    }

    pub(crate) fn snapshot(&self, root: &str) -> Result<Snapshot, Failure> {
        self.world.snapshot(root)
    }

    /// The ticket of the last look that was asked for.
    pub(crate) fn ticket(&self) -> u64 {
        let tickets = self.effects.iter().rev().filter_map(|effect| match effect {
            Effect::Observe { ticket, .. } => Some(*ticket),
            _ => None,
        });
        tickets.max().unwrap()
    }

    /// Does what the machine wants, as far as it is not held back.
    pub(crate) fn settle(&mut self) {
        loop {
            while let Some(change) = self.machine.next_change() {
                self.changes.push(change);
            }
            let Some(effect) = self.machine.next_effect() else {
                return;
            };
            self.effects.push(effect.clone());
            let answer = match effect {
                Effect::Create { id, .. } if !self.holds.create => {
                    let session = format!(
                        "ses_{}",
                        self.world
                            .sessions
                            .values()
                            .filter(|one| one.parent.is_none())
                            .count()
                            + 1
                    );
                    self.world
                        .sessions
                        .insert(session.clone(), Session::default());
                    Answer::Created {
                        id,
                        session: Ok(session),
                    }
                }
                Effect::Prompt { id, .. } if !self.holds.prompt => {
                    Answer::Prompted { id, taken: Ok(()) }
                }
                Effect::Abort { id, .. } if !self.holds.abort => Answer::Aborted { id },
                Effect::Observe {
                    id,
                    session,
                    ticket,
                } if !self.holds.observe => Answer::Observed {
                    id,
                    ticket,
                    snapshot: self.world.snapshot(&session),
                },
                Effect::Respond { request, .. } => {
                    self.world.requests.retain(|open| open.id != request.id);
                    continue;
                }
                _ => continue,
            };
            self.machine.answer(self.now, answer);
        }
    }
}

impl World {
    pub(crate) fn apply(&mut self, event: &Event<'_>) {
        match event {
            Event::Session { id, parent } => {
                let session = self.sessions.entry(id.clone()).or_default();
                session.parent.clone_from(parent);
            }
            Event::Deleted { session } => {
                self.sessions.remove(session);
            }
            Event::Status { session, activity } => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.activity = (*activity != Activity::Idle).then(|| activity.clone());
                }
            }
            Event::Message { session, info } => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.message(&info.id).info = info.clone();
                }
            }
            Event::Part {
                session,
                message,
                part,
            } => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.message(message).put(part);
                }
            }
            Event::Asked(request) => self.requests.push(request.clone()),
            Event::Answered { request, .. } => self.requests.retain(|open| open.id != *request),
            _ => {}
        }
    }

    pub(crate) fn snapshot(&self, root: &str) -> Result<Snapshot, Failure> {
        if self.is_down {
            return Err(Failure::Unclear("connection refused".into()));
        }
        if !self.sessions.contains_key(root) {
            return Err(Failure::Gone);
        }
        let mut names = vec![root.to_owned()];
        let mut at = 0;
        while at < names.len() {
            let below = self
                .sessions
                .iter()
                .filter(|(_, session)| session.parent.as_ref() == Some(&names[at]));
            let below: Vec<_> = below.map(|(name, _)| name.clone()).collect();
            names.extend(below);
            at += 1;
        }
        let active = self
            .sessions
            .iter()
            .filter_map(|(name, session)| Some((name.clone(), session.activity.clone()?)));
        let sessions = names.iter().map(|name| SessionSnapshot {
            id: name.clone(),
            parent: self.sessions[name].parent.clone(),
            transcript: bizar_background::Transcript {
                messages: self.sessions[name].messages.clone(),
            },
        });
        Ok(Snapshot {
            active: active.collect(),
            sessions: sessions.collect(),
            requests: self.requests.clone(),
        })
    }
}

impl Session {
    fn message(&mut self, id: &str) -> &mut Message {
        let known = self
            .messages
            .iter()
            .position(|message| message.info.id == id);
        let at = known.unwrap_or_else(|| {
            self.messages.push(Message {
                info: MessageInfo {
                    id: id.into(),
                    ..MessageInfo::default()
                },
                parts: vec![],
            });
            self.messages.len() - 1
        });
        &mut self.messages[at]
    }
}

trait Put {
    fn put(&mut self, part: &Part);
}

impl Put for Message {
    fn put(&mut self, part: &Part) {
        let same = self.parts.iter_mut().find(|old| match (old, part) {
            (Part::Tool { call: old, .. }, Part::Tool { call, .. }) => old == call,
            (Part::Text { .. }, Part::Text { .. }) => true,
            _ => false,
        });
        match same {
            Some(old) => *old = part.clone(),
            None => self.parts.push(part.clone()),
        }
    }
}
