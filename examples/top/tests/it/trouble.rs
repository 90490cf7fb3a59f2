//! What is missing, unreadable or corrupt is said, and costs nothing else.

use std::{fs, path::Path};

use bizar_top::{app::App, model::Model, source::Source};
use serde_json::json;

use crate::{
    demo::directory,
    rig::{NOW, app, demo, press, program, run, screen, source},
};

fn notes(logs: &Path, state: &Path) -> Vec<String> {
    let mut model = Model::default();
    model.tell(Source::new(Some(logs.to_owned()), Some(state.to_owned())).scan());
    model.notes()
}

#[test]
fn missing_directories_are_no_failure() {
    let home = tempfile::tempdir().unwrap();
    let (stdout, stderr, code) = run(program(home.path()).arg("--once"));
    assert_eq!(stdout.lines().count(), 1, "the head of the table");
    assert_eq!(code, Some(0));
    let state = home.path().join(".cache/bizarharness");
    assert_eq!(
        stderr,
        format!(
            "bizar-top: logs: {}/logs does not exist: nothing was written yet\n\
             bizar-top: states: {} does not exist: nothing was written yet\n",
            state.display(),
            state.display()
        )
    );
    assert!(
        fs::read_dir(home.path()).unwrap().next().is_none(),
        "nothing was made"
    );
    let mut app = app(home.path());
    let seen = screen(&mut app, 80, 24);
    assert!(seen.contains("no session has been seen yet"), "{seen}");
    assert!(seen.contains("! logs:"), "{seen}");
}

#[test]
fn a_directory_that_cannot_be_read_fails_and_the_rest_is_shown() {
    let home = demo();
    let state = directory(home.path());
    let file = home.path().join("a file");
    fs::write(&file, "not a directory").unwrap();
    let flags = ["--once", "--logs", file.to_str().unwrap()];
    let (stdout, stderr, code) = run(program(home.path()).args(flags));
    assert_eq!(stdout.lines().count(), 15, "{stdout}");
    assert_eq!(code, Some(1));
    assert_eq!(
        stderr,
        format!(
            "bizar-top: logs: {} cannot be read: not a directory\n",
            file.display()
        )
    );
    let seen = notes(&state.join("logs"), &file);
    assert_eq!(seen.len(), 2, "states, and the records below: {seen:?}");
}

#[cfg(unix)]
#[test]
fn a_directory_without_permission_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = demo();
    let logs = directory(home.path()).join("logs");
    fs::set_permissions(&logs, fs::Permissions::from_mode(0o000)).unwrap();
    let is_root = fs::read_dir(&logs).is_ok();
    let seen = notes(&logs, &directory(home.path()));
    fs::set_permissions(&logs, fs::Permissions::from_mode(0o700)).unwrap();
    // Root may read everything.
    let denied = format!("logs: {} cannot be read: permission denied", logs.display());
    let wanted = if is_root { vec![] } else { vec![denied] };
    assert_eq!(seen, wanted);
}

#[test]
fn each_corrupt_document_is_named_with_its_reason() {
    let home = demo();
    let state = directory(home.path());
    let good = fs::read_to_string(state.join("ses_5Fb3kQvTzA.json")).unwrap();
    let secret = "sk-secret";
    let mut future: serde_json::Value = serde_json::from_str(&good).unwrap();
    future["version"] = json!(99);
    let future = future.to_string();
    for (name, text) in [
        ("cut", &good[..good.len() / 2]),
        ("empty", ""),
        ("foreign", r#"{"kind":"somebody.else","version":1}"#),
        ("list", "[1,2,3]"),
        (
            "shape",
            r#"{"kind":"bizar.session","version":1,"sessionId":7}"#,
        ),
        ("copy", &good),
        ("future", &future),
        ("text", secret),
    ] {
        fs::write(state.join(format!("{name}.json")), text).unwrap();
    }
    fs::create_dir(state.join("folder.json")).unwrap();
    fs::write(state.join("bg/bgr_x.json"), "{").unwrap();
    fs::write(
        state.join("bg/bgr_y.json"),
        json!({"instanceId": "bgr_z", "status": "running"}).to_string(),
    )
    .unwrap();
    fs::write(
        state.join("logs/bad.log"),
        "not a line\nnor this\nunfinished",
    )
    .unwrap();

    let mut app = app(home.path());
    assert_eq!(
        app.model.notes(),
        [
            "states: copy: a document of another id",
            &format!(
                "states: cut: not a JSON object (line 1, column {})",
                good.len() / 2
            ),
            "states: empty: empty",
            "states: folder: not a regular file",
            "states: foreign: not a document of this kind",
            "states: future: written by a later version (99)",
            "states: list: wrong shape (line 1, column 2)",
            "states: shape: wrong shape (line 1, column 49)",
            "states: text: not a JSON object (line 1, column 1)",
            "background records: bgr_x: not a JSON object (line 1, column 1)",
            "background records: bgr_y: not a document of this kind",
            "logs: bad: 2 lines are no entries",
        ]
    );
    // Everything else is there, and no content was quoted.
    assert_eq!(
        app.counts().0,
        9,
        "eight of the demo, and the log of bad lines"
    );
    let seen = screen(&mut app, 80, 24);
    assert!(
        seen.contains("! states: copy: a document of another id (and 11 more: ?)"),
        "{seen}"
    );
    press(&mut app, "?G");
    let seen = screen(&mut app, 80, 24);
    assert!(
        seen.contains("states: future: written by a later version (99)"),
        "{seen}"
    );
    assert!(!app.model.notes().join("").contains(secret));
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_not_followed_nor_waited_for() {
    let home = demo();
    let state = directory(home.path());
    let secret = home.path().join("secret");
    fs::write(&secret, "SECRET").unwrap();
    for name in [
        "state-link.json",
        "logs/log-link.log",
        "bg/record-link.json",
    ] {
        std::os::unix::fs::symlink(&secret, state.join(name)).unwrap();
    }
    for name in ["pipe.json", "logs/pipe.log"] {
        let made = std::process::Command::new("mkfifo")
            .arg(state.join(name))
            .status()
            .unwrap();
        assert!(made.success());
    }
    let seen = app(home.path()).model.notes();
    let mut wanted = [
        "logs: log-link",
        "logs: pipe",
        "states: pipe",
        "states: state-link",
        "background records: record-link",
    ]
    .map(|what| format!("{what}: not a regular file"));
    wanted.sort_by_key(|note| !note.starts_with("logs"));
    assert_eq!(seen, wanted);
}

#[test]
fn what_is_mended_is_no_longer_complained_of() {
    let home = demo();
    let path = directory(home.path()).join("ses_5Fb3kQvTzA.json");
    let good = fs::read(&path).unwrap();
    fs::write(&path, "torn").unwrap();
    let mut source = source(home.path());
    let mut app = App::new(Model::default(), NOW);
    app.tell(source.scan());
    assert_eq!(app.model.notes().len(), 1);
    assert_eq!(
        app.model.session("ses_5Fb3kQvTzA").unwrap().tool(),
        Some("bash"),
        "its log is still there"
    );
    fs::write(&path, good).unwrap();
    app.tell(source.scan());
    assert_eq!(app.model.notes(), Vec::<String>::new());
    fs::remove_dir_all(directory(home.path())).unwrap();
    app.tell(source.scan());
    assert_eq!((app.counts().0, app.model.instances().count()), (0, 0));
    assert_eq!(app.model.notes().len(), 2, "both directories are missing");
}
