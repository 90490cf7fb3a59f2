//! From JSON text, in one pass, without a tree.

use crate::MAX_DEPTH;
use crate::emit::{Emitter, Rules, plain_prefix, write_escaped};
use crate::error::{Error, ErrorKind};
use crate::number;

/// Writes the canonical form of one whole document.
pub(crate) fn emit<R: Rules>(emitter: &mut Emitter<'_, R>, json: &[u8]) -> Result<(), Error> {
    emit_nested(emitter, json, 1)
}

/// The same inside another document, where an array or object has level `depth`.
pub(crate) fn emit_nested<R: Rules>(
    emitter: &mut Emitter<'_, R>,
    json: &[u8],
    depth: usize,
) -> Result<(), Error> {
    if json.starts_with("\u{feff}".as_bytes()) {
        return Err(Error::at(ErrorKind::ByteOrderMark, 0));
    }
    let text = std::str::from_utf8(json)
        .map_err(|error| Error::at(ErrorKind::Utf8, error.valid_up_to()))?;
    emitter.out().reserve(text.len());
    let mut parser = Parser {
        text: text.as_bytes(),
        at: 0,
        emitter,
    };
    parser.skip_space();
    parser.value(depth)?;
    parser.skip_space();
    if parser.at < text.len() {
        Err(Error::at(ErrorKind::TrailingData, parser.at))
    } else {
        Ok(())
    }
}

struct Parser<'t, 'e, 's, R> {
    text: &'t [u8],
    at: usize,
    emitter: &'e mut Emitter<'s, R>,
}

impl<'t, R: Rules> Parser<'t, '_, '_, R> {
    /// `depth` is the level that an array or object here would have.
    fn value(&mut self, depth: usize) -> Result<(), Error> {
        match self.peek() {
            Some(b'"') => {
                let start = self.emitter.out().len();
                self.string()?;
                self.emitter.rewrite_from(start);
                Ok(())
            }
            Some(b'{' | b'[') if depth > MAX_DEPTH => Err(self.error(ErrorKind::TooDeep)),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            _ => Err(self.unexpected()),
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), Error> {
        self.at += 1;
        let mut object = self.emitter.begin_object(depth);
        self.skip_space();
        if self.peek() != Some(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(self.unexpected());
                }
                let name_at = self.at;
                self.emitter.begin_member(&object, name_at);
                self.string()?;
                self.emitter
                    .end_name(&mut object)
                    .map_err(|kind| Error::at(kind, name_at))?;
                self.skip_space();
                if self.peek() != Some(b':') {
                    return Err(self.unexpected());
                }
                self.at += 1;
                self.skip_space();
                self.value(depth + 1)?;
                self.skip_space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => break,
                    _ => return Err(self.unexpected()),
                }
                self.skip_space();
            }
        }
        self.at += 1;
        self.emitter
            .end_object(&object)
            .map_err(|name_at| Error::at(ErrorKind::DuplicateKey, name_at))
    }

    fn array(&mut self, depth: usize) -> Result<(), Error> {
        self.at += 1;
        self.emitter.out().push(b'[');
        self.skip_space();
        if self.peek() != Some(b']') {
            loop {
                self.value(depth + 1)?;
                self.skip_space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break,
                    _ => return Err(self.unexpected()),
                }
                self.emitter.out().push(b',');
                self.skip_space();
            }
        }
        self.at += 1;
        self.emitter.out().push(b']');
        Ok(())
    }

    fn string(&mut self) -> Result<(), Error> {
        self.at += 1;
        self.emitter.out().push(b'"');
        loop {
            let rest = self.rest();
            let plain = plain_prefix(rest);
            self.emitter
                .out()
                .extend_from_slice(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                _ => return Err(self.unexpected()),
            }
        }
        self.at += 1;
        self.emitter.out().push(b'"');
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Error> {
        let start = self.at;
        let byte = match self.text.get(start + 1) {
            Some(b'u') => return self.unicode_escape(),
            Some(b'b') => 0x08,
            Some(b't') => 0x09,
            Some(b'n') => 0x0a,
            Some(b'f') => 0x0c,
            Some(b'r') => 0x0d,
            Some(&byte @ (b'"' | b'\\')) => byte,
            Some(b'/') => {
                self.at += 2;
                self.emitter.out().push(b'/');
                return Ok(());
            }
            other => {
                return Err(Error::at(
                    if other.is_some() {
                        ErrorKind::Syntax
                    } else {
                        ErrorKind::UnexpectedEnd
                    },
                    start + 1,
                ));
            }
        };
        self.at += 2;
        write_escaped(self.emitter.out(), byte);
        Ok(())
    }

    fn unicode_escape(&mut self) -> Result<(), Error> {
        let start = self.at;
        let first = self.code_unit()?;
        let character = match first {
            0xd800..=0xdbff if self.rest().starts_with(b"\\u") => {
                let second = self.code_unit()?;
                char::decode_utf16([first, second])
                    .next()
                    .and_then(Result::ok)
            }
            _ => char::from_u32(u32::from(first)),
        };
        let Some(character) = character else {
            return Err(Error::at(ErrorKind::LoneSurrogate, start));
        };
        let out = self.emitter.out();
        match u8::try_from(character) {
            Ok(byte) if byte < 0x20 || byte == b'"' || byte == b'\\' => write_escaped(out, byte),
            _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        Ok(())
    }

    /// Reads a `\u` with its four hex digits.
    fn code_unit(&mut self) -> Result<u16, Error> {
        let mut unit = 0;
        for at in self.at + 2..self.at + 6 {
            let digit = self
                .text
                .get(at)
                .ok_or_else(|| Error::at(ErrorKind::UnexpectedEnd, at))?;
            let digit = char::from(*digit)
                .to_digit(16)
                .ok_or_else(|| Error::at(ErrorKind::Syntax, at))?;
            unit = unit << 4 | u16::try_from(digit).unwrap_or(0);
        }
        self.at += 6;
        Ok(unit)
    }

    fn number(&mut self) -> Result<(), Error> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            integer = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            integer = false;
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }

        let token = self.text.get(start..self.at).unwrap_or_default();
        // Up to 18 digits always fit; JSON allows no leading zeros, so the token is its own canonical form.
        if integer && token.len() <= 18 && token != b"-0" {
            self.emitter.out().extend_from_slice(token);
            return Ok(());
        }
        let token = std::str::from_utf8(token).unwrap_or_default();
        if integer && let Ok(value) = token.parse::<u64>() {
            number::write_unsigned(self.emitter.out(), value);
        } else if integer && let Ok(value) = token.parse::<i64>() {
            number::write_signed(self.emitter.out(), value);
        } else {
            let value = token.parse::<f64>().ok().filter(|value| value.is_finite());
            let value = value.ok_or_else(|| Error::at(ErrorKind::NumberTooLarge, start))?;
            number::write_double(self.emitter.out(), value);
        }
        Ok(())
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), Error> {
        let count = self
            .rest()
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        self.at += count;
        if count == 0 {
            Err(self.unexpected())
        } else {
            Ok(())
        }
    }

    fn literal(&mut self, word: &'static [u8]) -> Result<(), Error> {
        let matched = self
            .rest()
            .iter()
            .zip(word)
            .take_while(|(a, b)| a == b)
            .count();
        self.at += matched;
        if matched < word.len() {
            return Err(self.unexpected());
        }
        self.emitter.out().extend_from_slice(word);
        Ok(())
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    #[cold]
    fn unexpected(&self) -> Error {
        self.error(if self.at < self.text.len() {
            ErrorKind::Syntax
        } else {
            ErrorKind::UnexpectedEnd
        })
    }

    #[cold]
    fn error(&self, kind: ErrorKind) -> Error {
        Error::at(kind, self.at)
    }
}
