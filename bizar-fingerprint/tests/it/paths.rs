//! Worktree paths are portable, and only strings that are paths are touched.

use bizar_fingerprint::Fingerprinter;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What stands for one string argument.
#[track_caller]
fn rewritten(worktree: &str, argument: &str) -> String {
    let mut fingerprinter = Fingerprinter::new().worktree(worktree);
    let args = json!({"p": argument});
    let document = fingerprinter.canonical_text("t", args.to_string()).unwrap();
    let fingerprint = fingerprinter.of_value("t", &args).unwrap();
    assert_eq!(fingerprint, fingerprinter.of_serialize("t", &args).unwrap());
    assert_eq!(fingerprint.as_bytes()[..], Sha256::digest(&document)[..]);
    let document: Value = serde_json::from_slice(&document).unwrap();
    document["args"]["p"].as_str().unwrap().to_owned()
}

/// What stands for a path outside, whose clean spelling this is.
fn outside(clean: &str) -> String {
    format!("path:{}", &hex::encode(Sha256::digest(clean))[..16])
}

#[test]
fn paths_inside_become_relative() {
    for (path, relative) in [
        ("/home/u/p/src/a.rs", "src/a.rs"),
        ("/home/u/p", "."),
        ("/home/u/p/", "."),
        ("/home/u/p/.", "."),
        ("/home/u/p/src/", "src"),
        ("/home/u/p//src///a.rs", "src/a.rs"),
        ("/home/u/p/./src/../a b.rs", "a b.rs"),
        ("/home/u/q/../p/a", "a"),
        ("//home/u/p/a", "a"),
        ("/home/u/p/..x/a", "..x/a"),
        ("/home/u/p/...", "..."),
        ("/home/u/p/a\"b\\c", "a\"b\\c"),
        ("/home/u/p/grün/\u{1f600}", "grün/\u{1f600}"),
    ] {
        assert_eq!(rewritten("/home/u/p", path), relative, "{path}");
        assert_eq!(rewritten("/home/u/./x/../p//", path), relative, "{path}");
    }
}

#[test]
fn paths_outside_are_hashed() {
    for (path, clean) in [
        ("/etc/passwd", "/etc/passwd"),
        ("/etc//./x/../passwd/", "/etc/passwd"),
        ("/home/u/pp/a", "/home/u/pp/a"),
        ("/home/u/p.rs", "/home/u/p.rs"),
        ("/home/u", "/home/u"),
        ("/home/U/p/a", "/home/U/p/a"),
        ("/", "/"),
    ] {
        assert_eq!(rewritten("/home/u/p", path), outside(clean), "{path}");
    }
}

/// The work tree is the report's, made up there.
#[test]
fn path_01_climbing_out_is_outside() {
    assert_eq!(
        rewritten("/home/u/work/p", "/home/u/work/p/../../secret"),
        outside("/home/u/secret")
    );
}

#[test]
fn path_02_a_symbolic_link_is_a_name_like_any_other() {
    let directory = std::env::temp_dir().join(format!("bizar-fingerprint-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let link = directory.join("link");
    #[cfg(unix)]
    let _ = std::os::unix::fs::symlink("/etc", &link);
    let root = directory.to_str().unwrap().replace('\\', "/");
    assert_eq!(
        rewritten(&root, &format!("{root}/link/new/file")),
        "link/new/file"
    );
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn path_05_cleaning_follows_the_usual_table() {
    for (path, clean) in [
        ("/abc", "/abc"),
        ("/", "/"),
        ("/abc/", "/abc"),
        ("//abc", "/abc"),
        ("///abc", "/abc"),
        ("//abc//", "/abc"),
        ("/./abc/def", "/abc/def"),
        ("/abc/def/../..", "/"),
        ("/abc/def/../../..", "/"),
        ("/..", "/"),
        ("/../", "/"),
    ] {
        assert_eq!(rewritten("/w", path), outside(clean), "{path}");
    }
    // What is not absolute is no path of ours, however it looks.
    for text in [
        "",
        " ",
        ".",
        "..",
        "../..",
        "../../abc",
        "abc",
        "abc/def/",
        "./",
        "../",
        "abc//def//ghi",
        "abc/./../def",
        "abc/def/ghi/../jkl",
        "abc/../../././../def",
    ] {
        assert_eq!(rewritten("/w", text), text);
    }
}

#[test]
fn path_06_a_drive_keeps_its_root_and_is_a_name_on_posix() {
    assert_eq!(rewritten("/w", "c:/temp/.."), "c:/temp/..");
    assert_eq!(rewritten("/w", "c:"), "c:");
    assert_eq!(rewritten("c:/w", "c:/temp/.."), outside("C:/"));
    assert_eq!(rewritten("c:/w", "c:/../../x"), outside("C:/x"));
}

#[test]
fn windows_spellings_of_one_place_are_one() {
    for worktree in [
        "C:\\Users\\u\\p",
        "c:/Users/u/p/",
        "\\\\?\\C:\\Users\\u\\p",
        "C:\\Users\\u\\.\\x\\..\\p\\",
    ] {
        for (path, relative) in [
            ("C:\\Users\\u\\p\\src\\a.rs", "src/a.rs"),
            ("c:/Users/u/p/src/a.rs", "src/a.rs"),
            ("C:\\Users/u\\p\\\\src\\.\\a.rs\\", "src/a.rs"),
            ("\\\\?\\c:\\Users\\u\\p\\..x", "..x"),
            ("C:\\Users\\u\\p", "."),
        ] {
            assert_eq!(rewritten(worktree, path), relative, "{worktree} {path}");
        }
        for (path, clean) in [
            ("C:\\Users\\u\\pp\\a", "C:/Users/u/pp/a"),
            ("D:\\Users\\u\\p\\a", "D:/Users/u/p/a"),
            ("C:\\Users\\u\\p\\..\\q", "C:/Users/u/q"),
            ("C:\\USERS\\u\\p\\a", "C:/USERS/u/p/a"),
            ("\\\\server\\share\\..\\a", "//server/share/a"),
        ] {
            assert_eq!(
                rewritten(worktree, path),
                outside(clean),
                "{worktree} {path}"
            );
        }
        for text in [
            "C:",
            "C:a",
            "a:b",
            "/etc/passwd",
            "\\x",
            "\\\\server",
            "1:\\x",
            "\\\\?\\Volume{1}\\a",
        ] {
            assert_eq!(rewritten(worktree, text), text, "{worktree}");
        }
    }
}

#[test]
fn a_worktree_on_a_share_works() {
    for worktree in ["\\\\server\\share\\p", "\\\\?\\UNC\\server\\share\\p\\"] {
        assert_eq!(rewritten(worktree, "\\\\server\\share\\p\\a\\b"), "a/b");
        assert_eq!(rewritten(worktree, "//server/share/p/a"), "a");
        assert_eq!(
            rewritten(worktree, "\\\\server\\share\\pp"),
            outside("//server/share/pp")
        );
    }
}

#[test]
fn the_root_of_a_file_system_is_no_worktree() {
    for root in [
        "/",
        "//",
        "/..",
        "/a/..",
        "C:\\",
        "c:/",
        "\\\\?\\C:\\",
        "\\\\server\\share",
        "\\\\server\\share\\",
        "",
        ".",
        "relative/dir",
        "C:",
    ] {
        assert!(
            !Fingerprinter::new().worktree(root).has_worktree(),
            "{root}"
        );
        assert_eq!(rewritten(root, "/etc/passwd"), "/etc/passwd", "{root}");
    }
    assert!(Fingerprinter::new().worktree("/a").has_worktree());
    assert!(!Fingerprinter::new().has_worktree());
}

#[test]
fn a_path_inside_a_longer_string_stays() {
    for text in [
        "cat /w/a",
        " /w/a",
        "file:///w/a",
        "/w/a\n/w/b",
        "/* a\n * comment */",
        "/w/\0",
        "~/a",
    ] {
        assert_eq!(rewritten("/w", text), text);
    }
    let long = format!("/w/{}", "x".repeat(5000));
    assert_eq!(rewritten("/w", &long), long);
}

#[test]
fn values_are_rewritten_at_any_depth_and_names_never() {
    let mut fingerprinter = Fingerprinter::new().worktree("/w");
    let document = fingerprinter
        .canonical_text("t", r#"{"/w/k":["/w/a",{"x":"/w/b"}],"a":"\/w\u002fc"}"#)
        .unwrap();
    assert_eq!(
        document,
        br#"{"args":{"/w/k":["a",{"x":"b"}],"a":"c"},"tool":"t"}"#
    );
    assert_eq!(
        fingerprinter.canonical_text("t", r#""/w/a""#).unwrap(),
        br#"{"args":"a","tool":"t"}"#
    );
}

#[test]
fn each_step_can_be_switched_off() {
    let args = r#"{"a":"/w/x","b":"/etc"}"#;
    let document = |mut fingerprinter: Fingerprinter, args| {
        String::from_utf8(fingerprinter.canonical_text("t", args).unwrap()).unwrap()
    };
    let no_hash = Fingerprinter::new().worktree("/w").hash_outside(false);
    assert_eq!(
        document(no_hash, args),
        r#"{"args":{"a":"x","b":"/etc"},"tool":"t"}"#
    );
    assert_eq!(
        document(Fingerprinter::new(), args),
        r#"{"args":{"a":"/w/x","b":"/etc"},"tool":"t"}"#
    );
    let empty = Fingerprinter::new().unify_empty(false);
    assert_eq!(document(empty, "null"), r#"{"args":null,"tool":"t"}"#);
}
