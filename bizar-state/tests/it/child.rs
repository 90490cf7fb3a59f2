//! Other processes: this test program again, in a role that a variable of the child names.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use bizar_state::{Durability, Error, FileStore, Store};

use crate::counter::{Counter, Counters, add_one, store};

const ROLE: &str = "BIZAR_STATE_TEST_ROLE";
const DIRECTORY: &str = "BIZAR_STATE_TEST_DIRECTORY";

/// A child in `role`, not yet started. `wrapper` is a program that runs it, with arguments.
pub(crate) fn child(wrapper: &[&str], program: &Path, role: &str, directory: &Path) -> Command {
    let program = program.to_str().unwrap();
    let words = [
        wrapper,
        &[program, "--exact", "child::roles", "--nocapture"],
    ]
    .concat();
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env(ROLE, role)
        .env(DIRECTORY, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// As `child`, without a wrapper.
pub(crate) fn plain(role: &str, directory: &Path) -> Command {
    child(&[], &env::current_exe().unwrap(), role, directory)
}

/// The words after `say` in what a child printed, a string a line.
pub(crate) fn said(output: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(output)
        .lines()
        .filter_map(|line| Some(line.split_once("say ")?.1.to_owned()))
        .collect()
}

/// Plays the role that the variable names; without one, sees whether children play theirs.
#[test]
fn roles() {
    let Ok(role) = env::var(ROLE) else {
        let directory = tempfile::tempdir().unwrap();
        let output = plain("greet", directory.path()).output().unwrap();
        assert_eq!(said(&output.stdout), ["hello"]);
        assert!(output.status.success());
        return;
    };
    let directory = env::var_os(DIRECTORY).unwrap();
    let directory = Path::new(&directory);
    match role.as_str() {
        "greet" => println!("say hello"),
        "count" => {
            for _ in 0..1000 {
                add_one(&store(directory), "c").unwrap();
            }
        }
        "count for ever" => count_for_ever(&store(directory)),
        "count synced for ever" => {
            count_for_ever(&FileStore::new(directory, Durability::Power));
        }
        "write much" => write_much(&store(directory)),
        "write here" => write_here(&store(directory)),
        other => panic!("no such role: {other}"),
    }
}

fn count_for_ever(store: &Counters) {
    loop {
        println!("say {}", add_one(store, "c").unwrap());
    }
}

/// Says what becomes of a document that does not fit, and of the one before it.
fn write_much(store: &Counters) {
    store.save(Counter::new("c", 1)).unwrap();
    let padding = "x".repeat(1 << 20);
    let much = Counter {
        padding,
        ..Counter::new("c", 2)
    };
    say_error(store.save(much).unwrap_err());
    println!(
        "say count {}",
        store.load("c").unwrap().document.unwrap().count
    );
    println!(
        "say files {}",
        crate::counter::files(store.directory()).len()
    );
}

/// Says what becomes of an update where nothing can be written.
fn write_here(store: &Counters) {
    say_error(add_one(store, "c").unwrap_err());
    say_error(add_one(store, "new").unwrap_err());
    say_error(store.remove("c").unwrap_err());
    println!(
        "say count {}",
        store.load("c").unwrap().document.unwrap().count
    );
}

fn say_error(error: Error) {
    match error {
        Error::Io {
            operation, source, ..
        } => println!("say {operation:?} {:?}", source.kind()),
        other => println!("say {other:?}"),
    }
}
