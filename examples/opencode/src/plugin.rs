//! The plugin file: what is installed, and whether a file found is ours.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::places;
use crate::tools;

/// The file that opencode loads, without its first line.
const BODY: &str = include_str!("../plugin/bizar.ts");

/// The file that opencode finds by itself, below a configuration folder.
pub(crate) const FILE: &str = "plugins/bizar.ts";

/// A second way to it, which opencode does not find by itself: `opencode.json` names it to hand options over.
/// Options for a file that it finds anyway are dropped by opencode.
pub(crate) const ENTRY: &str = "plugins/bizar/index.ts";

const MARK: &str = "// bizar-opencode plugin ";
const STAMP: &str = "const stamp = ";
const TOOLS: &str = "const tools: Record<string, any> = ";

/// What an installation writes into the file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Stamp {
    /// Absolute path of the program; empty in a project, where it comes from `PATH`.
    pub(crate) program: String,
    /// The program's version; empty in a project.
    pub(crate) version: String,
    /// Options weaker than all of the user's own.
    pub(crate) options: Map<String, Value>,
}

/// What stands at the place of the plugin file.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    Absent,
    /// Something that we did not write.
    Foreign,
    Ours {
        version: String,
        stamp: Stamp,
        /// Somebody changed it.
        is_edited: bool,
    },
}

/// The whole file. Its first line holds the hash of all others, and so shows edits.
pub(crate) fn render(stamp: &Stamp) -> String {
    // Two lines stand for what is written here.
    let rest = BODY.splitn(3, '\n').nth(2).unwrap_or_default();
    let stamp = serde_json::to_string(stamp).unwrap_or_default();
    let tools = tools::definitions();
    sealed(&format!("{STAMP}{stamp}\n{TOOLS}{tools}\n{rest}"))
}

/// The whole file behind [`ENTRY`].
pub(crate) fn render_entry() -> String {
    sealed("export { Bizar } from \"../bizar.ts\"\n")
}

fn sealed(body: &str) -> String {
    format!(
        "{MARK}{} sha256:{}\n{body}",
        env!("CARGO_PKG_VERSION"),
        hash(body)
    )
}

/// Looks at the place of the plugin file.
pub(crate) fn examine(path: &Path) -> io::Result<Found> {
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
        Err(error) => return Err(places::at(path)(error)),
    };
    Ok(parse(&text).unwrap_or(Found::Foreign))
}

fn parse(text: &str) -> Option<Found> {
    let (first, body) = text.split_once('\n')?;
    let (version, claimed) = first
        .trim_end()
        .strip_prefix(MARK)?
        .split_once(" sha256:")?;
    let second = body
        .lines()
        .next()
        .and_then(|line| line.strip_prefix(STAMP));
    Some(Found::Ours {
        version: version.to_owned(),
        stamp: second
            .and_then(|stamp| serde_json::from_str(stamp).ok())
            .unwrap_or_default(),
        is_edited: claimed != hash(body),
    })
}

fn hash(body: &str) -> String {
    hex::encode(Sha256::digest(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rendered_file_is_ours_until_somebody_changes_it() {
        let mut stamp = Stamp {
            program: "/opt/a \"b\"/bizar-opencode".to_owned(),
            version: "1.2.3".to_owned(),
            ..Stamp::default()
        };
        stamp.options.insert("loopMode".to_owned(), "cycle".into());
        let text = render(&stamp);
        let ours = |is_edited| {
            Some(Found::Ours {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                stamp: stamp.clone(),
                is_edited,
            })
        };
        assert_eq!(parse(&text), ours(false));
        assert_eq!(parse(&format!("{text}\n")), ours(true));
        assert_eq!(parse("export const Other = 1\n"), None);
    }
}
