//! Percent-encoding with a caller's idea of what may stay.

/// Appends `text` to `out`: bytes that `stays` accepts as they are, all others as `%XX`.
pub(crate) fn encode(text: &str, stays: impl Fn(u8) -> bool, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii() && stays(byte) {
            out.push(char::from(byte));
        } else {
            escape(byte, out);
        }
    }
}

/// Appends one byte as `%XX`, in capitals.
pub(crate) fn escape(byte: u8, out: &mut String) {
    out.push('%');
    for nibble in [byte >> 4, byte & 15] {
        out.extend(char::from_digit(u32::from(nibble), 16).map(|digit| digit.to_ascii_uppercase()));
    }
}

/// The text that was encoded; `None` if an escape is cut short or the result is not UTF-8.
pub(crate) fn decode(token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => nibble(rest.next()?)? << 4 | nibble(rest.next()?)?,
            _ => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}
