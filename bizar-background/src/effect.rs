//! What the machine wants done, and what came of it.

use std::{collections::HashMap, sync::Arc};

use crate::{
    InstanceId, Message, Spawn, Transcript,
    event::{Activity, Request},
};

/// Something for the driver to do.
///
/// [`Effect::Create`], [`Effect::Prompt`], [`Effect::Abort`] and [`Effect::Observe`] are to be
/// answered by one [`Answer`] each.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// Make a session.
    Create {
        /// For this instance.
        id: InstanceId,
        /// What it is for.
        spawn: Arc<Spawn>,
    },
    /// Send the prompt.
    Prompt {
        /// For this instance.
        id: InstanceId,
        /// To this session.
        session: String,
        /// The prompt, the agent and the model.
        spawn: Arc<Spawn>,
    },
    /// End the run of a session.
    Abort {
        /// For this instance.
        id: InstanceId,
        /// Its session or one below it.
        session: String,
    },
    /// Read what the server knows of a session and of all sessions below it.
    Observe {
        /// For this instance.
        id: InstanceId,
        /// Its session.
        session: String,
        /// To be given back with the answer.
        ticket: u64,
    },
    /// Answer a request.
    Respond {
        /// For this instance.
        id: InstanceId,
        /// The request.
        request: Request,
        /// `true` grants it once, `false` refuses it.
        grant: bool,
    },
    /// Store the record of an instance.
    Persist {
        /// The instance.
        id: InstanceId,
    },
    /// End the server: a run has not heard its aborts, and no other run is left. The next
    /// [`Effect::Create`] needs a new one.
    Retire,
}

/// What came of an effect.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// Of [`Effect::Create`]: the session.
    Created {
        /// The instance.
        id: InstanceId,
        /// The session's name.
        session: Result<String, Failure>,
    },
    /// Of [`Effect::Prompt`].
    Prompted {
        /// The instance.
        id: InstanceId,
        /// Whether the server took it.
        taken: Result<(), Failure>,
    },
    /// Of [`Effect::Abort`]: the server has answered, or never will.
    Aborted {
        /// The instance.
        id: InstanceId,
    },
    /// Of [`Effect::Observe`].
    Observed {
        /// The instance.
        id: InstanceId,
        /// The ticket of the effect.
        ticket: u64,
        /// What was read.
        snapshot: Result<Snapshot, Failure>,
    },
}

/// Why the server did not do what it was asked for.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Failure {
    /// It said no, and why.
    #[error("{0}")]
    Refused(String),
    /// There is no such session.
    #[error("no such session")]
    Gone,
    /// It did not answer: it may or may not have done it.
    #[error("{0}")]
    Unclear(String),
}

/// What the server knows of a session and of those below it.
///
/// What is going on must be read before the messages: a session that was idle then,
/// and whose messages are whole now, has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Sessions that are not idle.
    pub active: HashMap<String, Activity>,
    /// The sessions, the root first.
    pub sessions: Vec<SessionSnapshot>,
    /// Requests that nobody has answered, of any session.
    pub requests: Vec<Request>,
}

impl Snapshot {
    /// What there is to say of an idle session without subagents.
    #[must_use]
    pub fn idle(session: &str, messages: Vec<Message>) -> Self {
        Self {
            sessions: vec![SessionSnapshot {
                id: session.into(),
                parent: None,
                transcript: Transcript { messages },
            }],
            ..Self::default()
        }
    }
}

/// One session of a [`Snapshot`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionSnapshot {
    /// Its name.
    pub id: String,
    /// The session above it.
    pub parent: Option<String>,
    /// What was said.
    pub transcript: Transcript,
}
