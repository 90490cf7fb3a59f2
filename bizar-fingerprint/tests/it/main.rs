//! One file per guarantee of the README.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests may fail like tests"
)]

mod allocation;
mod canonical;
mod digest;
mod golden;
mod hostile;
mod ignored;
mod json;
mod keyed;
mod known;
mod numbers;
mod paths;
mod properties;
mod serialize;
