//! JSON with comments and trailing commas, as opencode reads its configuration.

use serde_json::Value;

/// The document.
///
/// # Errors
///
/// When it is none; the line and the column are those of the text, in bytes.
pub(crate) fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(&plain(text))
}

/// The same text with blanks in the place of what JSON does not know.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string(rest),
            '/' if rest.starts_with("//") => {
                rest = blank(&mut out, rest, rest.find('\n'));
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = blank(&mut out, rest, closed(rest));
                continue;
            }
            '}' | ']' => {
                if let Some(kept) = out.trim_end().strip_suffix(',') {
                    let comma = kept.len();
                    out.replace_range(comma..=comma, " ");
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

/// Where the block comment that begins here ends: not in its first two letters.
fn closed(text: &str) -> Option<usize> {
    let inside = text.get(2..)?;
    inside.find("*/").map(|end| end + 4)
}

/// Writes a comment that ends there as blanks, and gives what follows it.
fn blank<'a>(out: &mut String, text: &'a str, end: Option<usize>) -> &'a str {
    let (comment, rest) = text.split_at(end.unwrap_or(text.len()));
    let blanks = comment
        .bytes()
        .map(|byte| if byte == b'\n' { '\n' } else { ' ' });
    out.extend(blanks);
    rest
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
        assert_eq!(parse(text).unwrap(), value);
        assert!(parse("{\"a\": \"open").is_err());
        assert!(parse("/* open").is_err());
        assert_eq!(parse("/*/ [1 */ [2]").unwrap(), json!([2]));
    }

    #[test]
    fn an_error_is_where_it_is_in_the_text() {
        let text = "{ // ünder\n  /* two\n  lines */ \"a\": [1,\n  ],  /* x */ oops }";
        let error = parse(text).unwrap_err();
        assert_eq!((error.line(), error.column()), (4, 15));
    }
}
