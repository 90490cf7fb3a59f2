//! One file per guarantee.

mod ending;
mod fleet;
mod ids;
mod proof;
mod reports;
mod rig;
mod sse;
mod stream;
mod traces;
mod transcript;
