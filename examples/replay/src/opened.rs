//! One file: unpacked, recognised, read line by line.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use crate::format::{Format, SNIFFED};
use crate::input::{Found, Note};
use crate::lines::{Line, next_line};
use crate::read::{BadLine, Reader, reader};
use crate::record::Item;

/// A file that is being read.
pub(crate) struct Opened<R> {
    text: BufReader<io::Chain<io::Cursor<Vec<u8>>, Plain<R>>>,
    name: String,
    format: Option<Format>,
    reader: Option<Box<dyn Reader>>,
    buffer: Vec<u8>,
    line: u64,
    good: u64,
    skipped: u64,
    notes: Vec<Note>,
    ended: bool,
    bytes: Rc<Cell<u64>>,
    pub(crate) directory: Option<Rc<Found>>,
}

/// Text, unpacked if it was packed.
enum Plain<R> {
    Gzip(Box<MultiGzDecoder<BufReader<R>>>),
    Text(BufReader<R>),
}

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(inner) => inner.read(buffer),
            Self::Text(inner) => inner.read(buffer),
        }
    }
}

impl<R: Read> Opened<R> {
    pub(crate) fn new(raw: R, name: &str, bytes: Rc<Cell<u64>>) -> io::Result<Self> {
        let mut raw = BufReader::with_capacity(64 * 1024, raw);
        let is_gzip = raw.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let mut plain = if is_gzip {
            Plain::Gzip(Box::new(MultiGzDecoder::new(raw)))
        } else {
            Plain::Text(raw)
        };
        let mut prefix = Vec::new();
        (&mut plain).take(SNIFFED as u64).read_to_end(&mut prefix)?;
        let format = Format::of(&prefix);
        Ok(Self {
            text: BufReader::with_capacity(64 * 1024, io::Cursor::new(prefix).chain(plain)),
            name: name.to_owned(),
            format,
            reader: format.map(|format| reader(format, name)),
            buffer: Vec::new(),
            line: 0,
            good: 0,
            skipped: 0,
            notes: Vec::new(),
            ended: false,
            bytes,
            directory: None,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes.get()
    }

    /// What has been found wrong since the last time.
    pub(crate) fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Reads one line's worth of items; `false` = the file has ended and nothing was left.
    pub(crate) fn read(&mut self, items: &mut Vec<Item>) -> bool {
        let Some(format) = self.format.filter(|_| !self.ended) else {
            return false;
        };
        let limit = if format.is_document() {
            LONGEST_DOCUMENT
        } else {
            LONGEST_LINE
        };
        let line = if format.is_document() {
            self.document(limit)
        } else {
            next_line(&mut self.text, limit, &mut self.buffer)
        };
        self.line += 1;
        match line {
            Ok(Line::End) => {
                self.ended = true;
                if let Some(reader) = &mut self.reader {
                    reader.end(items);
                }
                return !items.is_empty();
            }
            Ok(Line::TooLong) => self.bad(&format!("longer than {} MiB", limit / (1024 * 1024))),
            Ok(Line::Whole) => self.whole_line(items),
            Err(error) => {
                self.bad(&format!("cannot be read further: {error}"));
                self.ended = true;
                if let Some(reader) = &mut self.reader {
                    reader.end(items);
                }
            }
        }
        true
    }

    fn whole_line(&mut self, items: &mut Vec<Item>) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        let text = match std::str::from_utf8(&self.buffer) {
            Ok(text) => text.trim_start_matches('\u{feff}').trim(),
            Err(error) => {
                let text = format!("not UTF-8 (column {})", error.valid_up_to() + 1);
                return self.bad(&text);
            }
        };
        if text.is_empty() {
            return;
        }
        let before = items.len();
        let result: Result<(), BadLine> = reader.line(text, items);
        match result {
            Ok(()) => self.good += 1,
            Err(error) => {
                items.truncate(before);
                self.bad(&error.to_string());
            }
        }
    }

    /// The whole file as one line.
    fn document(&mut self, limit: usize) -> io::Result<Line> {
        self.buffer.clear();
        (&mut self.text)
            .take(limit as u64 + 1)
            .read_to_end(&mut self.buffer)?;
        Ok(match self.buffer.len() {
            0 => Line::End,
            length if length > limit => Line::TooLong,
            _ => Line::Whole,
        })
    }

    /// A call that the last line completed cannot be judged.
    pub(crate) fn bad_call(&mut self, problem: &str) {
        self.good = self.good.saturating_sub(1);
        self.bad(&format!("a call without identity: {problem}"));
    }

    fn bad(&mut self, text: &str) {
        self.skipped += 1;
        if self.skipped <= MOST_BAD_LINES {
            self.notes.push(Note::of_line(&self.name, self.line, text));
        }
    }

    /// What there is to say about the file as a whole.
    pub(crate) fn finish(mut self) -> Vec<Note> {
        let mut notes = std::mem::take(&mut self.notes);
        if self.skipped > MOST_BAD_LINES {
            let more = self.skipped - MOST_BAD_LINES;
            notes.push(Note::of_file(
                &self.name,
                format!("{more} more lines that cannot be read"),
                false,
            ));
        }
        match (&self.directory, self.format) {
            (Some(found), None) => {
                found.pass_over(&self.name);
            }
            (Some(found), Some(_)) => found.add(self.good),
            (None, None) => notes.push(Note::of_file(
                &self.name,
                "no session of a known format",
                true,
            )),
            (None, Some(_)) if self.good == 0 => {
                notes.push(Note::of_file(
                    &self.name,
                    "no line of it could be used",
                    true,
                ));
            }
            (None, Some(_)) => {}
        }
        notes
    }
}

/// A line that is longer is not read into memory.
const LONGEST_LINE: usize = 64 * 1024 * 1024;
/// The same for formats that are one document.
const LONGEST_DOCUMENT: usize = 1024 * 1024 * 1024;
/// Of one file only so many bad lines are named; all are counted.
const MOST_BAD_LINES: u64 = 100;
