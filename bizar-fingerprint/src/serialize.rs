//! From anything `Serialize`, with the same bytes as from its `serde_json::Value`.

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::MAX_DEPTH;
use crate::emit::{Emitter, Object, Rules};
use crate::error::{Error, ErrorKind};
use crate::name::Name;
use crate::{number, text, value};

/// How many `Some` and newtype layers may lie around one another: they print nothing, but they recurse.
const MAX_LAYERS: usize = 4 * MAX_DEPTH;

/// Under these names serde_json hands over numbers and raw text that must not be read as objects.
const NUMBER: &str = "$serde_json::private::Number";
const RAW: &str = "$serde_json::private::RawValue";

#[derive(Debug)]
pub(crate) struct Writer<'e, 's, R> {
    emitter: &'e mut Emitter<'s, R>,
    depth: usize,
    layers: usize,
}

impl<'e, 's, R: Rules> Writer<'e, 's, R> {
    pub(crate) fn new(emitter: &'e mut Emitter<'s, R>) -> Self {
        Self {
            emitter,
            depth: 1,
            layers: 0,
        }
    }

    fn bytes(self, bytes: &[u8]) -> Result<(), Error> {
        self.emitter.out().extend_from_slice(bytes);
        Ok(())
    }

    fn integer(self, value: impl Serialize) -> Result<(), Error> {
        number::write_integer(self.emitter.out(), value);
        Ok(())
    }

    fn layer<T: Serialize + ?Sized>(self, inner: &T) -> Result<(), Error> {
        if self.layers == MAX_LAYERS {
            return Err(Error::here(ErrorKind::TooDeep));
        }
        inner.serialize(Self {
            layers: self.layers + 1,
            ..self
        })
    }

    fn list(self) -> Result<List<'e, 's, R>, Error> {
        if self.depth > MAX_DEPTH {
            return Err(Error::here(ErrorKind::TooDeep));
        }
        self.emitter.out().push(b'[');
        Ok(List {
            emitter: self.emitter,
            depth: self.depth,
            layers: self.layers,
            length: 0,
            outer: None,
        })
    }

    fn members(self) -> Result<Members<'e, 's, R>, Error> {
        if self.depth > MAX_DEPTH {
            return Err(Error::here(ErrorKind::TooDeep));
        }
        let object = self.emitter.begin_object(self.depth);
        Ok(Members {
            emitter: self.emitter,
            depth: self.depth,
            layers: self.layers,
            object,
            named: false,
            outer: None,
        })
    }

    /// The object `{"variant": …}` around a variant's content, and a writer for that content.
    fn variant(self, variant: &'static str) -> Result<(Outer, Self), Error> {
        let mut outer = self.members()?;
        outer.name(variant)?;
        let Members {
            emitter,
            depth,
            layers,
            object,
            ..
        } = outer;
        Ok((
            Outer { object, variant },
            Self {
                emitter,
                depth: depth + 1,
                layers,
            },
        ))
    }
}

/// The object around an enum variant's list or members.
#[derive(Debug)]
pub(crate) struct Outer {
    object: Object,
    variant: &'static str,
}

impl Outer {
    fn end<R: Rules>(self, emitter: &mut Emitter<'_, R>) -> Result<(), Error> {
        emitter
            .end_object(&self.object)
            .map_err(|_| Error::here(ErrorKind::DuplicateKey))
    }
}

/// A list that is being written.
#[derive(Debug)]
pub(crate) struct List<'e, 's, R> {
    emitter: &'e mut Emitter<'s, R>,
    depth: usize,
    layers: usize,
    length: usize,
    outer: Option<Outer>,
}

impl<R: Rules> List<'_, '_, R> {
    fn item<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
        if self.length > 0 {
            self.emitter.out().push(b',');
        }
        let index = self.length;
        self.length += 1;
        let writer = Writer {
            emitter: &mut *self.emitter,
            depth: self.depth + 1,
            layers: self.layers,
        };
        item.serialize(writer)
            .map_err(|error| within(&self.outer, error.inside(&index.to_string())))
    }

    fn close(self) -> Result<(), Error> {
        self.emitter.out().push(b']');
        self.outer.map_or(Ok(()), |outer| outer.end(self.emitter))
    }
}

/// Members that are being written.
#[derive(Debug)]
pub(crate) struct Members<'e, 's, R> {
    emitter: &'e mut Emitter<'s, R>,
    depth: usize,
    layers: usize,
    object: Object,
    /// A name has been written whose value has not.
    named: bool,
    outer: Option<Outer>,
}

impl<R: Rules> Members<'_, '_, R> {
    fn name<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Error> {
        if std::mem::replace(&mut self.named, true) {
            return Err(Error::here(ErrorKind::Serialize));
        }
        self.emitter.begin_member(&self.object, 0);
        name.serialize(Name::new(self.emitter.out()))?;
        let ended = self.emitter.end_name(&mut self.object);
        ended.map_err(|kind| {
            Error::here(kind).inside(&self.emitter.name_of(self.emitter.last_member()))
        })
    }

    fn content<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        if !std::mem::replace(&mut self.named, false) {
            return Err(Error::here(ErrorKind::Serialize));
        }
        let member = self.emitter.last_member();
        let writer = Writer {
            emitter: &mut *self.emitter,
            depth: self.depth + 1,
            layers: self.layers,
        };
        let result = value.serialize(writer);
        result.map_err(|error| within(&self.outer, error.inside(&self.emitter.name_of(member))))
    }

    fn close(self) -> Result<(), Error> {
        if self.named {
            return Err(Error::here(ErrorKind::Serialize));
        }
        self.emitter
            .end_object(&self.object)
            .map_err(|_| within(&self.outer, Error::here(ErrorKind::DuplicateKey)))?;
        self.outer.map_or(Ok(()), |outer| outer.end(self.emitter))
    }
}

fn within(outer: &Option<Outer>, error: Error) -> Error {
    match outer {
        Some(outer) => error.inside(outer.variant),
        None => error,
    }
}

impl<'e, 's, R: Rules> Serializer for Writer<'e, 's, R> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = List<'e, 's, R>;
    type SerializeTuple = List<'e, 's, R>;
    type SerializeTupleStruct = List<'e, 's, R>;
    type SerializeTupleVariant = List<'e, 's, R>;
    type SerializeMap = Members<'e, 's, R>;
    type SerializeStruct = Struct<'e, 's, R>;
    type SerializeStructVariant = Members<'e, 's, R>;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.bytes(if value { b"true" } else { b"false" })
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.integer(value)
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.integer(value)
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.integer(value)
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.integer(value)
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => self.integer(value),
            (_, Ok(value)) => self.integer(value),
            _ => self.emitter.double(value as f64), // rounds to nearest, like the text of the number
        }
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.integer(value)
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.integer(value)
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.integer(value)
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.integer(value)
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        match u64::try_from(value) {
            Ok(value) => self.integer(value),
            Err(_) => self.emitter.double(value as f64),
        }
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.emitter.double(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.emitter.double(value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.emitter.string(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.layer(value)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.bytes(b"null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.layer(value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut members = self.members()?;
        members.name(variant)?;
        members.content(value)?;
        members.close()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List<'e, 's, R>, Error> {
        self.list()
    }

    fn serialize_tuple(self, _: usize) -> Result<List<'e, 's, R>, Error> {
        self.list()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<List<'e, 's, R>, Error> {
        self.list()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<List<'e, 's, R>, Error> {
        let (outer, inner) = self.variant(variant)?;
        Ok(List {
            outer: Some(outer),
            ..inner.list().map_err(|error| error.inside(variant))?
        })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'e, 's, R>, Error> {
        self.members()
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Struct<'e, 's, R>, Error> {
        match name {
            NUMBER | RAW => Ok(Struct::Text(self)),
            _ => self.members().map(Struct::Members),
        }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'e, 's, R>, Error> {
        let (outer, inner) = self.variant(variant)?;
        Ok(Members {
            outer: Some(outer),
            ..inner.members().map_err(|error| error.inside(variant))?
        })
    }
}

/// A struct that is being written, or serde_json's disguise of a number or of raw text.
#[derive(Debug)]
pub(crate) enum Struct<'e, 's, R> {
    Members(Members<'e, 's, R>),
    Text(Writer<'e, 's, R>),
}

impl<R: Rules> SerializeStruct for Struct<'_, '_, R> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        match self {
            Self::Members(members) => SerializeStruct::serialize_field(members, name, value),
            Self::Text(writer) => {
                let mut text = Vec::new();
                // The text as a JSON string, then its content.
                value.serialize(Name::new(&mut text))?;
                let mut json = Vec::new();
                crate::emit::unescape(
                    text.get(1..text.len().saturating_sub(1))
                        .unwrap_or_default(),
                    &mut json,
                );
                if name == NUMBER {
                    let number = serde_json::from_slice(&json)
                        .map_err(|_| Error::here(ErrorKind::NumberTooLarge))?;
                    value::emit_number(writer.emitter, &number)
                } else {
                    text::emit_nested(writer.emitter, &json, writer.depth)
                }
            }
        }
    }

    fn end(self) -> Result<(), Error> {
        match self {
            Self::Members(members) => members.close(),
            Self::Text(_) => Ok(()),
        }
    }
}

impl<R: Rules> SerializeStruct for Members<'_, '_, R> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.name(name)?;
        self.content(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl<R: Rules> SerializeStructVariant for Members<'_, '_, R> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        SerializeStruct::serialize_field(self, name, value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl<R: Rules> SerializeMap for Members<'_, '_, R> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.name(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.content(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl<R: Rules> SerializeSeq for List<'_, '_, R> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl<R: Rules> SerializeTuple for List<'_, '_, R> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl<R: Rules> SerializeTupleStruct for List<'_, '_, R> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl<R: Rules> SerializeTupleVariant for List<'_, '_, R> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}
