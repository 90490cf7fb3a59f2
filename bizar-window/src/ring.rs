//! The last calls of a turn in a fixed place, searched by tag first.

#[cfg(feature = "serde")]
use crate::snapshot::StoredEntry;
use crate::{Key, Rule, Verdict};

/// How many entries the ring holds.
pub(crate) const SIZE: usize = 48;
const SIZE_U64: u64 = SIZE as u64;
const ALL: u64 = (1 << SIZE) - 1;

/// What is known of a call's result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub(crate) enum Answer<D> {
    /// Not ended yet.
    Open,
    /// The host never told, and nothing is known from before.
    Missing,
    /// The host never told; taken to be what the same call answered last.
    Assumed(D),
    /// This result.
    Known(D),
    /// It succeeded or failed, and there is no result.
    Bare(bool),
    /// Refused by us: equals nothing.
    Refused,
}

impl<D: Copy + Eq> Answer<D> {
    /// Whether the two are the same answer.
    fn equals(&self, other: &Self) -> bool {
        match (self.digest(), other.digest()) {
            (Some(a), Some(b)) => a == b,
            (None, None) => match (self, other) {
                (Self::Missing, Self::Missing) => true,
                (Self::Bare(a), Self::Bare(b)) => a == b,
                _ => false,
            },
            _ => false,
        }
    }

    fn digest(&self) -> Option<D> {
        match self {
            Self::Assumed(digest) | Self::Known(digest) => Some(*digest),
            _ => None,
        }
    }
}

/// One call of the turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Entry<K, D> {
    pub(crate) key: K,
    pub(crate) answer: Answer<D>,
    /// How often it was asked for in its round, up to 255.
    pub(crate) copies: u8,
    /// Its verdict, for the copies of its round.
    pub(crate) verdict: Verdict,
    pub(crate) rule: Option<Rule>,
    pub(crate) period: u8,
}

/// The last [`SIZE`] entries, each with a sequence number that is never used twice.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Ring<K, D> {
    entries: [Option<Entry<K, D>>; SIZE],
    tags: [u16; SIZE],
    tools: [u64; SIZE],
    counts: [u32; SIZE],
    /// Bit = slot: a poll's answer, which no counted call is compared with.
    polls: u64,
    /// Bit = slot: was stale (or refused) when it ended.
    stale: u64,
    /// Sequence number of the next entry.
    head: u64,
    len: u64,
}

/// Where an entry stands: an index below [`SIZE`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Slot(usize);

#[expect(clippy::indexing_slicing, reason = "a Slot is always below SIZE")]
impl<K: Key, D: Copy + Eq> Ring<K, D> {
    /// An empty ring whose next sequence number is `head`.
    pub(crate) const fn new(head: u64) -> Self {
        Self {
            entries: [None; SIZE],
            tags: [0; SIZE],
            tools: [0; SIZE],
            counts: [0; SIZE],
            polls: 0,
            stale: 0,
            head,
            len: 0,
        }
    }

    /// Appends an entry, forgetting the oldest where there is no room. Returns its sequence number.
    pub(crate) fn push(&mut self, entry: Entry<K, D>, tool: u64, count: u32, is_poll: bool) -> u64 {
        let seq = self.head;
        let slot = slot_of(seq);
        self.tags[slot.0] = short_tag(&entry.key);
        self.entries[slot.0] = Some(entry);
        self.tools[slot.0] = tool;
        self.counts[slot.0] = count;
        self.polls &= !bit(slot);
        if is_poll {
            self.polls |= bit(slot);
        }
        self.stale &= !bit(slot);
        self.head += 1;
        self.len = (self.len + 1).min(SIZE_U64);
        seq
    }

    pub(crate) const fn head(&self) -> u64 {
        self.head
    }

    /// The slot of a sequence number that still stands in the ring.
    pub(crate) fn find(&self, seq: u64) -> Option<Slot> {
        (seq < self.head && self.head - seq <= self.len).then(|| slot_of(seq))
    }

    pub(crate) fn entry(&self, slot: Slot) -> Option<&Entry<K, D>> {
        self.entries[slot.0].as_ref()
    }

    pub(crate) fn entry_mut(&mut self, slot: Slot) -> Option<&mut Entry<K, D>> {
        self.entries[slot.0].as_mut()
    }

    pub(crate) fn tool(&self, slot: Slot) -> u64 {
        self.tools[slot.0]
    }

    pub(crate) fn count(&self, slot: Slot) -> u32 {
        self.counts[slot.0]
    }

    pub(crate) fn is_poll(&self, slot: Slot) -> bool {
        self.polls & bit(slot) != 0
    }

    pub(crate) fn is_stale(&self, slot: Slot) -> bool {
        self.stale & bit(slot) != 0
    }

    pub(crate) fn mark_stale(&mut self, slot: Slot) {
        self.stale |= bit(slot);
    }

    pub(crate) fn clear_stale(&mut self, slot: Slot) {
        self.stale &= !bit(slot);
    }

    /// Its latest counted occurrence, and how many counted calls back that is (1 = the last one).
    pub(crate) fn last(&self, key: &K) -> Option<(Slot, u32)> {
        let mut found = self.by_age(self.tagged(short_tag(key)) & !self.polls);
        while found != 0 {
            let age = found.ilog2();
            let slot = self.slot_at(age);
            if self.holds(slot, key) {
                let counted = self.by_age(!self.polls);
                return Some((slot, (counted >> age).count_ones()));
            }
            found &= !(1 << age);
        }
        None
    }

    /// Whether this pair stands in the ring, other than in `except`.
    pub(crate) fn has_pair(&self, key: &K, answer: &Answer<D>, except: Option<Slot>) -> bool {
        let mut found = self.tagged(short_tag(key)) & self.occupied();
        if let Some(slot) = except {
            found &= !bit(slot);
        }
        while found != 0 {
            let slot = Slot(found.trailing_zeros() as usize);
            if let Some(entry) = self.entry(slot)
                && entry.key == *key
                && entry.answer.equals(answer)
            {
                return true;
            }
            found &= found - 1;
        }
        false
    }

    /// The digest of the latest occurrence that has one.
    pub(crate) fn last_digest(&self, key: &K) -> Option<D> {
        let mut found = self.by_age(self.tagged(short_tag(key)));
        while found != 0 {
            let age = found.ilog2();
            if let Some(entry) = self.entry(self.slot_at(age))
                && entry.key == *key
                && let Some(digest) = entry.answer.digest()
            {
                return Some(digest);
            }
            found &= !(1 << age);
        }
        None
    }

    /// How many stale calls stand after this one.
    pub(crate) fn stale_after(&self, slot: Slot) -> u32 {
        let age = self.by_age(bit(slot)).trailing_zeros();
        // An age is below SIZE, so the shift stays below 64.
        (self.by_age(self.stale) >> age >> 1).count_ones()
    }

    /// The counted entries before `end`, newest first.
    pub(crate) fn counted_before(&self, end: u64) -> impl Iterator<Item = Slot> + '_ {
        let end = end.min(self.head);
        (self.head.saturating_sub(self.len)..end)
            .rev()
            .map(slot_of)
            .filter(|&slot| !self.is_poll(slot))
    }

    /// The sequence numbers of everything from `start` on.
    pub(crate) fn since(&self, start: u64) -> std::ops::Range<u64> {
        start.max(self.head.saturating_sub(self.len))..self.head
    }

    /// Everything that stands in the ring, oldest first.
    #[cfg(feature = "serde")]
    pub(crate) fn stored(&self) -> impl Iterator<Item = StoredEntry<K, D>> + '_ {
        (self.head - self.len..self.head)
            .map(slot_of)
            .filter_map(|slot| {
                Some(StoredEntry {
                    entry: *self.entry(slot)?,
                    tool: self.tool(slot),
                    count: self.count(slot),
                    is_poll: self.is_poll(slot),
                    is_stale: self.is_stale(slot),
                })
            })
    }

    /// The ring of a snapshot; `None` if there are more entries than can be.
    #[cfg(feature = "serde")]
    pub(crate) fn restore(head: u64, entries: &[StoredEntry<K, D>]) -> Option<Self> {
        let len = u64::try_from(entries.len())
            .ok()
            .filter(|len| *len <= SIZE_U64)?;
        let mut ring = Self::new(head.checked_sub(len)?);
        for stored in entries {
            let seq = ring.push(stored.entry, stored.tool, stored.count, stored.is_poll);
            if stored.is_stale {
                ring.mark_stale(slot_of(seq));
            }
        }
        Some(ring)
    }

    fn holds(&self, slot: Slot, key: &K) -> bool {
        self.entry(slot).is_some_and(|entry| entry.key == *key)
    }

    /// The slots, as bits, whose tag is this one; empty slots may be among them.
    fn tagged(&self, tag: u16) -> u64 {
        let mut bits = 0;
        for (slot, other) in self.tags.iter().enumerate() {
            bits |= u64::from(*other == tag) << slot;
        }
        bits
    }

    fn occupied(&self) -> u64 {
        if self.len == SIZE_U64 {
            ALL
        } else {
            let bits = (1 << self.len) - 1;
            let start = (self.head - self.len) % SIZE_U64;
            ((bits << start) | (bits >> (SIZE_U64 - start))) & ALL
        }
    }

    /// Turns bits of slots into bits of age: the oldest slot is bit 0, the newest the highest.
    fn by_age(&self, slots: u64) -> u64 {
        let slots = slots & self.occupied();
        let start = self.head % SIZE_U64;
        ((slots >> start) | (slots << (SIZE_U64 - start))) & ALL
    }

    fn slot_at(&self, age: u32) -> Slot {
        slot_of(self.head + u64::from(age))
    }
}

fn slot_of(seq: u64) -> Slot {
    Slot((seq % SIZE_U64) as usize)
}

const fn bit(slot: Slot) -> u64 {
    1 << slot.0
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a part of the tag is enough to skip most slots"
)]
fn short_tag(key: &impl Key) -> u16 {
    key.tag() as u16
}
