use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bizar_testkit::{Process, is_alive, processes_with};

fn gone(id: u32) -> bool {
    let end = Instant::now() + Duration::from_secs(5);
    while is_alive(id) {
        if Instant::now() > end {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[test]
fn a_dropped_process_takes_its_group_along() {
    let mark = "31536017";
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &format!("sleep {mark} & sleep {mark}")])
        .stdout(Stdio::null());
    let process = Process::start(&mut command).unwrap();
    let id = process.id();
    assert!(is_alive(id));
    drop(process);
    assert!(gone(id));
    assert_eq!(processes_with(&format!("sleep {mark}")), Vec::<u32>::new());
}

#[test]
fn a_program_that_does_not_end_is_ended() {
    let slow = Process::run(Command::new("sleep").arg("60"), Duration::from_millis(50)).unwrap();
    assert_eq!(slow.status, None);
    let quick = Process::run(
        Command::new("/bin/sh").args(["-c", "echo out; echo err >&2; exit 3"]),
        Duration::from_secs(20),
    )
    .unwrap();
    assert_eq!(
        (
            quick.status.unwrap().code(),
            quick.stdout.as_str(),
            quick.stderr.as_str()
        ),
        (Some(3), "out\n", "err\n")
    );
}
