//! Names of tools: which calls wait for something, and which run a shell.

use bizar_fingerprint::{SHELL_TOOLS, glob_matches};
use bizar_window::Kind;
use serde::Deserialize;

use crate::call::Args;

/// Tools that only ask whether something else has got further.
pub const POLL_TOOLS: [&str; 15] = [
    "write_stdin",
    "wait",
    "wait_agent",
    "*_wait",
    "*_poll",
    "*_get_result",
    "TaskOutput",
    "BashOutput",
    "bash_output",
    "read_bash",
    "read_output",
    "job_status",
    "task_list",
    "bizar_status",
    "bizar_collect",
];

/// What sort of call it is. `args` is JSON text; `None` = the host did not tell the arguments.
///
/// A poll is a call of a poll tool, an empty shell command (`command` or `cmd` of one of [`SHELL_TOOLS`]), or one with a
/// literal sleep of 5 s or more.
#[must_use]
pub fn kind(tool: &str, args: Option<&str>) -> Kind {
    kind_with(&POLL_TOOLS, tool, args.map_or(Args::Missing, Args::Text))
}

/// [`kind`] with poll tools of your own, as globs.
#[must_use]
pub fn kind_with(polls: &[impl AsRef<str>], tool: &str, args: Args<'_>) -> Kind {
    if matches!(args, Args::Missing) {
        return Kind::ArgsMissing;
    }
    let is_poll = polls.iter().any(|glob| glob_matches(glob.as_ref(), tool))
        || (SHELL_TOOLS.contains(&tool) && command(args).is_some_and(|command| waits(&command)));
    if is_poll { Kind::Poll } else { Kind::Counted }
}

#[derive(Deserialize)]
struct ShellArgs {
    command: Option<Command>,
    cmd: Option<Command>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Command {
    Text(String),
    Words(Vec<String>),
}

fn command(args: Args<'_>) -> Option<String> {
    let args = match args {
        Args::Missing => return None,
        Args::Text(text) => serde_json::from_str(text).ok()?,
        Args::Value(value) => ShellArgs::deserialize(value).ok()?,
    };
    Some(match args.command.or(args.cmd)? {
        Command::Text(text) => text,
        Command::Words(words) => words.join(" "),
    })
}

fn waits(command: &str) -> bool {
    command.trim().is_empty() || sleeps(command).any(|seconds| seconds >= LONG_SLEEP)
}

/// The literal sleeps of a command, in seconds.
fn sleeps(command: &str) -> impl Iterator<Item = f64> + '_ {
    let posix = after_word(command, "sleep").filter_map(|rest| {
        let (number, rest) = leading_number(rest.strip_prefix(char::is_whitespace)?)?;
        let (factor, rest) = match rest.chars().next() {
            Some('s') => (1.0, &rest[1..]),
            Some('m') => (60.0, &rest[1..]),
            Some('h') => (3600.0, &rest[1..]),
            _ => (1.0, rest),
        };
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        ends.then_some(number * factor)
    });
    let windows = after_word(command, "Start-Sleep").filter_map(|rest| {
        let mut words = rest.split_whitespace();
        let first = words.next()?;
        let (option, value) = if first.starts_with('-') {
            (first, words.next()?)
        } else {
            ("", first)
        };
        let (number, _) = leading_number(value)?;
        let is_millis = option.to_ascii_lowercase().starts_with("-m");
        Some(if is_millis { number / 1000.0 } else { number })
    });
    posix.chain(windows)
}

/// What follows each place where `word` stands alone.
fn after_word<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(word).filter_map(move |(at, _)| {
        let before = text.get(..at)?.chars().next_back();
        let alone = !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
        text.get(at + word.len()..).filter(|_| alone)
    })
}

fn leading_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, rest))
}

const LONG_SLEEP: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_told_by_name() {
        for tool in [
            "write_stdin",
            "wait",
            "agent_wait",
            "job_poll",
            "TaskOutput",
            "bizar_collect",
        ] {
            assert_eq!(kind(tool, Some("{}")), Kind::Poll, "{tool}");
        }
        for tool in ["git_status", "status", "waiting", "read", "bash"] {
            assert_eq!(kind(tool, Some("{}")), Kind::Counted, "{tool}");
        }
    }

    #[test]
    fn a_shell_that_only_waits_is_a_poll() {
        for command in [
            "",
            "  ",
            "sleep 5",
            "sleep 30 && cat log",
            "cat log; sleep 1m",
            "sleep 2h",
            "(sleep 10)",
            "sleep 5s;true",
            "Start-Sleep -Seconds 10",
            "Start-Sleep 7; dir",
            "Start-Sleep -Milliseconds 5000",
        ] {
            let args = serde_json::json!({"command": command}).to_string();
            assert_eq!(kind("Bash", Some(&args)), Kind::Poll, "{command:?}");
            let args = serde_json::json!({"cmd": ["bash", "-lc", command]}).to_string();
            if !command.trim().is_empty() {
                assert_eq!(kind("exec_command", Some(&args)), Kind::Poll, "{command:?}");
            }
        }
    }

    #[test]
    fn other_shell_commands_count() {
        for command in [
            "ls",
            "sleep 4",
            "sleep 0.5",
            "sleep $N",
            "usleep 500000",
            "time.sleep(10)",
            "sleepy 10",
            "sleep 10x",
            "Start-Sleep -Milliseconds 400",
        ] {
            let args = serde_json::json!({"command": command}).to_string();
            assert_eq!(kind("bash", Some(&args)), Kind::Counted, "{command:?}");
        }
        assert_eq!(
            kind("read", Some(r#"{"command":"sleep 60"}"#)),
            Kind::Counted,
            "no shell"
        );
        assert_eq!(
            kind("bash", Some(r#"{"command":5}"#)),
            Kind::Counted,
            "an odd shape is no poll"
        );
    }

    #[test]
    fn unknown_arguments_are_said_so() {
        assert_eq!(kind("bash", None), Kind::ArgsMissing);
    }
}
