//! Polls that have not ended yet.

/// How many polls may be open at once; more of them push the oldest out.
pub(crate) const SIZE: usize = 6;
const SIZE_U64: u64 = SIZE as u64;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub(crate) enum Poll<K> {
    Open(K),
    /// Taken to have ended without an answer, which may still come.
    Missing(K),
}

/// The last polls whose answer is not known.
#[derive(Clone, Debug)]
pub(crate) struct Polls<K> {
    places: [Option<Poll<K>>; SIZE],
    /// Sequence number of the next poll; its remainder is its place.
    next: u64,
}

impl<K: Copy> Polls<K> {
    pub(crate) const fn new() -> Self {
        Self {
            places: [None; SIZE],
            next: 0,
        }
    }

    /// The same without polls. Sequence numbers go on, so old handles lead nowhere.
    pub(crate) const fn cleared(&self) -> Self {
        Self {
            places: [None; SIZE],
            next: self.next,
        }
    }

    /// The poll that the next one would push out while it is open; it is missing from now on.
    pub(crate) fn pushed_out(&mut self) -> Option<K> {
        match self.place(self.next).and_then(Option::take) {
            Some(Poll::Open(key)) => Some(key),
            _ => None,
        }
    }

    /// Opens a poll and returns its sequence number.
    pub(crate) fn open(&mut self, key: K) -> u64 {
        let seq = self.next;
        if let Some(place) = self.place(seq) {
            *place = Some(Poll::Open(key));
        }
        self.next += 1;
        seq
    }

    /// The oldest poll that is still open; it is missing from now on.
    pub(crate) fn next_open(&mut self) -> Option<K> {
        for seq in self.next.saturating_sub(SIZE_U64)..self.next {
            if let Some(place) = self.place(seq)
                && let Some(Poll::Open(key)) = *place
            {
                *place = Some(Poll::Missing(key));
                return Some(key);
            }
        }
        None
    }

    /// The poll that has an answer now, and whether that comes late.
    pub(crate) fn answered(&mut self, seq: u64) -> Option<(K, bool)> {
        if seq >= self.next || self.next - seq > SIZE_U64 {
            return None;
        }
        match self.place(seq)?.take()? {
            Poll::Open(key) => Some((key, false)),
            Poll::Missing(key) => Some((key, true)),
        }
    }

    /// Every place, and the sequence number of the next poll.
    #[cfg(feature = "serde")]
    pub(crate) const fn stored(&self) -> &[Option<Poll<K>>] {
        &self.places
    }

    #[cfg(feature = "serde")]
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// The polls of a snapshot; `None` if there are more or fewer places.
    #[cfg(feature = "serde")]
    pub(crate) fn restore(places: &[Option<Poll<K>>], next: u64) -> Option<Self> {
        Some(Self {
            places: *places
                .first_chunk::<SIZE>()
                .filter(|all| all.len() == places.len())?,
            next,
        })
    }

    fn place(&mut self, seq: u64) -> Option<&mut Option<Poll<K>>> {
        self.places
            .get_mut(usize::try_from(seq % SIZE_U64).unwrap_or(0))
    }
}
