//! Background agents on the real opencode.
//!
//! `runs`, `tools` and `soak` drive one warm `bizar-opencode background`, as the plugin would; `failures` kill what they have
//! started themselves; `plugin` and `settings` are the tools inside a running opencode, as they come and as they can be set;
//! `stream` is the driver behind a relay that cuts.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

mod failures;
mod manager;
mod plugin;
#[expect(dead_code, reason = "the other tests of this package use the rest")]
#[path = "../it/rig.rs"]
mod rig;
mod runs;
mod settings;
mod soak;
mod stream;
mod tools;
