#![doc = include_str!("../README.md")]

mod effect;
pub mod event;
mod id;
mod instance;
mod limits;
mod machine;
mod model;
mod record;
mod spawn;
pub mod sse;
mod status;
mod transcript;

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
