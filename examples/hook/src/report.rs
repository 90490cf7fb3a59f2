//! `status` and `doctor`.

use std::{
    env, fs, io,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use bizar_guard::Guard;

use crate::{
    command_line, files,
    harness::Harness,
    install, json_file,
    places::{self, Place},
    settings, skipped,
};

/// Where it is installed, and how many calls went unjudged.
pub(crate) fn status(out: &mut impl Write) -> io::Result<()> {
    let home = bizar_guard::home().unwrap_or_default();
    for harness in Harness::ALL {
        for place in places(harness, &home) {
            let scope = if place.is_project { "project" } else { "user" };
            let title = harness.facts().title;
            let what = match install::installed(harness, &place) {
                Ok(found) if found.is_empty() && place.is_project => continue,
                Ok(found) if found.is_empty() => "not installed".to_owned(),
                Ok(found) if found.len() == places::events(harness).len() => "installed".to_owned(),
                Ok(found) => format!("{} of its events: install again", found.len()),
                Err(error) => {
                    writeln!(out, "{title:<14} {scope:<8} {error}")?;
                    continue;
                }
            };
            writeln!(
                out,
                "{title:<14} {scope:<8} {what} ({})",
                place.path.display()
            )?;
        }
    }
    let guard = Guard::new(settings::setup(Harness::Claude));
    let options = guard.options();
    for (name, path) in [
        ("stateDir", &options.state_dir),
        ("logDir", &options.log_dir),
    ] {
        let path = path.as_ref().map_or_else(
            || "none".into(),
            |path| path.as_path().display().to_string(),
        );
        writeln!(out, "{name:<14} {path}")?;
    }
    writeln!(
        out,
        "{:<14} {} calls",
        "not judged",
        skipped::count(options)
    )
}

/// Tries what has to work; the number of troubles.
pub(crate) fn doctor(out: &mut impl Write) -> io::Result<usize> {
    let home = bizar_guard::home().unwrap_or_default();
    let mut troubles = 0;
    let mut check = |out: &mut dyn Write, is_fine: bool, text: String| {
        troubles += usize::from(!is_fine);
        writeln!(out, "{} {text}", if is_fine { "ok  " } else { "BAD " })
    };
    let guard = Guard::new(settings::setup(Harness::Claude));
    for note in guard.notes() {
        check(out, false, format!("options: {note}"))?;
    }
    for (name, path) in [
        ("stateDir", guard.options().state_dir.as_ref()),
        ("logDir", guard.options().log_dir.as_ref()),
    ] {
        let Some(path) = path else {
            check(out, false, format!("{name}: there is none"))?;
            continue;
        };
        let shown = path.as_path().display();
        let written = path.check().map_err(|refused| refused.to_string());
        match written.and_then(|path| can_write(path).map_err(|error| error.to_string())) {
            Ok(()) => check(out, true, format!("{name} can be written: {shown}"))?,
            Err(why) => check(out, false, format!("{name}: {shown}: {why}"))?,
        }
    }
    let mut is_anywhere = false;
    for harness in Harness::ALL {
        let title = harness.facts().title;
        for place in places(harness, &home) {
            let found = match install::installed(harness, &place) {
                Ok(found) if found.is_empty() => continue,
                Ok(found) => found,
                Err(error) => {
                    check(out, false, format!("{title}: {error}"))?;
                    continue;
                }
            };
            is_anywhere = true;
            let wanted = places::events(harness);
            let missing: Vec<&str> = wanted
                .iter()
                .filter(|event| !found.iter().any(|(name, _)| name == *event))
                .copied()
                .collect();
            let text = format!("{title}: {}", place.path.display());
            if missing.is_empty() {
                check(out, true, text)?;
            } else {
                let missing = missing.join(", ");
                check(out, false, format!("{text} lacks {missing}: install again"))?;
            }
            let programs = found
                .iter()
                .filter_map(|(_, command)| command_line::ours(command));
            let mut programs: Vec<PathBuf> = programs.map(resolved_program).collect();
            programs.dedup();
            for program in programs {
                let (is_fine, text) = try_program(&program, harness);
                check(out, is_fine, format!("{title}: {text}"))?;
            }
            for (is_fine, text) in gates(harness, &place) {
                check(out, is_fine, format!("{title}: {text}"))?;
            }
        }
        for line in install::twice(harness, &home, None) {
            check(out, false, line)?;
        }
    }
    if !is_anywhere {
        check(
            out,
            false,
            "installed nowhere: bizar-hook install HARNESS".to_owned(),
        )?;
    }
    let count = skipped::count(guard.options());
    let text = format!("{count} calls went by without being judged, for want of a lock or of time");
    check(out, true, text)?;
    Ok(troubles)
}

fn places(harness: Harness, home: &Path) -> Vec<Place> {
    let project = env::current_dir().ok();
    let project = project.filter(|project| project != home);
    let project = project.and_then(|project| places::of_project(harness, &project));
    std::iter::once(places::of_user(harness, home))
        .chain(project)
        .collect()
}

/// What of the host's own stands in the way.
fn gates(harness: Harness, place: &Place) -> Vec<(bool, String)> {
    let text = files::read(&place.path).unwrap_or_default();
    match harness {
        Harness::Codex => vec![trust(place)],
        Harness::Claude | Harness::Qwen if json_file::is_set(harness, &text, "disableAllHooks") => {
            vec![(false, "disableAllHooks is set: it runs no hooks".to_owned())]
        }
        _ => Vec::new(),
    }
}

/// Whether the user has approved the entries. Which version of them, only Codex can tell.
fn trust(place: &Place) -> (bool, String) {
    let home = places::of_user(Harness::Codex, &bizar_guard::home().unwrap_or_default());
    let config = files::read(&home.path.with_file_name("config.toml")).unwrap_or_default();
    let approved = config
        .parse::<toml_edit::DocumentMut>()
        .ok()
        .and_then(|config| {
            let states = config.get("hooks")?.get("state")?.as_table_like()?;
            let ours = format!("{}:", place.path.display());
            Some(
                states
                    .iter()
                    .filter(|(key, _)| key.starts_with(&ours))
                    .count(),
            )
        });
    let wanted = places::events(Harness::Codex).len();
    match approved.unwrap_or(0) {
        0 => (
            false,
            "its hooks are not approved, so none runs: start codex, type /hooks, and approve them"
                .to_owned(),
        ),
        count if count < wanted => (
            false,
            format!("{count} of {wanted} hooks were approved: see /hooks in codex"),
        ),
        _ => (
            true,
            "hooks were approved; if they were changed since, codex asks again".to_owned(),
        ),
    }
}

fn resolved_program(program: &str) -> PathBuf {
    if program.contains(['/', '\\']) {
        return program.into();
    }
    install::program_on_path().unwrap_or_else(|| program.into())
}

/// Runs the hook as a host would, on an event that changes nothing; on a busy machine more than once.
fn try_program(program: &Path, harness: Harness) -> (bool, String) {
    let mut tries = (0..TRIES).map(|_| try_once(program, harness));
    let first = tries.next().unwrap_or_default();
    if first.0 {
        first
    } else {
        tries.find(|(is_fine, _)| *is_fine).unwrap_or(first)
    }
}

fn try_once(program: &Path, harness: Harness) -> (bool, String) {
    let shown = program.display();
    let started = Instant::now();
    let child = Command::new(program)
        .args(["--harness", harness.facts().name, "--event", "doctor"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .output();
    match child {
        Ok(output) if output.status.success() && output.stdout.is_empty() => {
            let took = started.elapsed();
            let is_fast = took < Duration::from_millis(100);
            (
                is_fast,
                format!("{shown} answers in {:.1} ms", took.as_secs_f64() * 1000.0),
            )
        }
        Ok(output) => (
            false,
            format!("{shown} ended with {}: install again", output.status),
        ),
        Err(error) => (false, format!("{shown} does not start: {error}")),
    }
}

fn can_write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    tempfile::NamedTempFile::new_in(folder).map(drop)
}

const TRIES: usize = 5;
