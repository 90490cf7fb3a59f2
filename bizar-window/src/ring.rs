//! The last calls of a turn in a fixed place, searched by tag first.

use std::ops::Range;

#[cfg(feature = "serde")]
use crate::snapshot::StoredEntry;
use crate::{Key, Rule, Verdict};

/// A call is compared with this many calls before it.
const SPAN: usize = 48;
/// One entry more than that: the call itself stands in the ring before it ends.
const SIZE: usize = 49;
const ALL: u64 = (1 << SIZE) - 1;
/// Eight tags to a word.
const WORDS: usize = SIZE.div_ceil(8);

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
    #[inline]
    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Known(a) | Self::Assumed(a), Self::Known(b) | Self::Assumed(b)) => a == b,
            (Self::Bare(a), Self::Bare(b)) => a == b,
            (Self::Missing, Self::Missing) => true,
            _ => false,
        }
    }

    #[inline]
    fn digest(&self) -> Option<D> {
        match self {
            Self::Assumed(digest) | Self::Known(digest) => Some(*digest),
            _ => None,
        }
    }
}

/// One call of the turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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

/// The last entries, each with a sequence number that is never used twice.
#[derive(Clone, Debug)]
pub(crate) struct Ring<K, D> {
    entries: [Option<Entry<K, D>>; SIZE],
    /// A byte of each key's tag, slot by slot from the low end of the first word.
    tags: [u64; WORDS],
    tools: [u64; SIZE],
    counts: [u32; SIZE],
    /// How many entries back the same call was made before; 0 = nowhere.
    links: [u8; SIZE],
    /// Bit = slot: a poll's answer, which no counted call is compared with.
    polls: u64,
    /// Bit = slot: was stale (or refused) when it ended.
    stale: u64,
    /// Sequence number of the next entry.
    head: u64,
    /// Its slot.
    next: usize,
    len: usize,
}

/// The latest occurrence of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last {
    pub(crate) slot: Slot,
    /// How many counted calls back it is; 1 = the last call.
    pub(crate) distance: u32,
    /// How many entries back it is, the answers of polls included.
    pub(crate) back: u8,
}

/// Where an entry stands: an index below [`SIZE`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Slot(usize);

#[expect(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "a Slot is always below SIZE, and so is how far back it is"
)]
impl<K: Key, D: Copy + Eq> Ring<K, D> {
    /// An empty ring whose next sequence number is `head`.
    pub(crate) const fn new(head: u64) -> Self {
        Self {
            entries: [None; SIZE],
            tags: [0; WORDS],
            tools: [0; SIZE],
            counts: [0; SIZE],
            links: [0; SIZE],
            polls: 0,
            stale: 0,
            head,
            next: 0,
            len: 0,
        }
    }

    /// Appends a counted call, forgetting the oldest entry where there is no room. Returns its
    /// sequence number.
    #[inline]
    pub(crate) fn push(
        &mut self,
        entry: Entry<K, D>,
        tool: u64,
        count: u32,
        last: Option<Last>,
    ) -> u64 {
        let slot = Slot(self.next);
        self.tools[slot.0] = tool;
        self.counts[slot.0] = count;
        self.links[slot.0] = last.map_or(0, |last| last.back);
        self.polls &= !bit(slot);
        self.append(entry)
    }

    /// Appends a poll's answer.
    pub(crate) fn push_poll(&mut self, entry: Entry<K, D>) -> u64 {
        self.polls |= bit(Slot(self.next));
        self.append(entry)
    }

    #[inline]
    fn append(&mut self, entry: Entry<K, D>) -> u64 {
        let seq = self.head;
        let slot = Slot(self.next);
        let (word, shift) = (slot.0 / 8, slot.0 % 8 * 8);
        self.tags[word] =
            (self.tags[word] & !(0xff << shift)) | (u64::from(short_tag(&entry.key)) << shift);
        self.entries[slot.0] = Some(entry);
        self.stale &= !bit(slot);
        self.head += 1;
        self.next = if self.next + 1 == SIZE {
            0
        } else {
            self.next + 1
        };
        self.len = (self.len + 1).min(SIZE);
        seq
    }

    pub(crate) const fn head(&self) -> u64 {
        self.head
    }

    /// The slot of a sequence number that still stands in the ring.
    #[inline]
    pub(crate) fn find(&self, seq: u64) -> Option<Slot> {
        let back = usize::try_from(self.head.checked_sub(seq)?).ok()?;
        (1..=self.len).contains(&back).then(|| self.slot_back(back))
    }

    #[inline]
    pub(crate) fn entry(&self, slot: Slot) -> Option<&Entry<K, D>> {
        self.entries[slot.0].as_ref()
    }

    #[inline]
    pub(crate) fn entry_mut(&mut self, slot: Slot) -> Option<&mut Entry<K, D>> {
        self.entries[slot.0].as_mut()
    }

    #[inline]
    pub(crate) fn answer(&mut self, slot: Slot, answer: Answer<D>) {
        if let Some(entry) = &mut self.entries[slot.0] {
            entry.answer = answer;
        }
    }

    pub(crate) fn tool(&self, slot: Slot) -> u64 {
        self.tools[slot.0]
    }

    pub(crate) fn count(&self, slot: Slot) -> u32 {
        self.counts[slot.0]
    }

    #[inline]
    pub(crate) fn is_poll(&self, slot: Slot) -> bool {
        self.polls & bit(slot) != 0
    }

    pub(crate) fn is_stale(&self, slot: Slot) -> bool {
        self.stale & bit(slot) != 0
    }

    #[inline]
    pub(crate) fn mark_stale(&mut self, slot: Slot) {
        self.stale |= bit(slot);
    }

    pub(crate) fn clear_stale(&mut self, slot: Slot) {
        self.stale &= !bit(slot);
    }

    /// The latest counted occurrence of a call to come.
    #[inline]
    pub(crate) fn last(&self, key: &K) -> Option<Last> {
        // The same call twice in a row needs no search.
        if self.polls == 0 && self.len > 0 && self.holds(self.slot_back(1), key) {
            return Some(Last {
                slot: self.slot_back(1),
                distance: 1,
                back: 1,
            });
        }
        let mut found = self.by_age(self.tagged(short_tag(key)) & !self.polls & self.recent());
        while found != 0 {
            let age = found.ilog2();
            let slot = self.slot_at(age);
            if self.holds(slot, key) {
                let back = SIZE - age as usize;
                let distance = if self.polls == 0 {
                    back as u32
                } else {
                    (self.by_age(!self.polls) >> age).count_ones()
                };
                let back = back as u8;
                return Some(Last {
                    slot,
                    distance,
                    back,
                });
            }
            found &= !(1 << age);
        }
        None
    }

    /// Whether this answer of the call in a slot was given before.
    ///
    /// Quicker than looking for the pair, but good only until the same call is made again.
    #[inline]
    pub(crate) fn is_repeated(&self, slot: Slot, answer: &Answer<D>) -> bool {
        if self.polls != 0 {
            return self
                .entry(slot)
                .is_some_and(|entry| self.has_pair(&entry.key, answer, Some(slot)));
        }
        // Slots are passed from the newest to the oldest, so this is how many are left.
        let mut left = self.len - self.back_of(slot);
        let mut at = slot;
        loop {
            let link = usize::from(self.links[at.0]);
            if link == 0 || link > left {
                return false;
            }
            left -= link;
            at = Slot(if link <= at.0 {
                at.0 - link
            } else {
                at.0 + SIZE - link
            });
            if self
                .entry(at)
                .is_some_and(|other| other.answer.equals(answer))
            {
                return true;
            }
        }
    }

    /// Whether this pair stands in the ring; for the call in a slot: other than there.
    pub(crate) fn has_pair(&self, key: &K, answer: &Answer<D>, except: Option<Slot>) -> bool {
        let mut found = self.tagged(short_tag(key)) & self.others(except);
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

    /// The digest of the latest occurrence that has one; for the call in a slot: other than there.
    pub(crate) fn last_digest(&self, key: &K, except: Option<Slot>) -> Option<D> {
        let mut found = self.by_age(self.tagged(short_tag(key)) & self.others(except));
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
        let all = self.since(0);
        (all.start..all.end.min(end))
            .rev()
            .filter_map(|seq| self.find(seq))
            .filter(|slot| !self.is_poll(*slot))
    }

    /// The sequence numbers that stand in the ring, from `start` on.
    pub(crate) fn since(&self, start: u64) -> Range<u64> {
        start.max(self.head.saturating_sub(self.len as u64))..self.head
    }

    /// Everything that stands in the ring, oldest first.
    #[cfg(feature = "serde")]
    pub(crate) fn stored(&self) -> impl Iterator<Item = StoredEntry<K, D>> + '_ {
        self.since(0).filter_map(|seq| {
            let slot = self.find(seq)?;
            let entry = self.entry(slot)?;
            let is_poll = self.is_poll(slot);
            // What stands beside a poll is left from another call.
            let (tool, count) = if is_poll {
                (0, 1)
            } else {
                (self.tool(slot), self.count(slot))
            };
            Some(StoredEntry {
                key: entry.key,
                answer: entry.answer,
                tool,
                count,
                copies: entry.copies,
                verdict: entry.verdict,
                rule: entry.rule,
                period: entry.period,
                is_poll,
                is_stale: self.is_stale(slot),
            })
        })
    }

    /// The ring of a snapshot; `None` if there are more entries than can be.
    #[cfg(feature = "serde")]
    pub(crate) fn restore(head: u64, entries: &[StoredEntry<K, D>]) -> Option<Self> {
        if entries.len() > SIZE {
            return None;
        }
        let mut ring = Self::new(head.checked_sub(entries.len() as u64)?);
        for stored in entries {
            let entry = Entry {
                key: stored.key,
                answer: stored.answer,
                copies: stored.copies,
                verdict: stored.verdict,
                rule: stored.rule,
                period: stored.period,
            };
            let seq = if stored.is_poll {
                ring.push_poll(entry)
            } else {
                let last = ring.last(&entry.key);
                ring.push(entry, stored.tool, stored.count, last)
            };
            if stored.is_stale {
                ring.mark_stale(ring.find(seq)?);
            }
        }
        Some(ring)
    }

    #[inline]
    fn holds(&self, slot: Slot, key: &K) -> bool {
        self.entry(slot).is_some_and(|entry| entry.key == *key)
    }

    /// The occupied slots, as bits, whose byte of the tag is this one.
    #[inline]
    fn tagged(&self, tag: u8) -> u64 {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let wanted = u64::from(tag) * 0x0101_0101_0101_0101;
        let mut bits = 0;
        for (word, tags) in self.tags.iter().enumerate() {
            // A byte that is equal becomes zero, and then the only one whose high bit is set.
            let differs = tags ^ wanted;
            let equal = !(((differs & LOW) + LOW) | differs | LOW);
            // The product moves the eight high bits next to each other.
            bits |= ((equal >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * word);
        }
        bits & self.occupied()
    }

    /// Slots are filled from the first on.
    #[inline]
    fn occupied(&self) -> u64 {
        (1 << self.len) - 1
    }

    /// What the call in this slot is compared with, or a call that has none.
    fn others(&self, except: Option<Slot>) -> u64 {
        match except {
            Some(slot) => self.occupied() & !bit(slot),
            None => self.recent(),
        }
    }

    /// What a call that has no slot yet is compared with.
    #[inline]
    fn recent(&self) -> u64 {
        // Where the ring is full, the oldest entry is where the next one goes.
        let oldest = if self.len > SPAN { 1 << self.next } else { 0 };
        self.occupied() & !oldest
    }

    /// Turns bits of slots into bits of age, of which the highest is the newest entry.
    #[inline]
    fn by_age(&self, slots: u64) -> u64 {
        let slots = slots & self.occupied();
        ((slots >> self.next) | (slots << (SIZE - self.next))) & ALL
    }

    #[inline]
    fn slot_at(&self, age: u32) -> Slot {
        self.slot_back(SIZE - age as usize)
    }

    /// How many entries back a slot is; 1 = the newest.
    #[inline]
    fn back_of(&self, slot: Slot) -> usize {
        if slot.0 < self.next {
            self.next - slot.0
        } else {
            self.next + SIZE - slot.0
        }
    }

    /// The slot of the entry so many back; 1 = the newest.
    #[inline]
    fn slot_back(&self, back: usize) -> Slot {
        Slot(if back <= self.next {
            self.next - back
        } else {
            self.next + SIZE - back
        })
    }
}

const fn bit(slot: Slot) -> u64 {
    1 << slot.0
}

/// A byte of the tag is enough to skip most slots.
fn short_tag(key: &impl Key) -> u8 {
    let [byte, ..] = key.tag().to_le_bytes();
    byte
}
