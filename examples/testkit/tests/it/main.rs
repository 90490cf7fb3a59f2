//! The kit against itself and against the real opencode.

mod opencode;
mod process;
mod server;
