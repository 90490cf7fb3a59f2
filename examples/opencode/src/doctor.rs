//! `doctor`: tries everything that has to work.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::install::needs_npm;
use crate::places::{self, Places};
use crate::plugin::{self, Found};
use crate::sidecar::PROTOCOL;
use crate::status::in_force;

/// The opencode that everything was tried with.
const TRIED: &str = "1.18.33";

/// A thing that was tried: fine, worth a look, or broken and how to mend it.
enum Finding {
    Fine(String),
    Odd(String),
    Broken(String),
}

use Finding::{Broken, Fine, Odd};

/// Prints all findings; gives the number of broken things.
pub(crate) fn print(places: &Places, out: &mut impl Write) -> io::Result<usize> {
    let mut findings = vec![opencode(places)];
    findings.extend(plugins(places));
    findings.extend(switches(&env::vars().collect::<Vec<_>>()));
    let in_force = in_force(places);
    let faults = in_force.faults.iter();
    findings.extend(faults.map(|fault| Broken(format!("configuration: {fault}: mend the file"))));
    let resolved = in_force.resolved;
    findings.extend(
        resolved
            .notes
            .iter()
            .map(|note| Odd(format!("options: {note}"))),
    );
    let directories = [
        ("logDir", &resolved.options.log_dir),
        ("stateDir", &resolved.options.state_dir),
    ];
    for (name, path) in directories {
        findings.push(match path.as_ref().map(|path| path.check().map(usable)) {
            None => Broken(format!("{name}: there is no home directory: set HOME")),
            Some(Err(refused)) => Broken(format!("{name}: {refused}: choose another directory")),
            Some(Ok(finding)) => finding.named(name),
        });
    }
    findings.push(match round_trip() {
        Ok(took) => Fine(format!(
            "program: a verdict in {took:.1?}, its start included"
        )),
        Err(why) => Broken(format!("program: {why}: install it again")),
    });
    let mut broken = 0;
    for finding in findings {
        let (mark, text) = match finding {
            Fine(text) => ("ok   ", text),
            Odd(text) => ("look ", text),
            Broken(text) => {
                broken += 1;
                ("BAD  ", text)
            }
        };
        writeln!(out, "{mark} {text}")?;
    }
    Ok(broken)
}

impl Finding {
    fn named(self, name: &str) -> Self {
        match self {
            Fine(text) => Fine(format!("{name}: {text}")),
            Odd(text) => Odd(format!("{name}: {text}")),
            Broken(text) => Broken(format!("{name}: {text}")),
        }
    }
}

fn opencode(places: &Places) -> Finding {
    match places.opencode() {
        Some((program, version)) if version == TRIED => {
            Fine(format!("opencode: {} {version}", program.display()))
        }
        Some((program, version)) => Odd(format!(
            "opencode: {} {version}; everything was tried with {TRIED}",
            program.display()
        )),
        None => Odd("opencode: not on PATH".to_owned()),
    }
}

fn plugins(places: &Places) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_installed = false;
    for in_project in [false, true] {
        let folder = places.folder(in_project);
        let found = folder.and_then(|folder| {
            let path = folder.join(plugin::FILE);
            Ok((plugin::examine(&path)?, path, folder))
        });
        let (found, path, folder) = match found {
            Ok(found) => found,
            Err(error) => {
                findings.push(Broken(format!("plugin: {error}: is HOME right?")));
                continue;
            }
        };
        let shown = path.display().to_string();
        let Found::Ours {
            version,
            stamp,
            is_edited,
        } = found
        else {
            continue;
        };
        is_installed = true;
        findings.push(if is_edited {
            Odd(format!("plugin: {shown} was edited by hand"))
        } else if version != env!("CARGO_PKG_VERSION") {
            Odd(format!(
                "plugin: {shown} is of version {version}: run bizar-opencode install"
            ))
        } else {
            Fine(format!("plugin: {shown}"))
        });
        let program = Path::new(&stamp.program);
        if !stamp.program.is_empty() && !program.is_file() {
            findings.push(Broken(format!(
                "plugin: {} is gone: run bizar-opencode install",
                stamp.program
            )));
        } else if places::is_passing(program) {
            let passes = places::PASSES;
            findings.push(Odd(format!("plugin: {} {passes}", stamp.program)));
        }
        if stamp.program.is_empty() && places.program("bizar-opencode").is_none() {
            findings.push(Broken(format!(
                "plugin: {shown} looks for bizar-opencode on PATH, where it is not"
            )));
        }
        if needs_npm(&folder) {
            findings.push(Odd(format!(
                "npm: opencode will install its plugin package into {} at its next start; without a network use \
                 bizar-opencode install --offline",
                folder.display()
            )));
        }
    }
    if !is_installed {
        findings.push(Broken(
            "plugin: not installed: run bizar-opencode install".to_owned(),
        ));
    }
    findings
}

fn switches(variables: &[(String, String)]) -> Vec<Finding> {
    let names = ["BIZAR_DISABLE", "BIZAR_DISABLE_LOOP", "BIZAR_DISABLE_LOG"];
    let set = variables
        .iter()
        .filter(|(name, value)| names.contains(&name.as_str()) && value == "1");
    set.map(|(name, _)| Odd(format!("environment: {name} is set, so that part is off")))
        .collect()
}

/// Whether files can be made in a directory, or in the first of its parents that is there.
fn usable(directory: &Path) -> Finding {
    let Some(present) = directory.ancestors().find(|folder| folder.exists()) else {
        return Broken("cannot be reached".to_owned());
    };
    if let Err(error) = tempfile::tempfile_in(present) {
        return Broken(format!(
            "{}: {error}: mend its permissions",
            present.display()
        ));
    }
    match mode(directory) {
        Some(mode) if mode & 0o077 != 0 => Odd(format!(
            "{} can be read by others: chmod 700",
            directory.display()
        )),
        _ => Fine(directory.display().to_string()),
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    Some(fs::metadata(path).ok()?.permissions().mode())
}

#[cfg(not(unix))]
fn mode(_: &Path) -> Option<u32> {
    None
}

/// Starts the sidecar as the plugin does and asks for one verdict.
fn round_trip() -> Result<Duration, String> {
    let start = Instant::now();
    let program = env::current_exe().map_err(|error| error.to_string())?;
    // A home of its own: the user's sessions are left alone.
    let home = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .arg("guard")
        .env("HOME", home.path())
        .env("USERPROFILE", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let answers = child.stdout.take().map(answers);
    let line = |id: u32, method: &str, params: Value| {
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        )
    };
    let open = json!({"directory": ""});
    let call = json!({"directory": "", "session": "doctor", "call": "1", "message": "1", "tool": "read", "args": {}});
    let text = line(1, "hello", json!({"protocol": PROTOCOL}))
        + &line(2, "open", open)
        + &line(3, "before", call);
    if let Some(pipe) = &mut child.stdin {
        pipe.write_all(text.as_bytes())
            .map_err(|error| error.to_string())?;
    }
    let expected = [
        (1, "/result/protocol", json!(PROTOCOL)),
        (2, "/result/verdictTimeoutMs", json!(250)),
        (3, "/result/verdict", json!("allow")),
    ];
    let end = start + Duration::from_secs(5);
    let result = expected.iter().try_for_each(|(id, pointer, value)| {
        let patience = end.saturating_duration_since(Instant::now());
        let answer = answers
            .as_ref()
            .and_then(|answers| answers.recv_timeout(patience).ok())
            .ok_or("it does not answer")?;
        let fits = answer.get("id") == Some(&json!(id)) && answer.pointer(pointer) == Some(value);
        if fits {
            Ok(())
        } else {
            Err(format!("it answers {answer}"))
        }
    });
    let took = start.elapsed();
    // The end of its input ends it, and then its files are written.
    drop(child.stdin.take());
    if result.is_err() {
        child.kill().ok();
    }
    child.wait().ok();
    result.map(|()| took)
}

fn answers(pipe: impl io::Read + Send + 'static) -> mpsc::Receiver<Value> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let Ok(value) = serde_json::from_str(&line) else {
                return;
            };
            if sender.send(value).is_err() {
                return;
            }
        }
    });
    receiver
}
