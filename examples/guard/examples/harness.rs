//! A harness of forty lines with a guard in it. Its scripted model goes in circles and is stopped.

use std::io::{self, Write};

use bizar_guard::{Call, Decision, Delivery, End, Ended, Guard, Setup};
use serde_json::{Value, json};

fn main() -> io::Result<()> {
    run_agent(&mut io::stdout().lock())
}

/// The loop of an agent: ask the model, make the call that it wants, show it the result.
fn run_agent(out: &mut impl Write) -> io::Result<()> {
    let guard = Guard::new(Setup::in_memory("harness"));
    let session = "demo";
    let mut model = Model::default();
    guard.user_message(session, None);
    writeln!(out, "user: make the tests pass")?;
    for round in 1.. {
        // What the guard has to say goes with the request, as a system message of this request alone.
        let warning = guard.request(session, Delivery::Forgets);
        if let Some(text) = &warning {
            writeln!(out, "      {}", text.lines().next().unwrap_or_default())?;
        }
        let Some((tool, args)) = model.next_call(warning.as_deref()) else {
            writeln!(out, "model: I give up, and report what I have learned.")?;
            break;
        };
        let decision: Decision = guard.before(&Call::new(session, tool, &args));
        let result = if decision.refused {
            decision.text.unwrap_or_default()
        } else {
            run(tool, &args)
        };
        if !decision.refused {
            guard.after(&End::new(session, tool, &args, Ended::ok(result.as_str())));
        }
        writeln!(
            out,
            "{round:>4}  {tool} {args} -> {}",
            result.lines().next().unwrap_or_default()
        )?;
        if decision.halted {
            writeln!(out, "      the run is ended")?;
            break;
        }
    }
    guard.idle(session);
    Ok(())
}

/// A model that reads, edits and tests, and then only tests, whatever it is told.
#[derive(Default)]
struct Model {
    asked: usize,
}

impl Model {
    fn next_call(&mut self, _warning: Option<&str>) -> Option<(&'static str, Value)> {
        self.asked += 1;
        Some(match self.asked {
            1 => ("read", json!({"path": "src/lib.rs"})),
            2 => (
                "edit",
                json!({"path": "src/lib.rs", "old": "1", "new": "2"}),
            ),
            _ => ("bash", json!({"command": "cargo test"})),
        })
    }
}

fn run(tool: &str, _args: &Value) -> String {
    match tool {
        "read" => "fn one() -> u32 { 1 }",
        "edit" => "done",
        _ => "test one ... FAILED",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two calls of progress, eleven tests that fail, three refusals and the end.
    #[test]
    fn the_model_is_stopped() {
        let mut out = Vec::new();
        run_agent(&mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
        assert_eq!(count("-> test one ... FAILED"), 11);
        assert_eq!(
            count("-> Loop protection: 12 identical calls to bash. Use task to escalate."),
            3
        );
        assert_eq!(
            count("-> Loop protection: stopped after 4 refused calls to bash."),
            1
        );
        assert_eq!(lines.last(), Some(&"      the run is ended"));
    }
}
