//! Plays short scripts of calls through sessions.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use bizar_window::{Call, Kind, Mode, Outcome, Rules, Session, Verdict};

const POLLS: &[&str] = &[
    "write_stdin",
    "wait",
    "wait_agent",
    "TaskOutput",
    "BashOutput",
    "bash_output",
    "read_bash",
    "read_output",
    "job_status",
    "task_list",
    "bizar_status",
    "bizar_collect",
];
const SHELLS: &[&str] = &[
    "bash",
    "Bash",
    "shell",
    "exec",
    "exec_command",
    "execute_bash",
    "shell_exec",
    "terminal",
    "run_shell_command",
    "Execute",
];

/// One line of a script.
#[derive(Clone)]
pub(crate) enum Step {
    Call(Script),
    /// The user speaks, or another run starts.
    Turn,
}

/// A call and how it ends if it is made.
#[derive(Clone)]
pub(crate) struct Script {
    tool: String,
    args: String,
    end: End,
    round: Option<u64>,
    session: String,
    args_missing: bool,
}

#[derive(Clone)]
enum End {
    Missing,
    Ok(String),
    Failed(String),
    Refused(String),
}

/// A call of which no end is reported, until something is said about it.
pub(crate) fn call(tool: &str, args: impl ToString) -> Script {
    Script {
        tool: tool.into(),
        args: args.to_string(),
        end: End::Missing,
        round: None,
        session: String::new(),
        args_missing: false,
    }
}

impl Script {
    pub(crate) fn says(mut self, result: impl ToString) -> Self {
        self.end = End::Ok(result.to_string());
        self
    }

    pub(crate) fn fails(mut self, result: impl ToString) -> Self {
        self.end = End::Failed(result.to_string());
        self
    }

    /// Somebody else refuses it.
    pub(crate) fn refused(mut self, result: impl ToString) -> Self {
        self.end = End::Refused(result.to_string());
        self
    }

    pub(crate) fn round(mut self, round: u64) -> Self {
        self.round = Some(round);
        self
    }

    pub(crate) fn session(mut self, session: &str) -> Self {
        self.session = session.into();
        self
    }

    pub(crate) fn args_missing(mut self) -> Self {
        self.args_missing = true;
        self
    }
}

impl From<Script> for Vec<Step> {
    fn from(script: Script) -> Self {
        vec![Step::Call(script)]
    }
}

pub(crate) fn turn() -> Vec<Step> {
    vec![Step::Turn]
}

/// The same steps, `n` times.
pub(crate) fn times(n: usize, steps: impl Into<Vec<Step>>) -> Vec<Step> {
    vec![steps.into(); n].concat()
}

/// Steps that change with a number, from 0 to `n - 1`.
pub(crate) fn each<S: Into<Vec<Step>>>(n: u64, steps: impl Fn(u64) -> S) -> Vec<Step> {
    (0..n).flat_map(|i| steps(i).into()).collect()
}

/// One after the other.
macro_rules! steps {
    ($($step:expr),+ $(,)?) => {{
        let mut steps: Vec<$crate::play::Step> = Vec::new();
        $(steps.extend(Vec::<$crate::play::Step>::from($step));)+
        steps
    }};
}
pub(crate) use steps;

/// The verdict on each call, in order.
pub(crate) struct Verdicts(pub(crate) Vec<Verdict>);

/// Plays a script in `progress` with the default rules.
pub(crate) fn play(steps: impl Into<Vec<Step>>) -> Verdicts {
    play_in(Mode::Progress, steps)
}

pub(crate) fn play_in(mode: Mode, steps: impl Into<Vec<Step>>) -> Verdicts {
    let mut sessions: BTreeMap<String, Session<u64, u64>> = BTreeMap::new();
    let mut verdicts = Vec::new();
    for step in steps.into() {
        match step {
            Step::Call(script) => {
                let session = sessions
                    .entry(script.session.clone())
                    .or_insert_with(|| Session::new(Rules::new(mode)));
                verdicts.push(make(session, &script));
            }
            Step::Turn => sessions.values_mut().for_each(Session::user_message),
        }
    }
    Verdicts(verdicts)
}

fn make(session: &mut Session<u64, u64>, script: &Script) -> Verdict {
    let mut call = Call::new(hash(&(&script.tool, &script.args)), hash(&script.tool));
    call.round = script.round;
    call.kind = if script.args_missing {
        Kind::ArgsMissing
    } else if is_poll(&script.tool, &script.args) {
        Kind::Poll
    } else {
        Kind::Counted
    };
    let judgement = session.before(&call);
    if judgement.verdict < Verdict::Block {
        // The digest of a result tells whether it was an error.
        let outcome = match &script.end {
            End::Missing => Outcome {
                ok: None,
                digest: None,
                refused: false,
            },
            End::Ok(text) => Outcome::ok(hash(&(text, true))),
            End::Failed(text) => Outcome::failed(hash(&(text, false))),
            End::Refused(text) => Outcome::refused(hash(&(text, false))),
        };
        session.after(judgement.handle, outcome);
    }
    judgement.verdict
}

fn is_poll(tool: &str, args: &str) -> bool {
    let is_long_sleep = || {
        let seconds = args
            .strip_prefix("sleep ")
            .and_then(|n| n.parse::<f64>().ok());
        seconds.is_some_and(|seconds| seconds >= 5.0)
    };
    POLLS.contains(&tool) || (SHELLS.contains(&tool) && (args.is_empty() || is_long_sleep()))
}

pub(crate) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Verdicts {
    /// No call reaches this verdict.
    #[track_caller]
    pub(crate) fn never(&self, verdict: Verdict) -> &Self {
        let worst = self.0.iter().max().copied().unwrap_or_default();
        assert!(
            worst < verdict,
            "{worst} at call {:?}",
            self.0.iter().position(|v| *v == worst).map(|i| i + 1)
        );
        self
    }

    /// The call (from 1) deserves at least this.
    #[track_caller]
    pub(crate) fn by(&self, call: usize, verdict: Verdict) -> &Self {
        assert!(
            self.0[call - 1] >= verdict,
            "call {call}: {}",
            self.0[call - 1]
        );
        self
    }

    /// 5, 8, 12.
    #[track_caller]
    pub(crate) fn climbs(&self) -> &Self {
        self.by(5, Verdict::Warn)
            .by(8, Verdict::Escalate)
            .by(12, Verdict::Block)
    }
}
