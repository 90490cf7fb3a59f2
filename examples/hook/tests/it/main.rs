//! The program as harnesses and people start it.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on stops"
)]

mod clients;
mod failures;
mod hosts;
mod install;
mod loops;
mod parallel;
mod rig;
mod sessions;
mod stdin;
mod trouble;
