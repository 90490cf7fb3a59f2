//! Server-sent events: bytes in, events out.
//!
//! The parser follows the WHATWG rules for event streams at every split of the
//! bytes: `\n`, `\r` and `\r\n` end a line (also when `\r` and `\n` come in
//! different chunks), one byte-order mark is dropped at the start, several `data`
//! lines are joined, and text is read as UTF-8 only once an event is whole. Each
//! byte is looked at a bounded number of times, however long a line is.

use std::borrow::Cow;

/// One event of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SseEvent<'a> {
    /// The type; `message` where the stream names none.
    pub event: Cow<'a, str>,
    /// The data lines, joined by `\n`.
    pub data: Cow<'a, str>,
    /// The last id the stream has named, which may be older than this event.
    pub id: Cow<'a, str>,
}

/// Cuts a byte stream into events.
///
/// ```
/// use bizar_background::sse::SseParser;
/// let mut parser = SseParser::default();
/// let mut seen = Vec::new();
/// for chunk in [&b"data: a\r"[..], b"\ndata: b\n\n"] {
///     parser.feed(chunk, |event| seen.push(event.data.into_owned()));
/// }
/// assert_eq!(seen, ["a\nb"]);
/// ```
#[derive(Clone, Debug)]
pub struct SseParser {
    limit: usize,
    /// The unfinished line.
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    event: Vec<u8>,
    id: Vec<u8>,
    retry_ms: Option<u64>,
    /// Bytes of a byte-order mark seen so far; `None` once the start is behind us.
    start: Option<usize>,
    /// The last byte was `\r`: a `\n` that follows belongs to it.
    after_cr: bool,
    /// The event at hand is over the limit and is dropped when it ends.
    oversized: bool,
    dropped: u64,
}

impl SseParser {
    /// Makes a parser that drops events with more than `limit` bytes in a line or in their data.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            event: Vec::new(),
            id: Vec::new(),
            retry_ms: None,
            start: Some(0),
            after_cr: false,
            oversized: false,
            dropped: 0,
        }
    }

    /// Takes the next bytes of the stream and hands each event that they complete to `sink`.
    ///
    /// What is unfinished at the end of a stream is no event: drop the parser, and
    /// begin the next connection with a new one.
    pub fn feed(&mut self, mut chunk: &[u8], mut sink: impl FnMut(SseEvent<'_>)) {
        if self.start.is_some() {
            chunk = self.skip_mark(chunk);
        }
        if self.after_cr && !chunk.is_empty() {
            self.after_cr = false;
            chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', chunk) {
            let (head, tail) = chunk.split_at(end);
            if self.line.is_empty() {
                self.end_line(head, &mut sink);
            } else {
                let mut line = std::mem::take(&mut self.line);
                self.keep(&mut line, head);
                self.end_line(&line, &mut sink);
                line.clear();
                self.line = line;
            }
            chunk = match tail {
                [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        let mut line = std::mem::take(&mut self.line);
        self.keep(&mut line, chunk);
        self.line = line;
    }

    /// The reconnection time that the stream asked for, in milliseconds.
    #[must_use]
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// How many events were over the limit and therefore dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn skip_mark<'a>(&mut self, mut chunk: &'a [u8]) -> &'a [u8] {
        while let (Some(seen), Some((byte, rest))) = (self.start, chunk.split_first()) {
            if MARK.get(seen) != Some(byte) {
                // Not a mark after all: its first bytes were text.
                self.start = None;
                self.line
                    .extend_from_slice(MARK.get(..seen).unwrap_or_default());
                break;
            }
            chunk = rest;
            self.start = (seen + 1 < MARK.len()).then_some(seen + 1);
        }
        chunk
    }

    fn keep(&mut self, line: &mut Vec<u8>, bytes: &[u8]) {
        if line.len() + bytes.len() > self.limit {
            self.oversized = true;
            // A blank line must still be told from a dropped one.
            line.clear();
            line.push(b':');
        } else {
            line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self, line: &[u8], sink: &mut impl FnMut(SseEvent<'_>)) {
        if line.is_empty() {
            return self.end_event(sink);
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => return,
            Some(colon) => {
                let (field, rest) = line.split_at(colon);
                let value = rest.strip_prefix(b": ").or_else(|| rest.strip_prefix(b":"));
                (field, value.unwrap_or_default())
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                if self.data.len() + value.len() + 1 > self.limit {
                    self.oversized = true;
                    return;
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => value.clone_into(&mut self.event),
            b"id" if !value.contains(&0) => value.clone_into(&mut self.id),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry_ms = str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok());
            }
            _ => {}
        }
    }

    fn end_event(&mut self, sink: &mut impl FnMut(SseEvent<'_>)) {
        if std::mem::take(&mut self.oversized) {
            self.dropped += 1;
        } else if self.has_data {
            let event = match self.event.as_slice() {
                [] => Cow::Borrowed("message"),
                name => lossy(name),
            };
            sink(SseEvent {
                event,
                data: lossy(&self.data),
                id: lossy(&self.id),
            });
        }
        self.has_data = false;
        self.data.clear();
        self.data.shrink_to(RETAINED);
        self.event.clear();
    }
}

impl Default for SseParser {
    /// A parser with a limit of 16 MiB.
    fn default() -> Self {
        Self::new(16 << 20)
    }
}

/// Like `String::from_utf8_lossy`, which is several times slower than the check it begins with.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

const MARK: [u8; 3] = *b"\xef\xbb\xbf";

/// Memory kept from one event to the next.
const RETAINED: usize = 64 << 10;
