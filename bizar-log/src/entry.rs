use std::{
    error,
    fmt::{self, Write as _},
    str::FromStr,
    time::Duration,
};

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};

use crate::{name, percent};

/// What is said about one tool call: one line, and nothing that the call was about.
///
/// There is no field for arguments, paths or results. The tool's name and the session's id are cut to
/// [`Entry::TOOL_BYTES`] and [`Entry::SESSION_BYTES`]; what is cut off is replaced by `~`
/// and 16 hex digits of the SHA-256 of the whole.
///
/// [`Display`](fmt::Display) is the line, without its line feed; [`FromStr`] gives an equal entry back.
/// In the line, characters of the two names other than `A-Z a-z 0-9 _ - . : / @ + ~` are
/// percent-encoded, so neither can end the line, add a field or change how the line looks.
///
/// ```
/// use std::time::Duration;
/// use bizar_log::{Entry, Outcome, ShortFingerprint};
///
/// let short = ShortFingerprint::from_bytes([0xab, 0x12, 0xcd, 0x34, 0xef, 0x56]);
/// let entry = Entry::new(1_781_706_601_123, "s1", "read\nx", short, Outcome::Ok, Duration::from_millis(45));
/// let line = "2026-06-17T14:30:01.123Z session=s1 tool=read%0Ax fingerprint=ab12cd34ef56 outcome=ok duration=45ms";
/// assert_eq!(entry.to_string(), line);
/// assert_eq!(line.parse(), Ok(entry));
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Entry {
    at: i64,
    session: String,
    tool: String,
    fingerprint: ShortFingerprint,
    outcome: Outcome,
    duration: u64,
}

impl Entry {
    /// The most bytes of a tool's name that are kept, before encoding.
    pub const TOOL_BYTES: usize = 128;

    /// The most bytes of a session's id that are kept, before encoding.
    pub const SESSION_BYTES: usize = 512;

    /// No line is longer, its line feed included.
    pub const LINE_BYTES: u64 = 2034;

    /// An entry; never fails.
    ///
    /// `at` is in milliseconds since 1970 and is moved into the years 0 to 9999; `duration`
    /// loses what is below a millisecond.
    pub fn new(
        at: i64,
        session: &str,
        tool: &str,
        fingerprint: ShortFingerprint,
        outcome: Outcome,
        duration: Duration,
    ) -> Self {
        Self {
            at: at.clamp(FIRST, LAST),
            session: cut(session, Self::SESSION_BYTES),
            tool: cut(tool, Self::TOOL_BYTES),
            fingerprint,
            outcome,
            duration: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// When the call ended, in milliseconds since 1970.
    pub fn at(&self) -> i64 {
        self.at
    }

    /// The session's id, or what was kept of it.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The tool's name, or what was kept of it.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The first six bytes of the call's fingerprint.
    pub fn fingerprint(&self) -> ShortFingerprint {
        self.fingerprint
    }

    /// How the call ended.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// How long the call took, in whole milliseconds.
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.duration)
    }

    /// Appends the line, without its line feed.
    pub(crate) fn write_to(&self, line: &mut String) {
        line.reserve(128 + self.session.len() + self.tool.len());
        let at = Timestamp::from_millisecond(self.at).unwrap_or(Timestamp::MAX);
        // Writing to a string does not fail.
        let _ = PRINTER.print_timestamp(&at, &mut *line);
        line.push_str(" session=");
        percent::encode(&self.session, stays, line);
        line.push_str(" tool=");
        percent::encode(&self.tool, stays, line);
        let (short, outcome, duration) = (self.fingerprint, self.outcome, self.duration);
        let _ = write!(
            line,
            " fingerprint={short} outcome={outcome} duration={duration}ms"
        );
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::new();
        self.write_to(&mut line);
        f.write_str(&line)
    }
}

impl FromStr for Entry {
    type Err = ParseError;

    /// Reads a line, without its line feed.
    ///
    /// # Errors
    /// Anything that an entry does not print: a line that parses prints as the same bytes again.
    fn from_str(line: &str) -> Result<Self, ParseError> {
        let mut fields = line.split(' ');
        let mut field = |prefix| fields.next().and_then(|field| field.strip_prefix(prefix));
        let at = field("")
            .and_then(|text| text.parse::<Timestamp>().ok())
            .map(Timestamp::as_millisecond)
            .filter(|at| (FIRST..=LAST).contains(at))
            .ok_or(ParseError("time"))?;
        let session = field("session=")
            .and_then(percent::decode)
            .ok_or(ParseError("session"))?;
        let tool = field("tool=")
            .and_then(percent::decode)
            .ok_or(ParseError("tool"))?;
        let fingerprint = field("fingerprint=")
            .ok_or(ParseError("fingerprint"))?
            .parse()?;
        let outcome = field("outcome=").ok_or(ParseError("outcome"))?.parse()?;
        let duration = field("duration=")
            .and_then(|text| text.strip_suffix("ms"))
            .and_then(|text| text.parse().ok())
            .ok_or(ParseError("duration"))?;

        let entry = Self {
            at,
            session,
            tool,
            fingerprint,
            outcome,
            duration,
        };
        let fits =
            entry.session.len() <= Self::SESSION_BYTES && entry.tool.len() <= Self::TOOL_BYTES;
        // Other spellings of the same values are somebody else's line.
        if fits && entry.to_string() == line {
            Ok(entry)
        } else {
            Err(ParseError("form"))
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outcome {
    /// The tool did its work.
    Ok,
    /// The tool failed.
    Error,
    /// The call was refused before it ran.
    Blocked,
    /// The call was started and given up.
    Aborted,
}

impl Outcome {
    /// The word in the line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Blocked => "blocked",
            Self::Aborted => "aborted",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Outcome {
    type Err = ParseError;

    fn from_str(word: &str) -> Result<Self, ParseError> {
        [Self::Ok, Self::Error, Self::Blocked, Self::Aborted]
            .into_iter()
            .find(|outcome| outcome.as_str() == word)
            .ok_or(ParseError("outcome"))
    }
}

/// The first six bytes of a fingerprint: enough to see a repetition.
///
/// Printed and read as 12 lower-case hex digits.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ShortFingerprint([u8; 6]);

impl ShortFingerprint {
    /// The beginning of a whole fingerprint, such as `bizar_fingerprint::Fingerprint::as_bytes` gives.
    pub fn of(fingerprint: &[u8; 32]) -> Self {
        let [a, b, c, d, e, f, ..] = *fingerprint;
        Self([a, b, c, d, e, f])
    }

    /// From the six bytes themselves.
    pub const fn from_bytes(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }

    /// The six bytes.
    pub fn as_bytes(&self) -> &[u8; 6] {
        &self.0
    }

    fn write_to(self, out: &mut String) {
        let nibbles = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        out.extend(nibbles.filter_map(|nibble| char::from_digit(u32::from(nibble), 16)));
    }
}

impl fmt::Display for ShortFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut hex = String::with_capacity(12);
        self.write_to(&mut hex);
        f.write_str(&hex)
    }
}

impl FromStr for ShortFingerprint {
    type Err = ParseError;

    fn from_str(hex: &str) -> Result<Self, ParseError> {
        let plain = hex.len() == 12
            && hex
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u64::from_str_radix(hex, 16)
            .ok()
            .filter(|_| plain)
            .ok_or(ParseError("fingerprint"))?;
        let [_, _, bytes @ ..] = number.to_be_bytes();
        Ok(Self(bytes))
    }
}

/// A text is not what an [`Entry`] or a part of one prints. Names the part, never the text.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ParseError(&'static str);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a log line: {} is missing or malformed", self.0)
    }
}

impl error::Error for ParseError {}

/// `text`, or its beginning and a hash of the whole, in at most `most` bytes.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most - HASH_BYTES)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    let mut kept = text.get(..end).unwrap_or_default().to_owned();
    name::push_hash(text, &mut kept);
    kept
}

fn stays(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.:/@+~".contains(&byte)
}

/// What [`name::push_hash`] adds.
const HASH_BYTES: usize = 17;

/// 0000-01-01T00:00:00Z in milliseconds.
const FIRST: i64 = -62_167_219_200_000;

/// 9999-12-30T22:00:00Z in milliseconds: the end of jiff's time.
const LAST: i64 = 253_402_207_200_000;

static PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
