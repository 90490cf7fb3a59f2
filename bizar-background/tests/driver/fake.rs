//! A program that looks like `opencode serve` and does what prompts and modes tell it.
//!
//! It is this test binary, started again by a small script.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bizar_background::opencode::watchdog;
use serde_json::{Value, json};

use crate::stage::Stage;

#[test]
fn a_fake_refuses_strangers() {
    if let Ok(arguments) = std::env::var("FAKE_ARGUMENTS") {
        Fake::run(&arguments);
    }
    let fake = Fake {
        password: "right".into(),
        ..Fake::default()
    };
    assert!(fake.lets_in("Basic b3BlbmNvZGU6cmlnaHQ="));
    assert!(!fake.lets_in("Basic b3BlbmNvZGU6d3Jvbmc=") && !fake.lets_in(""));
}

#[test]
fn a_watchdog_gives_the_exit_code() {
    if let Ok(arguments) = std::env::var("WATCHDOG_ARGUMENTS") {
        let arguments = arguments.split(' ').map(Into::into);
        std::process::exit(i32::from(watchdog::run(arguments)));
    }
    let stage = Stage::new();
    stage.script("seven", "exit 7");
    let mut child = Command::new(stage.path("watchdog"))
        .arg(stage.path("seven"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // `wait` would close it, which is the sign to end everything.
    let leash = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    drop(leash);
}

#[derive(Default)]
struct Fake {
    mode: String,
    password: String,
    directory: PathBuf,
    sessions: Mutex<BTreeMap<String, Session>>,
    streams: Mutex<Vec<TcpStream>>,
}

#[derive(Default)]
struct Session {
    is_busy: bool,
    messages: Vec<Value>,
    shell: Option<Child>,
}

impl Fake {
    fn run(arguments: &str) -> ! {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let fake = Arc::new(Self {
            mode: variable("FAKE_MODE"),
            password: variable("OPENCODE_SERVER_PASSWORD"),
            directory: variable("FAKE_DIRECTORY").into(),
            ..Self::default()
        });
        let port: u16 = arguments.rsplit(' ').next().unwrap().parse().unwrap();
        fake.log("starts", &format!("{arguments} {}", std::process::id()));
        for (name, _) in std::env::vars() {
            fake.log("environment", &name);
        }
        let starts = fake.starts();
        match fake.mode.as_str() {
            "exits" => std::process::exit(0),
            "fails" => {
                eprintln!("Unexpected error ServeError {}", fake.password);
                std::process::exit(1);
            }
            "fails-twice" if starts < 3 => std::process::exit(1),
            "mute" => std::thread::sleep(Duration::from_secs(60)),
            "other-port" => println!("opencode server listening on http://127.0.0.1:{}", port ^ 1),
            _ => {}
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        // The port is open, but nothing is answered yet.
        std::thread::sleep(Duration::from_millis(50));
        println!("opencode server listening on http://127.0.0.1:{port}");
        if fake.mode == "talks" {
            for _ in 0..8_192 {
                println!("{} {}", "o".repeat(64), fake.password);
                eprintln!("{} {}", "e".repeat(64), fake.password);
            }
        }
        let beat = Arc::clone(&fake);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(100));
                beat.tell(&json!({"type": "server.heartbeat", "properties": {}}));
                if beat.mode == "closes" {
                    beat.cut();
                }
            }
        });
        for socket in listener.incoming() {
            let (fake, socket) = (Arc::clone(&fake), socket.unwrap());
            std::thread::spawn(move || fake.serve(socket));
        }
        std::process::exit(0)
    }

    fn starts(&self) -> usize {
        std::fs::read_to_string(self.directory.join("starts"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    fn log(&self, name: &str, line: &str) {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.directory.join(name));
        writeln!(file.unwrap(), "{line}").unwrap();
    }

    fn lets_in(&self, authorization: &str) -> bool {
        // Decoded by hand: the password is what the header says after the colon.
        let digits = authorization
            .strip_prefix("Basic ")
            .unwrap_or_default()
            .bytes();
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let places = digits.filter_map(|digit| alphabet.iter().position(|known| *known == digit));
        let bits: String = places.map(|place| format!("{place:06b}")).collect();
        let bytes = bits
            .as_bytes()
            .chunks_exact(8)
            .map(|bits| u8::from_str_radix(str::from_utf8(bits).unwrap(), 2).unwrap());
        bytes.collect::<Vec<_>>() == format!("opencode:{}", self.password).into_bytes()
    }

    fn serve(&self, mut socket: TcpStream) {
        let mut reader = BufReader::new(socket.try_clone().unwrap());
        let (mut head, mut length, mut authorization) = (String::new(), 0, String::new());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            match line.split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().unwrap()
                }
                Some((name, value)) if name.eq_ignore_ascii_case("last-event-id") => {
                    self.log("last-event-ids", value)
                }
                Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                    authorization = value.into()
                }
                _ if head.is_empty() => head = line.into(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        self.log("requests", &format!("{method} {path} {query} {body}"));
        if self.mode == "deaf" {
            return std::thread::sleep(Duration::from_secs(60));
        }
        if self.mode == "stranger" || !self.lets_in(&authorization) {
            return respond(&mut socket, 401, "");
        }
        if path == "/global/event" {
            return self.stream(socket);
        }
        match self.answer(method, path, &body) {
            Some((status, answer)) => respond(
                &mut socket,
                status,
                &if status == 204 {
                    String::new()
                } else {
                    answer.to_string()
                },
            ),
            None => respond(&mut socket, 404, "{\"name\":\"NotFoundError\"}"),
        }
    }

    fn stream(&self, mut socket: TcpStream) {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        socket.write_all(head.as_bytes()).unwrap();
        if self.mode == "no-hello" {
            return std::thread::sleep(Duration::from_secs(60));
        }
        send(
            &mut socket,
            &json!({"type": "server.connected", "properties": {}}),
        )
        .unwrap();
        if self.mode == "garbage" {
            let unknown = json!({"type": "lsp.updated", "properties": {}});
            send(&mut socket, &unknown).unwrap();
            let status = json!({"type": "session.status", "properties": {"sessionID": 7}});
            send(&mut socket, &status).unwrap();
            socket.write_all(b"data: {\"type\n\n").unwrap();
            let long = "o".repeat(17 << 20);
            socket
                .write_all(format!("data: {long}\n\n").as_bytes())
                .unwrap();
        }
        self.streams.lock().unwrap().push(socket);
        self.log("streams", "one");
    }

    fn tell(&self, event: &Value) {
        if self.mode == "heartbeats" && event["type"] != "server.heartbeat" {
            return;
        }
        self.streams
            .lock()
            .unwrap()
            .retain_mut(|socket| send(socket, event).is_ok());
    }

    fn cut(&self) {
        for socket in self.streams.lock().unwrap().drain(..) {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }

    fn answer(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let pieces: Vec<_> = path.trim_start_matches('/').split('/').collect();
        let answer = match (method, pieces.as_slice()) {
            ("GET", ["global", "health"]) => json!({"healthy": true, "version": "1.18.33"}),
            ("POST", ["global", "dispose"]) => json!(true),
            ("GET", ["agent"]) => json!([{"name": "build"}, {"name": "mimir"}]),
            ("GET", ["config", "providers"]) => {
                json!({"providers": [{"id": "mock", "models": {"m/x": {}}}]})
            }
            ("GET", ["permission" | "question"]) => json!([]),
            ("GET", ["session", "status"]) => {
                let sessions = self.sessions.lock().unwrap();
                let busy = sessions.iter().filter(|(_, session)| session.is_busy);
                busy.map(|(id, _)| (id.clone(), json!({"type": "busy"})))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            }
            ("POST", ["session"]) => {
                let mut sessions = self.sessions.lock().unwrap();
                let id = format!("ses_{}", sessions.len() + 1);
                sessions.insert(id.clone(), Session::default());
                json!({"id": id})
            }
            ("GET", ["session", id, "message"]) => self
                .sessions
                .lock()
                .unwrap()
                .get(*id)?
                .messages
                .clone()
                .into(),
            ("GET", ["session", _, "children"]) => json!([]),
            ("POST", ["session", id, "prompt_async"]) => {
                let text = body["parts"][0]["text"].as_str().unwrap().to_owned();
                self.prompt(id, &text)?;
                return Some((204, Value::Null));
            }
            ("POST", ["session", id, "abort"]) => {
                if self.mode != "stubborn" {
                    self.end(id, "MessageAbortedError");
                }
                json!(true)
            }
            _ => return None,
        };
        Some((200, answer))
    }

    fn prompt(&self, id: &str, text: &str) -> Option<()> {
        let user = json!({"info": {"id": format!("{id}_u"), "sessionID": id, "role": "user", "time": {"created": 1}},
            "parts": [{"type": "text", "text": text}]});
        let assistant = json!({"info": {"id": format!("{id}_a"), "sessionID": id, "role": "assistant", "time": {"created": 1}}, "parts": []});
        {
            let mut sessions = self.sessions.lock().unwrap();
            let session = sessions.get_mut(id)?;
            session.is_busy = true;
            session.messages = vec![user.clone(), assistant.clone()];
            // A command in a session of its own, as opencode starts them.
            if text.starts_with("SHELL") {
                let shell = if cfg!(target_os = "linux") {
                    Command::new("setsid").args(["sleep", "300"]).spawn()
                } else {
                    Command::new("sleep").arg("300").process_group(0).spawn()
                };
                let shell = shell.unwrap();
                self.log("shells", &shell.id().to_string());
                session.shell = Some(shell);
            }
        }
        let status = json!({"type": "session.status", "properties": {"sessionID": id, "status": {"type": "busy"}}});
        for event in [status, updated(&user), updated(&assistant)] {
            self.tell(&event);
        }
        match text.split(' ').next().unwrap() {
            "PLAIN" => self.end(id, ""),
            "CUT" => {
                self.cut();
                self.end(id, "");
            }
            "CUTS" => {
                for call in 0..20 {
                    self.call(id, call, call % 2 == 0);
                    self.cut();
                    std::thread::sleep(Duration::from_millis(30));
                }
                self.end(id, "");
            }
            "TURN" => {
                std::thread::sleep(Duration::from_millis(600));
                self.end(id, "");
            }
            "CRASH" => std::process::exit(9),
            "LEAVE" => {
                // The shell is nobody's child any more, and no abort knows it.
                let mut shell = Command::new("sh");
                shell
                    .args(["-c", "sleep 300 & echo $! >> \"$0\""])
                    .arg(self.directory.join("shells"));
                shell.process_group(0).status().unwrap();
                self.end(id, "");
            }
            _ => {}
        }
        Some(())
    }

    fn call(&self, id: &str, call: usize, is_told: bool) {
        let part = json!({"id": "p", "sessionID": id, "messageID": format!("{id}_a"), "type": "tool", "tool": "bash",
            "callID": format!("c{call}"), "state": {"status": "completed", "input": {}}});
        let mut sessions = self.sessions.lock().unwrap();
        sessions.get_mut(id).unwrap().messages[1]["parts"]
            .as_array_mut()
            .unwrap()
            .push(part.clone());
        drop(sessions);
        if is_told {
            self.tell(&json!({"type": "message.part.updated", "properties": {"sessionID": id, "part": part}}));
        }
    }

    fn end(&self, id: &str, error: &str) {
        let mut sessions = self.sessions.lock().unwrap();
        let Some(session) = sessions.get_mut(id).filter(|session| session.is_busy) else {
            return;
        };
        session.is_busy = false;
        if let Some(mut shell) = session.shell.take() {
            shell.kill().unwrap();
            shell.wait().unwrap();
        }
        let info = &mut session.messages[1]["info"];
        info["time"]["completed"] = json!(2);
        if error.is_empty() {
            info["finish"] = json!("stop");
            let parts = session.messages[1]["parts"].as_array_mut().unwrap();
            parts.push(json!({"type": "text", "sessionID": id, "messageID": format!("{id}_a"), "text": "hello world"}));
        } else {
            info["error"] = json!({"name": error, "data": {"message": "Aborted"}});
        }
        let message = updated(&session.messages[1]);
        drop(sessions);
        if !error.is_empty() {
            let error = json!({"name": error, "data": {"message": "Aborted"}});
            self.tell(
                &json!({"type": "session.error", "properties": {"sessionID": id, "error": error}}),
            );
        }
        let idle = json!({"type": "session.idle", "properties": {"sessionID": id}});
        for event in [idle.clone(), message, idle] {
            self.tell(&event);
        }
    }
}

fn updated(message: &Value) -> Value {
    json!({"type": "message.updated", "properties": {"info": message["info"]}})
}

fn send(socket: &mut TcpStream, event: &Value) -> std::io::Result<()> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let id = COUNT.fetch_add(1, Ordering::Relaxed);
    let data = json!({"directory": "/d", "payload": event});
    socket.write_all(format!("id: {id}\ndata: {data}\n\n").as_bytes())
}

fn respond(socket: &mut TcpStream, status: u16, body: &str) {
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = socket
        .write_all(head.as_bytes())
        .and_then(|()| socket.write_all(body.as_bytes()));
}
