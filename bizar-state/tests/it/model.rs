//! The file store beside a map in memory, which is also a second store behind the same trait.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use bizar_state::{Listing, Loaded, Store, SweepReport, Updated};
use proptest::prelude::*;

use crate::counter::{Counter, store};

#[derive(Default)]
struct Memory(RefCell<BTreeMap<String, Counter>>);

impl Store<Counter> for Memory {
    type Error = Infallible;

    fn load(&self, id: &str) -> Result<Loaded<Counter>, Infallible> {
        Ok(Loaded {
            document: self.0.borrow().get(id).cloned(),
            unusable: None,
        })
    }

    fn update_within<R>(
        &self,
        id: &str,
        _: Duration,
        change: impl FnOnce(&mut Option<Counter>) -> R,
    ) -> Result<Updated<R>, Infallible> {
        let mut slot = self.0.borrow_mut().remove(id);
        let value = change(&mut slot);
        self.0
            .borrow_mut()
            .extend(slot.map(|counter| (id.to_owned(), counter)));
        Ok(Updated {
            value,
            unusable: None,
        })
    }

    fn list(&self) -> Result<Listing<Counter>, Infallible> {
        Ok(Listing {
            documents: self.0.borrow().values().cloned().collect(),
            unusable: Vec::new(),
        })
    }

    fn remove(&self, id: &str) -> Result<bool, Infallible> {
        Ok(self.0.borrow_mut().remove(id).is_some())
    }

    fn sweep(
        &self,
        mut stale: impl FnMut(&Counter) -> bool,
    ) -> Result<SweepReport<Infallible>, Infallible> {
        let mut report = SweepReport::default();
        self.0.borrow_mut().retain(|id, counter| {
            if stale(counter) {
                report.removed.push(id.clone());
                return false;
            }
            report.kept += 1;
            true
        });
        Ok(report)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(String, u64),
    Clear(String),
    List,
    Load(String),
    Remove(String),
    Save(String, u64),
    Sweep(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let id = prop_oneof![Just("a"), Just("A"), Just("a/b"), Just(""), Just("..")];
    let id = id.prop_map(str::to_owned);
    let count = 0..10_u64;
    prop_oneof![
        (id.clone(), count.clone()).prop_map(|(id, count)| Step::Add(id, count)),
        id.clone().prop_map(Step::Clear),
        Just(Step::List),
        id.clone().prop_map(Step::Load),
        id.clone().prop_map(Step::Remove),
        (id, count.clone()).prop_map(|(id, count)| Step::Save(id, count)),
        count.prop_map(Step::Sweep),
    ]
}

/// Everything that a step shows to its caller.
fn take<S: Store<Counter>>(store: &S, step: &Step) -> String {
    match step {
        Step::Add(id, count) => {
            let updated = store.update(id, |slot| {
                let counter = slot.get_or_insert_with(|| Counter::new(id, 0));
                counter.count += count;
                counter.clone()
            });
            format!("{:?}", updated.unwrap())
        }
        Step::Clear(id) => format!("{:?}", store.update(id, Option::take).unwrap()),
        Step::List => format!("{:?}", store.list().unwrap()),
        Step::Load(id) => format!("{:?}", store.load(id).unwrap()),
        Step::Remove(id) => format!("{:?}", store.remove(id).unwrap()),
        Step::Save(id, count) => {
            format!("{:?}", store.save(Counter::new(id, *count)).unwrap())
        }
        Step::Sweep(count) => {
            let report = store.sweep(|counter| counter.count < *count).unwrap();
            format!("{report:?}")
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn the_file_store_is_a_map(steps in prop::collection::vec(step(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let file_store = store(&directory.path().join("made/when/needed"));
        let memory = Memory::default();
        for step in steps {
            prop_assert_eq!(take(&file_store, &step), take(&memory, &step), "{:?}", step);
        }
        prop_assert_eq!(take(&file_store, &Step::List), take(&memory, &Step::List));
    }
}
