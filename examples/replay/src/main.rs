//! Recorded agent sessions in, verdicts out.

use std::process::ExitCode;

fn main() -> ExitCode {
    bizar_replay::command::main()
}
