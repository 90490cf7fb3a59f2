//! A live view of agents' sessions and background agents, in a terminal.

use std::process::ExitCode;

fn main() -> ExitCode {
    bizar_top::command::main()
}
