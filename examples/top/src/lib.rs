#![doc = include_str!("../README.md")]

pub mod app;
pub mod command;
pub mod document;
mod live;
pub mod model;
mod open;
pub mod plain;
pub mod source;
pub mod standing;
mod tail;
pub mod terminal;
pub mod text;
pub mod view;
mod watch;
