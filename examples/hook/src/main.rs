#![doc = include_str!("../README.md")]

mod answer;
mod event;
mod harness;
mod hook;
mod scan;
mod settings;
mod skipped;

use std::{ffi::OsString, process::ExitCode};

use crate::{harness::Harness, hook::Hook};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    hook_of(words).run();
    ExitCode::SUCCESS
}

/// What a host's command line says. Words that say nothing are passed over: a host must not see a
/// usage error, which to some is a refusal.
fn hook_of(words: Vec<OsString>) -> Hook {
    use lexopt::Arg::Long;
    let mut hook = Hook::default();
    let mut parser = lexopt::Parser::from_args(words);
    loop {
        match parser.next() {
            Ok(None) => return hook,
            Ok(Some(Long("harness"))) => {
                let name = parser.value().ok();
                hook.harness = name.and_then(|name| Harness::named(name.to_str()?));
            }
            Ok(Some(Long("event"))) => {
                hook.event = parser.value().ok().and_then(|name| name.into_string().ok());
            }
            Ok(Some(_)) | Err(_) => {}
        }
    }
}
