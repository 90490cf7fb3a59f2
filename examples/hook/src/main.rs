#![doc = include_str!("../README.md")]

mod answer;
mod command_line;
mod event;
mod files;
mod harness;
mod hook;
mod install;
mod json_file;
mod patience;
mod places;
mod report;
mod scan;
mod settings;
mod skipped;
mod toml_file;

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use lexopt::Arg::{Long, Short, Value};

use crate::{harness::Harness, hook::Hook, install::Order};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some(command) = words
        .first()
        .and_then(|word| Command::named(word.to_str()?))
    else {
        let hook = hook_of(words);
        // No host has a terminal here: a person has mistyped, or wants to know what this is.
        if hook.harness.is_none() && io::stdin().is_terminal() {
            io::stderr().write_all(HELP.as_bytes()).ok();
            return ExitCode::FAILURE;
        }
        hook.run();
        return ExitCode::SUCCESS;
    };
    match command.run(words, &mut io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            writeln!(io::stderr(), "bizar-hook: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

/// What a person asks for. Anything else is a host.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Command {
    Install,
    Uninstall,
    Status,
    Doctor,
    Help,
    Version,
}

impl Command {
    fn named(word: &str) -> Option<Self> {
        Some(match word {
            "install" => Self::Install,
            "uninstall" => Self::Uninstall,
            "status" => Self::Status,
            "doctor" => Self::Doctor,
            "help" | "--help" | "-h" => Self::Help,
            "--version" | "-V" => Self::Version,
            _ => return None,
        })
    }

    /// Whether all is well.
    fn run(self, words: Vec<OsString>, out: &mut impl Write) -> io::Result<bool> {
        match self {
            Self::Help => out.write_all(HELP.as_bytes())?,
            Self::Version => writeln!(out, "bizar-hook {}", env!("CARGO_PKG_VERSION"))?,
            Self::Status => report::status(out)?,
            Self::Doctor => return report::doctor(out).map(|troubles| troubles == 0),
            Self::Install | Self::Uninstall => {
                let order = order_of(words).map_err(|error| io::Error::other(error.to_string()))?;
                let Some(order) = order else {
                    out.write_all(HELP.as_bytes())?;
                    return Ok(true);
                };
                match self {
                    Self::Install => order.install(out)?,
                    _ => order.uninstall(out)?,
                }
            }
        }
        Ok(true)
    }
}

/// What `install` and `uninstall` are told; `None` if it is a question.
fn order_of(words: Vec<OsString>) -> Result<Option<Order>, lexopt::Error> {
    let mut harness = None;
    let mut order = (false, false);
    let mut parser = lexopt::Parser::from_args(words.into_iter().skip(1));
    while let Some(word) = parser.next()? {
        match word {
            Long("project") => order.0 = true,
            Long("dry-run") => order.1 = true,
            Long("help") | Short('h') => return Ok(None),
            Value(name) if harness.is_none() => {
                let known = name.to_str().and_then(Harness::named);
                harness = Some(known.ok_or_else(|| unknown(&name.to_string_lossy()))?);
            }
            other => return Err(other.unexpected()),
        }
    }
    let harness = harness.ok_or_else(|| unknown(""))?;
    let (in_project, is_dry) = order;
    Ok(Some(Order {
        harness,
        in_project,
        is_dry,
    }))
}

fn unknown(name: &str) -> lexopt::Error {
    let names = Harness::ALL.map(|harness| harness.facts().name).join(", ");
    let what = if name.is_empty() {
        "no harness was named".to_owned()
    } else {
        format!("there is no harness {name:?}")
    };
    lexopt::Error::from(format!("{what}: one of {names}"))
}

/// What a host's command line says. Words that say nothing are passed over: a host must not see a
/// usage error, which to some is a refusal.
fn hook_of(words: Vec<OsString>) -> Hook {
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

const HELP: &str = "\
Keeps the agents of other harnesses from going round in circles.

Usage:
  bizar-hook install HARNESS [--project] [--dry-run]
  bizar-hook uninstall HARNESS [--project] [--dry-run]
  bizar-hook status     where it is installed
  bizar-hook doctor     whether everything works, and how to mend it
  bizar-hook --harness HARNESS [--event EVENT]
                        judges one event; started by the harness, JSON on standard input

Harnesses: claude, codex, gemini, qwen, copilot, kimi, droid, cursor, goose, cline

Variables: HOME, PATH; CLAUDE_CONFIG_DIR, CODEX_HOME, COPILOT_HOME, KIMI_CODE_HOME say where these
harnesses keep their files; BIZAR_DISABLE, BIZAR_DISABLE_LOOP, BIZAR_DISABLE_LOG switch off.
Options: ~/.config/bizarharness/options.json
";
