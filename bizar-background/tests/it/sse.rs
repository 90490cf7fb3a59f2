//! Events come out the same at every split of the bytes.

use bizar_background::sse::{SseEvent, SseParser};
use proptest::prelude::*;

type Seen = (String, String, String);

fn seen(chunks: &[&[u8]]) -> Vec<Seen> {
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    for chunk in chunks {
        parser.feed(chunk, |SseEvent { event, data, id }| {
            events.push((event.into_owned(), data.into_owned(), id.into_owned()));
        });
    }
    events
}

/// (name, bytes, events as type, data, id)
type Case = (
    &'static str,
    &'static [u8],
    &'static [(&'static str, &'static str, &'static str)],
);

const CASES: &[Case] = &[
    (
        "bom stripped once",
        b"\xef\xbb\xbfdata: a\n\n",
        &[("message", "a", "")],
    ),
    (
        "bom not stripped later",
        b"data: a\n\n\xef\xbb\xbfdata: b\n\n",
        &[("message", "a", "")],
    ),
    (
        "only the first of two boms",
        b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n",
        &[("message", "b", "")],
    ),
    (
        "half a bom is text",
        b"\xef\xbbdata: a\n\ndata: b\n\n",
        &[("message", "b", "")],
    ),
    ("lf", b"data: a\n\n", &[("message", "a", "")]),
    (
        "cr",
        b"data: a\r\rdata: b\r\r",
        &[("message", "a", ""), ("message", "b", "")],
    ),
    (
        "crlf",
        b"data: a\r\ndata: b\r\n\r\n",
        &[("message", "a\nb", "")],
    ),
    (
        "mixed line ends",
        b"data:x\r\ndata\ndata:y\r\n\r\n",
        &[("message", "x\n\ny", "")],
    ),
    ("data without colon", b"data\n\n", &[("message", "", "")]),
    ("data without value", b"data:\n\n", &[("message", "", "")]),
    (
        "two empty data lines",
        b"data\ndata\n\n",
        &[("message", "\n", "")],
    ),
    (
        "one leading space",
        b"data:  a\n\n",
        &[("message", " a", "")],
    ),
    ("a tab stays", b"data:\ta\n\n", &[("message", "\ta", "")]),
    ("no space", b"data:a\n\n", &[("message", "a", "")]),
    (
        "trailing space stays",
        b"data: a \n\n",
        &[("message", "a ", "")],
    ),
    (
        "comments",
        b": hi\n\n:\n\n:data: x\ndata: a\n\n",
        &[("message", "a", "")],
    ),
    (
        "no data no event",
        b"event: x\n\ndata: a\n\n",
        &[("message", "a", "")],
    ),
    (
        "type is for one event",
        b"event: x\ndata: a\n\ndata: b\n\n",
        &[("x", "a", ""), ("message", "b", "")],
    ),
    (
        "empty type",
        b"event:\ndata: a\n\n",
        &[("message", "a", "")],
    ),
    (
        "id stays",
        b"id: 1\ndata: a\n\ndata: b\n\n",
        &[("message", "a", "1"), ("message", "b", "1")],
    ),
    (
        "id is reset",
        b"id: 1\ndata: a\n\nid\ndata: b\n\n",
        &[("message", "a", "1"), ("message", "b", "")],
    ),
    (
        "id with nul",
        b"id: 1\nid: b\0d\ndata: a\n\n",
        &[("message", "a", "1")],
    ),
    (
        "id without data",
        b"id: 7\n\ndata: a\n\n",
        &[("message", "a", "7")],
    ),
    (
        "retry that is no number",
        b"retry: 1x\ndata: a\n\n",
        &[("message", "a", "")],
    ),
    (
        "unknown field",
        b"foo: 1\ndata: a\n\n",
        &[("message", "a", "")],
    ),
    (
        "field names have a case",
        b"Data: a\ndata: b\n\n",
        &[("message", "b", "")],
    ),
    (
        "space before a name",
        b" data: a\ndata: b\n\n",
        &[("message", "b", "")],
    ),
    (
        "unfinished event",
        b"data: a\n\ndata: b\n",
        &[("message", "a", "")],
    ),
    (
        "unfinished line",
        b"data: a\n\ndata: b",
        &[("message", "a", "")],
    ),
    (
        "utf-8",
        "data: hé你😀\n\n".as_bytes(),
        &[("message", "hé你😀", "")],
    ),
    (
        "bad utf-8",
        b"data: a\xffb\n\ndata: c\n\n",
        &[("message", "a\u{fffd}b", ""), ("message", "c", "")],
    ),
    ("nul in data", b"data:a\0b\n\n", &[("message", "a\0b", "")]),
    (
        "other separators",
        "data: a\u{2028}b\u{85}c\n\n".as_bytes(),
        &[("message", "a\u{2028}b\u{85}c", "")],
    ),
    (
        "colons in json",
        b"data: {\"a\":\"b:c\"}\n\n",
        &[("message", "{\"a\":\"b:c\"}", "")],
    ),
    (
        "blank lines",
        b"\n\n\ndata: a\n\n\n\ndata: b\n\n",
        &[("message", "a", ""), ("message", "b", "")],
    ),
    (
        "crlf blank lines",
        b"data: a\r\n\r\n\r\ndata: b\r\n\r\n",
        &[("message", "a", ""), ("message", "b", "")],
    ),
];

#[test]
fn cases_at_every_split() {
    for (name, bytes, expected) in CASES {
        let expected: Vec<Seen> = expected
            .iter()
            .map(|(event, data, id)| ((*event).into(), (*data).into(), (*id).into()))
            .collect();
        for size in 1..=bytes.len() {
            let chunks: Vec<_> = bytes.chunks(size).collect();
            assert_eq!(seen(&chunks), expected, "{name}: chunks of {size}");
        }
        for split in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(split);
            assert_eq!(seen(&[head, tail]), expected, "{name}: split at {split}");
            assert_eq!(
                seen(&[head, b"", tail]),
                expected,
                "{name}: empty chunk at {split}"
            );
        }
    }
}

#[test]
fn sse_02_cr_and_lf_in_different_chunks() {
    let chunks: [&[u8]; 5] = [b"data: A\r\n", b"data: B\r", b"\n", b"data: C\r\n", b"\n"];
    assert_eq!(
        seen(&chunks),
        [("message".into(), "A\nB\nC".into(), String::new())]
    );
}

#[test]
fn sse_05_an_event_without_data_is_none() {
    assert_eq!(seen(&[b"event: x\n\n"]), []);
}

#[test]
fn bg_088_utf_8_is_read_per_event() {
    let bytes = "data: {\"delta\":\"grüße 😀\"}\n\n".as_bytes();
    for chunk in bytes.chunks(1).collect::<Vec<_>>().windows(2) {
        assert_eq!(chunk[0].len(), 1);
    }
    let chunks: Vec<_> = bytes.chunks(1).collect();
    assert_eq!(seen(&chunks)[0].1, "{\"delta\":\"grüße 😀\"}");
}

#[test]
fn bg_089_cr_and_lf_split_by_a_chunk() {
    assert_eq!(
        seen(&[b"data: a\r", b"\n\r\n"]),
        [("message".into(), "a".into(), String::new())]
    );
}

#[test]
fn retry_is_read() {
    let mut parser = SseParser::default();
    parser.feed(b"retry: 2500\nretry:\nretry: 1x\n", |_| panic!("no event"));
    assert_eq!(parser.retry_ms(), Some(2500));
}

#[test]
fn an_oversized_event_is_dropped_and_the_next_is_not() {
    for size in [1, 7, 64, 4096] {
        let mut parser = SseParser::new(100);
        let long = format!("data: {}\ndata: x\n\ndata: ok\n\n", "a".repeat(1000));
        let many = format!("{}\ndata: last\n\n", "data: 0123456789\n".repeat(20));
        let mut events = Vec::new();
        for chunk in (long + &many).as_bytes().chunks(size) {
            parser.feed(chunk, |event| events.push(event.data.into_owned()));
        }
        assert_eq!(events, ["ok", "last"], "chunks of {size}");
        assert_eq!(parser.dropped(), 2);
    }
}

#[test]
fn a_line_of_4_mib_takes_linear_work() {
    // Not a matter of time but of steps: a quadratic parser would copy 4 MiB a thousand times.
    let line = format!("data: {}\n\n", "x".repeat(4 << 20));
    let mut parser = SseParser::default();
    let mut length = 0;
    let start = std::time::Instant::now();
    for chunk in line.as_bytes().chunks(4096) {
        parser.feed(chunk, |event| length = event.data.len());
    }
    assert_eq!(length, 4 << 20);
    let small = start.elapsed();
    let mut parser = SseParser::default();
    let start = std::time::Instant::now();
    for chunk in line.as_bytes().chunks(1 << 20) {
        parser.feed(chunk, |event| length = event.data.len());
    }
    let large = start.elapsed();
    assert!(
        small < large * 100 + std::time::Duration::from_secs(2),
        "{small:?} in 4 KiB, {large:?} in 1 MiB chunks"
    );
}

proptest! {
    #[test]
    fn chunks_change_nothing(
        bytes in proptest::collection::vec(
            prop_oneof![Just(b"data".to_vec()), Just(b": ".to_vec()), Just(b"\r".to_vec()), Just(b"\n".to_vec()),
                Just(b"\n\n".to_vec()), Just(b"id".to_vec()), Just(b"event".to_vec()), Just(b"\xef\xbb\xbf".to_vec()),
                proptest::collection::vec(any::<u8>(), 0..4)],
            0..40),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let bytes = bytes.concat();
        let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.sort_unstable();
        let mut chunks = Vec::new();
        let mut start = 0;
        for place in places {
            chunks.push(&bytes[start..place]);
            start = place;
        }
        chunks.push(&bytes[start..]);
        prop_assert_eq!(seen(&chunks), seen(&[&bytes]));
    }
}
