#![doc = include_str!("../README.md")]

#[cfg(feature = "driver")]
mod driver;
mod effect;
pub mod event;
mod id;
mod instance;
mod limits;
mod machine;
mod model;
#[cfg(feature = "driver")]
pub mod opencode;
#[cfg(feature = "driver")]
mod process;
mod record;
mod spawn;
pub mod sse;
mod status;
mod transcript;

#[cfg(feature = "driver")]
pub use self::driver::{Agents, Collected, Events, Killed, Server, StartError, UnknownInstance};
pub use self::{
    effect::{Answer, Effect, Failure, SessionSnapshot, Snapshot},
    event::Event,
    id::{InstanceId, InvalidId},
    limits::{Limits, Now, Permissions, Timing},
    machine::{Counters, Machine},
    model::{InvalidModel, Model},
    record::{Owner, Record},
    spawn::{Refusal, Spawn},
    status::{Change, Intent, Outcome, Status, View, Waiting},
    transcript::{Message, Text, Transcript},
};
