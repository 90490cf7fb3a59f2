//! The detector of one session.

use crate::{
    Call, Handle, Judgement, Key, Kind, Mode, Outcome, Pending, Rule, Rules, Verdict,
    call::Place,
    cycle::Cycle,
    progress::{Brought, Progress},
    repetition::{MAX_WINDOW, MIN_WINDOW, Repetition},
};

const MAX_HALT_AFTER: u32 = 1000;

/// The detector of one session: feed it calls and their ends, it says what each call deserves.
///
/// `K` identifies a call, `D` is a digest of its result. A session never allocates; one over
/// 32-byte keys and 16-byte digests is smaller than 4 KiB.
#[derive(Clone, Debug)]
pub struct Session<K, D> {
    pub(crate) rules: Rules,
    pub(crate) memory: Memory<K, D>,
    /// The message whose calls are being judged, and its ordinal number.
    pub(crate) round: Option<u64>,
    pub(crate) ordinal: u64,
    /// Calls that we refused since there was progress.
    pub(crate) refused: u32,
    pub(crate) level: Option<Pending>,
    /// The highest level that a call of this round reached.
    pub(crate) round_level: Option<Pending>,
    /// Something in this round was news.
    pub(crate) round_news: bool,
}

/// What the mode remembers.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a session lives in one place and never allocates"
)]
pub(crate) enum Memory<K, D> {
    Progress(Progress<K, D>),
    Repetition(Repetition<K>),
    Cycle(Cycle<K>),
}

/// What a rule found on a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    pub(crate) rule: Option<Rule>,
    pub(crate) count: u32,
    pub(crate) period: u32,
}

impl<K: Key, D: Copy + Eq> Session<K, D> {
    /// A session in which nothing has happened yet.
    #[must_use]
    pub const fn new(rules: Rules) -> Self {
        Self {
            rules,
            memory: Memory::new(rules.mode),
            round: None,
            ordinal: 0,
            refused: 0,
            level: None,
            round_level: None,
            round_news: false,
        }
    }

    /// The same session under other rules, as after a restart with other options.
    ///
    /// Another mode starts with an empty memory.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        if rules.mode == self.rules.mode {
            Self { rules, ..self }
        } else {
            Self::new(rules)
        }
    }

    /// The rules it follows.
    #[must_use]
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Judges a call that is about to be made, and takes it in.
    ///
    /// A call that is judged [`Verdict::Block`] or higher is taken to be refused, unless the rules
    /// say to observe only. The end of any other call is to be told to [`after`](Self::after).
    pub fn before(&mut self, call: &Call<K>) -> Judgement {
        self.enter_round(call.round);
        let ordinal = self.ordinal;
        let last = match &self.memory {
            Memory::Progress(progress) => progress.last(call),
            Memory::Repetition(_) | Memory::Cycle(_) => None,
        };
        if let Memory::Progress(progress) = &mut self.memory
            && let Some((finding, seq)) = progress.judge_copy(last)
        {
            return self.conclude(call, finding, Place::Copy, seq);
        }
        let mut finding = match &self.memory {
            Memory::Progress(progress) => progress.judge(call, last, ordinal),
            Memory::Repetition(repetition) => repetition.judge(call, self.rules.window()),
            Memory::Cycle(cycle) => cycle.judge(call),
        };
        if call.kind == Kind::ArgsMissing {
            finding.verdict = finding.verdict.min(Verdict::Warn);
        }
        let is_refused = finding.verdict >= Verdict::Block && !self.rules.observe_only;
        if is_refused {
            self.refused = self.refused.saturating_add(1);
            let halt_after = self.rules.halt_after.min(MAX_HALT_AFTER);
            if halt_after > 0 && self.refused > halt_after {
                finding = Finding::new(Verdict::Halt, Rule::Halt, self.refused, 0);
            }
        } else if self.rules.mode != Mode::Progress {
            self.refused = 0;
            self.round_news |= finding.verdict < Verdict::Warn;
        }
        let (place, seq) = match &mut self.memory {
            Memory::Progress(progress) => progress.enter(call, last, finding, is_refused),
            Memory::Repetition(repetition) => {
                repetition.enter(call);
                (Place::Nowhere, 0)
            }
            Memory::Cycle(cycle) => {
                cycle.enter(call);
                (Place::Nowhere, 0)
            }
        };
        self.conclude(call, finding, place, seq)
    }

    /// Tells how a call ended. Only `progress` looks at it.
    ///
    /// An end that comes after the call's round corrects what was assumed, as long as the call is
    /// remembered. Ends of refused, forgotten or unknown calls change nothing.
    pub fn after(&mut self, handle: Handle, outcome: Outcome<D>) {
        if let Memory::Progress(progress) = &mut self.memory
            && progress.after(handle, &outcome) == Brought::News
        {
            self.news();
        }
    }

    /// The user has spoken: `progress` starts a new turn and forgets the last one.
    ///
    /// Not for messages that a program made up in the user's name.
    pub fn user_message(&mut self) {
        if let Memory::Progress(progress) = &mut self.memory {
            progress.clear();
            self.forget();
        }
    }

    /// The session went idle: `cycle` forgets its history.
    pub fn idle(&mut self) {
        if let Memory::Cycle(cycle) = &mut self.memory {
            *cycle = Cycle::new();
            self.forget();
        }
    }

    /// The text that is due with the next request to the model.
    ///
    /// For hosts that forget what is injected: ask at each request, and send the text of what is
    /// returned. It stays due until a round has ended in which no call reached the level and
    /// something was news. Hosts that keep the text in their history send it when
    /// [`Judgement::rose`] instead.
    #[must_use]
    #[inline]
    pub fn pending(&self) -> Option<Pending> {
        let is_lower = verdict(self.round_level) < verdict(self.level);
        if self.round_news && is_lower {
            self.round_level
        } else {
            self.level
        }
    }

    /// The verdict of what is [`pending`](Self::pending), or [`Verdict::Allow`].
    #[must_use]
    pub fn level(&self) -> Verdict {
        verdict(self.pending())
    }

    /// Whether the round at hand has brought something new.
    ///
    /// For hosts whose text goes with the result of a call: a repetition that brought something new
    /// after all is nothing to warn about.
    #[must_use]
    pub const fn has_news(&self) -> bool {
        self.round_news
    }

    /// How many calls were refused since there was progress.
    #[must_use]
    pub const fn refused(&self) -> u32 {
        self.refused
    }

    /// The shape of the pattern that ends with a call: for each of its `period` calls, the oldest
    /// first, the tool and the index of the first call of the pattern that is equal to it.
    ///
    /// Calls that are no longer remembered are left out. `cycle` remembers the last four calls
    /// and takes the latest as the end of the pattern.
    pub fn pattern(&self, handle: Handle, period: u32) -> impl Iterator<Item = (u64, usize)> + '_ {
        // One pass for the keys, one for what equals what: no place to put them is needed.
        let calls = move || {
            let (progress, cycle) = match &self.memory {
                Memory::Progress(progress) => (Some(progress.calls_until(handle)), None),
                Memory::Cycle(cycle) => (None, Some(cycle.newest())),
                Memory::Repetition(_) => (None, None),
            };
            let period = usize::try_from(period).unwrap_or(usize::MAX);
            progress
                .into_iter()
                .flatten()
                .chain(cycle.into_iter().flatten())
                .take(period)
        };
        let len = calls().count();
        (0..len).rev().filter_map(move |back| {
            let (key, tool) = calls().nth(back)?;
            let oldest_equal = calls()
                .enumerate()
                .filter(|(_, (other, _))| *other == key)
                .last()?;
            Some((tool, len - 1 - oldest_equal.0))
        })
    }

    #[inline]
    fn enter_round(&mut self, round: Option<u64>) {
        if round.is_some() && round == self.round {
            return;
        }
        if let Memory::Progress(progress) = &mut self.memory
            && progress.end_round() == Brought::News
        {
            self.news();
        }
        if self.level.is_some() {
            self.level = self.pending();
            self.round_level = None;
        }
        self.round_news = false;
        self.round = round;
        self.ordinal += 1;
    }

    /// Notes the level that a call reached and makes the answer.
    #[inline]
    fn conclude(&mut self, call: &Call<K>, finding: Finding, place: Place, seq: u64) -> Judgement {
        let handle = Handle {
            place,
            seq,
            round: self.ordinal,
            tool: call.tool,
        };
        let rose = finding.verdict >= Verdict::Warn
            && !self.rules.observe_only
            && self.note_level(call, finding, handle);
        Judgement {
            verdict: finding.verdict,
            rule: finding.rule,
            count: finding.count,
            period: finding.period,
            rose,
            handle,
        }
    }

    /// Whether the level of the session rises with this call.
    #[cold]
    fn note_level(&mut self, call: &Call<K>, finding: Finding, handle: Handle) -> bool {
        // The text of a refusal goes to the model as the error of the call; the level stays.
        if finding.verdict >= Verdict::Block {
            self.round_level = self.level;
            return false;
        }
        let Some(rule) = finding.rule else {
            return false;
        };
        let pending = Pending {
            verdict: finding.verdict,
            rule,
            tool: call.tool,
            count: finding.count,
            period: finding.period,
            handle,
        };
        let rose = pending.verdict > verdict(self.pending());
        if pending.verdict >= verdict(self.level) {
            self.level = Some(pending);
        }
        if pending.verdict >= verdict(self.round_level) {
            self.round_level = Some(pending);
        }
        rose
    }

    #[inline]
    fn news(&mut self) {
        self.refused = 0;
        self.round_news = true;
    }

    fn forget(&mut self) {
        self.round = None;
        self.refused = 0;
        self.level = None;
        self.round_level = None;
        self.round_news = false;
    }
}

impl<K: Key, D: Copy + Eq> Memory<K, D> {
    const fn new(mode: Mode) -> Self {
        match mode {
            Mode::Progress => Self::Progress(Progress::new()),
            Mode::Repetition => Self::Repetition(Repetition::new()),
            Mode::Cycle => Self::Cycle(Cycle::new()),
        }
    }
}

impl Rules {
    fn window(&self) -> usize {
        usize::try_from(self.window)
            .unwrap_or(MAX_WINDOW)
            .clamp(MIN_WINDOW, MAX_WINDOW)
    }
}

impl Finding {
    /// What the mode found, before anything caps it.
    #[inline]
    pub(crate) fn new(verdict: Verdict, rule: Rule, count: u32, period: u32) -> Self {
        Self {
            verdict,
            rule: (verdict > Verdict::Allow).then_some(rule),
            count,
            period: if verdict > Verdict::Allow { period } else { 0 },
        }
    }

    /// The graver of two; the first where they are equally grave.
    #[inline]
    pub(crate) fn or(self, other: Self) -> Self {
        if other.verdict > self.verdict {
            other
        } else {
            self
        }
    }
}

#[inline]
fn verdict(pending: Option<Pending>) -> Verdict {
    pending.map_or(Verdict::Allow, |pending| pending.verdict)
}
