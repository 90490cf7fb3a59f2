//! Numbers as ECMAScript writes them; integers of 64 bits exactly.

use std::io::Write;

/// Appends a number without a sign in decimal.
#[inline]
pub(crate) fn write_unsigned(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [b'0'; 20];
    let mut used = 0;
    for digit in digits.iter_mut().rev() {
        *digit += u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
        used += 1;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len() - used..).unwrap_or_default());
}

/// Appends an integer in decimal.
#[inline]
pub(crate) fn write_signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    write_unsigned(out, value.unsigned_abs());
}

/// Appends a finite double.
pub(crate) fn write_double(out: &mut Vec<u8>, value: f64) {
    if value == 0.0 {
        out.push(b'0'); // minus zero too
        return;
    }
    // serde_json prints the shortest digits and breaks ties to even, as ECMAScript asks; `{:e}` of std does not.
    let start = out.len();
    let _ = serde_json::to_writer(&mut *out, &value);
    let printed = out.get(start..).unwrap_or_default();
    if !printed.contains(&b'e') {
        if printed.ends_with(b".0") {
            out.truncate(out.len() - 2);
        }
        return;
    }
    // ECMAScript turns to exponents later than serde_json, and spells them differently.
    let mut digits = [0_u8; 32];
    let (count, point) = split(printed.strip_prefix(b"-").unwrap_or(printed), &mut digits);
    out.truncate(start);
    if value < 0.0 {
        out.push(b'-');
    }
    lay_out(out, digits.get(..count).unwrap_or_default(), point);
}

/// Takes `12.5e3` apart: its digits without outer zeros, and the place of the decimal point counted from the first.
fn split(printed: &[u8], digits: &mut [u8; 32]) -> (usize, i32) {
    let (mantissa, exponent) = match printed.iter().position(|&b| b == b'e') {
        Some(e) => (
            printed.get(..e).unwrap_or_default(),
            printed.get(e + 1..).unwrap_or_default(),
        ),
        None => (printed, &[][..]),
    };
    let exponent = std::str::from_utf8(exponent)
        .ok()
        .and_then(|text| text.parse::<i32>().ok())
        .unwrap_or(0);

    let (mut count, mut point, mut seen_point) = (0, exponent, false);
    for &byte in mantissa {
        match byte {
            b'.' => seen_point = true,
            b'0' if count == 0 => point -= i32::from(seen_point),
            _ => {
                if let Some(slot) = digits.get_mut(count) {
                    *slot = byte;
                    count += 1;
                }
                point += i32::from(!seen_point);
            }
        }
    }
    while count > 1 && digits.get(count - 1) == Some(&b'0') {
        count -= 1;
    }
    (count, point)
}

/// ECMAScript's `Number::toString` for radix 10, from digits and the place of the point.
fn lay_out(out: &mut Vec<u8>, digits: &[u8], point: i32) {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |out: &mut Vec<u8>, n: i32| out.extend((0..n).map(|_| b'0'));
    match point {
        1..=21 if count <= point => {
            out.extend_from_slice(digits);
            zeros(out, point - count);
        }
        1..=21 => {
            let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        -5..=0 => {
            out.extend_from_slice(b"0.");
            zeros(out, -point);
            out.extend_from_slice(digits);
        }
        _ => {
            let (first, rest) = digits.split_at(1.min(digits.len()));
            out.extend_from_slice(first);
            if !rest.is_empty() {
                out.push(b'.');
                out.extend_from_slice(rest);
            }
            let _ = write!(out, "e{:+}", point - 1);
        }
    }
}
