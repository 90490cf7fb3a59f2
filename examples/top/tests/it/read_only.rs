//! It never writes to what it watches.

use std::{collections::BTreeMap, fs, path::Path, time::SystemTime};

use serde_json::json;

use crate::{
    demo::directory,
    rig::{demo, in_terminal, program, run, tool},
};

/// Every path below a directory: kind and mode, size, time of the last change, content.
fn snapshot(root: &Path) -> BTreeMap<String, (u32, u64, SystemTime, Vec<u8>)> {
    let mut seen = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        #[cfg(unix)]
        let mode = std::os::unix::fs::MetadataExt::mode(&metadata);
        #[cfg(not(unix))]
        let mode = u32::from(metadata.permissions().readonly());
        let mut content = Vec::new();
        if metadata.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if metadata.is_file() {
            content = fs::read(&path).unwrap();
        }
        // The time of a directory tells of files that came and went.
        let changed = metadata.modified().unwrap();
        seen.insert(
            path.display().to_string(),
            (mode, metadata.len(), changed, content),
        );
    }
    seen
}

/// A home in which a writer would be tempted: corrupt files, left-over temporaries, a missing lock.
fn tempting() -> tempfile::TempDir {
    let home = demo();
    let state = directory(home.path());
    fs::write(state.join("corrupt.json"), "{").unwrap();
    fs::write(state.join(".0.Ab3dE9.bizar-tmp"), "left over").unwrap();
    fs::write(state.join("logs/Capital.log"), "no entry\n").unwrap();
    fs::write(state.join("bg/bgr_corrupt.json"), "").unwrap();
    home
}

#[test]
fn nothing_changes_under_it() {
    let home = tempting();
    let before = snapshot(home.path());
    for flags in [["--once"], ["--json"]] {
        let (_, _, code) = run(program(home.path()).args(flags));
        assert_eq!(code, Some(0));
        assert_eq!(snapshot(home.path()), before, "{flags:?}");
    }
    let steps = json!([
        ["wait", "sessions"],
        ["send", "jj\r"],
        ["wait", "Last calls"],
        ["send", "\u{1b}"],
        ["gone", "Last calls"],
        ["send", "ssr/bash\r"],
        ["send", "\tj\r"],
        ["pause", 1.5],
        ["send", "?"],
        ["wait", "Keys"],
        ["resize", 100, 30],
        ["send", "q"],
    ]);
    if let Some(seen) = in_terminal(program(home.path()).arg("--mouse"), &steps) {
        assert_eq!(seen.code, 0);
        assert_eq!(snapshot(home.path()), before, "the live view");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernel_sees_no_attempt_to_write() {
    let Some(strace) = tool("strace") else {
        return;
    };
    let home = tempting();
    let trace = tempfile::NamedTempFile::new().unwrap();
    let mut traced = std::process::Command::new(strace);
    traced
        .args(["-f", "-qq", "-s", "4096", "-o"])
        .arg(trace.path());
    traced.args([
        "-e",
        "trace=%file,ftruncate,fchmod,fchown,flock,inotify_add_watch",
    ]);
    let program = program(home.path());
    traced.arg(program.get_program()).env_clear();
    for (name, value) in program.get_envs() {
        traced.env(name, value.unwrap());
    }
    let steps = json!([
        ["wait", "sessions"],
        ["send", "\r"],
        ["wait", "Last calls"],
        ["pause", 1.5],
        ["send", "q"]
    ]);
    let Some(seen) = in_terminal(&traced, &steps) else {
        return;
    };
    assert_eq!(seen.code, 0);
    let trace = fs::read_to_string(trace.path()).unwrap();
    let root = home.path().to_str().unwrap();
    let about: Vec<&str> = trace.lines().filter(|line| line.contains(root)).collect();
    let mut opened = 0;
    for line in about {
        let call = line.split_whitespace().nth(1).unwrap_or_default();
        let name = call.split('(').next().unwrap_or_default();
        let is_looking = matches!(
            name,
            "execve"
                | "access"
                | "stat"
                | "lstat"
                | "newfstatat"
                | "statx"
                | "readlink"
                | "readlinkat"
                | "inotify_add_watch"
                | "statfs"
        );
        let is_reading = matches!(name, "open" | "openat")
            && line.contains("O_RDONLY")
            && ![
                "O_CREAT",
                "O_TRUNC",
                "O_WRONLY",
                "O_RDWR",
                "O_APPEND",
                "O_TMPFILE",
            ]
            .iter()
            .any(|flag| line.contains(flag));
        opened += usize::from(is_reading);
        assert!(is_looking || is_reading, "{line}");
    }
    assert!(opened > 20, "the trace saw {opened} files opened");
}

#[test]
fn there_is_one_place_that_opens_files_and_it_only_reads() {
    let forbidden = [
        "fs::write",
        "File::create",
        "File::options",
        ".write(true)",
        ".append(true)",
        ".create(",
        ".create_new(",
        ".truncate(true)",
        "fs::rename",
        "fs::remove",
        "fs::create",
        "fs::copy",
        "fs::hard_link",
        "set_permissions",
        "set_len",
        "set_modified",
        "symlink(",
        ".lock_shared",
        "File::lock",
        "SessionLog",
        "Guard::",
        ".sweep(",
        ".update(",
        ".load(",
        ".save(",
    ];
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files = 0;
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        files += 1;
        let text = fs::read_to_string(&path).unwrap();
        for word in forbidden {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
        let is_opener = path.ends_with("src/open.rs");
        assert_eq!(
            text.contains("OpenOptions"),
            is_opener,
            "{}",
            path.display()
        );
        assert!(!text.contains("File::open"), "{}", path.display());
    }
    assert!(files > 10);
}
