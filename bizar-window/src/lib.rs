#![doc = include_str!("../README.md")]

mod call;
mod cycle;
mod family;
pub mod handoff;
mod ladder;
mod polls;
mod progress;
mod repetition;
mod ring;
mod session;
#[cfg(feature = "serde")]
mod snapshot;
mod verdict;

pub use call::{Call, Handle, Judgement, Key, Kind, Outcome, Pending, Rules};
pub use ladder::Ladder;
pub use session::Session;
pub use verdict::{Mode, Rule, UnknownWord, Verdict};

const _: () = assert!(
    size_of::<Session<[u8; 32], [u8; 16]>>() <= 4096,
    "a session is at most 4 KiB"
);
