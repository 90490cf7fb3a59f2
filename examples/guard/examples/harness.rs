//! A harness of forty lines with a guard in it. Its scripted model goes in circles and is stopped.

use std::io::{self, Write as _};

use bizar_guard::{Call, Decision, Delivery, End, Ended, Guard, Setup};
use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
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
