use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A harness that tests run for real: one exact version from npm.
///
/// It is installed on first use under `target/testkit/` of this workspace and nowhere else, once
/// for all test processes: a file lock lets the others wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Client {
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
}

/// Why a client is not there.
#[derive(Debug)]
pub enum Missing {
    /// The folder for clients cannot be used.
    Io(io::Error),
    /// npm is not there, or says no.
    Npm(String),
    /// What was installed does not run as the version that was asked for.
    Version(String),
}

impl Client {
    /// Name of the npm package.
    #[must_use]
    pub fn package(self) -> &'static str {
        match self {
            Self::Codex => "@openai/codex",
            Self::Gemini => "@google/gemini-cli",
            Self::Opencode => "opencode-ai",
        }
    }

    /// The pinned version.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Self::Codex => "0.171.0",
            Self::Gemini => "0.61.0",
            Self::Opencode => "1.18.33",
        }
    }

    /// The program, or `None` after saying loudly on standard error that `test` was not run.
    ///
    /// # Panics
    ///
    /// With `CI` in the environment: there, a missing client is a failure.
    #[must_use]
    pub fn find(self, test: &str) -> Option<PathBuf> {
        match self.install() {
            Ok(program) => Some(program),
            #[expect(clippy::panic, reason = "fails the calling test on purpose")]
            Err(missing) if std::env::var_os("CI").is_some() => {
                panic!("{} {}: {missing}", self.package(), self.version())
            }
            Err(missing) => {
                // Not `eprintln!`: the test harness hides what that prints.
                let line = format!(
                    "\nNOT RUN: {test}: needs {} {}: {missing}\n\n",
                    self.package(),
                    self.version()
                );
                io::stderr().write_all(line.as_bytes()).ok();
                None
            }
        }
    }

    /// The program, installed if it is not there yet.
    ///
    /// # Errors
    ///
    /// See [`Missing`].
    pub fn install(self) -> Result<PathBuf, Missing> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/testkit");
        fs::create_dir_all(&folder).map_err(Missing::Io)?;
        let folder = folder.canonicalize().map_err(Missing::Io)?.join(format!(
            "{}-{}",
            self.program(),
            self.version()
        ));
        let program = folder.join("node_modules/.bin").join(self.program());
        fs::create_dir_all(&folder).map_err(Missing::Io)?;
        let lock = File::create(folder.join("lock")).map_err(Missing::Io)?;
        lock.lock().map_err(Missing::Io)?;
        let proof = folder.join("complete");
        if !proof.exists() {
            self.fetch(&folder)?;
            self.check(&program, &folder)?;
            fs::write(proof, self.version()).map_err(Missing::Io)?;
        }
        Ok(program)
    }

    fn program(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    fn fetch(self, folder: &Path) -> Result<(), Missing> {
        // Without it npm looks for a project in the folders above.
        fs::write(folder.join("package.json"), "{\"private\": true}\n").map_err(Missing::Io)?;
        let output = Command::new("npm")
            .args([
                "install",
                "--no-audit",
                "--no-fund",
                "--no-save",
                "--no-package-lock",
            ])
            .arg(format!("{}@{}", self.package(), self.version()))
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Missing::Npm(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        Err(Missing::Npm(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ))
    }

    fn check(self, program: &Path, folder: &Path) -> Result<(), Missing> {
        let output = Command::new(program)
            .arg("--version")
            .env("HOME", folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Missing::Version(error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if said.split_whitespace().next_back() == Some(self.version()) {
            Ok(())
        } else {
            Err(Missing::Version(said))
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot use the folder for clients: {error}"),
            Self::Npm(said) => write!(f, "npm cannot install it: {said}"),
            Self::Version(said) => write!(f, "the program says it is {said:?}"),
        }
    }
}

impl std::error::Error for Missing {}
