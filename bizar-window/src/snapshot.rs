//! A session as a document, and back.
//!
//! The stored form is lists and numbers, oldest first; nothing of the layout in memory shows. A host writes it many times a
//! minute, so what is usual is left out, and each entry of the ring has names of one letter.
//! Whatever does not fit is an error: a snapshot comes from a file that anyone may have written.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{
    Key, Mode, Pending, Rule, Rules, Session, Verdict,
    cycle::Cycle,
    family::{Families, Family},
    polls::{Poll, Polls},
    progress::Progress,
    repetition::Repetition,
    ring::{Answer, Ring},
    session::Memory,
};

/// The version of the stored form.
const VERSION: u32 = 1;
/// Sequence numbers start at 0 and rise by one, so no real one ever comes near this.
const MAX_SEQ: u64 = 1 << 62;

#[derive(Serialize, Deserialize)]
struct Document<K, D> {
    version: u32,
    rules: Rules,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    round: Option<u64>,
    ordinal: u64,
    refused: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<Pending>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    round_level: Option<Pending>,
    round_news: bool,
    memory: Stored<K, D>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stored<K, D> {
    Progress {
        head: u64,
        /// Each tool once, as entries have its place here.
        tools: Vec<u64>,
        entries: Vec<StoredEntry<K, D>>,
        polls: Vec<Option<Poll<K>>>,
        next_poll: u64,
        families: Vec<Family<D>>,
        last: Option<K>,
        run: u32,
        streak: u32,
        unchanged: u32,
        round_start: u64,
    },
    Repetition {
        keys: Vec<K>,
        run: u32,
    },
    Cycle(Cycle<K>),
}

/// An entry of the ring with everything that is kept beside it.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredEntry<K, D> {
    #[serde(rename = "k")]
    pub(crate) key: K,
    #[serde(rename = "a")]
    pub(crate) answer: Answer<D>,
    /// Stored: its place among the tools.
    #[serde(rename = "t", default, skip_serializing_if = "is_usual")]
    pub(crate) tool: u64,
    #[serde(rename = "c", default = "one", skip_serializing_if = "is_one")]
    pub(crate) count: u32,
    #[serde(rename = "n", default = "one", skip_serializing_if = "is_one")]
    pub(crate) copies: u8,
    #[serde(rename = "v", default, skip_serializing_if = "is_usual")]
    pub(crate) verdict: Verdict,
    #[serde(rename = "r", default, skip_serializing_if = "is_usual")]
    pub(crate) rule: Option<Rule>,
    #[serde(rename = "p", default, skip_serializing_if = "is_usual")]
    pub(crate) period: u8,
    #[serde(rename = "o", default, skip_serializing_if = "is_usual")]
    pub(crate) is_poll: bool,
    #[serde(rename = "s", default, skip_serializing_if = "is_usual")]
    pub(crate) is_stale: bool,
}

impl<K: Key + Serialize, D: Copy + Eq + Serialize> Serialize for Session<K, D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let memory = match &self.memory {
            Memory::Progress(progress) => {
                let mut entries: Vec<_> = progress.ring.stored().collect();
                Stored::Progress {
                    head: progress.ring.head(),
                    tools: tools_of(&mut entries),
                    entries,
                    polls: progress.polls.stored().to_vec(),
                    next_poll: progress.polls.next(),
                    families: progress.families.iter().collect(),
                    last: progress.last,
                    run: progress.run,
                    streak: progress.streak,
                    unchanged: progress.unchanged,
                    round_start: progress.round_start,
                }
            }
            Memory::Repetition(repetition) => {
                let mut keys: Vec<K> = repetition.newest().collect();
                keys.reverse();
                Stored::Repetition {
                    keys,
                    run: repetition.run(),
                }
            }
            Memory::Cycle(cycle) => Stored::Cycle(cycle.clone()),
        };
        Document {
            version: VERSION,
            rules: self.rules,
            round: self.round,
            ordinal: self.ordinal,
            refused: self.refused,
            level: self.level,
            round_level: self.round_level,
            round_news: self.round_news,
            memory,
        }
        .serialize(serializer)
    }
}

impl<'de, K, D> Deserialize<'de> for Session<K, D>
where
    K: Key + Deserialize<'de>,
    D: Copy + Eq + Deserialize<'de>,
{
    fn deserialize<De: Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
        let document = Document::deserialize(deserializer)?;
        document.session().map_err(De::Error::custom)
    }
}

impl<K: Key, D: Copy + Eq> Document<K, D> {
    fn session(self) -> Result<Session<K, D>, &'static str> {
        if self.version != VERSION {
            return Err("snapshot of another version");
        }
        let memory = match (self.rules.mode, self.memory) {
            (
                Mode::Progress,
                Stored::Progress {
                    head,
                    tools,
                    mut entries,
                    polls,
                    next_poll,
                    families,
                    last,
                    run,
                    streak,
                    unchanged,
                    round_start,
                },
            ) => {
                for entry in &mut entries {
                    entry.tool = usize::try_from(entry.tool)
                        .ok()
                        .and_then(|place| tools.get(place).copied())
                        .ok_or("no such tool")?;
                }
                if head > MAX_SEQ || next_poll > MAX_SEQ || round_start > head {
                    return Err("sequence number out of range");
                }
                // Too many of them are refused below.
                let open = entries
                    .iter()
                    .filter(|stored| stored.answer == Answer::Open)
                    .count()
                    + polls
                        .iter()
                        .filter(|poll| matches!(poll, Some(Poll::Open(_))))
                        .count();
                Memory::Progress(Progress {
                    ring: Ring::restore(head, &entries).ok_or("too many entries")?,
                    polls: Polls::restore(&polls, next_poll).ok_or("wrong number of polls")?,
                    families: Families::restore(&families).ok_or("too many failing tools")?,
                    last,
                    run,
                    streak,
                    unchanged,
                    round_start,
                    open: u32::try_from(open).unwrap_or(u32::MAX),
                })
            }
            (Mode::Repetition, Stored::Repetition { keys, run }) => {
                Memory::Repetition(Repetition::restore(&keys, run).ok_or("keys do not fit")?)
            }
            (Mode::Cycle, Stored::Cycle(cycle)) => Memory::Cycle(cycle),
            _ => return Err("memory of another mode"),
        };
        if self.ordinal > MAX_SEQ {
            return Err("sequence number out of range");
        }
        if [self.level, self.round_level]
            .into_iter()
            .flatten()
            .any(|pending| !fits(pending))
        {
            return Err("no such level");
        }
        Ok(Session {
            rules: self.rules,
            memory,
            round: self.round,
            ordinal: self.ordinal,
            refused: self.refused,
            level: self.level,
            round_level: self.round_level,
            round_news: self.round_news,
        })
    }
}

/// The tools of the entries, each once; the entries have their places from now on.
fn tools_of<K, D>(entries: &mut [StoredEntry<K, D>]) -> Vec<u64> {
    let mut tools = Vec::new();
    for entry in entries {
        let place = tools.iter().position(|tool| *tool == entry.tool);
        if place.is_none() {
            tools.push(entry.tool);
        }
        entry.tool = place.unwrap_or(tools.len() - 1) as u64;
    }
    tools
}

fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn one<T: From<u8>>() -> T {
    T::from(1)
}

fn is_one<T: From<u8> + PartialEq>(value: &T) -> bool {
    *value == one()
}

fn fits(pending: Pending) -> bool {
    matches!(pending.verdict, Verdict::Warn | Verdict::Escalate) && pending.rule != Rule::Halt
}
