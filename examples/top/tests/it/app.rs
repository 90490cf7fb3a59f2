//! Keys and the mouse: filter, sort, pause, details.

use bizar_top::app::{Flow, Page, Sort, Table};
use ratatui::{
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    layout::Position,
};

use crate::rig::{NOW, app, demo, press, screen};

fn ids(app: &bizar_top::app::App) -> Vec<&str> {
    let shown = app.shown_sessions();
    shown.into_iter().map(|session| session.id()).collect()
}

#[test]
fn the_filter_is_typed_kept_and_cleared() {
    let home = demo();
    let mut app = app(home.path());
    press(&mut app, "/CLAUDE");
    assert_eq!(ids(&app), ["c0ffee12-77aa-4b1e-9d20-5d1f0e6ab3c4"]);
    // Keys are letters while it is typed.
    press(&mut app, "q?s p\u{8}\u{8}\u{8}\u{8}\u{8}\n");
    assert_eq!(
        (app.filter.as_str(), app.is_typing, app.is_paused),
        ("CLAUDE", false, false)
    );
    press(&mut app, "\u{1b}");
    assert_eq!(ids(&app).len(), 8);
    press(&mut app, "/escalate\n");
    assert_eq!(
        ids(&app),
        ["ses_7Hd9pZrYwK"],
        "verdicts can be filtered for"
    );
    press(&mut app, "\u{1b}/nothing has this");
    assert!(screen(&mut app, 80, 24).contains("nothing has this text in it"));
    press(&mut app, "\u{1b}/explore\n");
    assert_eq!(app.shown_instances().len(), 1, "and agents");
}

#[test]
fn every_order_and_its_reverse() {
    let home = demo();
    let mut app = app(home.path());
    let worst_first = [
        "ses_1Qa2Ws3EdR",
        "019b2f6c-3d5a-7e01-8a44-b0c1d2e3f405",
        "ses_0OpLiKuJyH",
        "ses_7Hd9pZrYwK",
        "c0ffee12-77aa-4b1e-9d20-5d1f0e6ab3c4",
        "ses_9XcVbNmQwE",
        "ses_5Fb3kQvTzA",
        "ses_2Jw8LmNcXe",
    ];
    assert_eq!(ids(&app), worst_first);
    press(&mut app, "r");
    assert_eq!(ids(&app).first(), worst_first.last());
    press(&mut app, "rs");
    assert_eq!(app.sort, Sort::Activity);
    assert_eq!(
        ids(&app)[..3],
        [
            "c0ffee12-77aa-4b1e-9d20-5d1f0e6ab3c4",
            "ses_5Fb3kQvTzA",
            "019b2f6c-3d5a-7e01-8a44-b0c1d2e3f405"
        ]
    );
    press(&mut app, "s");
    assert_eq!((app.sort, ids(&app)[0]), (Sort::Rate, "ses_5Fb3kQvTzA"));
    press(&mut app, "s");
    assert_eq!((app.sort, ids(&app)[0]), (Sort::Age, "ses_9XcVbNmQwE"));
    press(&mut app, "s");
    assert_eq!(
        (app.sort, ids(&app)[0]),
        (Sort::Name, "019b2f6c-3d5a-7e01-8a44-b0c1d2e3f405")
    );
    press(&mut app, "s");
    assert_eq!(app.sort, Sort::Trouble);
}

#[test]
fn the_selection_stays_with_its_row_when_the_order_changes() {
    let home = demo();
    let mut app = app(home.path());
    press(&mut app, "jjj");
    let selected = app.sessions.selected.clone();
    assert_eq!(selected.as_deref(), Some("ses_7Hd9pZrYwK"));
    press(&mut app, "sssr");
    assert_eq!(app.sessions.selected, selected);
    press(&mut app, "\n");
    assert!(screen(&mut app, 80, 24).contains("session           ses_7Hd9pZrYwK"));
    press(&mut app, "\u{1b}g");
    let first = ids(&app)[0].to_owned();
    assert_eq!(app.sessions.selected.as_deref(), Some(first.as_str()));
    press(&mut app, "G");
    let last = (*ids(&app).last().unwrap()).to_owned();
    assert_eq!(app.sessions.selected.as_deref(), Some(last.as_str()));
}

#[test]
fn pause_stops_the_clock_and_says_so() {
    let home = demo();
    let mut app = app(home.path());
    press(&mut app, "p");
    app.tick(NOW + 60_000);
    assert_eq!(app.now, NOW);
    assert!(screen(&mut app, 80, 24).contains("PAUSED"));
    press(&mut app, " ");
    app.tick(NOW + 60_000);
    assert_eq!(app.now, NOW + 60_000);
    assert!(!screen(&mut app, 80, 24).contains("PAUSED"));
}

#[test]
fn the_mouse_selects_opens_and_scrolls() {
    let home = demo();
    let mut app = app(home.path());
    screen(&mut app, 80, 24);
    let row = app.sessions.area.y;
    app.click(Position::new(5, row + 2));
    assert_eq!(app.sessions.selected.as_deref(), Some("ses_0OpLiKuJyH"));
    assert_eq!(app.page, Page::Tables);
    app.step(3);
    assert_eq!(app.sessions.selected.as_deref(), Some("ses_9XcVbNmQwE"));
    let row = app.instances.area.y;
    app.click(Position::new(5, row));
    assert_eq!((app.focus, app.page), (Table::Instances, Page::Tables));
    app.click(Position::new(5, row));
    assert_eq!(app.page, Page::Details);
    // Beside the rows, and where no row is.
    press(&mut app, "\u{1b}");
    for y in [0, 1, 12, 23, 200] {
        app.click(Position::new(5, y));
        assert_eq!(app.page, Page::Tables);
    }
}

#[test]
fn q_and_control_c_leave_from_anywhere() {
    let home = demo();
    let mut app = app(home.path());
    for keys in ["", "\n", "?", "\u{1b}/x"] {
        press(&mut app, keys);
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(app.press(control_c), Flow::Quit, "{keys:?}");
        if !app.is_typing {
            let q = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
            assert_eq!(app.press(q), Flow::Quit, "{keys:?}");
        }
    }
}

#[test]
fn details_of_a_session_that_is_gone() {
    let home = demo();
    let mut app = app(home.path());
    press(&mut app, "\n");
    app.tell([
        bizar_top::source::News::Gone {
            place: bizar_top::source::Place::Logs,
            name: "ses_1Qa2Ws3EdR".to_owned(),
        },
        bizar_top::source::News::Gone {
            place: bizar_top::source::Place::States,
            name: "ses_1Qa2Ws3EdR".to_owned(),
        },
    ]);
    assert!(screen(&mut app, 80, 24).contains("it is gone"));
}
