//! Whatever happens in whatever order, the promises hold.
//!
//! A small server plays runs from the grammar of recorded streams. What it tells is
//! delayed, dropped, doubled and mixed between sessions; what it is asked for is done
//! in any order, late, or never. Beside it a model keeps only what it has seen go in
//! and out, and says after each step what must be true.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use bizar_background::{
    Effect, Event, Failure, InstanceId, Limits, Machine, Now, Refusal, Snapshot, Spawn, Status,
    event::Part,
};
use proptest::prelude::*;

use crate::rig::World;

mod model;
mod server;

use model::{First, Seen};
use server::Actor;

const SLOTS: usize = 3;
const CAP: usize = 6;
const GUARD: &str = "Loop protection: 12 identical calls to bash. Use task to escalate.";

/// A look that was taken: what it says, and whether the whole tree was quiet and answered.
struct Look {
    snapshot: Result<Snapshot, Failure>,
    is_proof: bool,
    calls: usize,
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
