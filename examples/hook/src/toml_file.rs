//! Our entries in Kimi's TOML. Everything else in it stays as it is, to the byte.

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use crate::{
    command_line,
    harness::Harness,
    places::{self, TIMEOUT},
};

/// The events that have an entry of ours, with the command.
pub(crate) fn entries(text: &str) -> Result<Vec<(String, String)>, String> {
    let document = parse(text)?;
    let Some(hooks) = document.get("hooks") else {
        return Ok(Vec::new());
    };
    let hooks = hooks.as_array_of_tables().ok_or(NO_TABLES)?;
    let ours = hooks.iter().filter_map(|hook| {
        let event = hook.get("event").and_then(Item::as_str).unwrap_or_default();
        Some((event.to_owned(), our_command(hook)?.to_owned()))
    });
    Ok(ours.collect())
}

/// The text with exactly the entries that there should be.
pub(crate) fn install(harness: Harness, text: &str, program: &str) -> Result<String, String> {
    let wanted: Vec<(String, String)> = places::events(harness)
        .iter()
        .map(|event| {
            let command = command_line::command(program, harness, event);
            ((*event).to_owned(), command)
        })
        .collect();
    if entries(text)? == wanted {
        return Ok(text.to_owned());
    }
    let mut document = parse(&uninstall(text)?)?;
    let hooks = document
        .entry("hooks")
        .or_insert(Item::ArrayOfTables(ArrayOfTables::new()))
        .as_array_of_tables_mut()
        .ok_or(NO_TABLES)?;
    for (event, command) in wanted {
        let mut hook = Table::new();
        hook.insert("event", value(event));
        hook.insert("command", value(command));
        hook.insert("timeout", value(i64::from(TIMEOUT)));
        hooks.push(hook);
    }
    Ok(document.to_string())
}

/// The text without entries of ours.
pub(crate) fn uninstall(text: &str) -> Result<String, String> {
    if entries(text)?.is_empty() {
        return Ok(text.to_owned());
    }
    let mut document = parse(text)?;
    if let Some(hooks) = document
        .get_mut("hooks")
        .and_then(Item::as_array_of_tables_mut)
    {
        hooks.retain(|hook| our_command(hook).is_none());
        if hooks.is_empty() {
            document.remove("hooks");
        }
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>().map_err(|error| {
        let before = error
            .span()
            .and_then(|span| text.get(..span.start))
            .unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        format!("line {line}, column {column}: {}", error.message())
    })
}

fn our_command(hook: &Table) -> Option<&str> {
    let command = hook.get("command")?.as_str()?;
    command_line::ours(command).map(|_| command)
}

const NO_TABLES: &str = "its hooks are not written as [[hooks]] tables";
