//! A thousand sessions.

use std::{
    fs,
    time::{Duration, Instant},
};

use bizar_log::Outcome;
use bizar_top::{
    app::App,
    model::Model,
    source::{Place, Source},
    view,
};
use ratatui::{Terminal, backend::TestBackend};
use serde_json::json;

use crate::{
    demo::{Agent, directory},
    rig::{NOW, PLAIN, line, press},
};

/// So many sessions with a log of 50 lines and the full document of a real guard.
fn many(sessions: usize) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(home.path(), "opencode", "ses_template", "{}", NOW - 300_000);
    for number in 0..60 {
        let _ = agent.call("read", json!({"path": number}), "text");
    }
    agent.guard.flush();
    let state = directory(home.path());
    let document = fs::read_to_string(state.join("ses_template.json")).unwrap();
    for number in 0..sessions {
        let id = format!("ses_{number:06}");
        fs::write(
            state.join(format!("{id}.json")),
            document.replace("ses_template", &id),
        )
        .unwrap();
        let lines: String = (0..50)
            .map(|back| line(NOW - 50_000 + back * 1000, &id, "read", Outcome::Ok))
            .collect();
        fs::write(state.join(format!("logs/{id}.log")), lines).unwrap();
    }
    fs::remove_file(state.join("ses_template.json")).unwrap();
    fs::remove_file(state.join("logs/ses_template.log")).unwrap();
    home
}

/// The best of some runs: what else the machine does only makes it longer.
fn best(mut run: impl FnMut()) -> Duration {
    let times = (0..15).map(|_| {
        let begun = Instant::now();
        run();
        begun.elapsed()
    });
    times.min().unwrap()
}

#[test]
fn a_thousand_sessions_are_drawn_without_lag() {
    let home = many(1000);
    let state = directory(home.path());
    let mut source = Source::new(Some(state.join("logs")), Some(state));
    let mut app = App::new(Model::default(), NOW);
    let begun = Instant::now();
    app.tell(source.scan());
    let start = begun.elapsed();
    assert_eq!(app.counts(), (1000, 1000, 0));

    let few = many(10);
    let state = directory(few.path());
    let mut few = App::new(Model::default(), NOW);
    few.tell(Source::new(Some(state.join("logs")), Some(state)).scan());

    let floor = frame(&mut few);
    let frame = frame(&mut app);
    let listing = best(|| app.tell(source.scan()));
    eprintln!(
        "1,000 sessions: start {start:?}, listing {listing:?}, frame {frame:?}, of ten {floor:?}"
    );
    // In step with their number it would be a hundred times; a ratio, since this is a debug build on a machine that does other things too.
    assert!(
        frame < floor * 25,
        "a frame takes {frame:?}, one of ten sessions {floor:?}"
    );
    assert!(
        frame < Duration::from_millis(500),
        "a frame takes {frame:?}"
    );
}

/// A key and a frame of 200 by 50.
fn frame(app: &mut App) -> Duration {
    let mut terminal = Terminal::new(TestBackend::new(200, 50)).unwrap();
    best(|| {
        press(app, "j");
        terminal
            .draw(|frame| view::draw(frame, app, PLAIN))
            .unwrap();
    })
}

#[test]
fn only_what_has_changed_is_read() {
    let home = many(100);
    let state = directory(home.path());
    let mut source = Source::new(Some(state.join("logs")), Some(state.clone()));
    let mut app = App::new(Model::default(), NOW);
    app.tell(source.scan());
    assert_eq!(source.files_read(), 200);
    app.tell(source.scan());
    assert_eq!(source.files_read(), 200, "nothing has changed");
    let path = state.join("logs/ses_000007.log");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text + &line(NOW, "ses_000007", "bash", Outcome::Error),
    )
    .unwrap();
    app.tell(source.scan());
    assert_eq!(source.files_read(), 201);
    assert_eq!(
        app.model.session("ses_000007").unwrap().tool(),
        Some("bash")
    );
    app.tell(source.look(Place::Logs, "ses_000008"));
    assert_eq!(source.files_read(), 202);
    assert_eq!(app.counts().0, 100);
}

#[test]
fn of_a_great_many_files_the_latest_are_shown_and_it_is_said() {
    let logs = tempfile::tempdir().unwrap();
    for number in 0..5001 {
        fs::write(logs.path().join(format!("s{number}.log")), "").unwrap();
    }
    let mut model = Model::default();
    model.tell(Source::new(Some(logs.path().to_owned()), None).scan());
    assert_eq!(model.sessions().count(), 5000);
    let note = format!(
        "logs: {} has 5001 files: the 5000 that changed last are shown",
        logs.path().display()
    );
    assert!(model.notes().contains(&note), "{:?}", model.notes());
}
