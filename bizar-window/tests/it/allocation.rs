//! No allocation after construction, and none for construction either.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use bizar_window::{Call, Kind, Mode, Outcome, Rules, Session};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "the only way to see an allocation")]
// SAFETY: every call is passed on to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter any more.
        let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn a_session_never_allocates() {
    for mode in Mode::ALL {
        let count = allocations(|| {
            let mut session: Session<[u8; 32], [u8; 16]> = Session::new(Rules::new(*mode));
            for i in 0..5000_u32 {
                // Cycles, news, copies, polls, failures, missing and late results, turns.
                let n = (i % 7 * (1 + i / 900)) as u8;
                let mut call = Call::new([n; 32], u64::from(i % 11));
                call.kind = [Kind::Counted, Kind::Poll, Kind::ArgsMissing][(i % 13 % 3) as usize];
                call.round = (i % 2 == 0).then_some(u64::from(i / 6));
                let judgement = session.before(&call);
                let shape: u64 = session
                    .pattern(judgement.handle, judgement.period)
                    .map(|(tool, _)| tool)
                    .sum();
                std::hint::black_box((session.pending(), shape));
                let ok = [Some(true), Some(false), None][(i % 3) as usize];
                if i % 5 != 0 {
                    session.after(
                        judgement.handle,
                        Outcome {
                            ok,
                            digest: Some([n; 16]),
                            refused: i % 17 == 0,
                        },
                    );
                }
                if i % 1500 == 0 {
                    session.user_message();
                    session.idle();
                }
            }
        });
        assert_eq!(count, 0, "{mode}");
    }
}

#[test]
fn a_session_is_at_most_4_kib() {
    assert!(size_of::<Session<[u8; 32], [u8; 16]>>() <= 4096);
}
