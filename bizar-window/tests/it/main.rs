//! What this crate promises, one file a promise.
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests are not seen as tests"
)]

mod allocation;
mod arguments;
mod delivery;
mod handoff;
mod oracle;
mod play;
mod progress;
mod progress_oracle;
mod report_faults;
mod report_loops;
mod report_work;
mod rungs;
#[cfg(feature = "serde")]
mod snapshot;
