//! What the guard remembers of one session, beside what every state document has.

use std::{collections::VecDeque, time::Duration};

use bizar_fingerprint::{Digest, Fingerprint};
use bizar_log::ShortFingerprint;
use bizar_state::{SessionState, ToolCall};
use bizar_window::{
    Handle, Judgement, Kind, Ladder, Outcome, Rule, Rules, Session, Verdict, handoff,
};
use serde::{Deserialize, Serialize};

use crate::call::{Delivery, Round, Status};

/// The state document of a session.
pub type State = SessionState<Memory>;

/// The detector of a session and its open calls: hashes, tool names and times, nothing else.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Some kilobytes, which are not to be moved about with every step.
    session: Box<Session<Key, Digest>>,
    #[serde(default)]
    open: VecDeque<Open>,
    /// The number of the round, for hosts that name none.
    #[serde(default)]
    round: u64,
    /// The level has risen and its text was not fetched yet.
    #[serde(default)]
    due: bool,
}

/// What the detector tells calls apart by: the first 16 bytes of the fingerprint, 32 hex digits in the document.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Key(Digest);

impl Key {
    pub(crate) fn short(self) -> ShortFingerprint {
        let [a, b, c, d, e, f, ..] = *self.0.as_bytes();
        ShortFingerprint::from_bytes([a, b, c, d, e, f])
    }
}

impl From<Fingerprint> for Key {
    fn from(fingerprint: Fingerprint) -> Self {
        let first = fingerprint.as_bytes().first_chunk();
        Self(Digest::from_bytes(first.copied().unwrap_or_default()))
    }
}

impl bizar_window::Key for Key {
    fn tag(&self) -> u64 {
        bizar_window::Key::tag(self.0.as_bytes())
    }
}

/// A call that has begun.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Open {
    /// A hash of the host's id.
    id: Option<u64>,
    tool: String,
    key: Key,
    /// `None` if the detector did not see it.
    handle: Option<Handle>,
    at: i64,
    /// Calls that begin now belong to its round.
    overlaps: bool,
    /// Its end closes the round.
    #[serde(default)]
    closes: bool,
}

/// A call that is about to be made, reduced to hashes.
pub(crate) struct Begun<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) tool: &'a str,
    pub(crate) key: Key,
    pub(crate) kind: Kind,
    pub(crate) round: Round<'a>,
    pub(crate) ladder: Ladder,
    /// False for exempt tools, and if the loop guard is off.
    pub(crate) is_judged: bool,
    pub(crate) at: i64,
}

/// A call that has ended, reduced to hashes.
pub(crate) struct Finished<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) tool: &'a str,
    /// `None` if the arguments were not told again.
    pub(crate) key: Option<Key>,
    pub(crate) end: Ending,
}

/// How a call ended.
#[derive(Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) status: Status,
    pub(crate) digest: Option<Digest>,
    pub(crate) duration: Option<Duration>,
    pub(crate) at: i64,
}

/// A line for the log.
pub(crate) struct Line {
    pub(crate) at: i64,
    pub(crate) tool: String,
    pub(crate) fingerprint: ShortFingerprint,
    pub(crate) outcome: bizar_state::Outcome,
    pub(crate) duration: Duration,
}

impl Memory {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            session: Box::new(Session::new(rules)),
            open: VecDeque::new(),
            round: 0,
            due: false,
        }
    }

    /// The memory in `state`, made if absent, under `rules`.
    fn of(state: &mut State, rules: Rules) -> Self {
        match state.detector.take() {
            Some(memory) if *memory.session.rules() == rules => memory,
            Some(memory) => Self {
                session: Box::new(memory.session.with_rules(rules)),
                ..memory
            },
            None => Self::new(rules),
        }
    }

    /// The round that a call belongs to, as the detector wants it.
    fn enter_round(&mut self, round: Round<'_>) -> Option<u64> {
        match round {
            Round::Own => None,
            Round::Message(id) => Some(hash(id)),
            Round::Overlap | Round::Burst => {
                if !self.open.iter().any(|open| open.overlaps) {
                    self.round = self.round.wrapping_add(1);
                }
                Some(self.round)
            }
        }
    }

    /// Calls that begin from now on belong to another round than those that are open.
    fn close_round(&mut self) {
        for open in &mut self.open {
            open.overlaps = false;
        }
    }

    /// The open call that has ended.
    fn take_open(&mut self, finished: &Finished<'_>) -> Option<Open> {
        let is_it = |open: &&Open| match finished.id {
            Some(id) => open.id == Some(hash(id)),
            None => {
                open.id.is_none()
                    && open.tool == cut(finished.tool)
                    && Some(open.key) == finished.key
            }
        };
        let index = self.open.iter().position(|open| is_it(&open))?;
        self.open.remove(index)
    }
}

/// Judges a call and takes it in. `None` if it was not to be judged.
pub(crate) fn before(
    state: &mut State,
    rules: Rules,
    begun: &Begun<'_>,
    lines: &mut Vec<Line>,
) -> (Option<Judgement>, Option<String>) {
    let mut memory = Memory::of(state, rules);
    let round = memory.enter_round(begun.round);
    let judgement = begun.is_judged.then(|| {
        let mut call = bizar_window::Call::new(begun.key, hash(&cut(begun.tool)));
        call.kind = begun.kind;
        call.round = round;
        call.ladder = begun.ladder;
        memory.session.before(&call)
    });
    state.touch(begun.at);
    let is_refused = judgement.is_some_and(|judgement| judgement.verdict >= Verdict::Block)
        && !rules.observe_only;
    let mut text = None;
    if is_refused {
        state.blocks_triggered = state.blocks_triggered.saturating_add(1);
        let line = Line {
            at: begun.at,
            tool: cut(begun.tool),
            fingerprint: begun.key.short(),
            outcome: bizar_state::Outcome::Blocked,
            duration: Duration::ZERO,
        };
        enter(state, &line);
        lines.push(line);
    } else {
        if memory.open.len() >= MOST_OPEN
            && let Some(oldest) = memory.open.pop_front()
        {
            lines.push(aborted(state, oldest, begun.at));
        }
        memory.open.push_back(Open {
            id: begun.id.map(hash),
            tool: cut(begun.tool),
            key: begun.key,
            handle: judgement.map(|judgement| judgement.handle),
            at: begun.at,
            overlaps: matches!(begun.round, Round::Overlap | Round::Burst),
            closes: matches!(begun.round, Round::Burst),
        });
    }
    if let Some(judgement) = judgement
        && !rules.observe_only
        && let Some(rule) = judgement.rule
    {
        if judgement.rose {
            state.warnings_issued = state.warnings_issued.saturating_add(1);
            memory.due = true;
        }
        if is_refused || judgement.rose {
            let cause = Cause {
                rule,
                verdict: judgement.verdict,
                count: judgement.count,
                period: judgement.period,
                handle: judgement.handle,
            };
            text = Some(written(state, &memory, begun.tool, &cause));
        }
    }
    state.detector = Some(memory);
    (judgement, text)
}

/// Takes in the end of a call.
pub(crate) fn after(
    state: &mut State,
    rules: Rules,
    finished: &Finished<'_>,
    lines: &mut Vec<Line>,
) {
    let mut memory = Memory::of(state, rules);
    let open = memory.take_open(finished);
    if open.as_ref().is_some_and(|open| open.closes) {
        memory.close_round();
    }
    end(state, &mut memory, open, finished, lines);
    state.detector = Some(memory);
}

/// Ends all open calls in one way.
pub(crate) fn end_open(state: &mut State, rules: Rules, ending: Ending, lines: &mut Vec<Line>) {
    let mut memory = Memory::of(state, rules);
    while let Some(open) = memory.open.pop_front() {
        let finished = Finished {
            id: None,
            tool: "",
            key: None,
            end: ending,
        };
        end(state, &mut memory, Some(open), &finished, lines);
    }
    state.detector = Some(memory);
}

pub(crate) fn user_message(state: &mut State, rules: Rules, agent: Option<&str>, now: i64) {
    let mut memory = Memory::of(state, rules);
    memory.session.user_message();
    memory.close_round();
    memory.due &= memory.session.pending().is_some();
    state.user_message(agent, now);
    state.detector = Some(memory);
}

pub(crate) fn idle(state: &mut State, rules: Rules, now: i64, lines: &mut Vec<Line>) {
    end_open(
        state,
        rules,
        Ending {
            status: Status::Aborted,
            digest: None,
            duration: None,
            at: now,
        },
        lines,
    );
    if let Some(memory) = &mut state.detector {
        memory.session.idle();
        memory.due &= memory.session.pending().is_some();
    }
    state.touch(now);
}

pub(crate) fn round_ended(state: &mut State) {
    if let Some(memory) = &mut state.detector {
        memory.close_round();
    }
}

/// The text that is due with the next request to the model.
pub(crate) fn request(state: &mut State, delivery: Delivery) -> Option<String> {
    let memory = state.detector.as_ref()?;
    if delivery != Delivery::Forgets && !memory.due {
        return None;
    }
    if delivery == Delivery::WithResult && memory.session.has_news() {
        return None;
    }
    let text = pending_text(state, memory);
    if let Some(memory) = &mut state.detector {
        memory.due = false;
    }
    text
}

fn pending_text(state: &State, memory: &Memory) -> Option<String> {
    let pending = memory.session.pending()?;
    let tool = name_of(state, memory, pending.tool, "");
    let cause = Cause {
        rule: pending.rule,
        verdict: pending.verdict,
        count: pending.count,
        period: pending.period,
        handle: pending.handle,
    };
    Some(written(state, memory, &tool, &cause))
}

fn end(
    state: &mut State,
    memory: &mut Memory,
    open: Option<Open>,
    finished: &Finished<'_>,
    lines: &mut Vec<Line>,
) {
    let Ending {
        status,
        digest,
        duration,
        at,
    } = finished.end;
    if let Some(handle) = open.as_ref().and_then(|open| open.handle)
        && status != Status::Aborted
    {
        let ok = match status {
            Status::Ok => Some(true),
            Status::Failed | Status::Refused => Some(false),
            Status::Unknown | Status::Aborted => None,
        };
        memory.session.after(
            handle,
            Outcome {
                ok,
                digest,
                refused: status == Status::Refused,
            },
        );
    }
    let key = open.as_ref().map(|open| open.key).or(finished.key);
    let began = open.as_ref().map_or(at, |open| open.at);
    let Some(key) = key else {
        // An id that we do not know, and no arguments: nothing can be said about the call.
        state.touch(at);
        return;
    };
    let line = Line {
        at,
        tool: open.map_or_else(|| cut(finished.tool), |open| open.tool),
        fingerprint: key.short(),
        outcome: outcome(status),
        duration: duration.unwrap_or_else(|| {
            Duration::from_millis(u64::try_from(at.saturating_sub(began)).unwrap_or(0))
        }),
    };
    enter(state, &line);
    lines.push(line);
}

pub(crate) fn outcome(status: Status) -> bizar_state::Outcome {
    match status {
        Status::Ok | Status::Unknown => bizar_state::Outcome::Ok,
        Status::Failed => bizar_state::Outcome::Error,
        Status::Refused => bizar_state::Outcome::Blocked,
        Status::Aborted => bizar_state::Outcome::Aborted,
    }
}

fn aborted(state: &mut State, open: Open, at: i64) -> Line {
    let line = Line {
        at,
        duration: Duration::from_millis(u64::try_from(at.saturating_sub(open.at)).unwrap_or(0)),
        tool: open.tool,
        fingerprint: open.key.short(),
        outcome: bizar_state::Outcome::Aborted,
    };
    enter(state, &line);
    line
}

fn enter(state: &mut State, line: &Line) {
    state.tool_call(ToolCall {
        tool: line.tool.clone(),
        fingerprint: line.fingerprint.to_string(),
        at: line.at,
        outcome: line.outcome,
    });
}

/// Why a text is given.
struct Cause {
    rule: Rule,
    verdict: Verdict,
    count: u32,
    period: u32,
    handle: Handle,
}

fn written(state: &State, memory: &Memory, tool: &str, cause: &Cause) -> String {
    let calls: Vec<(u64, usize)> = memory.session.pattern(cause.handle, cause.period).collect();
    let names: Vec<String> = calls
        .iter()
        .map(|(hash, _)| name_of(state, memory, *hash, tool))
        .collect();
    let pattern: Vec<(&str, usize)> = names
        .iter()
        .map(String::as_str)
        .zip(calls.iter().map(|(_, equal)| *equal))
        .collect();
    handoff::text(cause.rule, cause.verdict, tool, cause.count, &pattern)
}

/// The name of the tool with this hash, among those that were called lately.
fn name_of(state: &State, memory: &Memory, wanted: u64, current: &str) -> String {
    let open = memory.open.iter().rev().map(|open| open.tool.as_str());
    let ended = state.tool_calls().rev().map(|call| call.tool.as_str());
    let name = std::iter::once(current)
        .chain(open)
        .chain(ended)
        .find(|name| hash(&cut(name)) == wanted);
    name.unwrap_or("a tool").to_owned()
}

/// A tool name as it is kept: a name is no place to hide a text in.
pub(crate) fn cut(name: &str) -> String {
    name.chars().take(MOST_NAME).collect()
}

/// A hash that is the same in every process and version: FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// More open calls than this are taken to have been given up, the oldest first.
const MOST_OPEN: usize = 64;

/// Characters of a tool name that are kept.
const MOST_NAME: usize = 100;
