#![doc = include_str!("../README.md")]

mod background;
mod doctor;
mod install;
mod jsonc;
mod places;
mod plugin;
mod session;
mod sidecar;
mod status;
mod tools;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use bizar_background::opencode::watchdog;
use bizar_guard::Environment;
use clap::{Parser, Subcommand};

use crate::install::{Install, Uninstall};
use crate::places::Places;
use crate::sidecar::Sidecar;

/// Keeps the agents of opencode from going round in circles.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Puts the plugin where opencode finds it by itself
    Install(Install),
    /// Takes the plugin away again, and nothing else
    Uninstall(Uninstall),
    /// Shows what is installed, which options are in force, and the last refusals
    Status,
    /// Tries everything that has to work, and says how to mend what does not
    Doctor,
    /// Prints the section for agents' prompts that explains the guard's messages
    Prompt,
    /// Judges tool calls; started by the plugin, speaks on standard input and output
    #[command(hide = true)]
    Guard,
    /// Runs background agents; started by the plugin at their first use, speaks on standard input and output
    #[command(hide = true)]
    Background,
}

fn main() -> ExitCode {
    let mut args = env::args_os().skip(1);
    if args.next().is_some_and(|first| first == background::WATCH) {
        // Everything that follows is the command to watch, whatever it looks like.
        return ExitCode::from(watchdog::run(args));
    }
    let places = Places::from_env();
    let mut out = io::stdout().lock();
    let done = match Cli::parse().command {
        Command::Install(install) => install.run(&places, &mut out),
        Command::Uninstall(uninstall) => uninstall.run(&places, &mut out),
        Command::Status => status::print(&places, &mut out),
        Command::Doctor => match doctor::print(&places, &mut out) {
            Ok(0) => return ExitCode::SUCCESS,
            Ok(_) => return ExitCode::FAILURE,
            Err(error) => Err(error),
        },
        Command::Prompt => out.write_all(PROMPT.as_bytes()),
        Command::Guard => {
            let environment = Environment::from_pairs(env::vars_os());
            let mut sidecar = Sidecar::new(places.home.clone(), environment);
            // An error is the end of the pipe: opencode is gone.
            sidecar.serve(io::stdin().lock(), out).ok();
            return ExitCode::SUCCESS;
        }
        Command::Background => {
            let environment = Environment::from_pairs(env::vars_os());
            drop(out);
            let input = io::BufReader::new(io::stdin());
            background::serve(places.home, environment, input, io::stdout())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "bizar-opencode: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

/// The section for agents' prompts.
const PROMPT: &str = include_str!("prompt.md");
