//! Once its buffers have grown, a fingerprint allocates nothing.

#![expect(
    unsafe_code,
    reason = "a global allocator is the only way to count allocations, and implementing one is unsafe"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use bizar_fingerprint::{Canonicaliser, Fingerprinter};
use serde_json::{Value, json};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches a thread-local without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(call: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    call();
    ALLOCATIONS.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(black_box(Box::new(1)))), 1);
}

#[test]
fn nothing_is_allocated_once_the_buffers_have_grown() {
    let args = json!({
        "command": "ls \"x\"\n", "description": "dropped", "path": "/w/a/../b", "other": "/etc/x", "float": -1.5e-9, "big": u64::MAX,
        "\u{1f600}": 1, "\u{fb33}": 2, "\n": 3, "nested": [{"z": 1, "a": {"y": [], "b": null}}, true],
    });
    // Out of order, so that it has to be sorted on every path.
    let Value::Object(members) = &args else {
        unreachable!("an object")
    };
    let members: Vec<String> = members
        .iter()
        .rev()
        .map(|(k, v)| format!("{}:{v}", json!(k)))
        .collect();
    let text = format!("{{{}}}", members.join(","));

    for mut fingerprinter in [
        Fingerprinter::new(),
        Fingerprinter::new().worktree("/w").keyed(&[1; 32]),
    ] {
        let first = fingerprinter.of_text("bash", &text).unwrap();
        let count = allocations(|| {
            assert_eq!(fingerprinter.of_text("bash", &text), Ok(first));
            assert_eq!(fingerprinter.of_value("bash", &args), Ok(first));
            black_box(fingerprinter.of_absent("bash"));
        });
        assert_eq!(count, 0);

        let call = ("some text", 1.5, [1_u64, 2], Some(true), ());
        let first = fingerprinter.of_serialize("bash", &call);
        assert_eq!(
            allocations(|| assert_eq!(fingerprinter.of_serialize("bash", &call), first)),
            0
        );
    }

    let mut canonicaliser = Canonicaliser::default();
    canonicaliser.from_text(&text).unwrap();
    assert_eq!(
        allocations(|| drop(black_box(canonicaliser.from_text(&text)))),
        0
    );
    assert_eq!(
        allocations(|| drop(black_box(canonicaliser.from_value(&args)))),
        0
    );
}
