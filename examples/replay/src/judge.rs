//! One session under one rule, ours or another system's.

use bizar_window::{Call, Handle, Kind, Ladder, Outcome, Rules, Session, Verdict};

use crate::record::Event;
use crate::rules::{Gemini, Opencode, Openhands, Step, Stuck};

/// Whose rule judges.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum Mode {
    /// A call counts only when it brings nothing new.
    #[default]
    Progress,
    /// Equal calls among the last ten count, whatever they answered.
    Repetition,
    /// A pattern of one to four calls is refused at its third repetition.
    Cycle,
    /// opencode's rule: three identical calls in a row.
    Opencode,
    /// Gemini CLI's rule: a pattern of one to five calls, five times.
    Gemini,
    /// OpenHands' rule: equal pairs of call and result.
    Openhands,
}

impl Mode {
    /// Every mode, ours first.
    pub const ALL: [Self; 6] = [
        Self::Progress,
        Self::Repetition,
        Self::Cycle,
        Self::Opencode,
        Self::Gemini,
        Self::Openhands,
    ];

    /// The lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Progress => "progress",
            Self::Repetition => "repetition",
            Self::Cycle => "cycle",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Openhands => "openhands",
        }
    }
}

/// A recorded call, reduced to what rules look at.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Identity of tool and arguments.
    pub key: [u8; 32],
    /// The same without any normalisation: what `cycle` compares.
    pub plain_key: [u8; 32],
    /// A hash of the tool's name.
    pub tool: u64,
    /// What sort of call it is.
    pub kind: Kind,
    /// The round it belongs to.
    pub round: u64,
    /// How it ended; `None` = not recorded.
    pub outcome: Option<Outcome<[u8; 16]>>,
}

/// What a rule said about one call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Judged {
    /// Allow, or how far the rule would go.
    pub verdict: Verdict,
    /// The rule that decided; `None` = allowed.
    pub rule: Option<&'static str>,
    /// The counter that decided; for an allowed call what the rule counted.
    pub count: u32,
    /// Calls in the pattern; 0 = the rule knows none.
    pub period: u32,
}

/// The memory a rule has of one session.
#[derive(Debug)]
pub struct Judge {
    mode: Mode,
    memory: Memory,
}

#[derive(Debug)]
enum Memory {
    Ours(Box<Session<[u8; 32], [u8; 16]>>),
    Opencode(Opencode),
    Gemini(Gemini),
    Openhands(Openhands),
}

impl Judge {
    /// A session nothing is known of.
    pub fn new(mode: Mode) -> Self {
        let ours = |mode| Memory::Ours(Box::new(Session::new(Rules::new(mode))));
        let memory = match mode {
            Mode::Progress => ours(bizar_window::Mode::Progress),
            Mode::Repetition => ours(bizar_window::Mode::Repetition),
            Mode::Cycle => ours(bizar_window::Mode::Cycle),
            Mode::Opencode => Memory::Opencode(Opencode::default()),
            Mode::Gemini => Memory::Gemini(Gemini::default()),
            Mode::Openhands => Memory::Openhands(Openhands::default()),
        };
        Self { mode, memory }
    }

    /// Judges a call, then lets it end as it was recorded, unless the verdict refuses it.
    pub fn call(&mut self, subject: &Subject) -> Judged {
        let step = Step {
            key: subject.plain_key,
            digest: subject.outcome.and_then(|outcome| outcome.digest),
            failed: subject
                .outcome
                .is_some_and(|outcome| outcome.ok == Some(false)),
        };
        let stuck = match &mut self.memory {
            Memory::Ours(session) => {
                let key = if self.mode == Mode::Cycle {
                    subject.plain_key
                } else {
                    subject.key
                };
                return ours(session, key, subject);
            }
            Memory::Opencode(rule) => rule.step(&step),
            Memory::Gemini(rule) => rule.step(&step),
            Memory::Openhands(rule) => rule.step(&step),
        };
        match stuck {
            Some(Stuck { count, period }) => Judged {
                verdict: Verdict::Block,
                rule: Some(self.mode.as_str()),
                count,
                period,
            },
            None => Judged {
                verdict: Verdict::Allow,
                rule: None,
                count: 1,
                period: 0,
            },
        }
    }

    /// Something happened that is not a call.
    pub fn event(&mut self, event: Event) {
        match (&mut self.memory, event) {
            (_, Event::Deleted) => *self = Self::new(self.mode),
            (Memory::Ours(session), Event::UserMessage) => session.user_message(),
            (Memory::Ours(session), Event::Idle) => session.idle(),
            (Memory::Openhands(rule), Event::UserMessage) => rule.user_message(),
            _ => {}
        }
    }
}

fn ours(session: &mut Session<[u8; 32], [u8; 16]>, key: [u8; 32], subject: &Subject) -> Judged {
    let call = Call {
        key,
        tool: subject.tool,
        kind: subject.kind,
        round: Some(subject.round),
        ladder: Ladder::default(),
    };
    let judgement = session.before(&call);
    let handle: Handle = judgement.handle;
    if judgement.verdict < Verdict::Block
        && let Some(outcome) = subject.outcome
    {
        session.after(handle, outcome);
    }
    Judged {
        verdict: judgement.verdict,
        rule: judgement.rule.map(bizar_window::Rule::as_str),
        count: judgement.count,
        period: judgement.period,
    }
}
