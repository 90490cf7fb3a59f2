//! One file per guarantee.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests are tests too"
)]

mod ending;
mod fleet;
mod ids;
mod proof;
mod reports;
mod rig;
mod sse;
mod stream;
mod tidy;
mod traces;
mod transcript;
