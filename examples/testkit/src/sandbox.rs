use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;
use crate::process::{Finished, Process};
use crate::server::ModelServer;

/// A home and a project of their own, in which a harness runs offline.
///
/// Programs started here see an environment of their own: nothing of the caller's but `PATH`, all
/// folders inside the sandbox, and every npm request refused at once.
#[derive(Debug)]
pub struct Sandbox {
    root: TempDir,
}

impl Sandbox {
    /// A fresh sandbox; the project is no git repository.
    ///
    /// # Errors
    ///
    /// When folders cannot be made.
    pub fn new() -> io::Result<Self> {
        let sandbox = Self {
            root: tempfile::Builder::new().prefix("bizar").tempdir()?,
        };
        for folder in [
            sandbox.home(),
            sandbox.project(),
            sandbox.root().join("tmp"),
        ] {
            fs::create_dir_all(folder)?;
        }
        Ok(sandbox)
    }

    /// A sandbox for a `static`, which is never dropped: its folder goes when the test process ends.
    ///
    /// # Errors
    ///
    /// As [`Self::new`], or when `sh` cannot be started.
    pub fn until_exit() -> io::Result<Self> {
        let mut sandbox = Self::new()?;
        sandbox.root.disable_cleanup(true);
        let leash = Command::new("/bin/sh")
            .args(["-c", "read -r _; sleep 1; rm -rf \"$0\""])
            .arg(sandbox.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        // The pipe closes with this process.
        std::mem::forget(leash);
        Ok(sandbox)
    }

    /// The folder that holds everything.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        // The temporary folder of some systems is itself a link.
        self.root
            .path()
            .canonicalize()
            .unwrap_or_else(|_| self.root.path().to_owned())
    }

    /// The home folder.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// The project folder, where programs start.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// Where opencode looks for its global configuration.
    #[must_use]
    pub fn opencode_config(&self) -> PathBuf {
        self.home().join(".config/opencode")
    }

    /// Everything that opencode has logged.
    #[must_use]
    pub fn opencode_log(&self) -> String {
        let folder = self.home().join(".local/share/opencode/log");
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        files
            .filter_map(|file| fs::read_to_string(file.path()).ok())
            .collect()
    }

    /// Makes the project a git repository, if `git` is there.
    #[must_use]
    pub fn git(&self) -> bool {
        let git = |args: &[&str]| {
            self.command(Path::new("git"))
                .args(args)
                .output()
                .is_ok_and(|output| output.status.success())
        };
        git(&["init", "-q"])
            && git(&[
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@localhost",
                "commit",
                "-q",
                "--allow-empty",
                "-m",
                "t",
            ])
    }

    /// Writes `opencode.json` so that opencode uses the model, with `more` merged over it.
    ///
    /// Also seeds the folder (see [`Self::seed`]).
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn configure_opencode(&self, model: &ModelServer, more: &Value) -> io::Result<()> {
        let mut config = json!({
            "$schema": "https://opencode.ai/config.json",
            "model": "mock/m",
            "small_model": "mock/m",
            "snapshot": false,
            "provider": {"mock": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Mock",
                "options": {"baseURL": format!("{}/v1", model.url()), "apiKey": "x"},
                "models": {"m": {"name": "m", "limit": {"context": 200_000, "output": 8000}, "tool_call": true, "reasoning": true}},
            }},
        });
        merge(&mut config, more);
        let folder = self.opencode_config();
        Self::seed(&folder)?;
        fs::write(folder.join("opencode.json"), config.to_string())
    }

    /// Makes a configuration folder look as if opencode had installed its plugin package there;
    /// otherwise it waits for npm before it loads any plugin.
    ///
    /// # Errors
    ///
    /// When the files cannot be written.
    pub fn seed(folder: &Path) -> io::Result<()> {
        let dependencies = json!({"@opencode-ai/plugin": Client::Opencode.version()});
        let lock = json!({"name": "seeded", "lockfileVersion": 3, "requires": true, "packages": {"": {"dependencies": dependencies}}});
        fs::create_dir_all(folder.join("node_modules"))?;
        fs::write(
            folder.join("package.json"),
            json!({"dependencies": dependencies}).to_string(),
        )?;
        fs::write(folder.join("package-lock.json"), lock.to_string())
    }

    /// A program that will start in the project, with the sandbox's environment.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let home = self.home();
        let mut command = Command::new(program);
        command
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("TMPDIR", self.root().join("tmp"))
            .env("XDG_CONFIG_HOME", home.join(".config"))
            .env("XDG_DATA_HOME", home.join(".local/share"))
            .env("XDG_CACHE_HOME", home.join(".cache"))
            .env("XDG_STATE_HOME", home.join(".local/state"))
            .env("SHELL", "/bin/sh")
            .env("npm_config_registry", "http://127.0.0.1:9/")
            .env("npm_config_fetch_retries", "0");
        for name in [
            "AUTOUPDATE",
            "MODELS_FETCH",
            "LSP_DOWNLOAD",
            "DEFAULT_PLUGINS",
            "EXTERNAL_SKILLS",
            "CLAUDE_CODE",
            "SHARE",
        ] {
            command.env(format!("OPENCODE_DISABLE_{name}"), "1");
        }
        command
    }

    /// `opencode run` with a title, to its end, at most for four minutes.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn opencode_run(
        &self,
        opencode: &Path,
        env: &[(&str, &str)],
        args: &[&str],
    ) -> io::Result<Finished> {
        let mut command = self.command(opencode);
        command
            .args(["run", "--title", "t"])
            .args(args)
            .envs(env.iter().copied());
        Process::run(&mut command, Duration::from_secs(240))
    }
}

/// Objects are merged, everything else is replaced.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
