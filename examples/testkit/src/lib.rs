#![doc = include_str!("../README.md")]

mod client;
mod http;
mod opencode;
mod process;
mod sandbox;
mod script;
mod server;
mod wire;

pub use client::{Client, Missing};
pub use http::{Response, request};
pub use opencode::Opencode;
pub use process::{Finished, Process, is_alive, processes_with, signal_process};
pub use sandbox::Sandbox;
pub use script::{Call, Failure, Hang, Script, Step};
pub use server::{ModelServer, Request};
pub use wire::{Api, Turn};
