//! The plugin inside the real opencode, and the program by itself.
//!
//! Everything in `loops`, `texts`, `turns`, `modes` and `settings` runs on one warm server, a session or a
//! directory each; what kills or restarts something has a server of its own.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

mod failures;
mod install;
mod loops;
mod modes;
mod protocol;
mod rig;
mod settings;
mod texts;
mod tidy;
mod turns;
