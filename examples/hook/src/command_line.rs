//! The command line that harnesses start this program with: written, and recognised.

use std::path::Path;

use crate::harness::Harness;

/// The command for one event. `program` is a path without quotes in it.
pub(crate) fn command(program: &str, harness: Harness, event: &str) -> String {
    let command = format!("{} {}", quoted(program), arguments(harness, event));
    match harness {
        // There a hook that fails refuses the call, so a program that is gone would refuse all.
        Harness::Copilot => format!("{command} || exit 0"),
        _ => command,
    }
}

/// The same for PowerShell.
pub(crate) fn power_shell(program: &str, harness: Harness, event: &str) -> String {
    format!("& \"{program}\" {}; exit 0", arguments(harness, event))
}

/// The program that a command starts, if it is this one, whichever version of it.
pub(crate) fn ours(command: &str) -> Option<&str> {
    let command = command.trim_start();
    let command = command.strip_prefix("& ").unwrap_or(command);
    let (program, rest) = match command.chars().next()? {
        quote @ ('\'' | '"') => command.get(1..)?.split_once(quote)?,
        _ => command.split_once(' ')?,
    };
    let name = program.rsplit(['/', '\\']).next()?;
    let is_ours = name == "bizar-hook" || name.eq_ignore_ascii_case("bizar-hook.exe");
    (is_ours && rest.trim_start().starts_with("--harness ")).then_some(program)
}

/// Whether a path can be written between quotes of any shell.
pub(crate) fn is_quotable(program: &Path) -> bool {
    let text = program.to_str();
    text.is_some_and(|text| !text.contains(['\'', '"', '`', '$', '\n']))
}

fn arguments(harness: Harness, event: &str) -> String {
    format!("--harness {} --event {event}", harness.facts().name)
}

fn quoted(program: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if program.chars().all(is_plain) {
        return program.to_owned();
    }
    let quote = if cfg!(windows) { '"' } else { '\'' };
    format!("{quote}{program}{quote}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_recognised() {
        for program in ["bizar-hook", "/usr/bin/bizar-hook", "/a dir/bizar-hook"] {
            for harness in Harness::ALL {
                let command = command(program, harness, "PreToolUse");
                assert_eq!(ours(&command), Some(program), "{command}");
                let command = power_shell(program, harness, "PreToolUse");
                assert_eq!(ours(&command), Some(program), "{command}");
            }
        }
        assert_eq!(
            ours(r#""C:\Program Files\bizar-hook.exe" --harness qwen"#),
            Some(r"C:\Program Files\bizar-hook.exe")
        );
    }

    #[test]
    fn others_are_not() {
        for command in [
            "",
            "bizar-hook",
            "bizar-hook status",
            "my-bizar-hook --harness x",
            "bizar-hook.sh --harness x",
            "echo bizar-hook --harness x",
            "'bizar-hook --harness x",
            "/opt/bizar-hook/run --harness x",
        ] {
            assert_eq!(ours(command), None, "{command}");
        }
    }
}
