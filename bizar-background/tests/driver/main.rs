//! The driver, on servers that do what they should not.
#![cfg(unix)]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests are tests too"
)]

mod agents;
mod fake;
mod orphans;
mod puppet;
mod records;
mod requests;
mod secrecy;
mod serve;
mod stage;
mod stream;
