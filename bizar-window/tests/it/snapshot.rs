//! A session survives a restart, and no snapshot can hurt it.

use bizar_window::{Call, Handle, Key, Ladder, Mode, Outcome, Rules, Session, Verdict};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::progress_oracle::{Feed, Happening, happenings};

type Watch = Session<u64, u64>;

fn restart(session: &Watch) -> Watch {
    serde_json::from_str(&serde_json::to_string(session).unwrap()).unwrap()
}

fn happen(
    session: &mut Watch,
    feed: &mut Feed,
    happening: &Happening,
) -> Option<(Verdict, u32, bool)> {
    match happening {
        Happening::Before {
            key,
            tool,
            kind,
            round,
            end,
        } => {
            let judgement = session.before(&feed.call(*key, *tool, *kind, *round));
            feed.handles.push(judgement.handle);
            if let Some(outcome) = end
                && judgement.verdict < Verdict::Block
            {
                session.after(judgement.handle, *outcome);
            }
            return Some((judgement.verdict, judgement.count, judgement.rose));
        }
        Happening::After { back, outcome } => {
            if let Some(handle) = feed.handles.iter().rev().nth(*back) {
                session.after(*handle, *outcome);
            }
        }
        Happening::UserMessage => session.user_message(),
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn restarts_change_no_verdict(happenings in happenings(), every in 1..30_usize, mode in prop::sample::select(Mode::ALL)) {
        let (mut steady, mut restarted) = (Watch::new(Rules::new(mode)), Watch::new(Rules::new(mode)));
        let (mut a, mut b) = (Feed::new(Ladder::default()), Feed::new(Ladder::default()));
        for (i, happening) in happenings.iter().enumerate() {
            prop_assert_eq!(happen(&mut steady, &mut a, happening), happen(&mut restarted, &mut b, happening));
            prop_assert_eq!(steady.pending(), restarted.pending());
            if i % every == 0 {
                restarted = restart(&restarted);
                // Handles are stored by the caller.
                b.handles = serde_json::from_str(&serde_json::to_string(&b.handles).unwrap()).unwrap();
            }
        }
    }

    #[test]
    fn damaged_snapshots_never_panic(
        happenings in happenings(),
        mode in prop::sample::select(Mode::ALL),
        damages in prop::collection::vec((any::<prop::sample::Index>(), 0..14_usize), 1..6),
        later in happenings(),
        forged in prop::collection::vec(("entry|copy|poll|nowhere", any::<u64>(), 0..200_u64), 0..6),
    ) {
        let mut session = Watch::new(Rules::new(mode));
        let mut feed = Feed::new(Ladder::default());
        for happening in &happenings {
            happen(&mut session, &mut feed, happening);
        }
        let mut document = serde_json::to_value(&session).unwrap();
        for (place, damage) in damages {
            let places = count(&document);
            change(&mut document, &mut place.index(places), damage);
        }
        if let Ok(mut session) = serde_json::from_value::<Watch>(document) {
            for happening in &later {
                happen(&mut session, &mut feed, happening);
                let handle = feed.handles.last().copied().unwrap_or_else(any_handle);
                prop_assert!(session.pattern(handle, u32::MAX).count() <= 50);
                let _ = session.pending();
            }
            for (place, far, near) in &forged {
                for seq in [*far, *near] {
                    let handle = json!({ "place": place, "seq": seq, "round": far, "tool": near });
                    let handle: Handle = serde_json::from_value(handle).unwrap();
                    session.after(handle, Outcome::failed(*near));
                    prop_assert!(session.pattern(handle, 60).count() <= 50);
                }
            }
            // A number at the very end of its range may be out of it by now: an error, no panic.
            let _ = serde_json::from_str::<Watch>(&serde_json::to_string(&session).unwrap());
        }
    }
}

#[test]
fn calls_that_are_open_at_a_restart_may_end_or_go_missing() {
    let mut session = Watch::new(Rules::default());
    let call = |key, round| Call {
        round: Some(round),
        ..Call::new(key, key)
    };
    for key in [1, 2] {
        let judgement = session.before(&call(key, 1));
        session.after(judgement.handle, Outcome::ok(5));
    }
    let handles = [1, 2].map(|key| session.before(&call(key, 2)).handle);
    let mut session = restart(&session);
    session.after(handles[0], Outcome::ok(5));
    // The second is taken to have answered what it answered last: two stale calls.
    assert_eq!(session.before(&call(1, 3)).count, 2 + 1 + 2);
}

fn any_handle() -> Handle {
    Watch::new(Rules::default()).before(&Call::new(1, 1)).handle
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Puts something else in the place with this number.
fn change(value: &mut Value, place: &mut usize, damage: usize) -> bool {
    if *place == 0 {
        *value = match damage {
            0 => Value::Null,
            1 => json!(0),
            2 => json!(u64::MAX),
            3 => json!(1_u64 << 62),
            4 => json!(u32::MAX),
            5 => json!(-1),
            6 => json!("block"),
            7 => json!([]),
            8 => json!({}),
            9 => json!(true),
            10 => json!(47),
            11 => json!(255),
            12 => Value::Array(vec![value.clone(); 3]),
            _ => json!((1_u64 << 62) + 1),
        };
        return true;
    }
    *place -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| change(item, place, damage)),
        Value::Object(members) => members
            .values_mut()
            .any(|member| change(member, place, damage)),
        _ => false,
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let mut session = Watch::new(Rules::default());
    for key in 0..60 {
        let judgement = session.before(&Call::new(key, key));
        session.after(judgement.handle, Outcome::ok(key));
    }
    let good = serde_json::to_value(&session).unwrap();
    let with = |pointer: &str, value: Value| {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        serde_json::from_value::<Watch>(document).map_err(|error| error.to_string())
    };
    let refused = |pointer: &str, value: Value| with(pointer, value).err().unwrap();
    let entries = good
        .pointer("/memory/progress/entries")
        .unwrap()
        .as_array()
        .unwrap();
    assert_eq!(entries.len(), 49);
    let too_many = Value::Array(entries.iter().chain(entries).cloned().collect());
    assert_eq!(
        refused("/memory/progress/entries", too_many),
        "too many entries"
    );
    assert_eq!(
        refused("/memory/progress/head", json!(3)),
        "sequence number out of range"
    );
    assert_eq!(refused("/version", json!(2)), "snapshot of another version");
    assert_eq!(
        refused("/rules/mode", json!("cycle")),
        "memory of another mode"
    );
    assert_eq!(
        refused("/ordinal", json!(u64::MAX)),
        "sequence number out of range"
    );
    assert_eq!(
        refused("/memory/progress/polls", json!([])),
        "wrong number of polls"
    );
    assert_eq!(
        refused("/memory/progress/tools", json!([7])),
        "no such tool"
    );
    let same = with("/rules/window", json!(10)).unwrap();
    assert_eq!(serde_json::to_value(&same).unwrap(), good);
}

/// A key as hosts have it: hex.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(into = "String", try_from = "String")]
struct Hex<const N: usize>([u8; N]);

impl<const N: usize> From<Hex<N>> for String {
    fn from(hex: Hex<N>) -> Self {
        hex.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl<const N: usize> TryFrom<String> for Hex<N> {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut bytes = [0; N];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16)?;
        }
        Ok(Self(bytes))
    }
}

impl Key for Hex<32> {
    fn tag(&self) -> u64 {
        self.0.tag()
    }
}

#[test]
fn a_full_snapshot_is_little_more_than_its_keys_and_digests() {
    let mut session: Session<Hex<32>, Hex<16>> = Session::new(Rules::default());
    for n in 0..100 {
        let judgement = session.before(&Call::new(Hex([n; 32]), u64::MAX - u64::from(n % 5)));
        session.after(judgement.handle, Outcome::ok(Hex([n; 16])));
    }
    let text = serde_json::to_string(&session).unwrap();
    let hex = 49 * (64 + 32);
    assert!(text.len() < hex * 3 / 2, "{} bytes: {text}", text.len());
    let again: Session<Hex<32>, Hex<16>> = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
}

#[test]
fn other_options_after_a_restart() {
    let mut session = Watch::new(Rules::new(Mode::Repetition));
    for _ in 0..4 {
        let _ = session.before(&Call::new(1, 1));
    }
    let mut rules = Rules::new(Mode::Repetition);
    rules.window = 3;
    rules.halt_after = 1;
    let mut narrow = restart(&session).with_rules(rules);
    assert_eq!(*narrow.rules(), rules);
    // The run is remembered whatever the window.
    assert_eq!(narrow.before(&Call::new(1, 1)).count, 5);
    // Another mode remembers nothing.
    let mut other = session.with_rules(Rules::new(Mode::Cycle));
    assert_eq!(other.before(&Call::new(1, 1)).verdict, Verdict::Allow);
}
