//! One file a guarantee.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that cannot go on stops, and one that cannot run says so"
)]

mod app;
mod hostile;
mod live;
mod plain;
mod read_only;
mod rig;
mod scale;
mod screens;
mod standing;
mod tail;
mod terminal;
mod trouble;

#[path = "../../examples/demo/state.rs"]
mod demo;
