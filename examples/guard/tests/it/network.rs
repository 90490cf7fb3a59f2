//! Nothing of the guard half can reach the network.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const GUARD_HALF: [&str; 6] = [
    "bizar-config",
    "bizar-fingerprint",
    "bizar-guard",
    "bizar-log",
    "bizar-state",
    "bizar-window",
];

/// Everything that the guard half is built from, each looked at: none opens a socket. Whoever adds
/// one looks at it first. `libc`, `linux-raw-sys`, `rustix` and `windows-*` could, if asked: our
/// sources do not, and `rustix` is built without its `net` feature.
const KNOWN: [&str; 43] = [
    "bitflags",
    "block-buffer",
    "cfg-if",
    "cmov",
    "const-oid",
    "cpufeatures",
    "crypto-common",
    "ctutils",
    "digest",
    "errno",
    "fastrand",
    "getrandom",
    "hex",
    "hmac",
    "hybrid-array",
    "itoa",
    "jiff",
    "jiff-core",
    "jiff-static",
    "libc",
    "linux-raw-sys",
    "memchr",
    "once_cell",
    "portable-atomic",
    "portable-atomic-util",
    "proc-macro2",
    "quote",
    "r-efi",
    "rustix",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "sha2",
    "syn",
    "tempfile",
    "thiserror",
    "thiserror-impl",
    "typenum",
    "unicode-ident",
    "windows-link",
    "windows-sys",
    "zmij",
];

/// Words that no source of the guard half has: sockets, and programs that could open them.
const FORBIDDEN: [&str; 12] = [
    "std::net",
    "core::net",
    "net::",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "UnixListener",
    "UnixDatagram",
    "process::Command",
    "Command::new",
    "libc::socket",
];

/// The packages that the guard half is built from, without what only tests need, and the features
/// that each is built with.
fn tree() -> BTreeMap<String, String> {
    let mut command = Command::new(env!("CARGO"));
    command
        .args([
            "tree",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{p} [{f}]",
            "--manifest-path",
        ])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    for package in GUARD_HALF {
        command.args(["--package", package]);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines
        .lines()
        .filter_map(|line| Some((line.split_once(' ')?.0, line.split_once('[')?.1)));
    lines
        .map(|(package, features)| (package.to_owned(), features.to_owned()))
        .collect()
}

#[test]
fn every_dependency_is_a_known_one() {
    let tree = tree();
    assert!(GUARD_HALF.iter().all(|package| tree.contains_key(*package)));
    for (package, features) in &tree {
        let is_known = GUARD_HALF.contains(&package.as_str()) || KNOWN.contains(&package.as_str());
        assert!(
            is_known,
            "{package} is new in the tree of the guard half: look at it, then add it"
        );
        let features = features.split([',', ']']);
        assert!(package != "rustix" || features.into_iter().all(|feature| feature != "net"));
    }
    assert!(tree.len() > 20, "the tree was walked");
}

#[test]
fn no_source_names_a_socket_or_a_program() {
    let sources = sources();
    for (file, text) in &sources {
        for word in FORBIDDEN {
            assert!(!text.contains(word), "{} has {word}", file.display());
        }
    }
    assert!(sources.len() > 30, "the sources were read");
}

/// The sources of the guard half, and their texts.
pub(crate) fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directories = [
        "bizar-config",
        "bizar-fingerprint",
        "bizar-log",
        "bizar-state",
        "bizar-window",
        "examples/guard",
    ];
    let files = directories
        .iter()
        .flat_map(|directory| sources_in(&root.join(directory).join("src")));
    files
        .map(|file| (file.clone(), fs::read_to_string(file).unwrap()))
        .collect()
}

fn sources_in(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| {
            if path.is_dir() {
                sources_in(&path)
            } else {
                vec![path]
            }
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}
