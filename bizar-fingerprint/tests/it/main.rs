//! One file per guarantee of the README.

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
