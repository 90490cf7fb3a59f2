//! Events a second through parser and machine, beside the same bytes cut into lines.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and its input is its own"
)]

use std::{hint::black_box, time::Instant};

use bizar_background::{
    Answer, Effect, Event, InstanceId, Limits, Machine, Now, Spawn, sse::SseParser,
};

fn main() {
    let small = stream(200_000, "w ");
    let text = stream(2_000, &"lorem ipsum dolor sit amet ".repeat(400));
    println!(
        "{:<34} {:>12} {:>12} {:>10} {:>12}",
        "", "best ms", "median ms", "MB/s", "events/s"
    );
    for (name, bytes, events) in [
        ("small events", &small, 200_000),
        ("10 KiB of text each", &text, 2_000),
    ] {
        let floor = measure(&format!("{name}: lines (floor)"), bytes, events, || {
            lines(bytes)
        });
        let sse = measure(&format!("{name}: parser"), bytes, events, || parse(bytes));
        let all = measure(
            &format!("{name}: parser and machine"),
            bytes,
            events,
            || run(bytes),
        );
        println!(
            "{name}: parser / floor = {:.2}, parser and machine / floor = {:.2}\n",
            sse / floor,
            all / floor
        );
    }
    let times: Vec<_> = (0..9).map(|_| instances(1_000)).collect();
    let best = times
        .iter()
        .map(|time| time.0)
        .fold(f64::INFINITY, f64::min);
    let most = times.iter().map(|time| time.1).fold(0.0, f64::max);
    println!(
        "1000 instances, a whole run each, events in turn: {:.1} ms, {most:.0} events/s",
        best * 1e3
    );
}

/// A session's stream: busy, a message, and then text that grows.
fn stream(count: usize, piece: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut push = |kind: &str, properties: &str| {
        let line = format!(
            "data: {{\"directory\":\"/d\",\"payload\":{{\"id\":\"evt_22d8eee56001\",\"type\":\"{kind}\",\"properties\":{{{properties}}}}}}}\n\n"
        );
        bytes.extend_from_slice(line.as_bytes());
    };
    push(
        "session.status",
        "\"sessionID\":\"ses_0\",\"status\":{\"type\":\"busy\"}",
    );
    let info = "\"info\":{\"id\":\"msg_0\",\"sessionID\":\"ses_0\",\"role\":\"assistant\",\"time\":{\"created\":1}}";
    push("message.updated", info);
    for _ in 0..count {
        let delta = format!(
            "\"sessionID\":\"ses_0\",\"messageID\":\"msg_0\",\"partID\":\"prt_0\",\"field\":\"text\",\"delta\":\"{piece}\""
        );
        push("message.part.delta", &delta);
    }
    bytes
}

fn lines(bytes: &[u8]) -> usize {
    bytes
        .chunks(16 << 10)
        .map(|chunk| {
            chunk
                .split(|byte| *byte == b'\n')
                .map(|line| black_box(line).len())
                .sum::<usize>()
        })
        .sum()
}

fn parse(bytes: &[u8]) -> usize {
    let mut parser = SseParser::default();
    let mut sum = 0;
    for chunk in bytes.chunks(16 << 10) {
        parser.feed(chunk, |event| sum += black_box(event.data).len());
    }
    sum
}

fn run(bytes: &[u8]) -> usize {
    let (mut machine, now) = (machine(1), Now::default());
    let mut parser = SseParser::default();
    let mut count = 0;
    for chunk in bytes.chunks(16 << 10) {
        parser.feed(chunk, |data| {
            if let Ok(Some(event)) = Event::parse(&data.data) {
                machine.event(now, &event);
                count += 1;
            }
        });
    }
    count
}

/// A machine with running instances `ses_0`, `ses_1`, ...
fn machine(count: u16) -> Machine {
    let mut machine = Machine::new(Limits {
        live: usize::from(count),
        ..Limits::default()
    });
    for n in 0..count {
        let id = InstanceId::new(u64::from(n), [0; 10]);
        machine
            .spawn(Now::default(), id, Spawn::new("mimir", "go"))
            .unwrap();
        machine.answer(
            Now::default(),
            Answer::Created {
                id,
                session: Ok(format!("ses_{n}")),
            },
        );
        machine.answer(Now::default(), Answer::Prompted { id, taken: Ok(()) });
    }
    while machine.next_effect().is_some() {}
    machine
}

/// Seconds and events a second of many whole runs at once.
fn instances(count: u16) -> (f64, f64) {
    let mut machine = machine(count);
    let run = |n: u16| {
        let session = format!("ses_{n}");
        let event = |kind: &str, properties: &str| {
            format!(
                "{{\"type\":\"{kind}\",\"properties\":{{\"sessionID\":\"{session}\",{properties}}}}}"
            )
        };
        let mut events = vec![event("session.status", "\"status\":{\"type\":\"busy\"}")];
        for call in 0..40 {
            let part = format!(
                "\"part\":{{\"id\":\"p\",\"sessionID\":\"{session}\",\"messageID\":\"m\",\"type\":\"tool\",\"tool\":\"bash\",\"callID\":\"c{call}\",\"state\":{{\"status\":\"completed\",\"input\":{{}}}}}}"
            );
            events.push(event("message.part.updated", &part));
        }
        events.push(event(
            "session.error",
            "\"error\":{\"name\":\"APIError\",\"data\":{\"message\":\"x\"}}",
        ));
        events.push(event("session.status", "\"status\":{\"type\":\"idle\"}"));
        events
    };
    let runs: Vec<_> = (0..count).map(run).collect();
    let start = Instant::now();
    let mut sum = 0_u32;
    for turn in 0..runs.iter().map(Vec::len).max().unwrap_or_default() {
        for data in runs.iter().filter_map(|run| run.get(turn)) {
            machine.event(Now::default(), &Event::parse(data).unwrap().unwrap());
            // As the driver does it.
            machine.tick(Now::default());
            black_box(machine.next_tick());
            while let Some(effect) = machine.next_effect() {
                black_box::<Effect>(effect);
            }
            sum += 1;
        }
    }
    let time = start.elapsed().as_secs_f64();
    assert_eq!(machine.slots_taken(), 0, "every run has ended");
    (time, f64::from(sum) / time)
}

fn measure(name: &str, bytes: &[u8], events: u32, mut work: impl FnMut() -> usize) -> f64 {
    let mut times: Vec<f64> = (0..15)
        .map(|_| {
            let start = Instant::now();
            assert!(black_box(work()) > 0);
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (best, median) = (times.first().unwrap(), times.get(7).unwrap());
    let megabytes = f64::from(u32::try_from(bytes.len()).unwrap()) / 1e6;
    println!(
        "{name:<34} {:>12.2} {:>12.2} {:>10.0} {:>12.0}",
        best * 1e3,
        median * 1e3,
        megabytes / best,
        f64::from(events) / best
    );
    *best
}
