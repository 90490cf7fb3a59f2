//! All background agents of one server: slots, routing, time.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

use crate::{
    Answer, Change, Effect, Event, InstanceId, Intent, Limits, Now, Record, Refusal, Spawn, Status,
    View,
    instance::{Instance, Outbox},
};

/// The state of all background agents of one server, without any input or output of its own.
///
/// Feed it commands, [`Event`]s, [`Answer`]s and the time; take [`Effect`]s and
/// [`Change`]s from it. It never blocks, reads no clock and starts nothing.
///
/// ```
/// use bizar_background::{Effect, InstanceId, Limits, Machine, Now, Spawn};
/// let mut machine = Machine::new(Limits::default());
/// let id = InstanceId::new(0, [7; 10]);
/// machine.spawn(Now::default(), id, Spawn::new("mimir", "Read the auth module."))?;
/// assert_eq!(machine.next_effect(), Some(Effect::Persist { id }));
/// assert!(matches!(machine.next_effect(), Some(Effect::Create { .. })));
/// # Ok::<(), bizar_background::Refusal>(())
/// ```
#[derive(Clone, Debug)]
pub struct Machine {
    limits: Limits,
    instances: BTreeMap<InstanceId, Instance>,
    owners: HashMap<String, InstanceId>,
    /// Parents of sessions that belong to no instance, or not yet.
    parents: VecDeque<(String, String)>,
    /// Events of sessions that belong to no instance, or not yet.
    strays: VecDeque<(Duration, Event<'static>)>,
    out: Outbox,
    /// No run has something to do before, so that an event costs the same with few runs and with many.
    due: Duration,
    is_closed: bool,
    counters: Counters,
}

/// What was passed over.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Events of types without a meaning here.
    pub unknown: u64,
    /// Events that were no JSON, did not have the shape of their type, or were too long.
    pub unreadable: u64,
    /// Words for what a session does that this version does not know.
    pub unknown_words: u64,
    /// Errors that named no session.
    pub errors_without_session: u64,
    /// Events of sessions that belong to no instance.
    pub foreign: u64,
}

impl Machine {
    /// Makes an empty machine.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            instances: BTreeMap::new(),
            owners: HashMap::new(),
            parents: VecDeque::new(),
            strays: VecDeque::new(),
            out: Outbox::default(),
            due: Duration::MAX,
            is_closed: false,
            counters: Counters::default(),
        }
    }

    /// Takes a slot and starts a run.
    ///
    /// # Errors
    /// The run is not well formed, all slots are taken, or everything is being shut down.
    pub fn spawn(&mut self, now: Now, id: InstanceId, spawn: Spawn) -> Result<(), Refusal> {
        if self.is_closed {
            return Err(Refusal::ShuttingDown);
        }
        spawn.check(&self.limits)?;
        if self.instances.contains_key(&id) {
            return Err(Refusal::Duplicate(id));
        }
        if self.slots_taken() >= self.limits.live {
            let holders = self
                .instances
                .values()
                .filter(|instance| instance.occupies());
            let holders = holders.map(|instance| {
                let state = if instance.is_final() {
                    "draining"
                } else {
                    instance.status_word().as_str()
                };
                (instance.id, instance.agent.clone(), state)
            });
            return Err(Refusal::NoSlot {
                limit: self.limits.live,
                holders: holders.collect(),
            });
        }
        self.forget();
        let instance = Instance::new(id, spawn, now, &mut self.out);
        self.due = self.due.min(instance.due(&self.limits));
        self.instances.insert(id, instance);
        Ok(())
    }

    /// Ends a run. `None`: there is no such instance.
    ///
    /// The status of an instance that has ended is given back and not changed. The status
    /// of a live one is final after 5 s at the latest, which [`Machine::next_change`] reports.
    pub fn kill(&mut self, now: Now, id: InstanceId) -> Option<Status> {
        let instance = self.instances.get_mut(&id)?;
        instance.intend(now, Intent::Kill, &mut self.out);
        self.due = self.due.min(instance.due(&self.limits));
        Some(instance.status_word())
    }

    /// Takes no more runs and ends all there are.
    pub fn shutdown(&mut self, now: Now) {
        self.is_closed = true;
        for instance in self.instances.values_mut() {
            instance.intend(now, Intent::Shutdown, &mut self.out);
        }
        self.due = self.due.min(now.clock);
    }

    /// The server is gone, and with it all runs. A later spawn may start another.
    pub fn server_lost(&mut self, now: Now, reason: &str) {
        for instance in self
            .instances
            .values_mut()
            .filter(|instance| instance.occupies())
        {
            instance.server_lost(now, reason, &self.limits, &mut self.out);
        }
        self.out.has_leftovers = false;
    }

    /// Takes an event of the stream.
    pub fn event(&mut self, now: Now, event: &Event<'_>) {
        match event {
            Event::Connected => self.reconcile(now),
            Event::Unknown => self.counters.unknown += 1,
            Event::Unreadable => self.counters.unreadable += 1,
            Event::Error { session: None, .. } => self.counters.errors_without_session += 1,
            Event::Status {
                activity: crate::event::Activity::Unknown,
                ..
            } => self.counters.unknown_words += 1,
            _ => {}
        }
        if let Event::Session {
            id,
            parent: Some(parent),
        } = event
        {
            self.link(now, id, parent);
        }
        let Some(session) = event.session() else {
            return;
        };
        match self.owners.get(session) {
            Some(owner) => self.deliver(now, *owner, session, event),
            None => {
                self.counters.foreign += 1;
                self.keep_stray(now, event);
            }
        }
    }

    /// Takes what came of an effect.
    pub fn answer(&mut self, now: Now, answer: Answer) {
        let (Answer::Created { id, .. }
        | Answer::Prompted { id, .. }
        | Answer::Aborted { id }
        | Answer::Observed { id, .. }) = answer;
        let Some(instance) = self.instances.get_mut(&id) else {
            return;
        };
        let (limits, out) = (&self.limits, &mut self.out);
        let mut found = Vec::new();
        match answer {
            Answer::Created { session, .. } => {
                found.extend(session.clone());
                instance.created(now, session, limits, out);
            }
            Answer::Prompted { taken, .. } => instance.prompted(now, taken, limits, out),
            Answer::Aborted { .. } => instance.aborted(now, out),
            Answer::Observed {
                ticket, snapshot, ..
            } => {
                instance.observed(now, ticket, snapshot, limits, out);
                let is_new = |session: &&String| !self.owners.contains_key(*session);
                found.extend(instance.sessions().filter(is_new).cloned());
            }
        }
        self.due = self.due.min(instance.due(limits));
        for session in found {
            self.own(now, id, &session);
        }
    }

    /// Compares all live runs with the server. Each `Event::Connected` does it by itself.
    pub fn reconcile(&mut self, now: Now) {
        for instance in self
            .instances
            .values_mut()
            .filter(|instance| instance.occupies())
        {
            instance.look_soon(now, &mut self.out);
        }
        self.due = self.due.min(now.clock);
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Now) {
        debug_assert!(
            self.instances
                .values()
                .all(|instance| instance.due(&self.limits) >= self.due),
            "a run that would be late"
        );
        if now.clock >= self.due {
            self.due = Duration::MAX;
            for instance in self
                .instances
                .values_mut()
                .filter(|instance| instance.occupies())
            {
                instance.tick(now, &self.limits, &mut self.out);
                self.due = self.due.min(instance.due(&self.limits));
            }
        }
        while self
            .strays
            .front()
            .is_some_and(|(at, _)| now.clock >= *at + self.limits.timing.stray)
        {
            self.strays.pop_front();
        }
        if self.must_retire() {
            self.out.has_leftovers = false;
            self.out.effects.push_back(Effect::Retire);
        }
    }

    /// The clock before which [`Machine::tick`] has nothing to do.
    #[must_use]
    pub fn next_tick(&self) -> Option<Duration> {
        if self.must_retire() {
            return Some(Duration::ZERO);
        }
        (self.due < Duration::MAX).then_some(self.due)
    }

    /// Takes the next thing to do.
    pub fn next_effect(&mut self) -> Option<Effect> {
        self.out.effects.pop_front()
    }

    /// Takes the next change of a status.
    pub fn next_change(&mut self) -> Option<Change> {
        self.out.changes.pop_front()
    }

    /// Shows one instance.
    #[must_use]
    pub fn view(&self, now: Now, id: InstanceId) -> Option<View> {
        self.instances
            .get(&id)
            .map(|instance| instance.view(now, &self.limits))
    }

    /// Shows all instances that are remembered, the newest last.
    pub fn views(&self, now: Now) -> impl Iterator<Item = View> {
        self.instances
            .values()
            .map(move |instance| instance.view(now, &self.limits))
    }

    /// What to store of an instance.
    #[must_use]
    pub fn record(&self, id: InstanceId) -> Option<Record> {
        self.instances.get(&id).map(Instance::record)
    }

    /// How many slots are taken: by live instances, and by ended ones that are not quiet yet.
    #[must_use]
    pub fn slots_taken(&self) -> usize {
        self.instances
            .values()
            .filter(|instance| instance.occupies())
            .count()
    }

    /// What was passed over.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The limits the machine was made with.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Something that nobody wants is still busy, and nothing else would be ended with it.
    fn must_retire(&self) -> bool {
        self.out.has_leftovers && self.slots_taken() == 0
    }

    fn deliver(&mut self, now: Now, owner: InstanceId, session: &str, event: &Event<'_>) {
        if let Some(instance) = self.instances.get_mut(&owner) {
            instance.event(now, session, event, &self.limits, &mut self.out);
            self.due = self.due.min(instance.due(&self.limits));
        }
    }

    fn link(&mut self, now: Now, session: &str, parent: &str) {
        if self.owners.contains_key(session) {
            return;
        }
        if let Some(owner) = self.owners.get(parent).copied() {
            self.own(now, owner, session);
        } else if !self.parents.iter().any(|(known, _)| known == session) {
            if self.parents.len() >= KEPT_PARENTS {
                self.parents.pop_front();
            }
            self.parents.push_back((session.into(), parent.into()));
        }
    }

    /// Gives a session and all known ones below it to an instance, and their kept events.
    fn own(&mut self, now: Now, owner: InstanceId, session: &str) {
        let mut found = vec![session.to_owned()];
        while let Some(session) = found.pop() {
            if self.owners.insert(session.clone(), owner).is_some() {
                continue;
            }
            if let Some(instance) = self.instances.get_mut(&owner) {
                instance.adopt(&session);
            }
            self.parents.retain(|(below, parent)| {
                let is_below = *parent == session;
                if is_below {
                    found.push(below.clone());
                }
                !is_below
            });
            let (ours, others) = std::mem::take(&mut self.strays)
                .into_iter()
                .partition(|(_, event)| event.session() == Some(session.as_str()));
            self.strays = others;
            let ours: VecDeque<(Duration, Event<'static>)> = ours;
            for (_, event) in ours {
                self.deliver(now, owner, &session, &event);
            }
        }
    }

    fn keep_stray(&mut self, now: Now, event: &Event<'_>) {
        let is_kept = !matches!(event, Event::Delta { .. } | Event::Session { .. });
        if is_kept && self.instances.values().any(Instance::occupies) {
            if self.strays.len() >= KEPT_STRAYS {
                self.strays.pop_front();
            }
            self.strays
                .push_back((now.clock, event.clone().into_owned()));
        }
    }

    /// Lets go of the oldest ended instances. Their records stay on disk.
    fn forget(&mut self) {
        let ended: Vec<InstanceId> = self
            .instances
            .values()
            .filter(|instance| !instance.occupies())
            .map(|instance| instance.id)
            .collect();
        let surplus = (ended.len() + 1).saturating_sub(self.limits.remembered);
        for id in ended.into_iter().take(surplus) {
            self.instances.remove(&id);
            self.owners.retain(|_, owner| *owner != id);
        }
    }
}

const KEPT_STRAYS: usize = 64;
const KEPT_PARENTS: usize = 256;
