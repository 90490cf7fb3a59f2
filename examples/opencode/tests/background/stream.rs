//! The driver behind a relay that cuts its event stream.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bizar_background::opencode::{Opencode, Options};
use bizar_background::{Agents, Limits, Spawn, Status};
use bizar_testkit::{Script, Step};

use crate::manager::fresh;
use crate::rig::Rig;

#[test]
fn twenty_cuts_of_the_stream_lose_no_end_no_call_and_no_text() {
    let Some(rig) = fresh("twenty_cuts_of_the_stream_lose_no_end_no_call_and_no_text") else {
        return;
    };
    let relay = Relay::new(&rig);
    let mut options = Options::new(&relay.program, rig.sandbox.project());
    options.environment = environment(&rig);
    options.patience.ready = Duration::from_secs(120);
    options.patience.reconnect = Duration::from_millis(20);
    options.patience.reconnect_most = Duration::from_millis(100);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut limits = Limits::default();
        limits.timing.admission = Duration::from_secs(120);
        let agents = Agents::new(Opencode::new(options), limits, None);
        agents.start().await.unwrap();
        let runs: Vec<_> = (0..3).map(script).collect();
        let mut ids = Vec::new();
        for (script, _) in &runs {
            let spawn = Spawn::new("build", script.prompt("go "));
            ids.push(agents.spawn(spawn).await.unwrap().instance_id);
        }
        // Twenty cuts, at no particular moments, while all runs are at work.
        for number in 0..20 {
            tokio::time::sleep(Duration::from_millis(number * 37 % 100)).await;
            while !relay.cut() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        for id in &ids {
            let view = agents.status(*id).await.unwrap();
            assert!(!view.status.is_final(), "{view:?}");
        }
        for (id, (_, text)) in ids.iter().zip(&runs) {
            let done = agents.collect(*id, None).await.unwrap();
            assert_eq!(
                (done.status, done.tool_call_count),
                (Status::Done, CALLS),
                "{done:?}"
            );
            assert_eq!(&done.result, text);
        }
        agents.shutdown().await;
    });
}

const CALLS: usize = 12;

/// A script with text in each of its steps, and the text that is expected of it.
fn script(number: usize) -> (Script, String) {
    let mut script = Script::new();
    let mut texts = Vec::new();
    for call in 0..CALLS {
        let text = format!("run {number}, call {call}");
        let args = serde_json::json!({"command": format!("sleep 0.5; echo {call}")});
        script = script.then(Step {
            text: text.clone(),
            ..Step::call("bash", args)
        });
        texts.push(text);
    }
    texts.push(format!("run {number} ends"));
    (
        script.then(Step::say(&texts[CALLS]).after_ms(500)),
        texts.join("\n\n"),
    )
}

/// The sandbox's variables. Those of this process must not reach opencode.
fn environment(rig: &Rig) -> Vec<(String, Option<String>)> {
    let command = rig.sandbox.command(Path::new("/bin/true"));
    let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
    let set = command
        .get_envs()
        .map(|(name, value)| (text(name), value.map(text)));
    set.collect()
}

/// Stands between the driver and opencode, and cuts event streams.
struct Relay {
    /// Starts opencode on a port of its own and says that it listens on the one it was given.
    program: PathBuf,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn new(rig: &Rig) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let behind = free.local_addr().unwrap().port();
        drop(free);
        let (program, told) = (
            rig.sandbox.root().join("relayed"),
            rig.sandbox.root().join("port"),
        );
        let text = format!(
            "#!/bin/sh\necho $5 > {told}.new && mv {told}.new {told}\n'{opencode}' serve --hostname 127.0.0.1 --port {behind} \
             | sed -u \"s/:{behind}/:$5/\"\n",
            told = told.display(),
            opencode = rig.opencode.display(),
        );
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(&program)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
        drop(file);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let streams = Arc::default();
        let sink = Arc::clone(&streams);
        thread::spawn(move || {
            let port = loop {
                match fs::read_to_string(&told) {
                    Ok(port) => break port.trim().parse::<u16>().unwrap(),
                    Err(_) => thread::sleep(Duration::from_millis(10)),
                }
            };
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
            for client in listener.incoming().flatten() {
                let sink = Arc::clone(&sink);
                thread::spawn(move || relay(client, behind, &sink));
            }
        });
        Self { program, streams }
    }

    /// Cuts the event stream, if there is one.
    fn cut(&self) -> bool {
        let streams: Vec<TcpStream> = self.streams.lock().unwrap().drain(..).collect();
        for stream in &streams {
            stream.shutdown(Shutdown::Both).ok();
        }
        !streams.is_empty()
    }
}

/// Carries one connection in both directions.
fn relay(mut client: TcpStream, behind: u16, streams: &Mutex<Vec<TcpStream>>) -> Option<()> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, behind)).ok()?;
    let mut start = [0; 64 << 10];
    let length = client.read(&mut start).ok()?;
    let request = start.get(..length)?;
    if request.starts_with(b"GET /global/event") {
        streams.lock().unwrap().push(client.try_clone().ok()?);
    }
    server.write_all(request).ok()?;
    let (mut from, mut to) = (client.try_clone().ok()?, server.try_clone().ok()?);
    thread::spawn(move || {
        std::io::copy(&mut from, &mut to).ok();
        to.shutdown(Shutdown::Both).ok();
    });
    std::io::copy(&mut server, &mut client).ok();
    client.shutdown(Shutdown::Both).ok();
    Some(())
}
