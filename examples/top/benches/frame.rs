//! What a frame costs with a thousand sessions, beside one with ten.

use std::{
    hint::black_box,
    io::{self, Write as _},
    time::{Duration, Instant},
};

use bizar_log::{Entry, Outcome, ShortFingerprint};
use bizar_top::{
    app::App,
    model::Model,
    source::News,
    view::{self, Theme},
};
use ratatui::{Terminal, backend::TestBackend};

const NOW: i64 = 1_781_706_600_000;
const ROUNDS: usize = 51;

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let (_, floor) = frame(10)?;
    for sessions in [10, 1000, 5000] {
        let (median, best) = frame(sessions)?;
        let ratio = best.as_secs_f64() / floor.as_secs_f64();
        writeln!(
            out,
            "{sessions:>5} sessions: median {median:>10.1?}, best {best:>10.1?}, {ratio:.1} times the best of ten sessions"
        )?;
    }
    Ok(())
}

/// Median and best time of taking in a line, ordering the sessions and drawing them on 200 by 50.
fn frame(sessions: usize) -> io::Result<(Duration, Duration)> {
    let mut app = App::new(Model::default(), NOW);
    for number in 0..sessions {
        app.tell((0..50).map(|back| lines(number, NOW - 50_000 + back * 1000)));
    }
    let mut terminal = Terminal::new(TestBackend::new(200, 50)).map_err(io::Error::other)?;
    let mut times = Vec::with_capacity(ROUNDS);
    for (round, number) in (0..sessions).cycle().take(ROUNDS).enumerate() {
        let begun = Instant::now();
        app.tell([lines(number, NOW)]);
        app.tick(NOW + i64::try_from(round).unwrap_or(0) * 1000);
        terminal
            .draw(|frame| view::draw(frame, &mut app, Theme { has_colour: true }))
            .map_err(io::Error::other)?;
        black_box(&terminal);
        times.push(begun.elapsed());
    }
    times.sort();
    let median = times.get(ROUNDS / 2).copied().unwrap_or_default();
    Ok((median, times.first().copied().unwrap_or_default()))
}

fn lines(number: usize, at: i64) -> News {
    let name = format!("ses_{number:06}");
    let short = ShortFingerprint::from_bytes([1, 2, 3, 4, 5, 6]);
    let entry = Entry::new(
        at,
        &name,
        "read",
        short,
        Outcome::Ok,
        Duration::from_millis(45),
    );
    News::Lines {
        name,
        entries: vec![entry],
        bad_lines: 0,
    }
}
