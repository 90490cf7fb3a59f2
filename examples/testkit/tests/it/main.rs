//! The kit against itself and against the real harnesses.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod harnesses;
mod process;
mod server;
