//! What differs between two equal answers: times, durations, process numbers, random ids, counters of attempts.
//!
//! Works on bytes; what it cuts out begins and ends at ASCII, so UTF-8 stays UTF-8. Plain integers are never touched.

/// Stands for a part that was taken out. A noncharacter: no text has it.
pub(crate) const MARK: &str = "\u{fffe}";

/// Appends `text` without its volatile parts.
pub(crate) fn normalise(text: &[u8], out: &mut Vec<u8>) {
    let plain;
    let text = if text.contains(&ESC) {
        plain = without_ansi(text);
        plain.as_slice()
    } else {
        text
    };

    let mut rest = text;
    let mut line_start = true;
    while let Some(&first) = rest.first() {
        let found = match first {
            _ if line_start && let Some(length) = codex_line(rest) => Some((0, length)),
            b'"' => member(rest),
            b'0'..=b'9' => number(rest).map(|length| (0, length)),
            b'a'..=b'z' | b'A'..=b'Z' => hex_id(rest)
                .map(|length| (0, length))
                .or_else(|| labelled(rest)),
            _ => None,
        };
        // Without a find, one word or one other byte goes through.
        let (keep, cut) = found.unwrap_or_else(|| (word(rest).max(1), 0));
        let (kept, after) = rest.split_at(keep.min(rest.len()));
        out.extend_from_slice(kept);
        if cut > 0 {
            out.extend_from_slice(MARK.as_bytes());
        }
        line_start = cut == 0 && kept == b"\n";
        rest = after.get(cut..).unwrap_or_default();
    }
}

/// Whether a member of this name (escaped) is volatile whatever it holds: `durationMs`, `child_pid`, `timestamp`, ...
pub(crate) fn is_volatile_member(name: &[u8]) -> bool {
    let mut plain = [0; 32];
    let mut length = 0;
    for byte in name.iter().filter(|byte| byte.is_ascii_alphanumeric()) {
        let Some(slot) = plain.get_mut(length) else {
            return false;
        };
        *slot = byte.to_ascii_lowercase();
        length += 1;
    }
    let plain = plain.get(..length).unwrap_or_default();
    let contains = |part: &str| {
        plain
            .windows(part.len())
            .any(|window| window == part.as_bytes())
    };
    ["duration", "elapsed", "timestamp", "walltime"]
        .into_iter()
        .any(contains)
        || MEMBERS.iter().any(|member| member.as_bytes() == plain)
}

const MEMBERS: [&str; 20] = [
    "attempt",
    "attempts",
    "childpid",
    "endedat",
    "endtime",
    "finishedat",
    "latency",
    "latencyms",
    "pid",
    "ppid",
    "processid",
    "retries",
    "retry",
    "retrycount",
    "serverpid",
    "startedat",
    "starttime",
    "took",
    "tookms",
    "ts",
];

const ESC: u8 = 0x1b;

/// The text without terminal control sequences.
fn without_ansi(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == ESC) {
        let (plain, sequence) = rest.split_at(at);
        out.extend_from_slice(plain);
        rest = sequence.get(ansi_length(sequence)..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

/// The length of the control sequence that starts here with ESC; of ESC alone if the sequence does not end.
fn ansi_length(sequence: &[u8]) -> usize {
    let position =
        |wanted: fn(&u8) -> bool| sequence.iter().skip(2).position(wanted).map(|at| at + 2);
    match sequence.get(1) {
        // Parameters, then one final byte.
        Some(b'[') => match position(|byte| !(0x20..=0x3f).contains(byte)) {
            Some(end)
                if sequence
                    .get(end)
                    .is_some_and(|byte| (0x40..=0x7e).contains(byte)) =>
            {
                end + 1
            }
            _ => 1,
        },
        // A string up to BEL or ESC \.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            match position(|byte| matches!(byte, 0x07 | 0x1b)) {
                Some(end) if sequence.get(end..end + 2) == Some(b"\x1b\\") => end + 2,
                Some(end) if sequence.get(end) == Some(&0x07) => end + 1,
                _ => 1,
            }
        }
        Some(b'(' | b')' | b'#') => sequence.len().min(3),
        Some(0x30..=0x7e) => 2,
        _ => 1,
    }
}

/// A line that Codex puts around the output of a command.
fn codex_line(rest: &[u8]) -> Option<usize> {
    const LABELS: [&[u8]; 4] = [
        b"Chunk ID: ",
        b"Wall time: ",
        b"Original token count: ",
        b"Token count: ",
    ];
    let label = LABELS.iter().find(|label| rest.starts_with(label))?;
    let line = rest
        .iter()
        .position(|&byte| byte == b'\n')
        .unwrap_or(rest.len());
    (line - label.len() <= 64).then_some(line)
}

/// `"durationMs": 12` inside text: the member's value. Kept and cut length.
fn member(rest: &[u8]) -> Option<(usize, usize)> {
    let name = rest.get(1..)?;
    let name = name.get(
        ..name
            .iter()
            .take(40)
            .position(|&byte| byte == b'"' || byte == b'\\')?,
    )?;
    if !is_volatile_member(name) {
        return None;
    }
    let mut at = 1 + name.len();
    at += usize::from(rest.get(at) == Some(&b'\\')) + 1;
    at += spaces(rest.get(at..)?);
    if rest.get(at) != Some(&b':') {
        return None;
    }
    at += 1;
    at += spaces(rest.get(at..)?);
    let value = rest.get(at..)?;
    let length = match value.first()? {
        b'"' => {
            value
                .iter()
                .skip(1)
                .take(64)
                .position(|&byte| byte == b'"')?
                + 2
        }
        b'-' | b'0'..=b'9' => value
            .iter()
            .take_while(|byte| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
            .count(),
        _ => return None,
    };
    Some((at, length))
}

/// What starts with a digit: a time, an id, a duration.
fn number(rest: &[u8]) -> Option<usize> {
    timestamp(rest)
        .or_else(|| hex_id(rest))
        .or_else(|| durations(rest))
}

/// `2026-06-17T10:00:00.123Z`, `2026/06/17 10:00:00`, `20260617T100000Z`, `10:00:00.123`; a date alone is none.
fn timestamp(rest: &[u8]) -> Option<usize> {
    let dated = |separator: &[u8]| {
        let after = matches(rest, separator)?;
        let clock = rest.get(after + 1..)?;
        (matches!(rest.get(after), Some(b'T' | b't' | b' ' | b'_'))).then(|| {
            matches(clock, b"00:00:00")
                .or_else(|| matches(clock, b"00:00"))
                .map(|length| after + 1 + length)
        })?
    };
    let compact = || matches(rest, b"00000000T000000");
    let length = dated(b"0000-00-00")
        .or_else(|| dated(b"0000/00/00"))
        .or_else(compact)
        .or_else(|| matches(rest, b"00:00:00"))
        .or_else(|| matches(rest, b"0:00:00"))?;

    let mut length = length + fraction(rest.get(length..)?);
    length += zone(rest.get(length..)?);
    // `10:20:30:40` and `1:10:20:30x` are something else.
    (word(rest.get(length..)?) == 0 && rest.get(length) != Some(&b':')).then_some(length)
}

/// `.123` or `,123`.
fn fraction(rest: &[u8]) -> usize {
    match rest.split_first() {
        Some((b'.' | b',', digits)) if digits_at(digits) > 0 => 1 + digits_at(digits),
        _ => 0,
    }
}

/// `Z`, `+02:00`, `-0700`, ` +0200`, ` UTC`.
fn zone(rest: &[u8]) -> usize {
    let shapes: [&[u8]; 4] = [b"+00:00", b"-00:00", b"+0000", b"-0000"];
    let offset = |rest: &[u8]| shapes.iter().find_map(|shape| matches(rest, shape));
    match rest.split_first() {
        Some((b'Z' | b'z', _)) => 1,
        Some((b' ', after)) if after.starts_with(b"UTC") || after.starts_with(b"GMT") => 4,
        Some((b' ', after)) => offset(after).map_or(0, |length| 1 + length),
        _ => offset(rest).unwrap_or(0),
    }
}

/// Eight hex digits or more with a letter among them, also after `0x`; or a UUID.
fn hex_id(rest: &[u8]) -> Option<usize> {
    const UUID: [usize; 5] = [8, 4, 4, 4, 12];
    let mut uuid = 0;
    for (index, group) in UUID.into_iter().enumerate() {
        let start = uuid + usize::from(index > 0);
        let digits = rest.get(start..).map_or(0, |rest| {
            rest.iter()
                .take_while(|byte| byte.is_ascii_hexdigit())
                .count()
        });
        if digits != group || (index > 0 && rest.get(uuid) != Some(&b'-')) {
            uuid = 0;
            break;
        }
        uuid = start + group;
    }
    if uuid > 0 && word(rest.get(uuid..)?) == 0 {
        return Some(uuid);
    }
    let whole = rest.get(..word(rest))?;
    let digits = whole
        .strip_prefix(b"0x")
        .or_else(|| whole.strip_prefix(b"0X"))
        .unwrap_or(whole);
    let id = digits.len() >= 8
        && digits.iter().all(u8::is_ascii_hexdigit)
        && digits.iter().any(u8::is_ascii_alphabetic);
    id.then_some(whole.len())
}

/// `12ms`, `1.5 seconds`, `1m 3.2s`: one duration, with the smaller ones right behind it.
fn durations(rest: &[u8]) -> Option<usize> {
    let mut length = duration(rest)?;
    while rest.get(length) == Some(&b' ')
        && let Some(next) = rest.get(length + 1..).and_then(duration)
    {
        length += 1 + next;
    }
    Some(length)
}

/// Numbers with units, up to the end of the word: `1m3.2s`, `200 ms`.
fn duration(rest: &[u8]) -> Option<usize> {
    const UNITS: [&str; 26] = [
        "ns",
        "us",
        "µs",
        "μs",
        "ms",
        "msec",
        "msecs",
        "millis",
        "millisecond",
        "milliseconds",
        "s",
        "sec",
        "secs",
        "second",
        "seconds",
        "m",
        "min",
        "mins",
        "minute",
        "minutes",
        "h",
        "hr",
        "hrs",
        "hour",
        "hours",
        "microseconds",
    ];
    let mut at = 0;
    // Hours, minutes, seconds, a fraction: a bound, or a long line of them would be read again at every word.
    for _ in 0..4 {
        at += match digits_at(rest.get(at..)?) {
            0 => return None,
            digits => digits,
        };
        at += fraction(rest.get(at..)?);
        let space = usize::from(rest.get(at) == Some(&b' '));
        let unit = rest.get(at + space..)?;
        let unit = unit.get(
            ..unit
                .iter()
                .take_while(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii())
                .count(),
        )?;
        // `5 m` is as likely a length.
        if !UNITS.iter().any(|known| known.as_bytes() == unit)
            || (space > 0 && matches!(unit, b"m" | b"h"))
        {
            return None;
        }
        at += space + unit.len();
        match rest.get(at) {
            Some(byte) if byte.is_ascii_digit() && space == 0 => {}
            _ => return (word(rest.get(at..)?) == 0).then_some(at),
        }
    }
    None
}

/// `pid 123`, `attempt #3`, `retry: 2`: the number after a label. Kept and cut length.
fn labelled(rest: &[u8]) -> Option<(usize, usize)> {
    const LABELS: [&str; 10] = [
        "pid",
        "ppid",
        "pgid",
        "process id",
        "attempt",
        "attempts",
        "retry",
        "retries",
        "retrying",
        "try",
    ];
    let label = LABELS.iter().rev().find(|label| {
        rest.get(..label.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(label.as_bytes()))
            && rest
                .get(label.len()..)
                .is_some_and(|after| word(after) == 0)
    })?;
    let after = rest.get(label.len()..)?;
    let gap = after
        .iter()
        .take(4)
        .take_while(|byte| b" \t:=#(\"[".contains(byte))
        .count();
    let number = after.get(gap..)?;
    let digits = digits_at(number);
    let behind = number.get(digits..)?;
    let whole = gap > 0 && digits > 0 && word(behind) == 0 && fraction(behind) == 0;
    let counted = *label != "try" || behind.starts_with(b"/") || behind.starts_with(b" of ");
    (whole && counted).then_some((label.len() + gap, digits))
}

/// How many bytes at the start are letters, digits or part of a character beyond ASCII.
fn word(rest: &[u8]) -> usize {
    rest.iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii())
        .count()
}

fn digits_at(rest: &[u8]) -> usize {
    rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn spaces(rest: &[u8]) -> usize {
    rest.iter()
        .take(8)
        .take_while(|byte| byte.is_ascii_whitespace())
        .count()
}

/// The length of `shape` if `rest` starts like it: `0` stands for any digit, all else for itself.
fn matches(rest: &[u8], shape: &[u8]) -> Option<usize> {
    let fits = |(&byte, &wanted): (&u8, &u8)| {
        if wanted == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == wanted
        }
    };
    (rest.len() >= shape.len() && rest.iter().zip(shape).all(fits)).then_some(shape.len())
}
