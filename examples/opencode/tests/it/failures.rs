//! Whatever goes wrong with the program, the run goes on.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bizar_testkit::{Opencode, Script, is_alive, processes_with, signal_process};

use crate::rig::{PROGRAM, Rig, Run, bash, eventually, play};

/// The one sidecar of a rig.
fn sidecar(rig: &Rig) -> Option<u32> {
    let project = rig.sandbox.project();
    let here = |id: &u32| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd == project);
    let mut found = processes_with(" guard").into_iter().filter(here);
    let first = found.next();
    assert_eq!(found.next(), None, "one sidecar");
    first
}

fn unguarded(rig: &Rig) -> usize {
    rig.said()
        .iter()
        .filter(|line| line.contains("tool calls go on unguarded"))
        .count()
}

/// Different calls, so that nothing but trouble could stop them.
fn calls(n: usize) -> Script {
    (0..n)
        .fold(Script::new(), |script, n| {
            script.then(bash(&format!("echo {n}")))
        })
        .say("the end")
}

fn run(rig: &Rig, server: &Opencode, script: &Script) -> Run {
    play(rig, server, &server.session().unwrap(), script)
}

/// Puts a shell script in the place of the program.
fn replace(rig: &Rig, script: &str) {
    let program = rename(rig);
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes the plugin look for the program at another place, and gives that.
fn rename(rig: &Rig) -> PathBuf {
    let program = rig.sandbox.root().join("program");
    let text = fs::read_to_string(rig.plugin()).unwrap();
    assert!(text.contains(PROGRAM));
    fs::write(
        rig.plugin(),
        text.replace(PROGRAM, program.to_str().unwrap()),
    )
    .unwrap();
    program
}

#[test]
fn a_killed_sidecar_harms_no_run_and_comes_back() {
    let Some(rig) = Rig::new("a_killed_sidecar_harms_no_run_and_comes_back") else {
        return;
    };
    let program = rename(&rig);
    symlink(PROGRAM, &program).unwrap();
    let server = rig.serve(&[]);
    let session = server.session().unwrap();
    server.send(&session, &calls(12).prompt("go ")).unwrap();
    eventually("some calls", || rig.log(&session).len() > 3);
    let first = sidecar(&rig).unwrap();
    signal_process("KILL", first);
    let ended = server.wait_for(Duration::from_secs(60), |event| {
        event["type"] == "session.idle" && event["properties"]["sessionID"] == session.as_str()
    });
    assert!(ended.is_some());
    let calls = server.calls(&session).unwrap();
    assert_eq!(calls.len(), 12);
    assert!(
        calls
            .iter()
            .all(|call| call["state"]["status"] == "completed"),
        "{calls:?}"
    );
    assert_eq!(unguarded(&rig), 1);
    // After a pause it is started again, and guards.
    eventually("another sidecar", || {
        run(&rig, &server, &self::calls(1));
        sidecar(&rig).is_some_and(|id| id != first)
    });
    let again = run(
        &rig,
        &server,
        &Script::new().repeat(12, bash("echo hello")).say("the end"),
    );
    assert_eq!(again.refused(), [11]);
    // It may even be taken away while opencode runs.
    fs::remove_file(&program).unwrap();
    signal_process("KILL", sidecar(&rig).unwrap());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(4) {
        let run = run(&rig, &server, &self::calls(2));
        assert!(run.ended_with("the end"));
        let is_done = |call: &serde_json::Value| call["state"]["status"] == "completed";
        assert!(run.calls.iter().all(is_done), "{:?}", run.calls);
    }
    assert_eq!((sidecar(&rig), unguarded(&rig)), (None, 1));
    // And come back.
    symlink(PROGRAM, &program).unwrap();
    eventually("another sidecar", || {
        run(&rig, &server, &self::calls(1));
        sidecar(&rig).is_some()
    });
}

#[test]
fn a_sidecar_that_hangs_is_waited_for_three_times() {
    let Some(rig) = Rig::new("a_sidecar_that_hangs_is_waited_for_three_times") else {
        return;
    };
    rig.options(&serde_json::json!({"verdictTimeoutMs": 2000}));
    let server = rig.serve(&[]);
    run(&rig, &server, &calls(1));
    let timed = || {
        let start = Instant::now();
        (run(&rig, &server, &calls(20)), start.elapsed())
    };
    let (_, usual) = timed();
    let id = sidecar(&rig).unwrap();
    signal_process("STOP", id);
    let (run_while_it_hangs, took) = timed();
    assert!(run_while_it_hangs.ended_with("the end"));
    assert!(
        run_while_it_hangs
            .calls
            .iter()
            .all(|call| call["state"]["status"] == "completed")
    );
    assert_eq!(unguarded(&rig), 1);
    // Twenty calls and as many requests would have been 80 s of waiting. Three are waited for, and one now and then.
    let most = usual * 2 + Duration::from_secs(30);
    assert!(took < most, "{took:?}, usually {usual:?}");
    signal_process("CONT", id);
    // What it was told meanwhile is counted all the same.
    eventually("the lines of the calls", || {
        rig.log(&run_while_it_hangs.session).len() == 20
    });
}

#[test]
fn a_program_that_is_missing_wrong_or_mad_harms_no_run() {
    let test = "a_program_that_is_missing_wrong_or_mad_harms_no_run";
    let Some(rig) = Rig::new(test) else { return };
    let two = calls(2);
    let cases = [
        ("exit 7", "it ended with 7"),
        ("while read -r line; do echo '}{'; done", "unguarded"),
        ("exec cat /dev/zero", "unguarded"),
    ];
    for (script, why) in cases {
        assert!(rig.bizar(&["install", "--force"]).status.success());
        replace(&rig, script);
        fs::remove_dir_all(rig.sandbox.home().join(".local/share/opencode/log")).ok();
        let server = rig.serve(&[]);
        let run = run(&rig, &server, &two);
        assert!(
            run.ended_with("the end") && run.calls.len() == 2,
            "{script}"
        );
        eventually(why, || rig.said().iter().any(|line| line.contains(why)));
        assert_eq!(unguarded(&rig), 1, "{script}: {:?}", rig.said());
    }
    // The program is sane, and does not speak what the plugin does.
    assert!(rig.bizar(&["install", "--force"]).status.success());
    let text = fs::read_to_string(rig.plugin()).unwrap();
    assert!(text.contains("const PROTOCOL = 2\n"));
    let text = text.replace("const PROTOCOL = 2\n", "const PROTOCOL = 99\n");
    fs::write(rig.plugin(), text).unwrap();
    fs::remove_dir_all(rig.sandbox.home().join(".local/share/opencode/log")).ok();
    let server = rig.serve(&[]);
    assert!(run(&rig, &server, &two).ended_with("the end"));
    eventually("a message", || {
        rig.said()
            .iter()
            .any(|line| line.contains("it speaks protocol 2, this plugin 99"))
    });
    assert_eq!(unguarded(&rig), 1);
    assert!(rig.bizar(&["install", "--force"]).status.success());
    replace(&rig, "exit 7");
    fs::remove_file(rig.sandbox.root().join("program")).unwrap();
    fs::remove_dir_all(rig.sandbox.home().join(".local/share/opencode/log")).ok();
    let server = rig.serve(&[]);
    assert!(run(&rig, &server, &two).ended_with("the end"));
    eventually("a message", || {
        rig.said().iter().any(|line| line.contains("is not there"))
    });
    assert_eq!(unguarded(&rig), 1);
}

#[test]
fn nothing_outlives_an_opencode_that_is_killed() {
    let Some(rig) = Rig::new("nothing_outlives_an_opencode_that_is_killed") else {
        return;
    };
    let server = rig.serve(&[]);
    run(&rig, &server, &calls(1));
    let id = sidecar(&rig).unwrap();
    server.kill();
    eventually("the end of the sidecar", || !is_alive(id));
}

#[test]
fn install_on_a_clean_home_guards_opencode_run() {
    let Some(opencode) =
        bizar_testkit::Client::Opencode.find("install_on_a_clean_home_guards_opencode_run")
    else {
        return;
    };
    let sandbox = bizar_testkit::Sandbox::new().unwrap();
    let model = bizar_testkit::ModelServer::start().unwrap();
    let bin = opencode.parent().unwrap().to_str().unwrap().to_owned();
    let installed = sandbox
        .command(Path::new(PROGRAM))
        .args(["install", "--force", "--offline"])
        .env("PATH", format!("{bin}:/usr/bin:/bin"))
        .output()
        .unwrap();
    assert!(installed.status.success(), "{installed:?}");
    // Nothing but the model is configured, and not in a file.
    let config = serde_json::json!({"model": "mock/m", "small_model": "mock/m", "provider": {"mock": {"npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": format!("{}/v1", model.url()), "apiKey": "x"}, "models": {"m": {"name": "m", "tool_call": true}}}}});
    let config = config.to_string();
    let prompt = Script::new()
        .repeat(30, bash("echo round and round"))
        .say("never")
        .prompt("go ");
    let ran = sandbox
        .opencode_run(
            &opencode,
            &[("OPENCODE_CONFIG_CONTENT", &config)],
            &[&prompt],
        )
        .unwrap();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    // The README shows this.
    println!("{said}");
    assert!(
        said.contains("Loop protection: 12 identical calls to bash. Use task to escalate."),
        "{said}"
    );
    assert_eq!(
        ran.status.unwrap().code(),
        Some(1),
        "the run was ended: {said}"
    );
    assert!(
        !sandbox
            .opencode_config()
            .join("node_modules/@opencode-ai")
            .exists()
    );
    let logs = fs::read_dir(sandbox.home().join(".cache/bizarharness/logs")).unwrap();
    let log = fs::read_to_string(logs.flatten().next().unwrap().path()).unwrap();
    assert_eq!(log.matches("outcome=ok").count(), 11);
    assert_eq!(log.matches("outcome=blocked").count(), 4);
    // And people can see it afterwards.
    let status = sandbox
        .command(Path::new(PROGRAM))
        .arg("status")
        .output()
        .unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    assert_eq!(status.matches("outcome=blocked").count(), 4, "{status}");
    assert!(status.contains("warned 2, refused 4"), "{status}");
}

#[test]
fn a_project_takes_the_program_from_path_but_not_from_inside() {
    let test = "a_project_takes_the_program_from_path_but_not_from_inside";
    let Some(opencode) = bizar_testkit::Client::Opencode.find(test) else {
        return;
    };
    let sandbox = bizar_testkit::Sandbox::new().unwrap();
    let model = bizar_testkit::ModelServer::start().unwrap();
    sandbox
        .configure_opencode(&model, &serde_json::json!({}))
        .unwrap();
    bizar_testkit::Sandbox::seed(&sandbox.project().join(".opencode")).unwrap();
    let installed = sandbox
        .command(Path::new(PROGRAM))
        .args(["install", "--project"])
        .output()
        .unwrap();
    assert!(installed.status.success(), "{installed:?}");
    let [inside, outside] = [sandbox.project(), sandbox.root()].map(|folder| folder.join("bin"));
    for folder in [&inside, &outside] {
        fs::create_dir(folder).unwrap();
    }
    let trap = inside.join("bizar-opencode");
    fs::write(&trap, "#!/bin/sh\ntouch trapped\n").unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    // Not through a link either.
    symlink(&trap, outside.join("bizar-opencode")).unwrap();
    let good = sandbox.root().join("good");
    fs::create_dir(&good).unwrap();
    symlink(PROGRAM, good.join("bizar-opencode")).unwrap();
    let path = [&inside, &outside, &good]
        .map(|folder| folder.to_str().unwrap())
        .join(":")
        + ":bin:/usr/bin:/bin";
    let server = Opencode::serve(&opencode, &sandbox, &[("PATH", &path)]).unwrap();
    let session = server.session().unwrap();
    server
        .prompt(
            &session,
            &Script::new()
                .repeat(12, bash("echo hello"))
                .say("the end")
                .prompt("go "),
        )
        .unwrap();
    let calls = server.calls(&session).unwrap();
    assert!(
        crate::rig::result(&calls[11]).contains("Loop protection: 12"),
        "{calls:?}"
    );
    assert!(!sandbox.project().join("trapped").exists());
}
