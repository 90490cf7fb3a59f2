//! Which harness wrote this? Answered from content alone: file names are not to be relied on.

/// A format of recorded sessions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Format {
    /// Claude Code, `~/.claude/projects/**/*.jsonl`.
    Claude,
    /// Cline, `~/.cline/data/sessions/*/*.messages.json`.
    Cline,
    /// Codex, `~/.codex/sessions/**/rollout-*.jsonl`.
    Codex,
    /// Copilot CLI, `~/.copilot/session-state/*/events.jsonl`.
    Copilot,
    /// Factory's droid, `~/.factory/sessions/**/*.jsonl`.
    Droid,
    /// Gemini CLI, `~/.gemini/tmp/*/chats/*.jsonl`.
    Gemini,
    /// Gemini CLI before its chats became lines: one JSON document.
    GeminiDocument,
    /// Kimi Code, `~/.kimi-code/sessions/**/wire.jsonl`.
    Kimi,
    /// `opencode export`.
    Opencode,
    /// Our own JSON Lines.
    Own,
    /// Qwen Code, `~/.qwen/projects/*/chats/*.jsonl`.
    Qwen,
}

impl Format {
    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Cline => "Cline",
            Self::Codex => "Codex",
            Self::Copilot => "Copilot CLI",
            Self::Droid => "droid",
            Self::Gemini | Self::GeminiDocument => "Gemini CLI",
            Self::Kimi => "Kimi Code",
            Self::Opencode => "opencode",
            Self::Own => "call lines",
            Self::Qwen => "Qwen Code",
        }
    }

    /// Whether the whole file is one JSON document.
    pub(crate) fn is_document(self) -> bool {
        matches!(self, Self::Cline | Self::GeminiDocument | Self::Opencode)
    }

    /// Recognises a format from the first bytes of a file; the last line may be cut.
    pub fn of(prefix: &[u8]) -> Option<Self> {
        let prefix = prefix.strip_prefix(b"\xef\xbb\xbf").unwrap_or(prefix);
        of_document(&members(prefix.trim_ascii_start())).or_else(|| {
            prefix
                .split(|byte| *byte == b'\n')
                .find_map(|line| of_line(&members(line)))
        })
    }
}

/// A top-level member of a JSON object: its name, and its value if that is a short string.
type Member<'a> = (&'a [u8], Option<&'a [u8]>);

fn of_document(members: &[Member<'_>]) -> Option<Format> {
    let has = |name: &str| members.iter().any(|(member, _)| *member == name.as_bytes());
    if !has("messages") {
        return None;
    }
    if has("info") {
        Some(Format::Opencode)
    } else if has("projectHash") {
        Some(Format::GeminiDocument)
    } else if has("agent") && has("sessionId") {
        Some(Format::Cline)
    } else {
        None
    }
}

fn of_line(members: &[Member<'_>]) -> Option<Format> {
    let has = |name: &str| members.iter().any(|(member, _)| *member == name.as_bytes());
    let kind = members
        .iter()
        .find(|(name, _)| *name == b"type")
        .and_then(|(_, value)| *value)
        .unwrap_or_default();
    if has("session") && (has("tool") || has("event")) {
        return Some(Format::Own);
    }
    match kind {
        b"session_meta" | b"response_item" | b"turn_context" if has("payload") => {
            Some(Format::Codex)
        }
        b"session.start" | b"tool.execution_start" | b"assistant.message" | b"user.message"
            if has("data") =>
        {
            Some(Format::Copilot)
        }
        b"session_start" if has("id") => Some(Format::Droid),
        b"message" if has("message") && has("id") => Some(Format::Droid),
        b"metadata" if has("protocol_version") => Some(Format::Kimi),
        b"context.append_loop_event" if has("event") => Some(Format::Kimi),
        b"user" | b"assistant" | b"system" if has("sessionId") && has("provenance") => {
            Some(Format::Qwen)
        }
        b"user" | b"assistant" if has("sessionId") && has("message") => Some(Format::Claude),
        b"queue-operation" | b"attachment" | b"summary" | b"file-history-snapshot" | b"system"
            if has("sessionId") || has("leafUuid") || has("messageId") =>
        {
            Some(Format::Claude)
        }
        _ if has("projectHash") && has("sessionId") => Some(Format::Gemini),
        _ => None,
    }
}

/// The top-level members of the object that `text` starts with, as far as it goes. Never fails: what is not JSON has none.
fn members(text: &[u8]) -> Vec<Member<'_>> {
    let mut found = Vec::new();
    let mut depth = 0_u32;
    let mut name: Option<&[u8]> = None;
    let mut string: Option<&[u8]> = None;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => {
                let start = at + 1;
                let Some(length) = string_length(text.get(start..).unwrap_or_default()) else {
                    break;
                };
                if depth == 1 {
                    string = text.get(start..start + length);
                }
                at = start + length;
            }
            b':' if depth == 1 => name = string.take(),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    found.extend(name.take().map(|name| (name, string.take())));
                    break;
                }
            }
            b',' if depth == 1 => found.extend(name.take().map(|name| (name, string.take()))),
            _ if depth == 0 && !byte.is_ascii_whitespace() => break,
            _ => {}
        }
        at += 1;
    }
    found.extend(name.map(|name| (name, string)));
    found
}

/// Length of the string whose opening quote has been passed, if it ends.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })
}

/// How many bytes of a file are looked at. Harnesses put large prompts into their first lines.
pub(crate) const SNIFFED: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_those_of_the_top_level_only() {
        let text = br#"{"a":"x\"y","b":{"c":1,"d":"no"},"e":[{"f":2}],"type":"t"}"#;
        let names: Vec<_> = members(text)
            .into_iter()
            .map(|(name, _)| String::from_utf8_lossy(name).into_owned())
            .collect();
        assert_eq!(names, ["a", "b", "e", "type"]);
        assert_eq!(members(text).last(), Some(&(&b"type"[..], Some(&b"t"[..]))));
    }

    #[test]
    fn a_cut_line_still_tells() {
        assert_eq!(
            Format::of(br#"{"session":"s","tool":"t","args":{"long":"never en"#),
            Some(Format::Own)
        );
        assert_eq!(
            Format::of(b"{\n  \"info\": {\"id\": \"x\"},\n  \"messages\": [\n    {\"info"),
            Some(Format::Opencode)
        );
    }

    #[test]
    fn bad_lines_before_the_first_good_one_do_not_hide_it() {
        assert_eq!(
            Format::of(b"garbage\n\n{broken\n{\"session\":\"s\",\"event\":\"idle\"}\n"),
            Some(Format::Own)
        );
    }

    #[test]
    fn other_files_are_no_sessions() {
        for text in [
            &b""[..],
            b"\x00\x01\x02",
            b"hello",
            b"[]",
            b"{}",
            b"null",
            br#"{"session":"s","i":3,"label":"true_loop"}"#,
            br#"{"session":"s","corpus":"c","calls":3}"#,
            br#"{"name":"x","version":"1.0.0","dependencies":{}}"#,
        ] {
            assert_eq!(Format::of(text), None, "{}", String::from_utf8_lossy(text));
        }
    }
}
