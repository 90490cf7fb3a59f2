//! What the tests share.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use bizar_log::{Entry, Outcome, ShortFingerprint};
use bizar_top::{
    app::App,
    model::Model,
    source::Source,
    view::{self, Theme},
};
use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::Buffer,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
};
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

/// The time in all tests that have one: 2026-06-17 14:30 UTC.
pub(crate) const NOW: i64 = 1_781_706_600_000;

pub(crate) const PLAIN: Theme = Theme { has_colour: false };

/// The demo's home directory, as at [`NOW`].
pub(crate) fn demo() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    crate::demo::make(home.path(), NOW).unwrap();
    home
}

/// The directories below a home directory.
pub(crate) fn source(home: &Path) -> Source {
    let state = crate::demo::directory(home);
    Source::new(Some(state.join("logs")), Some(state))
}

/// Everything that is on disk, as at [`NOW`].
pub(crate) fn app(home: &Path) -> App {
    let mut app = App::new(Model::default(), NOW);
    app.watching = "inotify";
    app.tell(source(home).scan());
    app
}

/// Draws once; the buffer tells the styles too.
pub(crate) fn draw(app: &mut App, columns: u16, rows: u16, theme: Theme) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal
        .draw(|frame| view::draw(frame, app, theme))
        .unwrap();
    terminal.backend().buffer().clone()
}

/// The text of the whole screen, without blanks at the ends of lines.
pub(crate) fn screen(app: &mut App, columns: u16, rows: u16) -> String {
    text(&draw(app, columns, rows, PLAIN))
}

pub(crate) fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let mut line = String::new();
        let mut x = 0;
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            // The second half of a wide character is no character.
            x += u16::try_from(symbol.width()).unwrap().max(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

pub(crate) fn press(app: &mut App, keys: &str) {
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            c => KeyCode::Char(c),
        };
        app.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

/// A line of a log, with its line feed.
pub(crate) fn line(at: i64, session: &str, tool: &str, outcome: Outcome) -> String {
    let short = ShortFingerprint::from_bytes([1, 2, 3, 4, 5, 6]);
    let duration = std::time::Duration::from_millis(45);
    let entry = Entry::new(at, session, tool, short, outcome, duration);
    format!("{entry}\n")
}

/// The program, in a clean environment with this home directory.
pub(crate) fn program(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bizar-top"));
    command
        .env_clear()
        .env("HOME", home)
        .env("TERM", "xterm-256color");
    command
}

pub(crate) fn run(command: &mut Command) -> (String, String, Option<i32>) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    (
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
        status.code(),
    )
}

/// What became of a program in a real pseudo-terminal.
pub(crate) struct Seen {
    pub(crate) screens: Vec<String>,
    /// The exit code; negative: the signal.
    pub(crate) code: i64,
    /// Line settings are as before, on the main screen, with a cursor and without the mouse.
    pub(crate) is_restored: bool,
    /// Every byte that came.
    pub(crate) raw: String,
}

/// Runs a program in a pseudo-terminal of 80 columns and 24 rows, made by `tests/drive.py`. `None` = said NOT RUN.
pub(crate) fn in_terminal(program: &Command, steps: &Value) -> Option<Seen> {
    let python = tool("python3");
    let is_needed = env::var_os("CI").is_some();
    assert!(
        python.is_some() || !is_needed,
        "CI is set, and python3 is missing"
    );
    let python = python?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drive.py");
    let mut command = Command::new(python);
    command
        .arg(script)
        .args(["80", "24", &steps.to_string(), "--"]);
    command.arg(program.get_program()).args(program.get_args());
    command.env_clear();
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let (stdout, stderr, code) = run(&mut command);
    assert_eq!(code, Some(0), "{stderr}");
    let seen: Value = serde_json::from_str(&stdout).unwrap();
    let screens = seen["screens"].as_array().unwrap().iter();
    let modes = &seen["modes"];
    let is_off = |mode: &str| modes[mode] == Value::Bool(false);
    Some(Seen {
        screens: screens
            .map(|screen| screen.as_str().unwrap().to_owned())
            .collect(),
        code: seen["code"].as_i64().unwrap(),
        is_restored: seen["restored"] == Value::Bool(true)
            && ["1049", "1000", "1002", "1003", "1006"]
                .into_iter()
                .all(is_off)
            && modes["25"] == Value::Bool(true),
        raw: seen["raw"].as_str().unwrap().to_owned(),
    })
}

/// A program that the machine may lack, which is said loudly.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|candidate| fs::metadata(candidate).is_ok_and(|found| found.is_file()));
    if found.is_none() {
        eprintln!("\n***** NOT RUN: {name} is missing *****\n");
    }
    found
}
