//! From anything `Serialize`, with the same bytes as from its `serde_json::Value`.

use serde::ser::{Serialize, Serializer};

use crate::MAX_DEPTH;
use crate::compound::{List, Members, Outer, Struct};
use crate::emit::{Emitter, Rules};
use crate::error::{Error, ErrorKind};
use crate::{compound, number};

/// How many `Some` and newtype layers may lie around one another: they print nothing, but they recurse.
const MAX_LAYERS: usize = 4 * MAX_DEPTH;

#[derive(Debug)]
pub(crate) struct Writer<'e, 's, R> {
    pub(crate) emitter: &'e mut Emitter<'s, R>,
    /// The level that a list or object here has, from 1.
    pub(crate) depth: usize,
    pub(crate) layers: usize,
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

    fn signed(self, value: impl Into<i64>) -> Result<(), Error> {
        number::write_signed(self.emitter.out(), value.into());
        Ok(())
    }

    fn unsigned(self, value: impl Into<u64>) -> Result<(), Error> {
        number::write_unsigned(self.emitter.out(), value.into());
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
        self.signed(value)
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.signed(value)
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.signed(value)
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.signed(value)
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => self.unsigned(value),
            (_, Ok(value)) => self.signed(value),
            _ => self.emitter.double(value as f64), // rounds to nearest, like the text of the number
        }
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.unsigned(value)
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.unsigned(value)
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.unsigned(value)
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.unsigned(value)
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        match u64::try_from(value) {
            Ok(value) => self.unsigned(value),
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
            compound::NUMBER | compound::RAW => Ok(Struct::Text(self)),
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
