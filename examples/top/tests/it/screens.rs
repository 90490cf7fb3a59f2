//! Whole screens, as they are drawn.

use bizar_window::Verdict;
use ratatui::{
    layout::Position,
    style::{Color, Modifier},
};

use crate::rig::{NOW, app, demo, draw, press, screen, text};
use bizar_top::{app::App, model::Model, view::Theme};

#[track_caller]
fn assert_screen(name: &str, seen: &str, wanted: &str) {
    assert_eq!(seen, wanted, "{name}: the screen is now\n{seen}");
}

#[test]
fn sessions_and_background_agents_fit_80_by_24() {
    let home = demo();
    let seen = screen(&mut app(home.path()), 80, 24);
    assert_screen("tables-80", &seen, include_str!("screens/tables-80.txt"));
}

#[test]
fn a_wide_screen_shows_more() {
    let home = demo();
    let seen = screen(&mut app(home.path()), 132, 16);
    assert_screen("tables-132", &seen, include_str!("screens/tables-132.txt"));
}

#[test]
fn details_of_a_session() {
    let home = demo();
    let mut app = app(home.path());
    press(&mut app, "j\n");
    let seen = screen(&mut app, 80, 24);
    assert_screen("session-80", &seen, include_str!("screens/session-80.txt"));
}

#[test]
fn details_of_a_background_agent() {
    let home = demo();
    let mut app = app(home.path());
    press(&mut app, "\tj\n");
    let seen = screen(&mut app, 80, 24);
    assert_screen(
        "instance-80",
        &seen,
        include_str!("screens/instance-80.txt"),
    );
}

#[test]
fn help_names_every_key_and_column() {
    let home = demo();
    let mut app = app(home.path());
    press(&mut app, "?");
    let seen = screen(&mut app, 80, 40);
    assert_screen("help-80", &seen, include_str!("screens/help-80.txt"));
}

#[test]
fn an_empty_screen_says_why() {
    let mut app = App::new(Model::default(), NOW);
    let seen = screen(&mut app, 80, 6);
    assert_screen("empty-80", &seen, include_str!("screens/empty-80.txt"));
}

#[test]
fn every_size_is_drawn_and_nothing_panics() {
    let home = demo();
    let mut app = app(home.path());
    for keys in ["", "\n", "\u{1b}\t\n", "?", "?/filter is typed", "\n"] {
        press(&mut app, keys);
        for columns in (0..140).step_by(3) {
            for rows in [0, 1, 2, 4, 5, 6, 7, 9, 24, 60] {
                let seen = text(&draw(&mut app, columns, rows, Theme { has_colour: true }));
                assert_eq!(seen.lines().count(), usize::from(rows));
            }
        }
    }
}

#[test]
fn verdicts_are_coloured_only_where_colour_is_allowed() {
    let home = demo();
    let mut app = app(home.path());
    let coloured = draw(&mut app, 80, 24, Theme { has_colour: true });
    let at = |y| {
        let cell = &coloured[Position::new(46, y)];
        (cell.symbol().to_owned(), cell.fg)
    };
    // The first row is selected: it is reversed, and still red.
    assert!(
        coloured[Position::new(46, 2)]
            .modifier
            .contains(Modifier::REVERSED)
    );
    assert_eq!(at(2), ("h".to_owned(), Color::Red), "{}", Verdict::Halt);
    assert_eq!(at(3), ("b".to_owned(), Color::Red));
    assert_eq!(at(5), ("e".to_owned(), Color::Magenta));
    assert_eq!(at(6), ("w".to_owned(), Color::Yellow));
    assert_eq!(at(7), ("n".to_owned(), Color::Cyan));
    assert_eq!(at(8), ("a".to_owned(), Color::Reset));

    let plain = draw(&mut app, 80, 24, Theme { has_colour: false });
    let colours = plain.content.iter().map(|cell| (cell.fg, cell.bg));
    assert!(
        colours
            .into_iter()
            .all(|pair| pair == (Color::Reset, Color::Reset))
    );
    // Without colour the words are the same.
    assert_eq!(text(&plain), text(&coloured));
}

#[test]
fn the_readme_shows_the_present_view() {
    let readme = include_str!("../../README.md");
    let screens = [
        include_str!("screens/tables-80.txt"),
        include_str!("screens/session-80.txt"),
    ];
    for screen in screens {
        // Heads, hints and names; the times are those of the capture.
        for line in screen
            .lines()
            .filter(|line| !line.chars().any(|c| c.is_ascii_digit()))
        {
            assert!(readme.lines().any(|other| other == line), "{line}");
        }
    }
}
