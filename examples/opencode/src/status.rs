//! `status`: what is there and what is in force.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bizar_guard::{Environment, Json, Resolved, Sources, resolve_with_file};
use bizar_log::{Outcome, Reader, list};
use serde_json::Value;

use crate::jsonc;
use crate::places::{self, Places};
use crate::plugin::{self, Found, Stamp};
use crate::sidecar::HOST;

pub(crate) fn print(places: &Places, out: &mut impl Write) -> io::Result<()> {
    match places.opencode() {
        Some((program, version)) => writeln!(out, "opencode     {} {version}", program.display())?,
        None => writeln!(out, "opencode     not on PATH")?,
    }
    for (name, in_project) in [("global", false), ("project", true)] {
        let path = places.folder(in_project)?.join(plugin::FILE);
        let what = match plugin::examine(&path) {
            Err(error) => error.to_string(),
            Ok(Found::Absent) => "not installed".to_owned(),
            Ok(Found::Foreign) => format!("{} is not ours", path.display()),
            Ok(Found::Ours {
                version,
                stamp,
                is_edited,
            }) => {
                let edited = if is_edited { ", edited by hand" } else { "" };
                let program = if stamp.program.is_empty() {
                    "bizar-opencode on PATH"
                } else {
                    &stamp.program
                };
                format!(
                    "{}, version {version}{edited}, runs {program}",
                    path.display()
                )
            }
        };
        writeln!(out, "{name:<12} {what}")?;
    }
    let in_force = in_force(places);
    for fault in &in_force.faults {
        writeln!(out, "unreadable   {fault}")?;
    }
    if let Some(path) = &in_force.tuple {
        writeln!(out, "options from {}", path.display())?;
    }
    for (name, value) in values(&in_force.resolved) {
        let origin = in_force.resolved.origin(name);
        writeln!(out, "  {name:<22} {value} ({origin})")?;
    }
    for note in &in_force.resolved.notes {
        writeln!(out, "  note: {note}")?;
    }
    sessions(&in_force.resolved, out)?;
    refusals(&in_force.resolved, out)
}

/// The options as a start of opencode in this directory would have them.
pub(crate) struct InForce {
    pub(crate) resolved: Resolved,
    /// The file of opencode that hands options over.
    tuple: Option<PathBuf>,
    /// Configuration files of opencode that cannot be read, each with the place of the first mistake.
    pub(crate) faults: Vec<String>,
}

pub(crate) fn in_force(places: &Places) -> InForce {
    let stamp = [true, false]
        .iter()
        .filter_map(|&in_project| places.folder(in_project).ok())
        .find_map(|folder| match plugin::examine(&folder.join(plugin::FILE)) {
            Ok(Found::Ours { stamp, .. }) => Some(stamp),
            _ => None,
        });
    let defaults =
        Value::Object(stamp.map_or_else(Default::default, |Stamp { options, .. }| options));
    let (configs, faults) = configs(places);
    let tuple = configs
        .iter()
        .find_map(|(path, config)| Some((path, tuple(config)?)));
    let home = places.home.as_deref();
    let resolved = resolve_with_file(Sources {
        home,
        host_defaults: Some(Json::Value(&defaults)),
        file: None,
        host: Some(HOST),
        host_options: tuple.map(|(_, options)| Json::Value(options)),
        env: Environment::from_pairs(std::env::vars_os()),
    });
    InForce {
        resolved,
        tuple: tuple.map(|(path, _)| path.clone()),
        faults,
    }
}

/// The configuration files of opencode, the project's first, and what is wrong with those that cannot be read.
fn configs(places: &Places) -> (Vec<(PathBuf, Value)>, Vec<String>) {
    let folders = [
        Some(places.project.join(".opencode")),
        Some(places.project.clone()),
        places.config.clone(),
    ];
    let files = folders
        .iter()
        .flatten()
        .flat_map(|folder| ["opencode.jsonc", "opencode.json"].map(|name| folder.join(name)));
    let (mut configs, mut faults) = (Vec::new(), Vec::new());
    for path in files.filter(|path| path.is_file()) {
        let fault = match fs::read_to_string(&path) {
            Err(error) => error.to_string(),
            Ok(text) => match jsonc::parse(&text) {
                Ok(config) => {
                    configs.push((path, config));
                    continue;
                }
                Err(_) if is_read_otherwise(&text) => continue,
                Err(error) => error.to_string(),
            },
        };
        faults.push(format!("{}: {fault}", path.display()));
    }
    (configs, faults)
}

/// opencode takes an empty file for none, and puts something in the place of `{env:…}` before it reads JSON.
fn is_read_otherwise(text: &str) -> bool {
    text.trim().is_empty() || text.contains("{env:") || text.contains("{file:")
}

/// The options that a configuration hands over to the plugin.
fn tuple(config: &Value) -> Option<&Value> {
    let entries = config.get("plugin")?.as_array()?;
    let is_ours = |entry: &&Value| {
        let file = entry.get(0).and_then(Value::as_str).map(Path::new);
        file.is_some_and(|file| file.ends_with(plugin::ENTRY) || file.ends_with(plugin::FILE))
    };
    entries.iter().find(is_ours)?.get(1)
}

fn values(resolved: &Resolved) -> Vec<(&'static str, String)> {
    let options = &resolved.options;
    let directories = [&options.log_dir, &options.state_dir];
    let [log_dir, state_dir] = directories.map(|path| {
        path.as_ref().map_or_else(
            || "none".to_owned(),
            |path| path.as_path().display().to_string(),
        )
    });
    vec![
        ("loopMode", options.loop_mode.as_str().to_owned()),
        ("loopThresholdWarn", options.thresholds.warn().to_string()),
        (
            "loopThresholdEscalate",
            options.thresholds.escalate().to_string(),
        ),
        ("loopThresholdBlock", options.thresholds.block().to_string()),
        (
            "loopHaltAfterBlocks",
            options.loop_halt_after_blocks.to_string(),
        ),
        ("loopObserveOnly", options.loop_observe_only.to_string()),
        (
            "opencodeDoomLoop",
            options.opencode_doom_loop.as_str().to_owned(),
        ),
        ("backgroundAgents", options.background_agents.join(", ")),
        ("logDir", log_dir),
        ("stateDir", state_dir),
    ]
}

/// The sessions that were active last and had a warning or a refusal.
fn sessions(resolved: &Resolved, out: &mut impl Write) -> io::Result<()> {
    let directory = resolved
        .options
        .state_dir
        .as_ref()
        .and_then(|path| path.check().ok());
    let files = directory.and_then(|directory| fs::read_dir(directory).ok());
    let mut states: Vec<Value> = files
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|file| serde_json::from_str(&fs::read_to_string(file.path()).ok()?).ok())
        .filter(|state| number(state, "warningsIssued") + number(state, "blocksTriggered") > 0)
        .filter(|state| state.get("host").is_some_and(|host| host == HOST))
        .collect();
    states.sort_by_key(|state| std::cmp::Reverse(number(state, "lastActivityAt")));
    for state in states.iter().take(SHOWN) {
        let id = state
            .get("sessionId")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let [warned, refused] =
            ["warningsIssued", "blocksTriggered"].map(|name| number(state, name));
        writeln!(out, "session      {id} warned {warned}, refused {refused}")?;
    }
    Ok(())
}

fn number(state: &Value, name: &str) -> u64 {
    state.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// The last refused calls, from the logs that were written to last.
fn refusals(resolved: &Resolved, out: &mut impl Write) -> io::Result<()> {
    let Some(directory) = resolved
        .options
        .log_dir
        .as_ref()
        .and_then(|path| path.check().ok())
    else {
        return Ok(());
    };
    let mut logs = match list(directory) {
        Ok(logs) => logs,
        Err(error) => return writeln!(out, "refused      {}", places::at(directory)(error)),
    };
    logs.sort_by_key(|log| std::cmp::Reverse(log.modified));
    let mut refused = Vec::new();
    for log in logs.iter().take(LOGS) {
        let entries = Reader::new(directory, &log.name).read()?;
        refused.extend(
            entries
                .into_iter()
                .flatten()
                .filter(|entry| entry.outcome() == Outcome::Blocked),
        );
    }
    refused.sort_by_key(|entry| std::cmp::Reverse(entry.at()));
    writeln!(
        out,
        "refused      {}",
        if refused.is_empty() {
            "nothing lately"
        } else {
            "last of all:"
        }
    )?;
    for entry in refused.iter().take(SHOWN) {
        writeln!(out, "  {entry}")?;
    }
    Ok(())
}

const LOGS: usize = 20;
const SHOWN: usize = 5;
