//! The one writer of canonical JSON. The three front ends (text, value, serialize) only say what comes next.
//!
//! Members are written in the order in which they come. Most objects come sorted or nearly so; only one that
//! is out of order is put in order, by moving its finished members once.

use std::cmp::Ordering;

use crate::error::{Error, ErrorKind};
use crate::number;

/// What is done to a document on its way: nothing for canonical JSON, normalisation for fingerprints and digests.
pub(crate) trait Rules {
    /// Whether the member called `name` (escaped, without quotes) of an object at `depth` (1 = outermost) is left out.
    fn drops(&self, depth: usize, name: &[u8]) -> bool;

    /// Whether a string value (escaped, without quotes) could be one to rewrite: a cheap look at its start.
    fn concerns(&self, escaped: &[u8]) -> bool;

    /// Writes what stands for the string value `text` into `out`; `false` keeps it as it is.
    fn rewrite(&self, text: &[u8], out: &mut Vec<u8>) -> bool;
}

/// RFC 8785 and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verbatim;

impl Rules for Verbatim {
    fn drops(&self, _: usize, _: &[u8]) -> bool {
        false
    }

    fn concerns(&self, _: &[u8]) -> bool {
        false
    }

    fn rewrite(&self, _: &[u8], _: &mut Vec<u8>) -> bool {
        false
    }
}

/// Buffers that outlive a call, so that later calls allocate nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) out: Vec<u8>,
    members: Vec<Member>,
    spare: Vec<u8>,
    rewritten: Vec<u8>,
}

/// A member that has been written: `out[start..end]` is `"name":value`, and `name_end` is just after the name's quote.
#[derive(Clone, Copy, Debug)]
struct Member {
    start: usize,
    name_end: usize,
    end: usize,
    source: usize,
    dropped: bool,
}

/// An object that is being written.
#[derive(Debug)]
pub(crate) struct Object {
    depth: usize,
    first: usize,
    as_it_came: bool,
}

#[derive(Debug)]
pub(crate) struct Emitter<'s, R> {
    scratch: &'s mut Scratch,
    rules: R,
}

impl<'s, R: Rules> Emitter<'s, R> {
    pub(crate) fn new(scratch: &'s mut Scratch, rules: R) -> Self {
        scratch.members.clear(); // an earlier error may have left some
        Self { scratch, rules }
    }

    /// The bytes so far, for numbers, literals and brackets.
    #[inline]
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.scratch.out
    }

    /// Writes a string that is a value.
    #[inline]
    pub(crate) fn string(&mut self, text: &str) {
        let start = self.scratch.out.len();
        write_string(&mut self.scratch.out, text.as_bytes());
        self.rewrite_from(start);
    }

    /// Applies the rules to the string value that stands from `start` to the end.
    #[inline]
    pub(crate) fn rewrite_from(&mut self, start: usize) {
        let Scratch {
            out,
            spare,
            rewritten,
            ..
        } = &mut *self.scratch;
        let escaped = out
            .get(start + 1..out.len().saturating_sub(1))
            .unwrap_or_default();
        if !self.rules.concerns(escaped) {
            return;
        }
        spare.clear();
        unescape(escaped, spare);
        rewritten.clear();
        if self.rules.rewrite(spare, rewritten) {
            out.truncate(start);
            write_string(out, rewritten);
        }
    }

    /// Opens an object; `depth` is 1 for the outermost.
    #[inline]
    pub(crate) fn begin_object(&mut self, depth: usize) -> Object {
        self.scratch.out.push(b'{');
        Object {
            depth,
            first: self.scratch.members.len(),
            as_it_came: true,
        }
    }

    /// Begins a member; its name is written next, as a string, straight into [`out`](Self::out).
    #[inline]
    pub(crate) fn begin_member(&mut self, object: &Object, source: usize) {
        let Scratch { out, members, .. } = &mut *self.scratch;
        if members.len() > object.first {
            end_member(members, out.len());
            out.push(b',');
        }
        members.push(Member {
            start: out.len(),
            name_end: 0,
            end: 0,
            source,
            dropped: false,
        });
    }

    /// Ends the name of a member; its value is written next.
    #[inline]
    pub(crate) fn end_name(&mut self, object: &mut Object) -> Result<(), ErrorKind> {
        let Scratch { out, members, .. } = &mut *self.scratch;
        let Some((member, earlier)) = members.split_last_mut() else {
            return Ok(());
        };
        member.name_end = out.len();
        if self.rules.drops(object.depth, member.name(out)) {
            member.dropped = true;
            object.as_it_came = false;
        }
        // Once out of order, the whole object is compared at its end.
        if object.as_it_came
            && earlier.len() > object.first
            && let Some(previous) = earlier.last()
        {
            match utf16_order(previous.name(out), member.name(out)) {
                Ordering::Less => {}
                Ordering::Equal => return Err(ErrorKind::DuplicateKey),
                Ordering::Greater => object.as_it_came = false,
            }
        }
        out.push(b':');
        Ok(())
    }

    /// Closes an object; the error of a duplicate key carries the `source` of the later of the two.
    #[inline]
    pub(crate) fn end_object(&mut self, object: &Object) -> Result<(), usize> {
        let Scratch {
            out,
            members,
            spare,
            ..
        } = &mut *self.scratch;
        if members.len() > object.first {
            end_member(members, out.len());
        }
        if !object.as_it_came {
            let own = members.get_mut(object.first..).unwrap_or_default();
            let start = own.first().map_or(out.len(), |member| member.start);
            own.sort_unstable_by(|a, b| utf16_order(a.name(out), b.name(out)));

            spare.clear();
            let mut previous: Option<&Member> = None;
            for member in own.iter() {
                if let Some(previous) = previous
                    && previous.name(out) == member.name(out)
                {
                    return Err(previous.source.max(member.source));
                }
                previous = Some(member);
                if member.dropped {
                    continue;
                }
                if !spare.is_empty() {
                    spare.push(b',');
                }
                spare.extend_from_slice(out.get(member.start..member.end).unwrap_or_default());
            }
            out.truncate(start);
            out.extend_from_slice(spare);
        }
        members.truncate(object.first);
        out.push(b'}');
        Ok(())
    }

    /// Remembers the member whose name was just written, for [`name_of`](Self::name_of).
    pub(crate) fn last_member(&self) -> usize {
        self.scratch.members.len().saturating_sub(1)
    }

    /// The unescaped name of a member whose object is still open: for error messages.
    #[cold]
    pub(crate) fn name_of(&self, member: usize) -> String {
        let name = self
            .scratch
            .members
            .get(member)
            .map(|member| member.name(&self.scratch.out))
            .unwrap_or_default();
        let mut text = Vec::new();
        unescape(name, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Writes a double, or says that JSON has none such.
    pub(crate) fn double(&mut self, value: f64) -> Result<(), Error> {
        if !value.is_finite() {
            return Err(Error::here(ErrorKind::NonFinite));
        }
        number::write_double(&mut self.scratch.out, value);
        Ok(())
    }
}

impl Member {
    #[inline]
    fn name<'o>(&self, out: &'o [u8]) -> &'o [u8] {
        out.get(self.start + 1..self.name_end.saturating_sub(1))
            .unwrap_or_default()
    }
}

fn end_member(members: &mut [Member], end: usize) {
    if let Some(member) = members.last_mut() {
        member.end = end;
    }
}

/// Appends `text` (UTF-8) as a JSON string with the fewest escapes.
#[inline]
pub(crate) fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_prefix(rest));
        out.extend_from_slice(plain);
        let Some((&byte, tail)) = special.split_first() else {
            break;
        };
        write_escaped(out, byte);
        rest = tail;
    }
    out.push(b'"');
}

/// Appends the escape of a quote, a backslash or a control character.
pub(crate) fn write_escaped(out: &mut Vec<u8>, byte: u8) {
    const HEX: [u8; 16] = *b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0c => b'f',
        0x0d => b'r',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.extend(
                [byte >> 4, byte & 15]
                    .map(|nibble| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0')),
            );
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// How many bytes at the start of `text` stand for themselves in a JSON string.
#[inline]
pub(crate) fn plain_prefix(text: &[u8]) -> usize {
    let special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    // Whole blocks without an early exit inside: the compiler makes vector code of it.
    let (blocks, _) = text.as_chunks::<16>();
    let clean = blocks
        .iter()
        .take_while(|block| !block.iter().fold(false, |any, &byte| any | special(byte)))
        .count()
        * 16;
    let rest = text.get(clean..).unwrap_or_default();
    clean
        + rest
            .iter()
            .position(|&byte| special(byte))
            .unwrap_or(rest.len())
}

/// Undoes [`write_string`], without its quotes.
pub(crate) fn unescape(escaped: &[u8], out: &mut Vec<u8>) {
    let mut rest = escaped;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        let (plain, escape) = rest.split_at(at);
        out.extend_from_slice(plain);
        let (byte, length) = match escape {
            [_, b'u', b'0', b'0', high, low, ..] => (nibble(*high) << 4 | nibble(*low), 6),
            [_, b'b', ..] => (0x08, 2),
            [_, b't', ..] => (0x09, 2),
            [_, b'n', ..] => (0x0a, 2),
            [_, b'f', ..] => (0x0c, 2),
            [_, b'r', ..] => (0x0d, 2),
            [_, other, ..] => (*other, 2),
            _ => return,
        };
        out.push(byte);
        rest = escape.get(length..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => 0,
    }
}

/// The order of two names (escaped) by UTF-16 code units, as RFC 8785 sorts them.
///
/// It differs from the order of the bytes only where the names part at an escape, or at a character beyond
/// U+FFFF against one from U+E000 up.
#[inline]
fn utf16_order(a: &[u8], b: &[u8]) -> Ordering {
    // Most names part at their first letter.
    if let (Some(x), Some(y)) = (a.first(), b.first())
        && x != y
        && x.is_ascii_alphanumeric()
        && y.is_ascii_alphanumeric()
    {
        return x.cmp(y);
    }
    utf16_order_beyond_first(a, b)
}

fn utf16_order_beyond_first(a: &[u8], b: &[u8]) -> Ordering {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (from, to) = (same.saturating_sub(5), same + 1);
    let near = |name: &[u8]| {
        let near = name.get(from..to.min(name.len())).unwrap_or_default();
        near.iter().any(|&byte| byte == b'\\' || byte >= 0xee)
    };
    if near(a) || near(b) {
        weights(a).cmp(weights(b))
    } else {
        a.get(same..).cmp(&b.get(same..))
    }
}

/// Characters of an escaped name as numbers that sort like their UTF-16 code units.
fn weights(escaped: &[u8]) -> impl Iterator<Item = u32> {
    let mut written = escaped
        .utf8_chunks()
        .flat_map(|chunk| chunk.valid().chars());
    let mut read = move || match written.next()? {
        '\\' => match written.next()? {
            'b' => Some('\u{8}'),
            't' => Some('\t'),
            'n' => Some('\n'),
            'f' => Some('\u{c}'),
            'r' => Some('\r'),
            'u' => written
                .by_ref()
                .take(4)
                .try_fold(0, |code, digit| Some(code << 4 | digit.to_digit(16)?))
                .and_then(char::from_u32),
            other => Some(other),
        },
        other => Some(other),
    };
    // All BMP characters from U+E000 up sort after the surrogates D800-DFFF that spell the others.
    std::iter::from_fn(move || {
        read().map(|c| {
            u32::from(c)
                + if ('\u{e000}'..='\u{ffff}').contains(&c) {
                    0x11_0000
                } else {
                    0
                }
        })
    })
}
