//! `install` and `uninstall`.

use std::{
    env, fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use bizar_guard::Guard;

use crate::{
    command_line, files,
    harness::Harness,
    json_file,
    places::{self, Format, Place},
    settings, toml_file,
};

/// What `install` and `uninstall` are told.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) harness: Harness,
    pub(crate) in_project: bool,
    pub(crate) is_dry: bool,
}

impl Order {
    pub(crate) fn install(&self, out: &mut impl Write) -> io::Result<()> {
        let place = self.place()?;
        self.need_state()?;
        let program = self.program(out)?;
        let title = self.harness.facts().title;
        if self.harness == Harness::Cline {
            self.install_programs(&place.path, &program, out)?;
        } else {
            if self.harness == Harness::Goose {
                self.install_manifest(&place.path, out)?;
            }
            let old = read(&place.path)?;
            let new = match places::format(self.harness) {
                Format::Kimi => toml_file::install(self.harness, &old, &program),
                _ => json_file::install(self.harness, &old, &program),
            };
            let new = new.map_err(|why| refused(&place.path, &why))?;
            self.replace(&place.path, &old, &new, out)?;
        }
        for line in notices(self.harness) {
            writeln!(out, "{line}")?;
        }
        for line in twice(
            self.harness,
            &bizar_guard::home().unwrap_or_default(),
            Some(self),
        ) {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "it works from the next start of {title} on")
    }

    pub(crate) fn uninstall(&self, out: &mut impl Write) -> io::Result<()> {
        let place = self.place()?;
        if self.harness == Harness::Cline {
            self.uninstall_programs(&place.path, out)?;
        } else {
            let old = read(&place.path)?;
            let new = match places::format(self.harness) {
                Format::Kimi => toml_file::uninstall(&old),
                _ => json_file::uninstall(self.harness, &old),
            };
            let new = new.map_err(|why| refused(&place.path, &why))?;
            let backup = files::backup_name(&place.path);
            let is_bare = match places::format(self.harness) {
                Format::Kimi => new.trim().is_empty(),
                _ => json_file::is_empty(self.harness, &new),
            };
            if old != new && is_bare && !backup.exists() {
                // It was made by us.
                self.remove(&place.path, out)?;
            } else {
                self.replace(&place.path, &old, &new, out)?;
            }
            if old != new && !self.is_dry && files::read(&backup)? == new {
                fs::remove_file(&backup).ok();
            }
            if self.harness == Harness::Goose && !place.path.exists() {
                self.remove_manifest(&place.path, out)?;
            }
        }
        writeln!(
            out,
            "logs and state stay in ~/.cache/bizarharness, options in ~/.config/bizarharness"
        )
    }

    /// Without a place for sessions no call would be judged.
    fn need_state(&self) -> io::Result<()> {
        let mut setup = settings::setup(self.harness);
        if setup.options_mut().state_dir.is_some() {
            return Ok(());
        }
        let why = Guard::new(setup).notes().join("; ");
        let text =
            format!("there is no place to keep sessions in, so nothing would be judged: {why}");
        Err(io::Error::other(text))
    }

    fn place(&self) -> io::Result<Place> {
        if self.in_project {
            let title = self.harness.facts().title;
            return places::of_project(self.harness, &env::current_dir()?)
                .ok_or_else(|| io::Error::other(format!("{title} reads no hooks of a project")));
        }
        let home =
            bizar_guard::home().ok_or_else(|| io::Error::other("there is no home directory"))?;
        Ok(places::of_user(self.harness, &home))
    }

    /// How harnesses are to call this program: by its path; in a project, whose files go to other
    /// machines, by its name.
    fn program(&self, out: &mut impl Write) -> io::Result<String> {
        let path = env::current_exe()?;
        if self.in_project {
            if program_on_path().is_none() {
                writeln!(
                    out,
                    "bizar-hook is not on PATH, where a project's hook looks for it"
                )?;
            }
            return Ok("bizar-hook".to_owned());
        }
        // A link on PATH survives an upgrade of what it points to.
        let real = path.canonicalize().ok();
        let linked = program_on_path().filter(|linked| linked.canonicalize().ok() == real);
        let program = linked.unwrap_or(path);
        if is_passing(&program) {
            writeln!(
                out,
                "{} lies in a build folder or a temporary one: hooks stop working when it goes",
                program.display()
            )?;
        }
        if !command_line::is_quotable(&program) {
            let text = format!("{} cannot be written in a command line", program.display());
            return Err(io::Error::other(text));
        }
        Ok(program.to_string_lossy().into_owned())
    }

    fn replace(&self, path: &Path, old: &str, new: &str, out: &mut impl Write) -> io::Result<()> {
        let shown = path.display();
        if old == new {
            return writeln!(out, "nothing to do: {shown}");
        }
        if self.is_dry {
            writeln!(out, "would be written: {shown}")?;
            return new.lines().try_for_each(|line| writeln!(out, "    {line}"));
        }
        if let Some(copy) = files::back_up(path)? {
            writeln!(out, "kept: {}", copy.display())?;
        }
        files::write(path, new, false)?;
        writeln!(out, "written: {shown}")
    }

    fn remove(&self, path: &Path, out: &mut impl Write) -> io::Result<()> {
        if self.is_dry {
            return writeln!(out, "would be removed: {}", path.display());
        }
        fs::remove_file(path)?;
        writeln!(out, "removed: {}", path.display())
    }

    /// Goose wants to know whose hooks these are.
    fn install_manifest(&self, hooks: &Path, out: &mut impl Write) -> io::Result<()> {
        let path = manifest(hooks);
        let old = read(&path)?;
        // An edited one stays.
        let new = if old.is_empty() { MANIFEST } else { &old };
        self.replace(&path, &old, new, out)
    }

    fn remove_manifest(&self, hooks: &Path, out: &mut impl Write) -> io::Result<()> {
        let path = manifest(hooks);
        if read(&path)? == MANIFEST {
            self.remove(&path, out)?;
            for folder in hooks.ancestors().skip(1).take(2) {
                // Only if nothing else is in it.
                fs::remove_dir(folder).ok();
            }
        }
        Ok(())
    }

    fn install_programs(
        &self,
        folder: &Path,
        program: &str,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let events = places::events(self.harness);
        for event in events {
            let path = folder.join(event);
            if !is_our_program(&read(&path)?) {
                let why = "is another hook, and Cline runs one program an event: call ours from it";
                return Err(io::Error::other(format!("{} {why}", path.display())));
            }
        }
        for event in events {
            let path = folder.join(event);
            let command = command_line::command(program, self.harness, event);
            let new = format!("{SCRIPT}{command}\nexit 0\n");
            let old = read(&path)?;
            if old == new || self.is_dry {
                self.replace(&path, &old, &new, out)?;
            } else {
                files::write(&path, &new, true)?;
                writeln!(out, "written: {}", path.display())?;
            }
        }
        Ok(())
    }

    fn uninstall_programs(&self, folder: &Path, out: &mut impl Write) -> io::Result<()> {
        for event in places::events(self.harness) {
            let path = folder.join(event);
            let text = read(&path)?;
            if !text.is_empty() && is_our_program(&text) {
                self.remove(&path, out)?;
            } else {
                writeln!(out, "nothing to do: {}", path.display())?;
            }
        }
        Ok(())
    }
}

/// The events that a place has entries of ours for, with the command.
pub(crate) fn installed(harness: Harness, place: &Place) -> io::Result<Vec<(String, String)>> {
    if harness == Harness::Cline {
        let mut found = Vec::new();
        for event in places::events(harness) {
            let text = read(&place.path.join(event))?;
            let command = text.lines().find(|line| command_line::ours(line).is_some());
            found.extend(command.map(|command| ((*event).to_owned(), command.to_owned())));
        }
        return Ok(found);
    }
    let text = read(&place.path)?;
    let entries = match places::format(harness) {
        Format::Kimi => toml_file::entries(&text),
        _ => json_file::entries(harness, &text),
    };
    entries.map_err(|why| refused(&place.path, &why))
}

/// Where one call would be judged twice. `order` counts as done.
pub(crate) fn twice(harness: Harness, home: &Path, order: Option<&Order>) -> Vec<String> {
    let is_there = |harness: Harness, in_project: bool| {
        if order.is_some_and(|order| order.harness == harness && order.in_project == in_project) {
            return true;
        }
        let place = if in_project {
            let project = env::current_dir().ok().filter(|project| project != home);
            project.and_then(|project| places::of_project(harness, &project))
        } else {
            Some(places::of_user(harness, home))
        };
        place.is_some_and(|place| installed(harness, &place).is_ok_and(|found| !found.is_empty()))
    };
    let mut lines = Vec::new();
    let anywhere = |harness| is_there(harness, false) || is_there(harness, true);
    if matches!(harness, Harness::Claude | Harness::Cursor)
        && anywhere(Harness::Claude)
        && anywhere(Harness::Cursor)
    {
        lines.push(
            "installed for Claude Code and for Cursor: Cursor can run Claude Code's hooks too (its setting for \
             third-party skills) and would then count each call twice"
                .to_owned(),
        );
    }
    if is_there(harness, false) && is_there(harness, true) {
        lines.push(format!(
            "installed for the user and for this project: {} would count each call twice here",
            harness.facts().title
        ));
    }
    lines
}

/// What a user of this harness has to know.
pub(crate) fn notices(harness: Harness) -> &'static [&'static str] {
    match harness {
        Harness::Codex => &[
            "Codex runs no hook that you have not approved, and says nothing about it: start codex, type /hooks, and \
             approve the entries of bizar-hook. This program does not do it for you: the gate is yours. A changed entry \
             asks again.",
        ],
        Harness::Copilot => &["hooks of a repository run only where its folder is trusted"],
        Harness::Cline => &[
            "Cline cannot refuse one call: a block reaches the model as a note, a halt ends the run",
        ],
        Harness::Kimi => {
            &["Kimi has no place for warnings: the first that the model hears is the block"]
        }
        Harness::Goose => {
            &["Goose has no place for warnings: the first that the model hears is the block"]
        }
        Harness::Cursor => {
            &["Cursor has no place for a warning before a call: it comes with the result"]
        }
        _ => &[],
    }
}

/// This program on `PATH`.
pub(crate) fn program_on_path() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let name = format!("bizar-hook{}", env::consts::EXE_SUFFIX);
    env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&name))
        .find(|program| program.is_file())
}

fn is_passing(program: &Path) -> bool {
    let real = program
        .canonicalize()
        .unwrap_or_else(|_| program.to_owned());
    let folders = ["debug", "release"];
    real.starts_with(env::temp_dir())
        || real.parent().is_some_and(|folder| {
            folder
                .file_name()
                .is_some_and(|name| folders.iter().any(|own| name == *own))
        })
}

fn manifest(hooks: &Path) -> PathBuf {
    let plugin = hooks.ancestors().nth(2).unwrap_or(hooks);
    plugin.join("plugin.json")
}

/// An absent program is as good as ours.
fn is_our_program(text: &str) -> bool {
    text.is_empty() || text.starts_with(SCRIPT)
}

fn read(path: &Path) -> io::Result<String> {
    files::read(path).map_err(|error| refused(path, &error.to_string()))
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::other(format!("{} was left alone: {why}", path.display()))
}

const SCRIPT: &str = "#!/bin/sh\n# Made by bizar-hook install.\n";

const MANIFEST: &str = concat!(
    "{\n  \"name\": \"bizar-hook\",\n  \"version\": \"",
    env!("CARGO_PKG_VERSION"),
    "\",\n  \"description\": \"Keeps agents from going round in circles\"\n}\n"
);
