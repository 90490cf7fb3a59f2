//! The command line.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bizar_fingerprint::Fingerprinter;
use bizar_window::Verdict;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    BUNDLED, Comparison, Html, Input, JsonLines, Labels, Mode, Note, Output, Replay, Seen, Style,
    Summary, Text, record, usual_places,
};

/// Recorded agent sessions in, verdicts out.
///
/// Reads sessions of Claude Code, Codex, Gemini CLI, Qwen Code, Copilot CLI, Cline, Kimi Code, droid, `opencode export` and its own JSON
/// Lines, told apart by content, and judges every call. Without a PATH it judges a session made for this program.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true, after_help = EXIT_CODES)]
struct Command {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    judge: JudgeArgs,
}

const EXIT_CODES: &str = "\
Exit code: 0; 1 if --fail-on was reached; 2 if a path cannot be opened, nothing in it could be used, or the command line is wrong.
Calls are numbered from 0 in every format. Nothing leaves the machine. Environment: HOME, CLAUDE_CONFIG_DIR, CODEX_HOME, NO_COLOR.";

#[derive(Debug, Subcommand)]
enum Other {
    /// Print the canonical form and the fingerprint of the arguments on standard input.
    Fingerprint(FingerprintArgs),
}

#[derive(Args, Debug)]
struct JudgeArgs {
    /// Files, directories (read recursively) or `-`, standard input; gzip is unpacked.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Whose rule judges.
    #[arg(long, value_enum, default_value_t, conflicts_with = "compare")]
    mode: Mode,
    /// What comes out.
    #[arg(long, value_enum, default_value_t, conflicts_with = "compare")]
    format: OutputFormat,
    /// Look where harnesses on this machine keep their sessions (below HOME, CLAUDE_CONFIG_DIR, CODEX_HOME).
    #[arg(long, conflicts_with = "paths")]
    find: bool,
    /// Judge by every rule and print one table.
    #[arg(long)]
    compare: bool,
    /// With --compare: places someone looked at, to say who was right.
    #[arg(long, value_name = "FILE", requires = "compare")]
    labels: Option<PathBuf>,
    /// Show the arguments of calls; they may hold secrets.
    #[arg(long)]
    show_args: bool,
    /// Exit with 1 if a call got this verdict or a higher one.
    #[arg(long, value_name = "LEVEL", value_enum, conflicts_with = "compare")]
    fail_on: Option<Level>,
}

#[derive(Args, Debug)]
struct FingerprintArgs {
    /// Name of the tool.
    #[arg(long, default_value = "", hide_default_value = true)]
    tool: String,
    /// Directory whose paths become relative.
    #[arg(long, value_name = "DIR")]
    worktree: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: a line for each call above allow, and a summary.
    Jsonl,
    /// A report to look at, in one file.
    Html,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Level {
    Notice,
    Warn,
    Escalate,
    Block,
    Halt,
}

impl From<Level> for Verdict {
    fn from(level: Level) -> Self {
        match level {
            Level::Notice => Self::Notice,
            Level::Warn => Self::Warn,
            Level::Escalate => Self::Escalate,
            Level::Block => Self::Block,
            Level::Halt => Self::Halt,
        }
    }
}

/// Runs the program with the process's arguments, streams and environment.
pub fn main() -> ExitCode {
    let command = Command::parse();
    let result = match command.other {
        Some(Other::Fingerprint(args)) => fingerprint(&args),
        None => judge(&command.judge),
    };
    match result {
        Ok(code) => code,
        // Whoever read our output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("output: {error}"));
            TROUBLE.into()
        }
    }
}

fn judge(args: &JudgeArgs) -> io::Result<ExitCode> {
    let input = match input(args) {
        Ok(input) => input,
        Err(text) => {
            complain(&text);
            return Ok(TROUBLE.into());
        }
    };
    let stdout = io::stdout();
    let is_terminal = stdout.is_terminal();
    let out = BufWriter::with_capacity(64 * 1024, stdout.lock());
    let progress = Progress::new(input.total_bytes());
    if args.compare {
        return compare(args, input, progress, out);
    }
    let replay = Replay::new(&[args.mode]);
    let summary = match args.format {
        OutputFormat::Text => {
            let colours =
                is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            let style = Style {
                colours,
                show_args: args.show_args,
            };
            let mut shown = Shown {
                output: Text::new(out, style),
                progress,
            };
            let summary = replay.run(input, &mut shown)?;
            shown.finish().finish(&summary)?;
            summary
        }
        OutputFormat::Jsonl => {
            let mut shown = Shown {
                output: JsonLines::new(out),
                progress,
            };
            let summary = replay.run(input, &mut shown)?;
            shown.finish().finish(&summary)?;
            summary
        }
        OutputFormat::Html if is_terminal => {
            complain("a report is for a browser: add `> report.html`");
            return Ok(TROUBLE.into());
        }
        OutputFormat::Html => {
            let mut shown = Shown {
                output: Html::new(out, args.mode, args.show_args)?,
                progress,
            };
            let summary = replay.run(input, &mut shown)?;
            shown.finish().finish(&summary)?;
            summary
        }
    };
    Ok(code(&summary, args.fail_on))
}

fn compare(
    args: &JudgeArgs,
    input: Input,
    progress: Progress,
    mut out: impl Write,
) -> io::Result<ExitCode> {
    let labels = args.labels.as_ref().map(|path| {
        let read = File::open(path).and_then(Labels::read);
        read.map_err(|error| format!("{}: {error}", path.display()))
    });
    let labels = match labels.transpose() {
        Ok(labels) => labels,
        Err(text) => {
            complain(&text);
            return Ok(TROUBLE.into());
        }
    };
    let mut shown = Shown {
        output: Comparison::new(&Mode::ALL, labels),
        progress,
    };
    let summary = Replay::new(&Mode::ALL).run(input, &mut shown)?;
    out.write_all(shown.finish().table(&summary).as_bytes())?;
    out.flush()?;
    Ok(code(&summary, None))
}

fn input(args: &JudgeArgs) -> Result<Input, String> {
    if args.find {
        let home = std::env::home_dir().ok_or("no home directory to look in")?;
        let places = usual_places(&home, |name| std::env::var_os(name));
        let input = Input::of_places(&places);
        if input.is_empty() {
            return Err("no recorded sessions in the usual places".to_owned());
        }
        return Ok(input);
    }
    Ok(match args.paths.as_slice() {
        [] => Input::of_bundled("bundled session", BUNDLED),
        paths => Input::of_paths(paths),
    })
}

fn code(summary: &Summary, fail_on: Option<Level>) -> ExitCode {
    if summary.trouble {
        return TROUBLE.into();
    }
    let reached = fail_on.is_some_and(|level| {
        let level = Verdict::from(level);
        Verdict::ALL
            .iter()
            .any(|verdict| *verdict >= level && summary.of(*verdict) > 0)
    });
    ExitCode::from(u8::from(reached))
}

fn fingerprint(args: &FingerprintArgs) -> io::Result<ExitCode> {
    let mut json = Vec::new();
    io::stdin().lock().read_to_end(&mut json)?;
    let mut fingerprinter = Fingerprinter::new();
    if let Some(worktree) = &args.worktree {
        fingerprinter = fingerprinter.worktree(worktree);
    }
    let json = if json.trim_ascii().is_empty() {
        b"{}".as_slice()
    } else {
        &json
    };
    let result = fingerprinter
        .canonical_text(&args.tool, json)
        .and_then(|text| Ok((text, fingerprinter.of_text(&args.tool, json)?)));
    match result {
        Ok((text, fingerprint)) => {
            let mut out = io::stdout().lock();
            out.write_all(&text)?;
            writeln!(out, "\n{fingerprint}")?;
            out.flush()?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            complain(&error.to_string());
            Ok(TROUBLE.into())
        }
    }
}

/// An output with its notes and its progress shown on standard error.
struct Shown<O> {
    output: O,
    progress: Progress,
}

impl<O> Shown<O> {
    fn finish(mut self) -> O {
        self.progress.clear();
        self.output
    }
}

impl<O: Output> Output for Shown<O> {
    fn call(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        self.progress.calls += 1;
        self.output.call(seen)
    }

    fn event(&mut self, session: &str, event: record::Event) -> io::Result<()> {
        self.output.event(session, event)
    }

    fn end_of_file(&mut self, file: &str) -> io::Result<()> {
        self.output.end_of_file(file)
    }

    fn note(&mut self, note: &Note) {
        self.progress.clear();
        complain(&note.to_string());
    }

    fn progress(&mut self, read: u64) {
        self.progress.show(read);
    }
}

/// How far it is, on a terminal, when it takes long enough to wonder.
struct Progress {
    total: u64,
    calls: u64,
    next: Option<Instant>,
    shown: bool,
}

impl Progress {
    fn new(total: u64) -> Self {
        let next = io::stderr()
            .is_terminal()
            .then(|| Instant::now() + Duration::from_millis(400));
        Self {
            total,
            calls: 0,
            next,
            shown: false,
        }
    }

    fn show(&mut self, read: u64) {
        let now = Instant::now();
        if self.next.is_none_or(|next| now < next) {
            return;
        }
        self.next = Some(now + Duration::from_millis(100));
        self.shown = true;
        let percent = (read.min(self.total) * 100)
            .checked_div(self.total)
            .unwrap_or(0);
        let _ = write!(
            io::stderr(),
            "\r\x1b[K{percent:>3} % · {} calls",
            self.calls
        );
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn complain(text: &str) {
    let text = crate::text::clean(text, 4096);
    let _ = writeln!(io::stderr(), "bizar-replay: {text}");
}

/// Something that was asked for could not be done.
const TROUBLE: u8 = 2;
