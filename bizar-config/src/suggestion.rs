//! The known name that an unknown one was probably meant to be.

use std::fmt;

/// An unknown key as it may be shown: a word, or how long it was.
///
/// A key can be a pasted secret as well as a value can. Secrets have digits and
/// signs in them or are long; names of options do not and are not.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_word = (1..=LONGEST).contains(&self.0.len())
            && self
                .0
                .bytes()
                .all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if is_word {
            return f.write_str(self.0);
        }
        write!(f, "(a key of {} characters)", self.0.chars().count())
    }
}

/// The nearest of `names` to `key`, if it is near enough to be a slip.
pub(crate) fn nearest<'a>(key: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let key: Vec<char> = key
        .chars()
        .take(LONGEST + 1)
        .filter(|c| *c != '_' && *c != '-')
        .collect();
    if key.is_empty() || key.len() > LONGEST {
        return None;
    }
    let key: Vec<char> = key.iter().flat_map(|c| c.to_lowercase()).collect();
    names
        .map(|name| {
            (
                distance(
                    &key,
                    &name
                        .to_lowercase()
                        .chars()
                        .filter(|c| *c != '_')
                        .collect::<Vec<_>>(),
                ),
                name,
            )
        })
        .filter(|(distance, name)| *distance <= (name.len() / 4).max(2) && *distance < key.len())
        .min()
        .map(|(_, name)| name)
}

/// Insertions, deletions and replacements from `a` to `b` (Levenshtein).
fn distance(a: &[char], b: &[char]) -> usize {
    if b.is_empty() {
        return a.len();
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut before = i;
        let mut last = i + 1;
        for (cell, right) in row.iter_mut().skip(1).zip(b) {
            let replaced = before + usize::from(left != right);
            before = *cell;
            last = replaced.min(before + 1).min(last + 1);
            *cell = last;
        }
    }
    row.last().copied().unwrap_or_default()
}

/// Longer than any name of ours.
const LONGEST: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(a: &str, b: &str) -> usize {
        distance(
            &a.chars().collect::<Vec<_>>(),
            &b.chars().collect::<Vec<_>>(),
        )
    }

    #[test]
    fn distances() {
        assert_eq!(of("", "abc"), 3);
        assert_eq!(of("abc", ""), 3);
        assert_eq!(of("kitten", "sitting"), 3);
        assert_eq!(of("flaw", "lawn"), 2);
        assert_eq!(of("same", "same"), 0);
    }

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let names = || {
            [
                "loopThresholdWarn",
                "loopThresholdBlock",
                "logDir",
                "stateDir",
            ]
            .into_iter()
        };
        assert_eq!(
            nearest("loopTresholdWarn", names()),
            Some("loopThresholdWarn")
        );
        assert_eq!(
            nearest("loop_threshold_block", names()),
            Some("loopThresholdBlock")
        );
        assert_eq!(nearest("LOGDIR", names()), Some("logDir"));
        assert_eq!(nearest("theme", names()), None);
        assert_eq!(nearest("", names()), None);
        assert_eq!(nearest(&"x".repeat(1_000_000), names()), None);
    }

    #[test]
    fn keys_that_could_be_secrets_are_not_shown() {
        assert_eq!(Shown("logDri").to_string(), "logDri");
        assert_eq!(Shown("sk-a1b2c3").to_string(), "(a key of 9 characters)");
        assert_eq!(Shown("").to_string(), "(a key of 0 characters)");
        assert_eq!(
            Shown(&"a".repeat(41)).to_string(),
            "(a key of 41 characters)"
        );
    }
}
