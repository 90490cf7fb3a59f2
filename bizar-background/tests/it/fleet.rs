//! Whatever happens in whatever order, the promises hold.
//!
//! A small server plays runs from the grammar of recorded streams. What it tells is
//! delayed, dropped, doubled and mixed between sessions; what it is asked for is done
//! in any order, late, or never. Beside it a model keeps only what it has seen go in
//! and out, and says after each step what must be true.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use bizar_background::{
    Answer, Effect, Event, Failure, InstanceId, Limits, Machine, Now, Refusal, Snapshot, Spawn,
    Status,
    event::{Part, ToolState},
};
use proptest::prelude::*;

use crate::rig::{
    World, aborted, assistant, busy, child, completed, delta, error, failed, idle, permission,
    retry, server_error, step, text, tool, user,
};

const SLOTS: usize = 3;
const CAP: usize = 6;
const GUARD: &str = "Loop protection: 12 identical calls to bash. Use task to escalate.";

/// Why a run must end, in the order in which it came to be known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum First {
    Kill,
    Deadline,
    Cap,
    Guard,
    Shutdown,
}

/// What has been seen of an instance from outside.
#[derive(Default)]
struct Seen {
    session: Option<String>,
    deadline: Duration,
    first: Vec<First>,
    statuses: Vec<Status>,
    error: Option<String>,
    calls: BTreeSet<(String, String)>,
    prompts: usize,
}

impl Seen {
    fn is_final(&self) -> bool {
        self.statuses.last().is_some_and(|status| status.is_final())
    }
}

/// A look that was taken: what it says, and whether the whole tree was quiet and answered.
struct Look {
    snapshot: Result<Snapshot, Failure>,
    is_proof: bool,
    calls: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Play {
    Fresh,
    Prompted,
    Running,
    Asking,
    Late,
    Idle,
}

struct Actor {
    play: Play,
    root: String,
    messages: u32,
    calls: u32,
    is_answered: bool,
    ignores_aborts: bool,
}

struct Sim {
    machine: Machine,
    now: Now,
    world: World,
    actors: BTreeMap<String, Actor>,
    queues: BTreeMap<String, VecDeque<Event<'static>>>,
    is_cut: bool,
    last: Option<Event<'static>>,
    todo: Vec<Effect>,
    looks: BTreeMap<(InstanceId, u64), Look>,
    seen: BTreeMap<InstanceId, Seen>,
    /// The proof in the look that is being answered right now.
    proof: Option<(InstanceId, bool, usize)>,
    is_closed: bool,
    spawned: u8,
}

impl Sim {
    fn new() -> Self {
        let limits = Limits {
            live: SLOTS,
            tool_calls: CAP,
            ..Limits::default()
        };
        Self {
            machine: Machine::new(limits),
            now: Now {
                clock: Duration::from_secs(5),
                epoch_ms: 1,
            },
            world: World::default(),
            actors: BTreeMap::new(),
            queues: BTreeMap::new(),
            is_cut: false,
            last: None,
            todo: Vec::new(),
            looks: BTreeMap::new(),
            seen: BTreeMap::new(),
            proof: None,
            is_closed: false,
            spawned: 0,
        }
    }

    fn act(&mut self, (op, a, b): (u8, u8, u8)) {
        match op % 32 {
            0..=2 => self.spawn(a),
            3 => self.kill(a),
            4 if a < 16 => {
                self.is_closed = true;
                self.note_all(First::Shutdown);
                self.machine.shutdown(self.now);
            }
            4 if a > 240 => self.lose_server(),
            5 => self.pass(u64::from(a) * u64::from(b)),
            6 => self.pass(u64::from(a)),
            7 => self.cut(),
            8 | 9 => self.reconnect(),
            10 => self.double(),
            11..=16 => self.progress(a, b),
            17..=22 => self.deliver(a, b),
            _ => self.perform(a, b),
        }
        self.check();
    }

    fn spawn(&mut self, a: u8) {
        self.spawned += 1;
        let id = InstanceId::new(u64::from(self.spawned), [a; 10]);
        let deadline = Duration::from_millis(1_000 + u64::from(a) * 500);
        let taken = self.machine.slots_taken();
        match self.machine.spawn(
            self.now,
            id,
            Spawn {
                deadline,
                ..Spawn::new("m", "go")
            },
        ) {
            Ok(()) => {
                assert!(taken < SLOTS && !self.is_closed);
                self.seen.insert(
                    id,
                    Seen {
                        deadline: self.now.clock + deadline,
                        ..Seen::default()
                    },
                );
            }
            Err(Refusal::ShuttingDown) => assert!(self.is_closed),
            Err(Refusal::NoSlot { holders, .. }) => {
                assert_eq!((taken, holders.len()), (SLOTS, SLOTS))
            }
            Err(refusal) => panic!("{refusal}"),
        }
    }

    fn kill(&mut self, a: u8) {
        let Some(id) = pick(self.seen.keys().copied(), a) else {
            return;
        };
        self.note(id, First::Kill);
        self.machine.kill(self.now, id);
    }

    fn lose_server(&mut self) {
        self.machine
            .server_lost(self.now, "serve child exited (signal 9)");
        self.queues.clear();
        self.actors.clear();
        self.world = World::default();
        assert_eq!(self.machine.slots_taken(), 0);
    }

    fn pass(&mut self, ms: u64) {
        self.now.clock += Duration::from_millis(ms);
        self.now.epoch_ms += ms;
        for seen in self.seen.values_mut() {
            if self.now.clock >= seen.deadline && !seen.is_final() && seen.first.is_empty() {
                seen.first.push(First::Deadline);
            }
        }
        self.machine.tick(self.now);
        let next = self.machine.next_tick();
        assert!(
            next.is_none_or(|due| due > self.now.clock),
            "a tick that leaves something due"
        );
    }

    fn cut(&mut self) {
        self.is_cut = true;
        self.queues.clear();
    }

    fn reconnect(&mut self) {
        if std::mem::take(&mut self.is_cut) {
            self.machine.event(self.now, &Event::Connected);
        }
    }

    fn double(&mut self) {
        if let Some(event) = self.last.clone() {
            self.tell(&event);
        }
    }

    fn deliver(&mut self, a: u8, b: u8) {
        let Some(session) = pick(self.queues.keys().cloned(), a) else {
            return;
        };
        for _ in 0..=b % 4 {
            let Some(event) = self.queues.get_mut(&session).and_then(VecDeque::pop_front) else {
                return;
            };
            self.tell(&event);
            self.last = Some(event);
        }
    }

    fn tell(&mut self, event: &Event<'static>) {
        if let Event::Part {
            session,
            message,
            part: Part::Tool { call, state, .. },
        } = event
            && let Some(owner) = self.owner(event)
        {
            let is_root = self.seen[&owner].session.as_ref() == Some(session);
            self.note_call(owner, message, call, state, is_root);
        }
        self.machine.event(self.now, event);
    }

    /// The instance that has to count an event, if it can know that it is its own.
    fn owner(&self, event: &Event<'_>) -> Option<InstanceId> {
        let root = &self.actors.get(event.session()?)?.root;
        self.seen
            .iter()
            .find(|(_, seen)| seen.session.as_ref() == Some(root))
            .map(|(id, _)| *id)
    }

    fn note_call(
        &mut self,
        id: InstanceId,
        message: &str,
        call: &str,
        state: &ToolState,
        is_root: bool,
    ) {
        let seen = self.seen.get_mut(&id).unwrap();
        if seen.is_final() {
            return;
        }
        seen.calls.insert((message.into(), call.into()));
        let is_capped = seen.calls.len() >= CAP;
        if is_root && *state == ToolState::Failed(GUARD.into()) {
            self.note(id, First::Guard);
        }
        if is_capped {
            self.note(id, First::Cap);
        }
    }

    fn note(&mut self, id: InstanceId, first: First) {
        let seen = self.seen.get_mut(&id).unwrap();
        if !seen.is_final() && seen.first.is_empty() {
            seen.first.push(first);
        }
    }

    fn note_all(&mut self, first: First) {
        for id in self.seen.keys().copied().collect::<Vec<_>>() {
            self.note(id, first);
        }
    }

    fn say(&mut self, session: &str, events: Vec<Event<'static>>) {
        for event in &events {
            self.world.apply(event);
        }
        if !self.is_cut {
            self.queues
                .entry(session.into())
                .or_default()
                .extend(events);
        }
    }

    /// One session goes on.
    fn progress(&mut self, a: u8, b: u8) {
        let Some(name) = pick(self.actors.keys().cloned(), a) else {
            return;
        };
        let s = name.as_str();
        let actor = self.actors.get_mut(s).unwrap();
        let message = format!("{s}_m{}", actor.messages);
        let events = match actor.play {
            Play::Fresh | Play::Asking => return,
            Play::Prompted if b < 12 => {
                actor.play = Play::Idle;
                vec![
                    error(s, "UnknownError", "Agent not found"),
                    error(s, "UnknownError", "UnknownError"),
                ]
            }
            Play::Prompted => {
                actor.play = Play::Running;
                vec![busy(s), assistant(s, &message), busy(s), step(s, &message)]
            }
            Play::Late => {
                actor.play = Play::Idle;
                actor.is_answered = true;
                vec![
                    text(s, &message, "late"),
                    completed(s, &message, "stop"),
                    idle(s),
                ]
            }
            Play::Idle if actor.messages > 0 && b < 24 => {
                // Something wakes it: a subagent that has ended, or a person.
                actor.play = Play::Prompted;
                actor.is_answered = false;
                actor.messages += 1;
                vec![user(s, &format!("{s}_u{}", actor.messages))]
            }
            Play::Idle => return,
            Play::Running => self.step(s, &message, b),
        };
        self.say(&name, events);
    }

    fn step(&mut self, s: &str, message: &str, b: u8) -> Vec<Event<'static>> {
        let children = self.actors.len();
        let actor = self.actors.get_mut(s).unwrap();
        match b % 16 {
            0 | 1 => vec![delta(s, message, "w "), text(s, message, "w w")],
            2..=4 => {
                actor.calls += 1;
                let call = format!("c{}", actor.calls % 3);
                vec![
                    tool(s, message, &call, ToolState::Open),
                    tool(s, message, &call, ToolState::Completed),
                ]
            }
            5 | 6 => {
                actor.messages += 1;
                let next = format!("{s}_m{}", actor.messages);
                vec![
                    completed(s, message, "tool-calls"),
                    busy(s),
                    assistant(s, &next),
                    busy(s),
                ]
            }
            7 if children < 8 => {
                let below = format!("{s}c{children}");
                let root = actor.root.clone();
                let play = Actor {
                    play: Play::Prompted,
                    root,
                    messages: 0,
                    calls: 0,
                    is_answered: false,
                    ignores_aborts: b > 200,
                };
                self.actors.insert(below.clone(), play);
                self.say(
                    &below,
                    vec![child(&below, s), user(&below, &format!("{below}_u"))],
                );
                vec![]
            }
            8 => {
                actor.play = Play::Asking;
                actor.calls += 1;
                vec![permission(s, &format!("per_{s}_{}", actor.calls))]
            }
            9 => {
                actor.play = Play::Idle;
                let error_ = server_error("APIError", "overloaded");
                vec![
                    error(s, "APIError", "overloaded"),
                    idle(s),
                    failed(s, message, error_),
                    idle(s),
                ]
            }
            10 => vec![retry(s, 1, 99), busy(s)],
            11 if b > 128 => vec![tool(s, message, "guarded", ToolState::Failed(GUARD.into()))],
            12 => {
                actor.play = Play::Late;
                vec![idle(s)]
            }
            13 => vec![error(s, "ContextOverflowError", "too long"), busy(s)],
            14 if b > 200 => {
                actor.play = Play::Idle;
                // Without a reason, but with a text, it is an answer.
                let said = self.world.sessions[s]
                    .messages
                    .iter()
                    .filter(|one| one.info.id == message);
                actor.is_answered = said
                    .flat_map(|one| &one.parts)
                    .any(|part| matches!(part, Part::Text { .. }));
                vec![completed(s, message, "unknown"), idle(s), idle(s)]
            }
            _ => {
                actor.play = Play::Idle;
                actor.is_answered = true;
                vec![
                    text(s, message, "the end"),
                    completed(s, message, "stop"),
                    busy(s),
                    idle(s),
                    idle(s),
                ]
            }
        }
    }

    /// One of the things that the machine wants is done, refused, lost or answered.
    fn perform(&mut self, a: u8, b: u8) {
        if self.todo.is_empty() {
            return;
        }
        let effect = self.todo.remove(usize::from(a) % self.todo.len());
        let answer = match effect {
            Effect::Create { id, .. } if b < 10 => Answer::Created {
                id,
                session: Err(Failure::Unclear("reset".into())),
            },
            Effect::Create { id, .. } => {
                let session = format!("s{id}");
                self.world
                    .sessions
                    .insert(session.clone(), crate::rig::Session::default());
                let actor = Actor {
                    play: Play::Fresh,
                    root: session.clone(),
                    messages: 0,
                    calls: 0,
                    is_answered: false,
                    ignores_aborts: b > 230,
                };
                self.actors.insert(session.clone(), actor);
                self.seen.get_mut(&id).unwrap().session = Some(session.clone());
                Answer::Created {
                    id,
                    session: Ok(session),
                }
            }
            Effect::Prompt { id, session, .. } => {
                let taken = match b {
                    0..=9 => Err(Failure::Refused("bad".into())),
                    10..=29 => Err(Failure::Unclear("reset".into())),
                    _ => Ok(()),
                };
                // An unclear prompt may have arrived or not.
                if (taken.is_ok() || b >= 20)
                    && let Some(actor) = self.actors.get_mut(&session)
                {
                    actor.play = Play::Prompted;
                    self.say(&session, vec![user(&session, &format!("{session}_u"))]);
                }
                Answer::Prompted { id, taken }
            }
            Effect::Abort { id, session } => {
                if let Some(actor) = self.actors.get_mut(&session)
                    && !actor.ignores_aborts
                    && !matches!(actor.play, Play::Idle | Play::Fresh | Play::Prompted)
                {
                    actor.play = Play::Idle;
                    let message = format!("{session}_m{}", actor.messages);
                    let end = failed(
                        &session,
                        &message,
                        server_error("MessageAbortedError", "Aborted"),
                    );
                    self.say(
                        &session,
                        vec![aborted(&session), idle(&session), end, idle(&session)],
                    );
                }
                Answer::Aborted { id }
            }
            Effect::Observe {
                id,
                ref session,
                ticket,
            } => match self.looks.remove(&(id, ticket)) {
                // First it is taken, and answered some time later.
                None => {
                    let look = self.look(session, b);
                    self.looks.insert((id, ticket), look);
                    return self.todo.push(effect);
                }
                Some(look) => {
                    self.note_look(id, &look.snapshot);
                    self.proof = Some((id, look.is_proof, look.calls));
                    Answer::Observed {
                        id,
                        ticket,
                        snapshot: look.snapshot,
                    }
                }
            },
            Effect::Respond { request, grant, .. } => {
                assert!(!grant);
                self.world.requests.retain(|open| open.id != request.id);
                if let Some(actor) = self.actors.get_mut(&request.session)
                    && actor.play == Play::Asking
                {
                    actor.play = Play::Running;
                }
                return;
            }
            _ => return,
        };
        self.machine.answer(self.now, answer);
    }

    fn look(&self, session: &str, b: u8) -> Look {
        if b < 20 {
            let snapshot = Err(Failure::Unclear("reset".into()));
            return Look {
                snapshot,
                is_proof: false,
                calls: 0,
            };
        }
        let tree = self
            .actors
            .iter()
            .filter(|(_, actor)| actor.root == *session);
        let is_quiet = tree.clone().all(|(name, actor)| {
            // A subagent that has not begun is not busy yet; the root that waits for it is.
            matches!(actor.play, Play::Idle | Play::Fresh | Play::Late)
                || name != session && actor.play == Play::Prompted
        });
        let root = self.actors.get(session);
        let is_proof =
            is_quiet && root.is_some_and(|root| root.play == Play::Idle && root.is_answered);
        let snapshot = self.world.snapshot(session);
        let calls = snapshot
            .iter()
            .flat_map(|snapshot| &snapshot.sessions)
            .flat_map(|one| &one.transcript.messages);
        let calls = calls
            .flat_map(|message| &message.parts)
            .filter(|part| matches!(part, Part::Tool { .. }));
        Look {
            is_proof,
            calls: calls.count(),
            snapshot,
        }
    }

    fn note_look(&mut self, id: InstanceId, snapshot: &Result<Snapshot, Failure>) {
        let Ok(snapshot) = snapshot else { return };
        let root = self.seen[&id].session.clone();
        for session in &snapshot.sessions {
            for message in &session.transcript.messages {
                for part in &message.parts {
                    if let Part::Tool { call, state, .. } = part {
                        let is_root = root.as_ref() == Some(&session.id);
                        self.note_call(id, &message.info.id, call, state, is_root);
                    }
                }
            }
        }
    }

    /// What must be true after each step.
    fn check(&mut self) {
        let finals: BTreeSet<_> = self
            .seen
            .iter()
            .filter(|(_, seen)| seen.is_final())
            .map(|(id, _)| *id)
            .collect();
        while let Some(change) = self.machine.next_change() {
            let seen = self.seen.get_mut(&change.instance_id).unwrap();
            let last = seen.statuses.last().copied();
            let is_allowed = match change.status {
                Status::Pending => last.is_none(),
                Status::Running => last == Some(Status::Pending),
                _ => matches!(last, Some(Status::Pending | Status::Running)),
            };
            assert!(is_allowed, "{:?} after {last:?}", change.status);
            seen.statuses.push(change.status);
            seen.error = change.error;
        }
        while let Some(effect) = self.machine.next_effect() {
            if let Effect::Create { id, .. } | Effect::Prompt { id, .. } = effect {
                assert!(!finals.contains(&id), "work after the end");
                let seen = self.seen.get_mut(&id).unwrap();
                if let Effect::Prompt { .. } = effect {
                    assert_eq!(
                        seen.first,
                        [],
                        "a prompt after it was decided to end the run"
                    );
                    seen.prompts += 1;
                    assert!(seen.prompts <= 2);
                }
            }
            self.todo.push(effect);
        }
        let live = self.seen.values().filter(|seen| !seen.is_final()).count();
        let taken = self.machine.slots_taken();
        assert!(
            live <= taken && taken <= SLOTS,
            "{live} live, {taken} slots taken"
        );
        let proof = self.proof.take();
        for (id, seen) in &self.seen {
            let view = self.machine.view(self.now, *id).unwrap();
            assert_eq!(Some(&view.status), seen.statuses.last());
            assert_eq!(view.error, seen.error);
            if !seen.is_final() || finals.contains(id) {
                continue;
            }
            match seen.first.first() {
                Some(first) => assert_first(*first, seen),
                None => assert!(
                    matches!(view.status, Status::Done | Status::Failed),
                    "{view:?}"
                ),
            }
            if view.status == Status::Done {
                let (prover, is_proof, calls) =
                    proof.unwrap_or_else(|| panic!("done without a look"));
                assert!(prover == *id && is_proof, "done without a proof");
                assert!(view.tool_call_count >= calls, "calls were lost");
                assert_eq!(
                    view.tool_call_count,
                    seen.calls.len(),
                    "calls were lost or counted twice"
                );
            }
        }
    }
}

fn assert_first(first: First, seen: &Seen) {
    let (status, error) = (
        *seen.statuses.last().unwrap(),
        seen.error.as_deref().unwrap_or_default(),
    );
    let is_right = match first {
        First::Kill => status == Status::Killed,
        First::Deadline => status == Status::TimedOut,
        // One look may show both at once.
        First::Cap | First::Guard => {
            status == Status::Failed
                && (error.contains("tool calls was reached") || error.contains("loop guard"))
        }
        First::Shutdown => status == Status::Failed && error.contains("shut down"),
    };
    assert!(is_right, "{first:?} came first, but {status:?}: {error}");
}

fn pick<T>(items: impl Iterator<Item = T>, which: u8) -> Option<T> {
    let mut items: Vec<T> = items.collect();
    let at = usize::from(which).checked_rem(items.len())?;
    Some(items.swap_remove(at))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_promises_hold(ops in proptest::collection::vec(any::<(u8, u8, u8)>(), 0..300)) {
        let mut sim = Sim::new();
        for op in ops {
            sim.act(op);
        }
        // Nothing is answered any more, and still everything ends and every slot comes back.
        for _ in 0..60 {
            sim.pass(5_000);
            sim.check();
        }
        prop_assert!(sim.seen.values().all(Seen::is_final));
        prop_assert_eq!(sim.machine.slots_taken(), 0);
        prop_assert_eq!(sim.machine.next_tick(), None);
    }

}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: ProptestConfig::default().cases / 8,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_server_that_works_brings_most_runs_to_their_answer(seed in any::<[u8; 16]>()) {
        // The stream is cut twenty times, and no run is lost by it.
        let mut sim = Sim::new();
        let mut state = u64::from_le_bytes(seed[..8].try_into().unwrap()) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        for _ in 0..SLOTS {
            sim.spawn(255);
            sim.check();
        }
        for round in 0..3_000 {
            let [a, b, ..] = next();
            match round % 8 {
                0 if round % 160 == 0 => sim.cut(),
                0 if round % 160 == 80 => sim.reconnect(),
                0 => sim.pass(20),
                1 | 2 => {
                    // Text, tools, further steps, an end: no errors.
                    let b = [1, 2, 5, 16 + 15][usize::from(b % 4)] + 32;
                    sim.progress(a, if b % 16 == 2 && a > 40 { 33 } else { b });
                }
                3 | 4 => sim.deliver(a, b),
                _ => sim.perform(a, b.clamp(40, 229)),
            }
            sim.check();
        }
        sim.reconnect();
        for _ in 0..400 {
            sim.pass(100);
            sim.check();
            while !sim.todo.is_empty() {
                sim.perform(0, 100);
                sim.check();
            }
        }
        for seen in sim.seen.values() {
            let end = (seen.statuses.last().copied(), seen.error.as_deref());
            prop_assert!(
                end == (Some(Status::Done), None) || seen.error.as_deref().is_some_and(|error| error.contains("tool calls was reached")),
                "{end:?}"
            );
        }
    }
}
