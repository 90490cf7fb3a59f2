//! The guarantees of the front page, a file each or a few that belong together.

#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a helper of a test may panic and print, as the test may"
)]

mod child;
mod concurrency;
mod counter;
mod model;
mod names;
mod onlooker;
mod session;
mod sweep;
mod trouble;
mod unusable;
