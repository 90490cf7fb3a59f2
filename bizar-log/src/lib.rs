#![doc = include_str!("../README.md")]

mod append;
mod entry;
mod live;
mod name;
mod percent;
mod read;
mod rotate;

pub use crate::{
    append::{Appended, DEFAULT_ROTATION_BYTES, SessionLog, Warning},
    entry::{Entry, Outcome, ParseError, ShortFingerprint},
    name::SessionName,
    read::{Listed, Reader, list},
    rotate::DEFAULT_KEPT,
};
