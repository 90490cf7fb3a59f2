//! Takes the terminal over and panics: in the first thread, or with an argument in another one.

use std::{env, io, thread, time::Duration};

use bizar_top::terminal::Terminal;

#[expect(clippy::panic, reason = "it is what the program is for")]
fn main() -> io::Result<()> {
    let mut terminal = Terminal::enter(true)?;
    terminal.draw(|frame| {
        let area = frame.area();
        frame.buffer_mut().set_stringn(
            0,
            0,
            "about to panic",
            usize::from(area.width),
            ratatui::style::Style::new(),
        );
    })?;
    if env::args_os().len() > 1 {
        thread::spawn(|| panic!("in another thread"));
        // Drawn on for ever, if the panic did not end it.
        loop {
            thread::sleep(Duration::from_millis(10));
            terminal.clear()?;
        }
    }
    panic!("in the first thread");
}
