//! Text that strangers wrote, made fit for one line of a terminal.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar as _;

/// `text` with everything visible and nothing active.
///
/// Control characters, characters of no width, white space other than a blank, and letters that run from right to
/// left are written as `\u{…}`: what is left takes one or two columns a character and stands where it was put.
#[must_use]
pub fn safe(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if is_plain(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
    }
    Cow::Owned(shown)
}

/// [`safe`] text in at most `width` columns; what is too long loses its end.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    let text = safe(text);
    if columns(&text) <= width {
        return text.into_owned();
    }
    let mut shown = head(&text, width.saturating_sub(1)).to_owned();
    if width > 0 {
        shown.push(CUT);
    }
    shown
}

/// [`safe`] text in at most `width` columns; what is too long loses its middle, since ids often begin alike.
#[must_use]
pub fn cut_middle(text: &str, width: usize) -> String {
    let text = safe(text);
    if columns(&text) <= width {
        return text.into_owned();
    }
    if width < 8 {
        return cut(&text, width);
    }
    let tail_width = (width - 1) / 2;
    let head = head(&text, width - 1 - tail_width);
    let mut taken = 0;
    let tail: Vec<char> = text
        .chars()
        .rev()
        .take_while(|c| {
            taken += c.width().unwrap_or(0);
            taken <= tail_width
        })
        .collect();
    let mut shown = String::from(head);
    shown.push(CUT);
    shown.extend(tail.iter().rev());
    shown
}

/// Text in exactly `width` columns, on the left or right side of them.
#[must_use]
pub fn pad(text: &str, width: usize, side: Side) -> String {
    let blanks = " ".repeat(width.saturating_sub(columns(text)));
    match side {
        Side::Left => format!("{text}{blanks}"),
        Side::Right => format!("{blanks}{text}"),
    }
}

/// Where text stands in its columns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// How many columns text takes that is [`safe`].
#[must_use]
pub fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// A span of time in at most four characters: `7s`, `12m`, `3h`, `9d`, `>2y`.
#[must_use]
pub fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..63_072_000 => format!("{}d", seconds / 86_400),
        _ => ">2y".to_owned(),
    }
}

/// A span of time to the second: `7s`, `3m07s`, `2h04m`.
#[must_use]
pub fn countdown(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// US dollars.
#[must_use]
pub fn dollars(amount: f64) -> String {
    if amount.is_finite() && amount >= 0.0 {
        format!("${amount:.2}")
    } else {
        "?".to_owned()
    }
}

/// The longest beginning that fits in `width` columns.
fn head(text: &str, width: usize) -> &str {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += c.width().unwrap_or(0);
        if taken > width {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

fn is_plain(c: char) -> bool {
    match c {
        ' '..='~' => true,
        // Blank letters, line separators and other white space.
        '\u{ad}' | '\u{115f}' | '\u{2028}' | '\u{2029}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' => {
            false
        }
        _ if c.is_whitespace() || c.is_control() || is_right_to_left(c) || is_private(c) => false,
        _ => c.width().is_some_and(|width| width > 0),
    }
}

/// The blocks of the scripts that run from right to left, and the marks that make text run so.
fn is_right_to_left(c: char) -> bool {
    matches!(c,
        '\u{590}'..='\u{8ff}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

/// A font may show anything there.
fn is_private(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..)
}

const CUT: char = '~';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_written_out() {
        assert_eq!(safe("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(safe("x\u{9b}31m\r\n\t"), "x\\u{9b}31m\\u{d}\\u{a}\\u{9}");
        assert_eq!(safe("\u{202e}evil"), "\\u{202e}evil");
        assert_eq!(
            safe("a\u{200b}b\u{feff}e\u{301}"),
            "a\\u{200b}b\\u{feff}e\\u{301}"
        );
        assert_eq!(safe("שלום"), "\\u{5e9}\\u{5dc}\\u{5d5}\\u{5dd}");
        assert_eq!(
            safe("a\u{a0}b\u{2028}c\u{e000}"),
            "a\\u{a0}b\\u{2028}c\\u{e000}"
        );
        assert_eq!(safe("read 読む é"), "read 読む é");
    }

    #[test]
    fn every_character_takes_the_columns_that_it_says() {
        for c in '\0'..=char::MAX {
            let shown = safe(c.encode_utf8(&mut [0; 4])).into_owned();
            let said = columns(&shown);
            assert_eq!(
                said,
                ratatui::text::Span::raw(shown.as_str()).width(),
                "{c:?}"
            );
            assert!(said > 0, "{c:?}");
        }
    }

    #[test]
    fn text_never_leaves_its_columns() {
        let texts = [
            "",
            "short",
            "読む読む読む読む",
            "bgr_01JZ3NDEKTSV4RRFFQ69G5FAV",
            "\u{1b}[31mred\u{202e}",
        ];
        for text in texts {
            for width in 0..40 {
                for cut in [cut(text, width), cut_middle(text, width)] {
                    assert!(columns(&cut) <= width, "{cut} in {width}");
                    let padded = pad(&cut, width, Side::Right);
                    assert_eq!(columns(&padded), width, "{padded}");
                }
            }
        }
        assert_eq!(cut("abcdef", 4), "abc~");
        assert_eq!(cut_middle("bgr_0123456789", 9), "bgr_~6789");
    }

    #[test]
    fn spans_are_short() {
        let minute = 60_000;
        assert_eq!(
            [
                0,
                59_999,
                minute,
                59 * minute,
                60 * minute,
                24 * 60 * minute,
                i64::MAX,
                -1
            ]
            .map(span),
            ["0s", "59s", "1m", "59m", "1h", "1d", ">2y", "0s"]
        );
        assert_eq!(
            [7_000, 187_000, 7_440_000].map(countdown),
            ["7s", "3m07s", "2h04m"]
        );
        assert_eq!(
            [0.0, 1.255, f64::NAN, -1.0].map(dollars),
            ["$0.00", "$1.25", "?", "?"]
        );
    }
}
