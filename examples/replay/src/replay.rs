//! Recorded sessions in, judged calls out, line by line in the order of the file.

use std::collections::HashMap;
use std::io::{self, Read};
use std::rc::Rc;

use bizar_fingerprint::Fingerprint;
use bizar_window::{Kind, Verdict};

use crate::identity::Identity;
use crate::input::{Input, Note};
use crate::judge::{Judge, Judged, Mode};
use crate::opened::Opened;
use crate::record::{Call, Event, Item};

/// Takes what the replay finds, as it finds it.
pub trait Output {
    /// A call was judged, by each mode in turn.
    ///
    /// # Errors
    /// What writing it somewhere fails with; ends the replay.
    fn call(&mut self, seen: &Seen<'_>) -> io::Result<()>;

    /// Something else happened in a session.
    ///
    /// # Errors
    /// As [`Output::call`].
    fn event(&mut self, _session: &str, _event: Event) -> io::Result<()> {
        Ok(())
    }

    /// No more comes from this file.
    ///
    /// # Errors
    /// As [`Output::call`].
    fn end_of_file(&mut self, _file: &str) -> io::Result<()> {
        Ok(())
    }

    /// Something the user should know: a bad line, a file passed over.
    fn note(&mut self, _note: &Note) {}

    /// So far `read` bytes of the files have been read.
    fn progress(&mut self, _read: u64) {}
}

/// A judged call.
#[derive(Debug)]
pub struct Seen<'a> {
    /// The file it was read from.
    pub file: &'a str,
    /// The call as it was recorded.
    pub call: &'a Call,
    /// Its number in its session, from 0.
    pub index: u64,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// What sort of call it is.
    pub kind: Kind,
    /// It begins a turn of the user.
    pub new_turn: bool,
    /// The latest call of this turn that was the same and answered the same: this one is stale.
    pub repeats: Option<u64>,
    /// What each mode said, in the order they were asked for.
    pub judged: &'a [Judged],
}

/// What a replay came to.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    /// Sessions with at least one line.
    pub sessions: u64,
    /// Calls judged.
    pub calls: u64,
    /// Lines that could not be used.
    pub skipped: u64,
    /// Calls by exact verdict, for each mode.
    pub verdicts: Vec<[u64; 6]>,
    /// Something that was asked for could not be read at all.
    pub trouble: bool,
}

impl Summary {
    /// How many calls got this verdict in the first mode.
    pub fn of(&self, verdict: Verdict) -> u64 {
        self.verdicts
            .first()
            .map_or(0, |counts| count_of(counts, verdict))
    }
}

/// The entry of a table by verdict.
pub(crate) fn count_of(counts: &[u64; 6], verdict: Verdict) -> u64 {
    counts.get(verdict as usize).copied().unwrap_or(0)
}

/// Replays sessions under one or more modes.
#[derive(Debug)]
pub struct Replay {
    modes: Vec<Mode>,
    identity: Identity,
    summary: Summary,
}

/// What is remembered of one session.
struct Session {
    judges: Vec<Judge>,
    calls: u64,
    round: u64,
    batch: Option<String>,
    turn: Option<String>,
    new_turn: bool,
    /// Pairs of fingerprint and digest of this turn, and the latest call that made them.
    answered: HashMap<([u8; 32], [u8; 16]), u64>,
}

impl Replay {
    /// A replay under these modes.
    pub fn new(modes: &[Mode]) -> Self {
        let summary = Summary {
            verdicts: vec![[0; 6]; modes.len()],
            ..Summary::default()
        };
        Self {
            modes: modes.to_vec(),
            identity: Identity::default(),
            summary,
        }
    }

    /// Reads everything and judges it.
    ///
    /// # Errors
    /// Only what `output` fails with: what cannot be read is noted and passed over.
    pub fn run(mut self, mut input: Input, output: &mut impl Output) -> io::Result<Summary> {
        while let Some(opened) = input.next() {
            match opened {
                Ok(opened) => self.file(opened, output)?,
                Err(note) => {
                    self.summary.trouble |= note.is_trouble();
                    output.note(&note);
                }
            }
            output.progress(input.bytes_read());
        }
        for note in input.finish() {
            self.summary.trouble |= note.is_trouble();
            output.note(&note);
        }
        Ok(self.summary)
    }

    fn file<R: Read>(&mut self, mut opened: Opened<R>, output: &mut impl Output) -> io::Result<()> {
        let file = opened.name().to_owned();
        let mut sessions: HashMap<Rc<str>, Session> = HashMap::new();
        let mut items = Vec::new();
        while opened.read(&mut items) {
            for item in items.drain(..) {
                let problem = self.item(&file, item, &mut sessions, output)?;
                if let Some(problem) = problem {
                    opened.bad_call(&problem);
                }
            }
            for note in opened.notes() {
                output.note(&note);
            }
            output.progress(opened.bytes_read());
        }
        self.summary.sessions += sessions.len() as u64;
        self.summary.skipped += opened.skipped();
        for note in opened.finish() {
            self.summary.trouble |= note.is_trouble();
            output.note(&note);
        }
        output.end_of_file(&file)
    }

    /// Judges one item; answers what is wrong with it if it cannot be judged.
    fn item(
        &mut self,
        file: &str,
        item: Item,
        sessions: &mut HashMap<Rc<str>, Session>,
        output: &mut impl Output,
    ) -> io::Result<Option<String>> {
        let session = match sessions.get_mut(item.session()) {
            Some(session) => session,
            None => sessions
                .entry(item.session().clone())
                .or_insert_with(|| Session::new(&self.modes)),
        };
        let call = match item {
            Item::Call(call) => call,
            Item::Event {
                session: name,
                event,
            } => {
                session.event(event);
                output.event(&name, event)?;
                return Ok(None);
            }
        };
        session.follow(&call);
        let (fingerprint, subject) = match self.identity.of(&call, session.round) {
            Ok(identity) => identity,
            Err(error) => return Ok(Some(error.to_string())),
        };
        let judged: Vec<Judged> = session
            .judges
            .iter_mut()
            .map(|judge| judge.call(&subject))
            .collect();
        for (judged, counts) in judged.iter().zip(&mut self.summary.verdicts) {
            if let Some(count) = counts.get_mut(judged.verdict as usize) {
                *count += 1;
            }
        }
        let index = session.calls;
        session.calls += 1;
        self.summary.calls += 1;
        let digest = subject.outcome.and_then(|outcome| outcome.digest);
        if session.answered.len() >= MOST_ANSWERS {
            session.answered.clear();
        }
        output.call(&Seen {
            file,
            call: &call,
            index,
            fingerprint,
            kind: subject.kind,
            new_turn: std::mem::take(&mut session.new_turn),
            repeats: digest
                .and_then(|digest| session.answered.insert((subject.key, digest), index)),
            judged: &judged,
        })?;
        Ok(None)
    }
}

impl Session {
    fn new(modes: &[Mode]) -> Self {
        Self {
            judges: modes.iter().map(|mode| Judge::new(*mode)).collect(),
            calls: 0,
            round: 0,
            batch: None,
            turn: None,
            new_turn: true,
            answered: HashMap::new(),
        }
    }

    fn event(&mut self, event: Event) {
        for judge in &mut self.judges {
            judge.event(event);
        }
        if event != Event::Idle {
            self.answered.clear();
            self.new_turn = true;
        }
        self.batch = None;
    }

    /// Finds out whether the call begins a turn, and which round it belongs to.
    fn follow(&mut self, call: &Call) {
        if call.turn.is_some() && self.turn != call.turn {
            let is_change = self.turn.is_some();
            self.turn.clone_from(&call.turn);
            if is_change {
                self.event(Event::UserMessage);
            }
        }
        if call.batch.is_none() || call.batch != self.batch {
            self.round += 1;
            self.batch.clone_from(&call.batch);
        }
    }
}

/// A turn that goes on for longer forgets, so that memory stays bounded.
const MOST_ANSWERS: usize = 1 << 18;
