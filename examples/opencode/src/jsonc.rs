//! JSON with comments and trailing commas, as opencode reads its configuration.

use serde_json::Value;

/// The document, or `None` if it is none.
pub(crate) fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(&plain(text)).ok()
}

fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string(rest),
            '/' if rest.starts_with("//") => {
                rest = rest.split_at(rest.find('\n').unwrap_or(rest.len())).1;
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = rest.split_once("*/").map_or("", |(_, rest)| rest);
                continue;
            }
            '}' | ']' => {
                let kept = out.trim_end();
                if kept.ends_with(',') {
                    out.truncate(kept.len() - 1);
                }
                1
            }
            _ => c.len_utf8(),
        };
        let (piece, after) = rest.split_at(length);
        out.push_str(piece);
        rest = after;
    }
    out
}

/// The length of the string that begins here.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return index + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_trailing_commas_go_and_strings_stay() {
        let text = r#"{ // one
            "a": "// \" /* no */ ,]", /* two
            */ "b": [1, 2, ], "c": {"d": "\\",},
        }"#;
        let value = json!({"a": "// \" /* no */ ,]", "b": [1, 2], "c": {"d": "\\"}});
        assert_eq!(parse(text), Some(value));
        assert_eq!(parse("{\"a\": \"open"), None);
        assert_eq!(parse("/* open"), None);
    }
}
