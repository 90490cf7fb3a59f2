//! The live view: waits for keys, changes, signals and the clock, and draws.

use std::{
    io,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use ratatui::{
    crossterm::event::{self, Event, KeyEventKind, MouseButton, MouseEventKind},
    layout::Position,
};

use crate::{
    app::{App, Flow},
    source::Source,
    terminal::Terminal,
    view::{self, Theme},
    watch::Watcher,
};

/// Why the view ended.
pub(crate) enum End {
    /// The user left, or the terminal is gone.
    Left,
    /// This signal came.
    #[cfg(unix)]
    Signal(i32),
}

/// How the view is wanted.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) theme: Theme,
    pub(crate) has_mouse: bool,
    /// The directories are listed every second.
    pub(crate) is_polling: bool,
}

/// Something to wake up for.
enum Wake {
    Changes,
    Key(Event),
    #[cfg(unix)]
    Signal(i32),
    TerminalGone,
}

/// Shows the view until the user leaves or a signal comes. The terminal has been given back when this returns.
pub(crate) fn run(
    app: &mut App,
    source: &mut Source,
    how: How,
    clock: impl Fn() -> i64,
) -> io::Result<End> {
    let (wakes, waking) = mpsc::channel();
    #[cfg(unix)]
    listen_to_signals(wakes.clone())?;
    let changes = wakes.clone();
    let watcher = if how.is_polling {
        Watcher::deaf()
    } else {
        Watcher::start(move || changes.send(Wake::Changes).is_ok())
    };
    watcher.cover(source.directories());
    let mut terminal = Terminal::enter(how.has_mouse)?;
    listen_to_keys(wakes)?;

    let mut data = Data {
        source,
        watcher,
        next: Instant::now(),
        next_scan: Instant::now(),
        next_cover: Instant::now(),
        is_changed: true,
    };
    loop {
        app.tick(clock());
        app.watching = if data.watcher.is_hearing() {
            "inotify"
        } else {
            "polling"
        };
        if !app.is_paused {
            data.refresh(app);
        }
        terminal.draw(|frame| view::draw(frame, app, how.theme))?;
        match wait(&waking, data.patience(app.is_paused), app, &mut data) {
            Some(end) => return Ok(end),
            None => continue,
        }
    }
}

/// The directories, and when to look at them again.
struct Data<'a> {
    source: &'a mut Source,
    watcher: Watcher,
    /// Not before this: reading takes at most a fifth of the time.
    next: Instant,
    next_scan: Instant,
    next_cover: Instant,
    is_changed: bool,
}

impl Data<'_> {
    fn refresh(&mut self, app: &mut App) {
        let begun = Instant::now();
        if begun < self.next {
            return;
        }
        if begun >= self.next_cover {
            self.next_cover = begun + SECOND;
            if self.watcher.cover(self.source.directories()) {
                self.next_scan = begun;
            }
        }
        let changes = if std::mem::take(&mut self.is_changed) {
            self.watcher.take()
        } else {
            return self.scan_if_due(app, begun);
        };
        if changes.is_unknown {
            self.next_scan = begun;
        }
        for (place, name) in &changes.files {
            let news = self.source.look(*place, name);
            app.tell(news);
        }
        self.scan_if_due(app, begun);
    }

    fn scan_if_due(&mut self, app: &mut App, begun: Instant) {
        if begun >= self.next_scan {
            app.tell(self.source.scan());
            // What inotify does not hear of, such as writers on other machines, is found by listing.
            let is_hearing = self.watcher.is_hearing();
            self.next_scan = begun + if is_hearing { NET } else { SECOND };
        }
        self.next = begun + (begun.elapsed() * 5).max(FRAME);
    }

    /// How long nothing has to be done if nothing happens.
    fn patience(&self, is_paused: bool) -> Duration {
        let now = Instant::now();
        let next = match (is_paused, self.is_changed) {
            (true, _) => return SECOND,
            (false, true) => self.next,
            (false, false) => self.next_cover.min(self.next_scan).max(self.next),
        };
        next.saturating_duration_since(now).min(SECOND)
    }
}

/// Waits for something, takes everything that has come, and says whether it is the end.
fn wait(
    waking: &Receiver<Wake>,
    patience: Duration,
    app: &mut App,
    data: &mut Data<'_>,
) -> Option<End> {
    let mut wake = match waking.recv_timeout(patience) {
        Ok(wake) => Some(wake),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => return Some(End::Left),
    };
    while let Some(woken) = wake {
        match woken {
            Wake::Changes => data.is_changed = true,
            Wake::Key(event) => {
                if take(event, app) == Flow::Quit {
                    return Some(End::Left);
                }
            }
            #[cfg(unix)]
            Wake::Signal(signal) => return Some(End::Signal(signal)),
            Wake::TerminalGone => return Some(End::Left),
        }
        wake = waking.try_recv().ok();
    }
    None
}

fn take(event: Event, app: &mut App) -> Flow {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => return app.press(key),
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                app.click(Position::new(mouse.column, mouse.row));
            }
            MouseEventKind::ScrollUp => app.step(-3),
            MouseEventKind::ScrollDown => app.step(3),
            _ => {}
        },
        // Resizes are seen when the next frame is drawn.
        _ => {}
    }
    Flow::Continue
}

fn listen_to_keys(wakes: Sender<Wake>) -> io::Result<()> {
    let listen = move || {
        while let Ok(event) = event::read() {
            if wakes.send(Wake::Key(event)).is_err() {
                return;
            }
        }
        let _ = wakes.send(Wake::TerminalGone);
    };
    thread::Builder::new()
        .name("keys".to_owned())
        .spawn(listen)
        .map(drop)
}

/// The first signal ends the view in order. The second one ends the process, even if the terminal takes no more output.
#[cfg(unix)]
fn listen_to_signals(wakes: Sender<Wake>) -> io::Result<()> {
    use ratatui::crossterm::terminal::disable_raw_mode;
    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGTERM},
        iterator::Signals,
        low_level::emulate_default_handler,
    };

    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let listen = move || {
        let mut is_first = true;
        for signal in signals.forever() {
            if std::mem::take(&mut is_first) && wakes.send(Wake::Signal(signal)).is_ok() {
                continue;
            }
            let _ = disable_raw_mode();
            let _ = emulate_default_handler(signal);
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(listen)
        .map(drop)
}

const FRAME: Duration = Duration::from_millis(200);
const SECOND: Duration = Duration::from_secs(1);

/// How often everything is listed although inotify tells of changes.
const NET: Duration = Duration::from_secs(10);
