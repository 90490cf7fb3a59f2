//! A small server that plays runs from the grammar of recorded streams.

use bizar_background::{
    Answer, Effect, Event, Failure,
    event::{Part, ToolState},
};

use super::{GUARD, Look, Sim, pick};
use crate::rig::{
    aborted, assistant, busy, child, completed, cut_off, delta, error, failed, idle, permission,
    retry, server_error, step, text, tool, user,
};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Play {
    Fresh,
    Prompted,
    Running,
    Asking,
    Late,
    Idle,
}

pub(super) struct Actor {
    pub(super) play: Play,
    pub(super) root: String,
    pub(super) messages: u32,
    pub(super) calls: u32,
    pub(super) is_answered: bool,
    pub(super) ignores_aborts: bool,
}

impl Sim {
    pub(super) fn say(&mut self, session: &str, events: Vec<Event<'static>>) {
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
    pub(super) fn progress(&mut self, a: u8, b: u8) {
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

    pub(super) fn step(&mut self, s: &str, message: &str, b: u8) -> Vec<Event<'static>> {
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
    pub(super) fn perform(&mut self, a: u8, b: u8) {
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
                    let end = cut_off(&session, &message);
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

    pub(super) fn look(&self, session: &str, b: u8) -> Look {
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
}
