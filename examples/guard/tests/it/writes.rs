//! Nothing outside the two directories is written.

use std::{collections::BTreeMap, fs, path::Path};

use bizar_guard::{Delivery, Form, Guard};
use serde_json::json;

use crate::rig::{Rig, begin, child, repeat, said, setup};

/// A day in the life of a guard, in both forms.
pub(crate) fn scenario(home: &Path) {
    for (form, session) in [(Form::Resident, "resident"), (Form::ONE_CALL, "one-call")] {
        // A log that rotates, a second directory, sessions that leave memory.
        let options = json!({"logRotationBytes": 1024, "logDir": "~/elsewhere/logs"});
        let guard = Guard::new(setup(home, form, &options, &[]));
        guard.user_message(session, Some("odin"));
        assert!(repeat(&guard, session, 40)[39].halted);
        for i in 0..Form::LIVE_SESSIONS + 10 {
            repeat(&guard, &format!("{session}-{i}"), 1);
        }
        let _ = begin(
            &guard,
            session,
            "open",
            &json!({"filePath": home.join("untouched")}),
        );
        let _ = guard.request(session, Delivery::Forgets);
        guard.idle(session);
        guard.deleted(session);
        let _ = guard.sweep(None);
        assert_eq!(guard.notes(), [""; 0]);
    }
    println!("say done");
}

/// Every file below `directory` that is in neither of the two directories, with its content.
fn others(directory: &Path, home: &Path) -> BTreeMap<std::path::PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path == home.join(".cache/bizarharness") || path == home.join("elsewhere/logs") {
            continue;
        }
        if path.is_dir() {
            found.extend(others(&path, home));
        }
        found.insert(path.clone(), fs::read(&path).ok());
    }
    found
}

#[test]
fn a_snapshot_of_the_home_shows_nothing_else() {
    let rig = Rig::new();
    let home = rig.home();
    fs::create_dir_all(home.join("project/src")).unwrap();
    fs::create_dir_all(home.join(".cache")).unwrap();
    fs::create_dir_all(home.join("elsewhere")).unwrap();
    fs::write(home.join("untouched"), "as it was").unwrap();
    fs::write(home.join("project/src/lib.rs"), "fn main() {}").unwrap();
    let before = others(home, home);
    let output = child(&[], "scenario", home)
        .current_dir(home.join("project"))
        .output()
        .unwrap();
    assert_eq!(
        said(&output.stdout),
        ["done"],
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(others(home, home), before);
    assert!(
        fs::read_dir(home.join("elsewhere/logs")).unwrap().count() > 60,
        "it did write"
    );
}

/// What the system is asked for: no file is opened for writing, made, renamed or removed outside the
/// two directories, and no socket is opened at all.
#[cfg(target_os = "linux")]
#[test]
fn the_system_is_asked_for_nothing_else() {
    use std::process::Command;

    let is_there = Command::new("strace")
        .arg("-V")
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_there {
        println!("NOT RUN: there is no strace here; the snapshot test has to do");
        return;
    }
    let rig = Rig::new();
    let home = rig.home();
    let trace = rig.home().join("trace");
    let wrapper = [
        "strace",
        "-f",
        "-qq",
        "-s",
        "4096",
        "-e",
        "trace=%file,%network",
        "-o",
        trace.to_str().unwrap(),
    ];
    let output = child(&wrapper, "scenario", home).output().unwrap();
    assert_eq!(
        said(&output.stdout),
        ["done"],
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let trace = fs::read_to_string(&trace).unwrap();
    let mut writes = 0;
    for line in trace.lines() {
        let call = line
            .split_once(' ')
            .map_or(line, |(_, call)| call.trim_start());
        let name = call.split('(').next().unwrap();
        assert!(
            !matches!(
                name,
                "socket" | "connect" | "bind" | "sendto" | "sendmsg" | "socketpair"
            ),
            "{line}"
        );
        let opens_for_writing = name.starts_with("open")
            && ["O_WRONLY", "O_RDWR", "O_CREAT"]
                .iter()
                .any(|flag| call.contains(flag));
        let changes = [
            "mkdir", "rename", "unlink", "link", "symlink", "chmod", "fchmodat", "truncate",
            "mknod", "rmdir", "creat", "utime",
        ]
        .iter()
        .any(|changing| name.starts_with(changing));
        if !opens_for_writing && !changes {
            continue;
        }
        writes += 1;
        let paths: Vec<&str> = call.split('"').skip(1).step_by(2).collect();
        for path in paths {
            let is_ours = ["", "/.cache", "/elsewhere"].iter().any(|parent| name.starts_with("mkdir") && path == format!("{}{parent}", home.display()))
                || Path::new(path).starts_with(home.join(".cache/bizarharness"))
                || Path::new(path).starts_with(home.join("elsewhere/logs"))
                // Relative to a directory that was opened: the file store and the log name none, the standard library may.
                || path.is_empty();
            assert!(is_ours || path == "/dev/null", "{line}");
        }
    }
    assert!(writes > 200, "the trace was read: {writes}");
}
