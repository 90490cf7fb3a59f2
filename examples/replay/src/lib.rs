#![doc = include_str!("../README.md")]

pub mod command;
mod compare;
mod find;
mod format;
mod html;
mod identity;
mod in_order;
mod input;
mod jsonl;
mod judge;
mod lines;
mod opened;
mod pending;
mod read;
mod record;
mod replay;
pub mod rules;
mod text;

pub use bizar_guard::{POLL_TOOLS, SHELL_TOOLS, kind};
pub use compare::{Comparison, Labels};
pub use find::usual_places;
pub use format::Format;
pub use html::Html;
pub use identity::Identity;
pub use input::{Input, Note};
pub use jsonl::JsonLines;
pub use judge::{Judge, Judged, Mode, Subject};
pub use record::{Call, Event, Item, Recorded};
pub use replay::{Output, Replay, Seen, Summary};
pub use text::{Style, Text};

/// A session made for this program: an agent that gets lost, one that waits, one that gets on. Read when no path is given.
pub const BUNDLED: &str = include_str!("bundled.jsonl");
