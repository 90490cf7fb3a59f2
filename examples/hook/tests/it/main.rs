//! The program as harnesses and people start it.

mod clients;
mod failures;
mod hosts;
mod install;
mod loops;
mod parallel;
mod rig;
mod sessions;
mod stdin;
mod trouble;
