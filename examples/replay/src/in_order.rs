//! Things by the name of their session, in the order the sessions appeared.

use std::collections::HashMap;
use std::rc::Rc;

/// A map that keeps the order in which its names were first seen.
#[derive(Debug)]
pub(crate) struct InOrder<T> {
    list: Vec<T>,
    places: HashMap<Rc<str>, usize>,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            places: HashMap::new(),
        }
    }
}

impl<T> InOrder<T> {
    /// What is under a name; made first if there is nothing.
    pub(crate) fn of(&mut self, name: &Rc<str>, make: impl FnOnce() -> T) -> &mut T {
        let next = self.list.len();
        let place = match self.places.get(name) {
            Some(place) => *place,
            None => *self.places.entry(name.clone()).or_insert(next),
        };
        if place == next {
            self.list.push(make());
        }
        #[expect(
            clippy::indexing_slicing,
            reason = "places are below the length: one is pushed for each new name"
        )]
        &mut self.list[place]
    }

    /// What is under a name.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.list.get_mut(*self.places.get(name)?)
    }

    /// Everything, in order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.list.iter_mut()
    }

    /// Everything, in order; nothing is left.
    pub(crate) fn take(&mut self) -> Vec<T> {
        self.places.clear();
        std::mem::take(&mut self.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_the_order_they_came_in() {
        let mut sums = InOrder::default();
        for (name, n) in [("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)] {
            *sums.of(&name.into(), || 0) += n;
        }
        assert_eq!(sums.get_mut("a"), Some(&mut 7));
        assert_eq!(sums.get_mut("d"), None);
        assert_eq!(sums.take(), [4, 7, 4]);
        assert_eq!(*sums.of(&"a".into(), || 9), 9, "nothing was left");
    }
}
