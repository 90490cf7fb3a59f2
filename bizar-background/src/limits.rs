//! How many, how long, how much: the numbers of a fleet.

use std::time::Duration;

/// What instances may use, and what happens to requests that nobody watches.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Live instances at a time, draining ones included.
    pub live: usize,
    /// Distinct tool calls of an instance, its subagents included. The call that reaches the number ends the run.
    pub tool_calls: usize,
    /// US dollars an instance may cost, its subagents included.
    pub cost_usd: Option<f64>,
    /// Tokens an instance may use, its subagents included.
    pub tokens: Option<u64>,
    /// Who answers permission requests and questions.
    pub permissions: Permissions,
    /// Agents that may not be spawned, such as the one that may spawn.
    pub reserved_agents: Vec<String>,
    /// Ended instances that are kept in memory.
    pub remembered: usize,
    /// How long to wait for what.
    pub timing: Timing,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            live: 8,
            tool_calls: 500,
            cost_usd: None,
            tokens: None,
            permissions: Permissions::Reject,
            reserved_agents: Vec::new(),
            remembered: 200,
            timing: Timing::default(),
        }
    }
}

/// Who answers permission requests and questions of an instance.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Permissions {
    /// Everything that asks is refused at once and listed.
    #[default]
    Reject,
    /// The run waits until somebody answers, at most until its deadline.
    Wait,
    /// Permissions are granted; questions are refused, since nobody is there to answer.
    Allow,
}

/// How long to wait for what. The defaults are the rules; tests shorten them.
#[derive(Clone, Debug)]
pub struct Timing {
    /// A prompt that was taken must start a run in this time.
    pub admission: Duration,
    /// An error that neither idle nor more work follows ends a run after this time.
    pub error_hold: Duration,
    /// An instance has its final status at most this long after an abort was decided.
    pub abort: Duration,
    /// The same when everything is shut down.
    pub shutdown_abort: Duration,
    /// A session that stays busy keeps the slot this much longer.
    pub drain: Duration,
    /// After idle, the messages are read at these times; then it is decided.
    pub looks: [Duration; 5],
    /// After a subagent falls idle, its parent gets this long to wake up.
    pub settle: Duration,
    /// Live instances are compared with the server this often.
    pub reconcile: Duration,
    /// An answer that has not come after this time is taken for lost.
    pub answer: Duration,
    /// Progress is stored at most this often.
    pub progress: Duration,
    /// A run without a sign of life for this time is shown as stalled.
    pub stall: Duration,
    /// Events of unknown sessions are kept this long for a spawn in flight.
    pub stray: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            admission: ms(15_000),
            error_hold: ms(2_000),
            abort: ms(5_000),
            shutdown_abort: ms(2_000),
            drain: ms(10_000),
            looks: [ms(0), ms(50), ms(150), ms(400), ms(1_000)],
            settle: ms(400),
            reconcile: ms(15_000),
            answer: ms(35_000),
            progress: ms(1_000),
            stall: ms(60_000),
            stray: ms(5_000),
        }
    }
}

/// A moment, given by the caller: this crate's core reads no clock.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Now {
    /// Time since some fixed moment. It never goes back, and the sleep of the machine counts.
    pub clock: Duration,
    /// Milliseconds since 1970, for records and for people. It may jump.
    pub epoch_ms: u64,
}
