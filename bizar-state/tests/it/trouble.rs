//! Disks, directories and links that get in the way.

use std::fs;

use bizar_state::{Error, Operation, Reason, Store};

use crate::counter::{Counter, add_one, files, store};

#[cfg(unix)]
mod unix {
    use std::env;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::child::{child, plain, said};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_full_disk_keeps_the_old_document() {
        let program = env::current_exe().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let limit = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
        let wrapper = ["sh", "-c", limit, "sh"];
        let output = child(&wrapper, &program, "write much", directory.path())
            .output()
            .unwrap();
        assert_eq!(
            said(&output.stdout),
            ["Write FileTooLarge", "count 1", "files 1"]
        );
        assert!(output.status.success());

        // A disk that is really full, where this machine lets us have one.
        let mounted = "mount -t tmpfs -o size=64k none \"$0\" && exec \"$@\"";
        let place = directory.path().to_str().unwrap();
        let allowed = Command::new("unshare")
            .args(["-m", "-r", "sh", "-c", mounted, place, "true"])
            .output()
            .is_ok_and(|output| output.status.success());
        if allowed {
            let wrapper = ["unshare", "-m", "-r", "sh", "-c", mounted, place];
            let command = child(&wrapper, &program, "write much", directory.path()).output();
            let output = command.unwrap();
            assert_eq!(
                said(&output.stdout),
                ["Write StorageFull", "count 1", "files 1"]
            );
        }
        println!(
            "on a full tmpfs: {}",
            if allowed { "seen" } else { "not allowed here" }
        );
    }

    #[test]
    fn a_read_only_directory_can_be_read() {
        const NOBODY: u32 = 65534;
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("state");
        let store = store(&directory);
        store.save(Counter::new("c", 7)).unwrap();
        let before = files(&directory);

        // Permissions do not bind root, so for root somebody else has to try.
        let is_root = fs::metadata(&directory).unwrap().uid() == 0;
        let mut command = if is_root {
            for entry in fs::read_dir(&directory).unwrap() {
                chown(entry.unwrap().path(), Some(NOBODY), Some(NOBODY)).unwrap();
            }
            chown(&directory, Some(NOBODY), Some(NOBODY)).unwrap();
            fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).unwrap();
            let program = root.path().join("program");
            fs::copy(env::current_exe().unwrap(), &program).unwrap();
            let mut command = child(&[], &program, "write here", &directory);
            command.uid(NOBODY).gid(NOBODY).current_dir(root.path());
            command
        } else {
            plain("write here", &directory)
        };
        fs::set_permissions(&directory, PermissionsExt::from_mode(0o500)).unwrap();
        let output = command.output().unwrap();
        fs::set_permissions(&directory, PermissionsExt::from_mode(0o700)).unwrap();

        assert_eq!(said(&output.stdout).len(), 4, "{output:?}");
        let [update, new, remove, count] = said(&output.stdout).try_into().unwrap();
        assert_eq!(update, "Write PermissionDenied");
        // Its lock may be one that is not there yet.
        assert!(
            ["Write PermissionDenied", "Lock PermissionDenied"].contains(&&*new),
            "{new}"
        );
        assert_eq!((&*remove, &*count), ("Remove PermissionDenied", "count 7"));
        assert_eq!(files(&directory), before);
    }

    #[test]
    fn state_08_files_are_private_and_stay_so() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("a/b");
        let store = store(&directory);
        add_one(&store, "c").unwrap();
        for directory in [&directory, &root.path().join("a")] {
            assert_eq!(mode(directory), 0o700);
        }
        let all_private = || {
            fs::read_dir(&directory)
                .unwrap()
                .all(|entry| mode(&entry.unwrap().path()) == 0o600)
        };
        assert!(all_private());
        add_one(&store, "c").unwrap();
        assert!(all_private());
        fs::set_permissions(store.path("c"), PermissionsExt::from_mode(0o644)).unwrap();
        add_one(&store, "c").unwrap();
        assert!(all_private());
        // A directory that was there before is its owner's business.
        fs::set_permissions(&directory, PermissionsExt::from_mode(0o750)).unwrap();
        add_one(&store, "c").unwrap();
        assert_eq!(mode(&directory), 0o750);
    }

    #[test]
    fn a_link_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let outside = root.path().join("outside.json");
        let directory = root.path().join("state");
        let store = store(&directory);
        store.save(Counter::new("c", 1)).unwrap();
        fs::rename(store.path("c"), &outside).unwrap();
        let before = fs::read(&outside).unwrap();

        for target in [
            outside.as_path(),
            Path::new("nowhere"),
            Path::new("link.json"),
            &directory,
        ] {
            symlink(target, store.path("c")).unwrap();
            let seen = store.peek("c").unwrap();
            assert_eq!(seen.document, None);
            assert_eq!(seen.unusable.unwrap().reason, Reason::NotAFile);
            assert!(!store.remove("c").unwrap());
            assert_eq!(store.sweep(|_| true).unwrap().removed.len(), 0);

            let updated = store.save(Counter::new("c", 2)).unwrap();
            let unusable = updated.unusable.unwrap();
            assert_eq!(unusable.reason, Reason::NotAFile);
            assert_eq!(fs::read_link(unusable.path).unwrap(), target);
            assert!(fs::symlink_metadata(store.path("c")).unwrap().is_file());
            assert_eq!(fs::read(&outside).unwrap(), before);
            assert!(store.remove("c").unwrap());
        }
        assert!(!directory.join("nowhere").exists());
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let made = Command::new("mkfifo")
            .arg(store.path("c"))
            .status()
            .unwrap();
        assert!(made.success());
        assert_eq!(
            store.load("c").unwrap().unusable.unwrap().reason,
            Reason::NotAFile
        );
        assert_eq!(add_one(&store, "c").unwrap(), 1);
    }

    #[test]
    fn the_directory_may_be_a_link() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("real")).unwrap();
        symlink("real", root.path().join("state")).unwrap();
        let store = store(&root.path().join("state"));
        assert_eq!(add_one(&store, "c").unwrap(), 1);
        assert!(root.path().join("real/c.json").exists());
    }
}

#[test]
fn a_directory_that_goes_away_is_made_again() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("state");
    let store = store(&directory);
    add_one(&store, "c").unwrap();
    let error = store
        .update("c", |slot| {
            slot.as_mut().unwrap().count += 1;
            fs::remove_dir_all(&directory).unwrap();
        })
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Io {
                operation: Operation::Write,
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(store.load("c").unwrap().document, None);
    assert_eq!(store.list().unwrap().documents, []);
    assert_eq!(add_one(&store, "c").unwrap(), 1);
    assert_eq!(add_one(&store, "c").unwrap(), 2);
}

#[test]
fn a_file_in_the_place_of_the_directory_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let store = store(&root.path().join("file"));
    fs::write(store.directory(), "mine").unwrap();
    assert!(add_one(&store, "c").is_err());
    assert!(store.load("c").is_err());
    assert!(store.list().is_err());
    assert_eq!(fs::read(store.directory()).unwrap(), b"mine");
}

#[test]
fn a_directory_in_the_place_of_a_file_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    fs::create_dir(store.path("c")).unwrap();
    fs::write(store.path("c").join("x"), "mine").unwrap();
    let unusable = store.save(Counter::new("c", 1)).unwrap().unusable.unwrap();
    assert_eq!(unusable.reason, Reason::NotAFile);
    assert_eq!(fs::read(unusable.path.join("x")).unwrap(), b"mine");
    assert!(store.load("c").unwrap().document.is_some());
}

#[test]
fn a_document_that_is_too_large_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    store.save(Counter::new("c", 1)).unwrap();
    let padding = "x".repeat(crate::counter::Counters::MAX_BYTES);
    let large = Counter {
        padding,
        ..Counter::new("c", 2)
    };
    let error = store.save(large).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    assert_eq!(
        store.load("c").unwrap().document,
        Some(Counter::new("c", 1))
    );
    assert_eq!(files(directory.path()).len(), 1);
}
