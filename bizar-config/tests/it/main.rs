//! One file per guarantee.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that cannot go on stops"
)]

mod any_json;
mod environment;
mod in_step;
mod layers;
mod secrets;
mod values;
