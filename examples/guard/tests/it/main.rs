//! One file per guarantee.
#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot go on stops"
)]

mod delivery;
mod judging;
mod lifecycle;
mod network;
mod order;
mod privacy;
mod rig;
mod switches;
mod trouble;
mod writes;
