//! `install` and `uninstall`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::places::{self, Places};
use crate::plugin::{self, Found, Stamp};

#[derive(Args)]
struct Target {
    /// In .opencode of this directory, to be committed; the program is then found on PATH
    #[arg(long, conflicts_with = "global")]
    project: bool,
    /// In the user's configuration of opencode, for all projects (this is the default)
    #[arg(long)]
    global: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Also where it is refused; an edited plugin file is kept beside it as .bak
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub(crate) struct Install {
    #[command(flatten)]
    target: Target,
    /// What counts as going in circles; options.json and opencode.json can say otherwise
    #[arg(long)]
    mode: Option<Mode>,
    /// An agent that may start background agents; may be given more than once
    #[arg(long, value_name = "NAME")]
    background_agent: Vec<String>,
    /// Make opencode skip its own npm install, which can hang for ever without a network
    #[arg(long)]
    offline: bool,
}

#[derive(Args)]
pub(crate) struct Uninstall {
    #[command(flatten)]
    target: Target,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Progress,
    Repetition,
    Cycle,
}

impl Install {
    pub(crate) fn run(&self, places: &Places, out: &mut impl Write) -> io::Result<()> {
        let folder = places.folder(self.target.project)?;
        let main = plugin::examine(&folder.join(plugin::FILE))?;
        let files = [
            (
                folder.join(plugin::FILE),
                plugin::render(&self.stamp(places, &main)?),
            ),
            (folder.join(plugin::ENTRY), plugin::render_entry()),
        ];
        for (path, _) in &files {
            self.target.may_change(path)?;
        }
        for (path, text) in &files {
            if fs::read_to_string(path).is_ok_and(|old| old == *text) {
                writeln!(out, "already there: {}", path.display())?;
                continue;
            }
            self.target.keep_edits(path, out)?;
            if !self.target.dry_run {
                places::write(path, text)?;
            }
            writeln!(out, "{}: {}", self.target.done("written"), path.display())?;
        }
        if self.offline {
            let version = places.opencode().map(|(_, version)| version);
            let seed = Seed::new(&folder, version.as_deref().unwrap_or_default());
            match version {
                None => writeln!(
                    out,
                    "not seeded: opencode is not on PATH, so its version is unknown"
                )?,
                Some(_) if !seed.is_wanted() => {
                    writeln!(
                        out,
                        "not seeded: {} has packages or other plugins",
                        folder.display()
                    )?;
                }
                Some(_) => {
                    if !self.target.dry_run {
                        seed.plant()?;
                    }
                    writeln!(out, "{}: {}", self.target.done("seeded"), folder.display())?;
                }
            }
        } else if needs_npm(&folder) {
            writeln!(
                out,
                "at its next start opencode installs its own plugin package there with npm; without a network that \
                 takes a minute or hangs, and then --offline helps"
            )?;
        }
        writeln!(out, "it works from the next start of opencode on")
    }

    /// A global installation names this program; options of an earlier one stay unless given anew.
    fn stamp(&self, places: &Places, found: &Found) -> io::Result<Stamp> {
        let mut stamp = Stamp::default();
        if let Found::Ours { stamp: old, .. } = found {
            stamp.options.clone_from(&old.options);
        }
        if let Some(mode) = self.mode.as_ref().and_then(Mode::to_possible_value) {
            stamp
                .options
                .insert("loopMode".to_owned(), json!(mode.get_name()));
        }
        if !self.background_agent.is_empty() {
            stamp
                .options
                .insert("backgroundAgents".to_owned(), json!(self.background_agent));
        }
        if self.target.project {
            return Ok(stamp);
        }
        let program = std::env::current_exe()?;
        // A link on PATH survives an upgrade of what it points to.
        let linked = places
            .program("bizar-opencode")
            .filter(|path| path.canonicalize().ok() == program.canonicalize().ok());
        let program = linked.unwrap_or(program);
        let real = program.canonicalize().unwrap_or_else(|_| program.clone());
        if !self.target.force && (places::is_passing(&program) || places::is_passing(&real)) {
            return Err(io::Error::other(format!(
                "{} {}; --force takes it as it is",
                program.display(),
                places::PASSES
            )));
        }
        let name = program
            .to_str()
            .ok_or_else(|| io::Error::other("the path of this program is not Unicode"))?;
        stamp.program = name.to_owned();
        stamp.version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(stamp)
    }
}

impl Uninstall {
    pub(crate) fn run(&self, places: &Places, out: &mut impl Write) -> io::Result<()> {
        let folder = places.folder(self.target.project)?;
        let files = [plugin::ENTRY, plugin::FILE].map(|name| folder.join(name));
        for path in &files {
            self.target.may_change(path)?;
        }
        for path in &files {
            if plugin::examine(path)? == Found::Absent {
                writeln!(out, "not there: {}", path.display())?;
                continue;
            }
            self.target.keep_edits(path, out)?;
            if !self.target.dry_run {
                fs::remove_file(path)?;
                // Only if nothing else is in it.
                path.parent().map(fs::remove_dir);
            }
            writeln!(out, "{}: {}", self.target.done("removed"), path.display())?;
        }
        if Seed::is_planted(&folder) {
            if !self.target.dry_run {
                Seed::remove(&folder)?;
            }
            writeln!(
                out,
                "{}: what --offline had put into {}",
                self.target.done("removed"),
                folder.display()
            )?;
        }
        writeln!(
            out,
            "logs and state stay in ~/.cache/bizarharness, options in ~/.config/bizarharness"
        )
    }
}

impl Target {
    fn may_change(&self, path: &Path) -> io::Result<()> {
        let why = match plugin::examine(path)? {
            Found::Foreign => "was not written by this program: move it away first",
            Found::Ours {
                is_edited: true, ..
            } if !self.force => "was edited: with --force it goes and stays as a .bak file",
            _ => return Ok(()),
        };
        Err(io::Error::other(format!("{} {why}", path.display())))
    }

    fn keep_edits(&self, path: &Path, out: &mut impl Write) -> io::Result<()> {
        if !matches!(
            plugin::examine(path)?,
            Found::Ours {
                is_edited: true,
                ..
            }
        ) {
            return Ok(());
        }
        let kept = free_name(path);
        if !self.dry_run {
            fs::copy(path, &kept)?;
        }
        writeln!(out, "{}: {}", self.done("kept"), kept.display())
    }

    fn done(&self, what: &str) -> String {
        if self.dry_run {
            format!("would be {what}")
        } else {
            what.to_owned()
        }
    }
}

/// `NAME.ts.bak`, or the first number behind it that is free.
fn free_name(path: &Path) -> PathBuf {
    let name = |number: u32| {
        let number = if number == 0 {
            String::new()
        } else {
            number.to_string()
        };
        path.with_extension(format!("ts.bak{number}"))
    };
    let taken = (0..u32::MAX)
        .take_while(|&number| name(number).exists())
        .count();
    name(u32::try_from(taken).unwrap_or(u32::MAX))
}

/// Whether opencode will run npm in this folder before it loads plugins.
pub(crate) fn needs_npm(folder: &Path) -> bool {
    !folder.join("node_modules/@opencode-ai/plugin").exists() && !Seed::is_planted(folder)
}

/// Files that make opencode believe that its plugin package is installed.
struct Seed {
    folder: PathBuf,
    version: String,
}

impl Seed {
    fn new(folder: &Path, version: &str) -> Self {
        Self {
            folder: folder.to_owned(),
            version: version.to_owned(),
        }
    }

    /// Only where no packages are, and no plugin but ours.
    fn is_wanted(&self) -> bool {
        let plugins = ["plugin", "plugins"].map(|name| self.folder.join(name));
        let mut files = plugins
            .iter()
            .filter_map(|folder| fs::read_dir(folder).ok())
            .flatten()
            .flatten();
        let ours = [plugin::FILE, "plugins/bizar"].map(|name| self.folder.join(name));
        !Self::names(&self.folder).iter().any(|path| path.exists())
            && files.all(|file| ours.contains(&file.path()))
    }

    fn plant(&self) -> io::Result<()> {
        let [package, lock, modules] = Self::names(&self.folder);
        let [package_text, lock_text] = Self::texts(&self.version);
        fs::create_dir_all(modules)?;
        fs::write(package, package_text)?;
        fs::write(lock, lock_text)
    }

    /// Whether all of it is there and nothing was changed since.
    fn is_planted(folder: &Path) -> bool {
        let [package, lock, modules] = Self::names(folder);
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let text = read(&package);
        let version = text.split('"').nth(5).unwrap_or_default();
        [text.clone(), read(&lock)] == Self::texts(version)
            && fs::read_dir(modules).is_ok_and(|mut entries| entries.next().is_none())
    }

    fn remove(folder: &Path) -> io::Result<()> {
        let [package, lock, modules] = Self::names(folder);
        fs::remove_file(package)?;
        fs::remove_file(lock)?;
        fs::remove_dir(modules)
    }

    fn names(folder: &Path) -> [PathBuf; 3] {
        ["package.json", "package-lock.json", "node_modules"].map(|name| folder.join(name))
    }

    fn texts(version: &str) -> [String; 2] {
        let dependencies = json!({"@opencode-ai/plugin": version});
        let lock = json!({"lockfileVersion": 3, "packages": {"": {"dependencies": dependencies}}, "requires": true});
        [
            format!("{}\n", json!({"dependencies": dependencies})),
            format!("{lock}\n"),
        ]
    }
}
