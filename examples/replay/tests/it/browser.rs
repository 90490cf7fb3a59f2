//! A real browser to look at reports with, driven over a pair of pipes.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A page in a headless chromium.
pub(crate) struct Page {
    browser: Child,
    to: File,
    from: BufReader<File>,
    session: Option<String>,
    next: u64,
    /// What was loaded and what went wrong.
    requests: Vec<String>,
    pub(crate) exceptions: Vec<String>,
    _directory: tempfile::TempDir,
}

impl Page {
    /// Opens a file; `None` = there is no browser here, which is said.
    pub(crate) fn open(file: &Path, what: &str) -> Option<Self> {
        let Some(chromium) = chromium() else {
            assert!(std::env::var_os("CI").is_none(), "{what}: install chromium");
            eprintln!("\n*** NOT RUN: {what} was not tested, there is no chromium ***\n");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let pipes = [directory.path().join("in"), directory.path().join("out")];
        assert!(
            Command::new("mkfifo")
                .args(&pipes)
                .status()
                .unwrap()
                .success()
        );
        // The browser reads commands from descriptor 3 and answers on 4.
        let browser = Command::new("sh")
            .args([
                "-c",
                r#"in=$1 out=$2; shift 2; exec "$@" 3<"$in" 4>"$out""#,
                "sh",
            ])
            .args(&pipes)
            .arg(chromium)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-pipe",
                "--window-size=1240,1600",
            ])
            .arg(format!(
                "--user-data-dir={}",
                directory.path().join("profile").display()
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = File::options().write(true).open(&pipes[0]).unwrap();
        let from = BufReader::new(File::open(&pipes[1]).unwrap());
        let mut page = Self {
            browser,
            to,
            from,
            session: None,
            next: 0,
            requests: Vec::new(),
            exceptions: Vec::new(),
            _directory: directory,
        };
        let target =
            page.send("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = page.send(
            "Target.attachToTarget",
            json!({"targetId": target, "flatten": true}),
        );
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Network.enable"] {
            page.send(domain, json!({}));
        }
        page.go(file);
        Some(page)
    }

    pub(crate) fn go(&mut self, file: &Path) {
        self.send(
            "Page.navigate",
            json!({"url": format!("file://{}", file.display())}),
        );
    }

    /// Waits until the page has loaded and drawn.
    pub(crate) fn settle(&mut self) {
        let begin = Instant::now();
        while self.eval("document.readyState === 'complete' && typeof total === 'object'") != true {
            assert!(
                begin.elapsed() < Duration::from_secs(30),
                "the page does not load: {:?}",
                self.exceptions
            );
        }
        self.eval("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))");
    }

    pub(crate) fn eval(&mut self, script: &str) -> Value {
        let answer = self.send(
            "Runtime.evaluate",
            json!({"expression": script, "returnByValue": true, "awaitPromise": true}),
        );
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{script}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    pub(crate) fn key(&mut self, key: &str) {
        for kind in ["rawKeyDown", "keyUp"] {
            self.send(
                "Input.dispatchKeyEvent",
                json!({"type": kind, "key": key, "code": key}),
            );
        }
        self.eval("new Promise((done) => requestAnimationFrame(done))");
    }

    pub(crate) fn send(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
        loop {
            let mut bytes = Vec::new();
            assert!(
                self.from.read_until(0, &mut bytes).unwrap() > 0,
                "the browser is gone"
            );
            bytes.pop();
            let message: Value = serde_json::from_slice(&bytes).unwrap();
            match message["method"].as_str() {
                Some("Network.requestWillBeSent") => {
                    self.requests
                        .push(message["params"]["request"]["url"].to_string());
                }
                Some("Runtime.exceptionThrown") => {
                    self.exceptions.push(message["params"].to_string())
                }
                _ if message["id"] == self.next => {
                    assert!(message.get("error").is_none(), "{method}: {message}");
                    return message["result"].clone();
                }
                _ => {}
            }
        }
    }

    /// Nothing but the file itself was asked for, and no script failed.
    pub(crate) fn finish(self) {
        assert_eq!(self.exceptions, [""; 0]);
        let strangers: Vec<&String> = self
            .requests
            .iter()
            .filter(|url| !url.contains("/report.html"))
            .collect();
        assert_eq!(strangers, [""; 0]);
        assert!(!self.requests.is_empty());
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        drop(self.browser.kill());
        drop(self.browser.wait());
    }
}

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|place| names.map(|name| place.join(name)))
        .find(|file| file.is_file())
}
