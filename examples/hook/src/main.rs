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
        let said = self.read(words);
        let Some(order) = said.map_err(|error| io::Error::other(error.to_string()))? else {
            out.write_all(HELP.as_bytes())?;
            return Ok(true);
        };
        match (self, order) {
            (Self::Install, Some(order)) => order.install(out)?,
            (Self::Uninstall, Some(order)) => order.uninstall(out)?,
            (Self::Status, _) => report::status(out)?,
            (Self::Doctor, _) => return report::doctor(out).map(|troubles| troubles == 0),
            _ => writeln!(out, "bizar-hook {}", env!("CARGO_PKG_VERSION"))?,
        }
        Ok(true)
    }

    /// The words behind a command: what to install or uninstall, which others do not take. `None` if they ask for help.
    fn read(self, words: Vec<OsString>) -> Result<Option<Option<Order>>, lexopt::Error> {
        let takes_order = matches!(self, Self::Install | Self::Uninstall);
        let mut harness = None;
        let (mut in_project, mut is_dry) = (false, false);
        let mut parser = lexopt::Parser::from_args(words.into_iter().skip(1));
        while let Some(word) = parser.next()? {
            match word {
                Long("help") | Short('h') => return Ok(None),
                Long("project") if takes_order => in_project = true,
                Long("dry-run") if takes_order => is_dry = true,
                Value(name) if takes_order && harness.is_none() => {
                    let known = name.to_str().and_then(Harness::named);
                    harness = Some(known.ok_or_else(|| unknown(&name.to_string_lossy()))?);
                }
                other => return Err(other.unexpected()),
            }
        }
        if self == Self::Help {
            return Ok(None);
        }
        if !takes_order {
            return Ok(Some(None));
        }
        Ok(Some(Some(Order {
            harness: harness.ok_or_else(|| unknown(""))?,
            in_project,
            is_dry,
        })))
    }
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
