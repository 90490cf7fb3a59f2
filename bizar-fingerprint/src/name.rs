//! Map keys as member names: what serde_json takes as a key, spelled as it spells it.

use serde::ser::{Impossible, Serialize, Serializer};

use crate::emit::write_string;
use crate::error::{Error, ErrorKind};

/// Newtype layers around a key; as around values, they must end.
const MAX_LAYERS: usize = 64;

#[derive(Debug)]
pub(crate) struct Name<'o> {
    out: &'o mut Vec<u8>,
    layers: usize,
}

impl<'o> Name<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, layers: 0 }
    }

    /// The key as serde_json prints it as a value, in quotes.
    fn quoted(self, value: impl Serialize) -> Result<(), Error> {
        self.out.push(b'"');
        let printed = serde_json::to_writer(&mut *self.out, &value);
        self.out.push(b'"');
        printed.map_err(|_| Error::here(ErrorKind::Key))
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
}

fn refused<T>() -> Result<T, Error> {
    Err(Error::here(ErrorKind::Key))
}

impl Serializer for Name<'_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.quoted(value)
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.quoted(value)
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.quoted(value)
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.quoted(value)
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.quoted(value)
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        self.quoted(value)
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.quoted(value)
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.quoted(value)
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.quoted(value)
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.quoted(value)
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        self.quoted(value)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        if value.is_finite() {
            self.quoted(value)
        } else {
            Err(Error::here(ErrorKind::NonFinite))
        }
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        if value.is_finite() {
            self.quoted(value)
        } else {
            Err(Error::here(ErrorKind::NonFinite))
        }
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        write_string(self.out, value.as_bytes());
        Ok(())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Error> {
        refused()
    }

    fn serialize_none(self) -> Result<(), Error> {
        refused()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.layer(value)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        refused()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        refused()
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
        _: &'static str,
        _: &T,
    ) -> Result<(), Error> {
        refused()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Impossible<(), Error>, Error> {
        refused()
    }

    fn serialize_tuple(self, _: usize) -> Result<Impossible<(), Error>, Error> {
        refused()
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Impossible<(), Error>, Error> {
        refused()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Impossible<(), Error>, Error> {
        refused()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Impossible<(), Error>, Error> {
        refused()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Impossible<(), Error>, Error> {
        refused()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Impossible<(), Error>, Error> {
        refused()
    }
}
