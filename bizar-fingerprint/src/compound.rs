//! Lists and objects on their way from a `Serialize` implementation.

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};

use crate::emit::{Emitter, Object, Rules, unescape};
use crate::error::{Error, ErrorKind};
use crate::name::Name;
use crate::serialize::Writer;
use crate::{text, value};

/// Under these names serde_json hands over numbers and raw text that must not be read as objects.
pub(crate) const NUMBER: &str = "$serde_json::private::Number";
pub(crate) const RAW: &str = "$serde_json::private::RawValue";

/// The object around an enum variant's list or members.
#[derive(Debug)]
pub(crate) struct Outer {
    pub(crate) object: Object,
    pub(crate) variant: &'static str,
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
    pub(crate) emitter: &'e mut Emitter<'s, R>,
    pub(crate) depth: usize,
    pub(crate) layers: usize,
    pub(crate) length: usize,
    pub(crate) outer: Option<Outer>,
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

    pub(crate) fn close(self) -> Result<(), Error> {
        self.emitter.out().push(b']');
        self.outer.map_or(Ok(()), |outer| outer.end(self.emitter))
    }
}

/// Members that are being written.
#[derive(Debug)]
pub(crate) struct Members<'e, 's, R> {
    pub(crate) emitter: &'e mut Emitter<'s, R>,
    pub(crate) depth: usize,
    pub(crate) layers: usize,
    pub(crate) object: Object,
    /// A name has been written whose value has not.
    pub(crate) named: bool,
    pub(crate) outer: Option<Outer>,
}

impl<R: Rules> Members<'_, '_, R> {
    pub(crate) fn name<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Error> {
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

    pub(crate) fn content<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
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

    pub(crate) fn close(self) -> Result<(), Error> {
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
                unescape(
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
