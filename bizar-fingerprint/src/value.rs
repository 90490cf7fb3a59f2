//! From a `serde_json::Value`, whatever features serde_json was built with.

use serde_json::{Number, Value};

use crate::MAX_DEPTH;
use crate::emit::{Emitter, Rules, write_string};
use crate::error::{Error, ErrorKind};
use crate::number;

/// Writes a value; `depth` is the level that an array or object here has, from 1.
pub(crate) fn emit<R: Rules>(
    emitter: &mut Emitter<'_, R>,
    value: &Value,
    depth: usize,
) -> Result<(), Error> {
    match value {
        Value::Null => emitter.out().extend_from_slice(b"null"),
        Value::Bool(true) => emitter.out().extend_from_slice(b"true"),
        Value::Bool(false) => emitter.out().extend_from_slice(b"false"),
        Value::Number(number) => emit_number(emitter, number)?,
        Value::String(text) => emitter.string(text),
        Value::Array(_) | Value::Object(_) if depth > MAX_DEPTH => {
            return Err(Error::here(ErrorKind::TooDeep));
        }
        Value::Array(items) => {
            emitter.out().push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    emitter.out().push(b',');
                }
                emit(emitter, item, depth + 1).map_err(|error| error.inside(&index.to_string()))?;
            }
            emitter.out().push(b']');
        }
        Value::Object(members) => {
            let mut object = emitter.begin_object(depth);
            for (name, value) in members {
                emitter.begin_member(&object, 0);
                write_string(emitter.out(), name.as_bytes());
                emitter.end_name(&mut object).map_err(Error::here)?;
                emit(emitter, value, depth + 1).map_err(|error| error.inside(name))?;
            }
            emitter
                .end_object(&object)
                .map_err(|_| Error::here(ErrorKind::DuplicateKey))?;
        }
    }
    Ok(())
}

/// Goes through the accessors only: they read the same whether serde_json keeps numbers or their text.
pub(crate) fn emit_number<R: Rules>(
    emitter: &mut Emitter<'_, R>,
    number: &Number,
) -> Result<(), Error> {
    if let Some(value) = number.as_u64() {
        number::write_unsigned(emitter.out(), value);
    } else if let Some(value) = number.as_i64() {
        number::write_signed(emitter.out(), value);
    } else {
        let value = number
            .as_f64()
            .ok_or_else(|| Error::here(ErrorKind::NumberTooLarge))?;
        number::write_double(emitter.out(), value);
    }
    Ok(())
}
