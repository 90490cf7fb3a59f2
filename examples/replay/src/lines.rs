//! Lines of bounded length from a reader of unbounded ones.

use std::io::{self, BufRead};

/// One line, or why there is none.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Line {
    /// The buffer holds a line, without its end.
    Whole,
    /// The line was longer than the limit; it was passed over unread.
    TooLong,
    /// Nothing is left.
    End,
}

/// Reads the next line into `buffer`, which never grows past `limit` bytes.
pub(crate) fn next_line(
    input: &mut impl BufRead,
    limit: usize,
    buffer: &mut Vec<u8>,
) -> io::Result<Line> {
    buffer.clear();
    let mut seen = false;
    let mut too_long = false;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            return Ok(match (seen, too_long) {
                (false, _) => Line::End,
                (true, true) => Line::TooLong,
                (true, false) => Line::Whole,
            });
        }
        seen = true;
        let (part, used, ended) = match chunk.iter().position(|byte| *byte == b'\n') {
            Some(at) => (chunk.get(..at).unwrap_or_default(), at + 1, true),
            None => (chunk, chunk.len(), false),
        };
        if too_long || buffer.len() + part.len() > limit {
            too_long = true;
            buffer.clear();
        } else {
            buffer.extend_from_slice(part);
        }
        input.consume(used);
        if ended {
            if buffer.last() == Some(&b'\r') {
                buffer.pop();
            }
            return Ok(if too_long { Line::TooLong } else { Line::Whole });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn lines_are_split_and_long_ones_passed_over() {
        let text = b"a\r\n\nlonger than ten bytes\nlast";
        let mut input = BufReader::with_capacity(3, &text[..]);
        let mut buffer = Vec::new();
        let mut got = Vec::new();
        loop {
            match next_line(&mut input, 10, &mut buffer).unwrap() {
                Line::End => break,
                line => got.push((line, String::from_utf8(buffer.clone()).unwrap())),
            }
        }
        let expected = [
            (Line::Whole, "a".to_owned()),
            (Line::Whole, String::new()),
            (Line::TooLong, String::new()),
            (Line::Whole, "last".to_owned()),
        ];
        assert_eq!(got, expected);
        assert!(buffer.capacity() < 64, "a long line is not kept");
    }
}
