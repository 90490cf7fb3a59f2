//! The shape of the crate itself.

use std::path::{Path, PathBuf};

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| {
        if path.is_dir() {
            sources(&path)
        } else {
            vec![path]
        }
    });
    files.collect()
}

#[test]
fn files_are_one_idea_each() {
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 500, "{} has {lines} lines", path.display());
    }
}

#[test]
fn sockets_processes_and_unsafe_code_have_their_places() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for path in sources(&root) {
        let name = path
            .strip_prefix(&root)
            .unwrap()
            .to_string_lossy()
            .replace('\\', "/");
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(all(test").next().unwrap();
        let may = |word: &str, files: &[&str]| {
            assert!(
                !text.contains(word) || files.contains(&name.as_str()),
                "{name} has {word}"
            );
        };
        may("unsafe", &["process.rs"]);
        may("TcpStream", &["opencode/client.rs"]);
        may("TcpListener", &["opencode/client.rs"]);
        may("SystemTime", &["driver/clock.rs"]);
        may("Instant", &["process.rs", "driver/starter.rs"]);
        may("env::var", &["opencode/child.rs"]);
        may("process::exit", &[]);
    }
}

#[test]
fn the_version_is_in_the_changelog() {
    let changelog =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("CHANGELOG.md"))
            .unwrap();
    assert!(changelog.contains(&format!("## {}", env!("CARGO_PKG_VERSION"))));
}
