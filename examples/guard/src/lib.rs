#![doc = include_str!("../README.md")]

mod call;
mod guard;
mod identity;
mod key_file;
mod kind;
mod logs;
mod memory;
mod notes;
mod resident;
mod sessions;
mod setup;

pub use crate::{
    call::{Args, Call, Decision, Delivery, End, Ended, Output, Round, Status},
    guard::Guard,
    kind::{POLL_TOOLS, kind, kind_with},
    memory::{Key, Memory, State},
    setup::{Form, Setup, home, resolve_with_file},
};
// What the types above are made of, so that a harness needs no other crate of ours.
pub use bizar_config::{Environment, Json, Note, Options, Resolved, Sources, resolve};
pub use bizar_fingerprint::{Digest, Digester, Fingerprint, SHELL_TOOLS};
pub use bizar_state::{FileStore, Store};
pub use bizar_window::{Rule, Verdict};
