//! Reads the host's JSON as it comes, in bounded memory.
//!
//! Only the members that somebody wants are kept, each up to a limit. A result beyond it is digested
//! instead of kept, whatever its length. Nothing here checks the grammar: what was kept is parsed
//! afterwards, and a document that is cut off or out of shape is not [`complete`](Scanner::is_complete)
//! or yields members that do not parse.

use bizar_guard::Digester;

/// Arguments beyond this count as not supplied, results beyond it are digested as they come.
pub(crate) const LONG: usize = 4 << 20;

/// Other members (ids, names, directories, prompts) beyond this are as good as absent.
const SHORT: usize = 64 << 10;

/// A member of the document, or of an object directly in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) parent: &'static str,
    pub(crate) name: &'static str,
    pub(crate) size: Size,
}

/// How long a member may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Size {
    /// An id, a name, a directory.
    Short,
    /// Arguments.
    Args,
    /// A result: of any length.
    Result,
}

/// What was found of a member.
#[derive(Debug)]
pub(crate) enum Found {
    /// Its JSON text.
    Json(Vec<u8>),
    /// It was longer than it may be.
    TooLong,
    /// A result that is too long to keep: its digest so far.
    Digested(Box<Digester>),
}

/// Called at most once a result.
pub(crate) type NewDigester = Box<dyn FnMut() -> Digester + Send>;

/// Takes the document in pieces, however they are cut.
pub(crate) struct Scanner {
    wanted: &'static [Wanted],
    found: Vec<Option<Found>>,
    /// Makes the digester of a long result.
    new_digester: NewDigester,
    depth: usize,
    /// Of the root object and of an object in it: what is expected next.
    frames: [Frame; 2],
    string: Option<Text>,
    kept: Option<Kept>,
    is_complete: bool,
    is_broken: bool,
}

#[derive(Default)]
struct Frame {
    is_object: bool,
    expects_name: bool,
    name: Vec<u8>,
}

/// The string that is being read.
struct Text {
    is_name: bool,
    is_escaped: bool,
}

/// The member that is being kept.
struct Kept {
    index: usize,
    /// The depth that it lies at.
    depth: usize,
    size: Size,
    json: Vec<u8>,
    is_too_long: bool,
    digest: Option<(Box<Digester>, Unescaper)>,
}

impl Scanner {
    pub(crate) fn new(wanted: &'static [Wanted], new_digester: NewDigester) -> Self {
        Self {
            wanted,
            found: wanted.iter().map(|_| None).collect(),
            new_digester,
            depth: 0,
            frames: Default::default(),
            string: None,
            kept: None,
            is_complete: false,
            is_broken: false,
        }
    }

    /// Whether a whole object was read. What follows it is not looked at.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// What was found, in the order of what was wanted.
    pub(crate) fn into_found(self) -> Vec<Option<Found>> {
        self.found
    }

    /// Takes the next piece.
    pub(crate) fn feed(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while let Some((&byte, after)) = rest.split_first() {
            if self.is_complete || self.is_broken {
                return;
            }
            if self.string.is_some() {
                rest = self.in_string(rest);
            } else {
                self.between(byte);
                rest = after;
            }
        }
    }

    /// Reads on in a string, and returns what is left.
    fn in_string<'p>(&mut self, piece: &'p [u8]) -> &'p [u8] {
        let Some(text) = &mut self.string else {
            return piece;
        };
        let is_name = text.is_name;
        let (length, ends) = if text.is_escaped {
            text.is_escaped = false;
            (1, false)
        } else {
            match memchr::memchr2(b'"', b'\\', piece) {
                Some(at) if piece.get(at) == Some(&b'\\') => {
                    text.is_escaped = true;
                    (at + 1, false)
                }
                Some(at) => (at + 1, true),
                None => (piece.len(), false),
            }
        };
        let (taken, rest) = piece.split_at(length);
        if is_name {
            if let Some(frame) = self.frame() {
                let room = MOST_NAME.saturating_sub(frame.name.len());
                frame.name.extend(taken.iter().take(room));
            }
        } else {
            self.keep(taken);
        }
        if ends {
            self.string = None;
            self.value_ended();
        }
        rest
    }

    /// One byte outside of strings.
    fn between(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.is_broken |= self.depth == 0;
                // Within what is kept a name is as good as any other string.
                let keeps = self.kept.is_some();
                let named = self.frame().filter(|frame| frame.expects_name && !keeps);
                let is_name = named.is_some();
                match named {
                    Some(frame) => frame.name.clear(),
                    None => {
                        self.value_begins();
                        self.keep(&[byte]);
                    }
                }
                self.string = Some(Text {
                    is_name,
                    is_escaped: false,
                });
            }
            b'{' | b'[' => {
                self.is_broken |= self.depth == 0 && byte == b'[';
                self.value_begins();
                self.keep(&[byte]);
                self.depth += 1;
                if let Some(frame) = self.frame() {
                    frame.is_object = byte == b'{';
                    frame.expects_name = frame.is_object;
                    frame.name.clear();
                }
            }
            b'}' | b']' => {
                // A number or a word may end with the object that it is in.
                self.value_ended();
                self.depth = self.depth.saturating_sub(1);
                self.keep(&[byte]);
                self.value_ended();
                self.is_complete = self.depth == 0;
            }
            b',' => {
                self.value_ended();
                self.keep(&[byte]);
                if let Some(frame) = self.frame() {
                    frame.expects_name = frame.is_object;
                }
            }
            b':' => {
                self.keep(&[byte]);
                if let Some(frame) = self.frame() {
                    frame.expects_name = false;
                }
            }
            b' ' | b'\t' | b'\n' | b'\r' => self.keep(&[byte]),
            _ => {
                self.is_broken |= self.depth == 0;
                self.value_begins();
                self.keep(&[byte]);
            }
        }
    }

    /// The container that is being read, if it is one whose names matter.
    fn frame(&mut self) -> Option<&mut Frame> {
        self.frames.get_mut(self.depth.checked_sub(1)?)
    }

    /// A value begins here; is it wanted?
    fn value_begins(&mut self) {
        if self.kept.is_some() || !(1..=2).contains(&self.depth) {
            return;
        }
        let [root, inner] = &self.frames;
        let (parent, name) = match self.depth {
            1 => (&b""[..], name_of(root)),
            _ if inner.is_object => (name_of(root), name_of(inner)),
            _ => return,
        };
        let index = self.wanted.iter().position(|wanted| {
            wanted.name.as_bytes() == name && wanted.parent.as_bytes() == parent
        });
        if let Some((index, wanted)) = index.and_then(|at| Some((at, self.wanted.get(at)?))) {
            self.kept = Some(Kept {
                index,
                depth: self.depth,
                size: wanted.size,
                json: Vec::new(),
                is_too_long: false,
                digest: None,
            });
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let Some(kept) = &mut self.kept else { return };
        if let Some((digester, unescaper)) = &mut kept.digest {
            unescaper.feed(bytes, digester);
            return;
        }
        let limit = if kept.size == Size::Short {
            SHORT
        } else {
            LONG
        };
        if kept.is_too_long || kept.json.len() + bytes.len() > limit {
            kept.is_too_long = true;
            let json = std::mem::take(&mut kept.json);
            if kept.size == Size::Result {
                let mut digester = Box::new((self.new_digester)());
                let mut unescaper = Unescaper::of(json.first().or_else(|| bytes.first()).copied());
                unescaper.feed(&json, &mut digester);
                unescaper.feed(bytes, &mut digester);
                kept.digest = Some((digester, unescaper));
            }
            return;
        }
        kept.json.extend_from_slice(bytes);
    }

    /// A value has ended at this depth: if it is what is kept, that is whole.
    fn value_ended(&mut self) {
        if self
            .kept
            .as_ref()
            .is_some_and(|kept| kept.depth == self.depth)
        {
            self.store();
        }
    }

    fn store(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        let found = match kept.digest {
            Some((digester, _)) => Found::Digested(digester),
            None if kept.is_too_long => Found::TooLong,
            None => Found::Json(kept.json),
        };
        if let Some(slot) = self.found.get_mut(kept.index) {
            *slot = Some(found);
        }
    }
}

/// A name without its closing quote. One with escapes is none that anybody wants.
fn name_of(frame: &Frame) -> &[u8] {
    frame.name.strip_suffix(b"\"").unwrap_or(&frame.name)
}

/// Hands the text of a JSON string on without its quotes and escapes, and any other JSON as it is.
struct Unescaper {
    is_string: bool,
    escape: Escape,
    high: Option<u16>,
    out: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Escape {
    /// The opening quote is still to come.
    Quote,
    None,
    Started,
    Unit {
        value: u16,
        digits: u8,
    },
}

impl Unescaper {
    fn of(first: Option<u8>) -> Self {
        Self {
            is_string: first == Some(b'"'),
            escape: Escape::Quote,
            high: None,
            out: Vec::new(),
        }
    }

    fn feed(&mut self, bytes: &[u8], digester: &mut Digester) {
        if !self.is_string {
            return digester.update(bytes);
        }
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match self.escape {
                Escape::Quote => self.escape = Escape::None,
                Escape::None => {
                    let plain = memchr::memchr2(b'"', b'\\', after).unwrap_or(after.len());
                    match byte {
                        b'\\' => self.escape = Escape::Started,
                        // The closing quote.
                        b'"' => {}
                        _ => {
                            self.lone_half();
                            self.out.push(byte);
                            let (taken, left) = after.split_at(plain);
                            self.out.extend_from_slice(taken);
                            rest = left;
                        }
                    }
                }
                Escape::Started => self.started(byte),
                Escape::Unit { value, digits } => self.digit(byte, value, digits),
            }
        }
        digester.update(&self.out);
        self.out.clear();
    }

    fn started(&mut self, byte: u8) {
        self.escape = Escape::None;
        let plain = match byte {
            b'u' => {
                self.escape = Escape::Unit {
                    value: 0,
                    digits: 0,
                };
                return;
            }
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            other => other,
        };
        self.lone_half();
        self.out.push(plain);
    }

    fn digit(&mut self, byte: u8, value: u16, digits: u8) {
        let digit = char::from(byte)
            .to_digit(16)
            .and_then(|digit| u16::try_from(digit).ok());
        let value = (value << 4) | digit.unwrap_or(0);
        if digits < 3 {
            self.escape = Escape::Unit {
                value,
                digits: digits + 1,
            };
            return;
        }
        self.escape = Escape::None;
        match (self.high.take(), value) {
            (Some(high), 0xDC00..=0xDFFF) => {
                for c in char::decode_utf16([high, value]).flatten() {
                    self.push(c);
                }
            }
            (half, 0xD800..=0xDBFF) => {
                self.high = half;
                self.lone_half();
                self.high = Some(value);
            }
            (half, _) => {
                self.high = half;
                self.lone_half();
                self.push(char::from_u32(value.into()).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
    }

    /// Half of a pair whose other half did not come.
    fn lone_half(&mut self) {
        if self.high.take().is_some() {
            self.push(char::REPLACEMENT_CHARACTER);
        }
    }

    fn push(&mut self, c: char) {
        self.out
            .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Longer names are not wanted by anybody.
const MOST_NAME: usize = 64;
