//! The harnesses, and what each of them can do.

use bizar_guard::Round;

/// An agent harness that runs this program as a hook.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Harness {
    Claude,
    Codex,
    Gemini,
    Qwen,
    Copilot,
    Kimi,
    Droid,
    Cursor,
    Goose,
    Cline,
}

/// What a harness does, as far as it was seen or is documented; a row of the table in the README.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// In `--harness`, in `hosts` of the options, in state documents.
    pub(crate) name: &'static str,
    /// For people.
    pub(crate) title: &'static str,
    /// Where a text without a refusal reaches the model.
    pub(crate) context: Context,
    /// The end of the run can be asked for.
    pub(crate) can_halt: bool,
    /// Which calls belong together.
    pub(crate) rounds: Round<'static>,
    /// A guard of its own stops the run at three to six identical calls, so ours has to speak before.
    pub(crate) has_own_guard: bool,
    /// `Some(true)`: a call that ended without a failure event or mark succeeded. `None`: nobody tells.
    pub(crate) default_ok: Option<bool>,
}

/// Where a text reaches the model that refuses nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Context {
    /// With the call, before it is made.
    Before,
    /// With its result.
    After,
    /// Not at all.
    Nowhere,
}

impl Harness {
    pub(crate) const ALL: [Self; 10] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Qwen,
        Self::Copilot,
        Self::Kimi,
        Self::Droid,
        Self::Cursor,
        Self::Goose,
        Self::Cline,
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|harness| harness.facts().name.eq_ignore_ascii_case(name))
    }

    pub(crate) fn facts(self) -> &'static Facts {
        match self {
            Self::Claude => &CLAUDE,
            Self::Codex => &CODEX,
            Self::Gemini => &GEMINI,
            Self::Qwen => &QWEN,
            Self::Copilot => &COPILOT,
            Self::Kimi => &KIMI,
            Self::Droid => &DROID,
            Self::Cursor => &CURSOR,
            Self::Goose => &GOOSE,
            Self::Cline => &CLINE,
        }
    }
}

/// What most of them do.
const COMMON: Facts = Facts {
    name: "",
    title: "",
    context: Context::Before,
    can_halt: false,
    rounds: Round::Own,
    has_own_guard: false,
    default_ok: Some(true),
};

// PostToolBatch closes the round.
const CLAUDE: Facts = Facts {
    name: "claude",
    title: "Claude Code",
    can_halt: true,
    rounds: Round::Overlap,
    ..COMMON
};

// No exit code and no failure event; a command that runs on has no end for a long time.
const CODEX: Facts = Facts {
    name: "codex",
    title: "Codex CLI",
    rounds: Round::Burst,
    default_ok: None,
    ..COMMON
};

// PreCompress comes before each request to the model and closes the round. A subagent's calls cannot be
// told from its parent's, whose own call is open meanwhile.
const GEMINI: Facts = Facts {
    name: "gemini",
    title: "Gemini CLI",
    context: Context::After,
    can_halt: true,
    rounds: Round::Overlap,
    has_own_guard: true,
    ..COMMON
};

const QWEN: Facts = Facts {
    name: "qwen",
    title: "Qwen Code",
    context: Context::After,
    can_halt: true,
    rounds: Round::Overlap,
    has_own_guard: true,
    ..COMMON
};

// Hooks run one by one, but all those before a round come before its first call.
const COPILOT: Facts = Facts {
    name: "copilot",
    title: "Copilot CLI",
    rounds: Round::Burst,
    ..COMMON
};

// Events after a call get lost: an open call means nothing.
const KIMI: Facts = Facts {
    name: "kimi",
    title: "Kimi Code",
    context: Context::Nowhere,
    has_own_guard: true,
    ..COMMON
};

// There is no event after a call that failed: an open call means nothing before Stop.
const DROID: Facts = Facts {
    name: "droid",
    title: "Factory droid",
    context: Context::After,
    has_own_guard: true,
    ..COMMON
};

const CURSOR: Facts = Facts {
    name: "cursor",
    title: "Cursor",
    context: Context::After,
    rounds: Round::Burst,
    ..COMMON
};

const GOOSE: Facts = Facts {
    name: "goose",
    title: "Goose",
    context: Context::Nowhere,
    rounds: Round::Burst,
    ..COMMON
};

// Cannot refuse a call without ending the run.
const CLINE: Facts = Facts {
    name: "cline",
    title: "Cline",
    can_halt: true,
    has_own_guard: true,
    ..COMMON
};
