//! The command line.

use std::{
    env, fs,
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use bizar_config::{CheckedPath, Environment, Sources, resolve};
use clap::{Parser, ValueEnum};

use crate::{
    app::{App, Sort},
    live::{self, End, How},
    model::Model,
    plain,
    source::Source,
    standing::Ladders,
    view::Theme,
};

/// Shows agents' sessions and background agents, live. It reads what the loop guard has written, and writes nothing.
#[derive(Debug, Parser)]
#[command(name = "bizar-top", version, after_help = AFTER_HELP)]
struct Arguments {
    /// The directory of the logs [default: logDir of the options]
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,

    /// The directory of the state documents; background agents are in its `bg` [default: stateDir of the options]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// Print a plain table and exit
    #[arg(long, conflicts_with = "json")]
    once: bool,

    /// Print the same as one JSON object and exit
    #[arg(long)]
    json: bool,

    /// The order of the sessions
    #[arg(long, value_enum, default_value_t = Order::Trouble)]
    sort: Order,

    /// Only rows with this text in id, host, agent, tool, verdict or status
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,

    /// Let the mouse select, open and scroll (the terminal's own selection then needs shift)
    #[arg(long)]
    mouse: bool,

    /// List the directories every second instead of listening to inotify, as for network file systems
    #[arg(long)]
    poll: bool,

    /// When to use colours; auto: in a terminal, unless NO_COLOR is set
    #[arg(long, value_enum, default_value_t = Colour::Auto)]
    color: Colour,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Order {
    Trouble,
    Activity,
    Rate,
    Age,
    Name,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(code) => code,
        // Whoever read the table has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let is_live = !arguments.once && !arguments.json;
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    if is_live && (!io::stdout().is_terminal() || is_dumb) {
        say("no terminal to draw on: try --once or --json");
        return Ok(ExitCode::from(2));
    }
    let home = env::home_dir().filter(|home| home.is_absolute());
    let mut notes = Vec::new();
    let file = home
        .as_deref()
        .and_then(|home| options_file(home, &mut notes));
    let environment = Environment::from_pairs(env::vars_os());
    let resolved = resolve(Sources {
        home: home.as_deref(),
        file: file.as_deref(),
        env: environment.clone(),
        ..Sources::default()
    });
    let about_directories = resolved
        .notes
        .iter()
        .filter(|note| ["logDir", "stateDir"].contains(&note.option.as_str()));
    notes.extend(about_directories.map(ToString::to_string));
    let logs = directory(
        &arguments.logs,
        resolved.options.log_dir.as_ref(),
        &mut notes,
    );
    let state = directory(
        &arguments.state,
        resolved.options.state_dir.as_ref(),
        &mut notes,
    );

    let mut source = Source::new(logs, state);
    let mut model = Model::new(Ladders::new(home, file, environment));
    model.note(notes);
    let mut app = App::new(model, now());
    app.sort = arguments.sort.into();
    app.filter.clone_from(&arguments.filter);
    if is_live {
        let has_colour = match arguments.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        // It would look at NO_COLOR itself, whatever was asked for.
        ratatui::crossterm::style::force_color_output(has_colour);
        let how = How {
            theme: Theme { has_colour },
            has_mouse: arguments.mouse,
            is_polling: arguments.poll,
        };
        let end = live::run(&mut app, &mut source, how, now)?;
        return Ok(left(&end));
    }
    app.tell(source.scan());
    let mut out = io::BufWriter::new(io::stdout().lock());
    if arguments.json {
        plain::json(&mut out, &app)?;
    } else {
        plain::table(&mut out, &app)?;
    }
    out.flush()?;
    if !arguments.json {
        for note in app.model.notes() {
            say(&note);
        }
    }
    Ok(ExitCode::from(u8::from(app.model.is_blind())))
}

/// Ends as the signal would have ended the process, so that whoever sent it sees that.
fn left(end: &End) -> ExitCode {
    #[cfg(unix)]
    if let End::Signal(signal) = end {
        let _ = signal_hook::low_level::emulate_default_handler(*signal);
    }
    let _ = end;
    ExitCode::SUCCESS
}

/// What the command line says, or else the options.
fn directory(
    given: &Option<PathBuf>,
    option: Option<&CheckedPath>,
    notes: &mut Vec<String>,
) -> Option<PathBuf> {
    if given.is_some() {
        return given.clone();
    }
    let option = option?;
    match option.check() {
        Ok(path) => Some(path.to_owned()),
        Err(refused) => {
            notes.push(format!("{}: {refused}", option.as_path().display()));
            None
        }
    }
}

fn options_file(home: &Path, notes: &mut Vec<String>) -> Option<String> {
    let path = home.join(".config/bizarharness/options.json");
    // A device may never end, and a pipe waits for somebody who writes.
    if fs::metadata(&path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        notes.push(format!("{}: is not a file", path.display()));
        return None;
    }
    match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                notes.push(format!("{}: {}", path.display(), error.kind()));
            }
            None
        }
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

fn say(text: &str) {
    let text = crate::text::safe(text);
    let _ = writeln!(io::stderr(), "bizar-top: {text}");
}

impl From<Order> for Sort {
    fn from(order: Order) -> Self {
        match order {
            Order::Trouble => Self::Trouble,
            Order::Activity => Self::Activity,
            Order::Rate => Self::Rate,
            Order::Age => Self::Age,
            Order::Name => Self::Name,
        }
    }
}

const AFTER_HELP: &str = "\
Exit code: 0; 1 if a directory is there and cannot be read (with --once and --json); 2 for a wrong command line or no terminal.
Environment: NO_COLOR, TERM, HOME.";
