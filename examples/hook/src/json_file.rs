//! Our entries in a JSON file of hooks. Everything else in it stays as it is, to the byte.

use jsonc_parser::{
    ParseOptions,
    cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode},
};

use crate::{
    command_line,
    harness::Harness,
    places::{self, Format, TIMEOUT},
};

/// The events that have an entry of ours, with the command.
pub(crate) fn entries(harness: Harness, text: &str) -> Result<Vec<(String, String)>, String> {
    let root = parse(harness, text)?;
    let Some(hooks) = hooks(&root)? else {
        return Ok(Vec::new());
    };
    let mut entries = Vec::new();
    for property in hooks.properties() {
        let event = property.decoded_name().unwrap_or_default();
        for action in actions(&property.array_value()) {
            if let Some(command) = our_command(&action) {
                entries.push((event.clone(), command));
            }
        }
    }
    Ok(entries)
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
    let mut present = entries(harness, text)?;
    let mut sorted = wanted.clone();
    present.sort();
    sorted.sort();
    if present == sorted {
        return Ok(text.to_owned());
    }
    let text = uninstall(harness, text)?;
    let root = parse(harness, &text)?;
    let object = root
        .object_value_or_create()
        .ok_or("its root is not an object")?;
    if matches!(places::format(harness), Format::Copilot | Format::Cursor)
        && object.get("version").is_none()
    {
        object.append("version", CstInputValue::Number("1".to_owned()));
    }
    let hooks = object
        .object_value_or_create("hooks")
        .ok_or("its member \"hooks\" is not an object")?;
    for (event, command) in wanted {
        let list = hooks
            .array_value_or_create(&event)
            .ok_or_else(|| format!("its member \"hooks.{event}\" is not an array"))?;
        list.append(entry(harness, program, &event, command));
    }
    Ok(root.to_string())
}

/// The text without entries of ours, and without what they alone held.
pub(crate) fn uninstall(harness: Harness, text: &str) -> Result<String, String> {
    if entries(harness, text)?.is_empty() {
        return Ok(text.to_owned());
    }
    let root = parse(harness, text)?;
    let hooks = hooks(&root)?.ok_or("it has no hooks")?;
    for property in hooks.properties() {
        let Some(list) = property.array_value() else {
            continue;
        };
        let before = list.elements().len();
        for element in list.elements() {
            remove_ours(element);
        }
        if before > 0 && list.elements().is_empty() {
            property.remove();
        }
    }
    if hooks.properties().is_empty()
        && let Some(property) = root.object_value().and_then(|root| root.get("hooks"))
    {
        property.remove();
    }
    Ok(root.to_string())
}

/// Whether nothing is left that anybody would miss.
pub(crate) fn is_empty(harness: Harness, text: &str) -> bool {
    parse(harness, text).is_ok_and(|root| {
        let members = root.object_value().map(|root| root.properties());
        let is_bare = members.is_some_and(|members| {
            members
                .iter()
                .all(|member| member.decoded_name().as_deref() == Some("version"))
        });
        is_bare && !text.contains("//") && !text.contains("/*")
    })
}

/// Whether a member of the root is true.
pub(crate) fn is_set(harness: Harness, text: &str, name: &str) -> bool {
    let root = parse(harness, text).ok();
    let member = root.and_then(|root| root.object_value()?.get(name)?.value());
    member.is_some_and(|value| value.as_boolean_lit().is_some_and(|value| value.value()))
}

fn parse(harness: Harness, text: &str) -> Result<CstRootNode, String> {
    let has_comments = match places::format(harness) {
        Format::Groups(json) => json.has_comments,
        _ => false,
    };
    let options = ParseOptions {
        allow_comments: has_comments,
        allow_trailing_commas: has_comments,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let is_empty = text.trim().is_empty();
    if !has_comments
        && !is_empty
        && let Err(error) = serde_json::from_str::<serde_json::Value>(text)
    {
        // The parser below reads comments whatever it is told; the host does not.
        let (line, column) = (error.line(), error.column());
        return Err(format!(
            "line {line}, column {column}: it is not valid JSON"
        ));
    }
    CstRootNode::parse(text, &options).map_err(|error| {
        let (line, column) = (error.line_display(), error.column_display());
        format!("line {line}, column {column}: {}", error.kind())
    })
}

fn hooks(root: &CstRootNode) -> Result<Option<CstObject>, String> {
    let Some(value) = root.value() else {
        return Ok(None);
    };
    let object = value.as_object().ok_or("its root is not an object")?;
    let Some(property) = object.get("hooks") else {
        return Ok(None);
    };
    let hooks = property.object_value();
    hooks
        .map(Some)
        .ok_or_else(|| "its member \"hooks\" is not an object".to_owned())
}

/// The actions of an event: those of its groups, or the entries themselves.
fn actions(list: &Option<CstArray>) -> Vec<CstObject> {
    let entries = list.iter().flat_map(CstArray::elements);
    let entries = entries.filter_map(|entry| entry.as_object());
    entries
        .flat_map(|entry| match entry.array_value("hooks") {
            Some(group) => group
                .elements()
                .into_iter()
                .filter_map(|action| action.as_object())
                .collect(),
            None => vec![entry],
        })
        .collect()
}

fn remove_ours(element: CstNode) {
    let Some(object) = element.as_object() else {
        return;
    };
    let Some(group) = object.array_value("hooks") else {
        if our_command(&object).is_some() {
            element.remove();
        }
        return;
    };
    let before = group.elements().len();
    for action in group.elements() {
        if action
            .as_object()
            .is_some_and(|action| our_command(&action).is_some())
        {
            action.remove();
        }
    }
    if before > 0 && group.elements().is_empty() {
        element.remove();
    }
}

fn our_command(action: &CstObject) -> Option<String> {
    ["command", "bash"].iter().find_map(|name| {
        let command = action.get(name)?.value()?.as_string_lit()?;
        let command = command.decoded_value().ok()?;
        command_line::ours(&command).is_some().then_some(command)
    })
}

fn entry(harness: Harness, program: &str, event: &str, command: String) -> CstInputValue {
    let text = |name: &str, text: &str| (name.to_owned(), CstInputValue::String(text.to_owned()));
    let number = |name: &str, n: u32| (name.to_owned(), CstInputValue::Number(n.to_string()));
    match places::format(harness) {
        Format::Copilot => CstInputValue::Object(vec![
            text("type", "command"),
            text("bash", &command),
            text(
                "powershell",
                &command_line::power_shell(program, harness, event),
            ),
            number("timeoutSec", TIMEOUT),
        ]),
        Format::Cursor => {
            CstInputValue::Object(vec![text("command", &command), number("timeout", TIMEOUT)])
        }
        format => {
            let in_millis = matches!(format, Format::Groups(json) if json.in_millis);
            let action = CstInputValue::Object(vec![
                text("type", "command"),
                text("command", &command),
                number("timeout", if in_millis { TIMEOUT * 1000 } else { TIMEOUT }),
            ]);
            let group = ("hooks".to_owned(), CstInputValue::Array(vec![action]));
            CstInputValue::Object(vec![group])
        }
    }
}
