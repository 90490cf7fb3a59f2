//! The terminal, taken over and given back.

use std::{
    io::{self, Stdout, Write as _},
    panic, process,
};

use ratatui::{
    Frame,
    backend::CrosstermBackend,
    crossterm::{
        cursor, event, execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};

/// The whole screen, until it is dropped.
#[derive(Debug)]
pub struct Terminal {
    screen: ratatui::Terminal<CrosstermBackend<Stdout>>,
}

impl Terminal {
    /// Takes the terminal over: another screen, no echo, keys at once, and the mouse if wanted.
    ///
    /// From now on a panic of any thread gives the terminal back, says what happened and ends the process.
    ///
    /// # Errors
    /// There is no terminal, or it does not do as it is told; it has then been given back.
    pub fn enter(has_mouse: bool) -> io::Result<Self> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
            // A thread less, and the view would go on over the message.
            process::exit(101);
        }));
        enable_raw_mode()?;
        let enter = || {
            let mut out = io::stdout();
            execute!(out, EnterAlternateScreen, cursor::Hide)?;
            if has_mouse {
                execute!(out, event::EnableMouseCapture)?;
            }
            ratatui::Terminal::new(CrosstermBackend::new(out))
        };
        match enter() {
            Ok(screen) => Ok(Self { screen }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Draws a frame; only what has changed is sent.
    ///
    /// # Errors
    /// What writing to the terminal says.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.screen.draw(draw).map(drop)
    }

    /// The next frame is sent as a whole.
    ///
    /// # Errors
    /// What writing to the terminal says.
    pub fn clear(&mut self) -> io::Result<()> {
        self.screen.clear()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back as it was. Trouble is passed over: there is nobody left to tell.
pub fn restore() {
    let mut out = io::stdout();
    let _ = execute!(
        out,
        event::DisableMouseCapture,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = out.flush();
    let _ = disable_raw_mode();
}
