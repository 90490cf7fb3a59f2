//! No spelling leads into a directory of secrets.

use std::{fs, path::Path};

use bizar_config::{CheckedPath, Refused, Sources, resolve};
use serde_json::json;
use tempfile::TempDir;

const SECRETS: [&str; 4] = [".ssh", ".gnupg", ".aws", ".kube"];

/// A home called `sigrid` with all four directories.
fn home() -> TempDir {
    let root = TempDir::new().unwrap();
    for secret in SECRETS {
        fs::create_dir_all(root.path().join("sigrid").join(secret).join("deep")).unwrap();
    }
    root
}

fn assert_refused(text: &str, home: &Path) {
    assert_eq!(
        CheckedPath::new(text, Some(home)),
        Err(Refused::Secret),
        "{text}"
    );
    let options = json!({"logDir": text, "stateDir": text, "fingerprintKeyFile": text});
    let resolved = resolve(Sources {
        home: Some(home),
        host_options: Some((&options).into()),
        ..Sources::default()
    });
    assert_eq!(
        resolved.options.log_dir.unwrap().as_path(),
        home.join(".cache/bizarharness/logs")
    );
    assert_eq!(
        resolved.options.state_dir.unwrap().as_path(),
        home.join(".cache/bizarharness")
    );
    assert_eq!(resolved.options.fingerprint_key_file, None);
    assert_eq!(resolved.notes.len(), 3);
}

#[test]
fn every_spelling_is_refused() {
    let root = home();
    let home = root.path().join("sigrid");
    let absolute = home.to_str().unwrap();
    for secret in SECRETS {
        for text in [
            format!("~/{secret}"),
            format!("~/{secret}/"),
            format!("~/{secret}//"),
            format!("~//{secret}/logs"),
            format!("~/./{secret}/./logs"),
            format!("~/{secret}/deep/new/newer"),
            format!("~/x/../{secret}"),
            format!("~/{secret}/../{secret}"),
            format!("~/nothing/here/../../{secret}/logs"),
            format!("~/../sigrid/{secret}"),
            format!("$HOME/{secret}"),
            format!("${{HOME}}/{secret}/logs"),
            format!("%USERPROFILE%/{secret}"),
            format!("~sigrid/{secret}"),
            secret.to_owned(),
            format!("{secret}/logs"),
            format!("./{secret}"),
            format!("a/../{secret}"),
            format!("../sigrid/{secret}"),
            format!("{absolute}/{secret}"),
            format!("{absolute}//{secret}///logs"),
            format!("{absolute}/../sigrid/{secret}"),
            format!("/../..{absolute}/{secret}"),
            format!("~/{}", secret.to_uppercase()),
            format!(
                "~/{}/logs",
                secret.replace('s', "\u{17f}").replace('k', "\u{212a}")
            ),
            format!("~/{secret}."),
            format!("~/{secret} /logs"),
            format!("~/{secret}::$INDEX_ALLOCATION/logs"),
            format!("~/{}\u{200c}{}/logs", &secret[..2], &secret[2..]),
        ] {
            assert_refused(&text, &home);
        }
    }
}

#[test]
fn neighbours_are_not_secret() {
    let root = home();
    let home = root.path().join("sigrid");
    for text in [
        "~",
        "~/",
        "~/.ssh-foo",
        "~/.sshx/logs",
        "~/x/.ssh",
        "~/.config/.aws/logs",
        "~/.ssh/../logs",
        "~/ssh",
        "logs",
        "/srv/.ssh",
    ] {
        let path = CheckedPath::new(text, Some(&home)).expect(text);
        assert!(path.as_path().is_absolute());
    }
}

#[test]
fn other_users_and_variables_are_not_looked_up() {
    let root = home();
    let home = root.path().join("sigrid");
    for text in [
        "~root/.ssh",
        "~root",
        "~sigrid2/x",
        "$XDG_CACHE_HOME/x",
        "${HOME/x",
        "$HOMEX/y",
        "%APPDATA%/x",
    ] {
        assert_eq!(
            CheckedPath::new(text, Some(&home)),
            Err(Refused::NotExpanded),
            "{text}"
        );
    }
    for text in ["~", "~/x", "$HOME", "relative"] {
        assert_eq!(CheckedPath::new(text, None), Err(Refused::NoHome), "{text}");
    }
    assert_eq!(
        CheckedPath::new("/home/someone/.ssh/x", None),
        Err(Refused::Secret)
    );
    assert!(CheckedPath::new("/srv/logs", None).is_ok());
}

#[test]
fn without_the_directories_their_names_are_secret_all_the_same() {
    let root = TempDir::new().unwrap();
    for secret in SECRETS {
        assert_refused(&format!("~/{secret}/logs"), root.path());
        assert_refused(&format!("~/{}/logs", secret.to_uppercase()), root.path());
    }
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_wherever_they_stand() {
        let root = home();
        let home = root.path().join("sigrid");
        symlink(home.join(".ssh"), home.join("direct")).unwrap();
        symlink(".aws/deep", home.join("relative")).unwrap();
        symlink("direct", home.join("chain")).unwrap();
        symlink(".ssh/not/yet", home.join("dangling")).unwrap();
        symlink("./missing/../.kube", home.join("odd")).unwrap();
        symlink(&home, root.path().join("alias")).unwrap();
        let alias = root.path().join("alias/.gnupg/logs");
        for text in [
            "~/direct",
            "~/direct/logs",
            "~/relative/new/newer",
            "~/chain/x",
            "~/dangling",
            "~/dangling/x",
            "~/odd/x",
            "~/relative/..",
        ] {
            assert_refused(text, &home);
        }
        assert_refused(alias.to_str().unwrap(), &home);
        assert_refused("~/.ssh/logs", &root.path().join("alias"));
        assert_refused(
            home.join(".ssh/x").to_str().unwrap(),
            &root.path().join("alias"),
        );
    }

    /// A link two levels above a missing directory; looking at the text alone lets it through.
    #[test]
    fn path_02_the_deepest_existing_ancestor_decides() {
        let root = home();
        let home = root.path().join("sigrid");
        symlink(home.join(".ssh"), home.join("link")).unwrap();
        assert_refused("~/link/new/file", &home);
    }

    #[test]
    fn a_secret_directory_that_is_a_link_is_secret_at_both_ends() {
        let root = TempDir::new().unwrap();
        let home = root.path().join("sigrid");
        fs::create_dir_all(home.join("dotfiles/ssh")).unwrap();
        symlink("dotfiles/ssh", home.join(".ssh")).unwrap();
        assert_refused("~/.ssh/logs", &home);
        assert_refused("~/dotfiles/ssh/logs", &home);
        assert!(CheckedPath::new("~/dotfiles/logs", Some(&home)).is_ok());
    }

    #[test]
    fn links_in_a_circle_are_refused() {
        let root = home();
        let home = root.path().join("sigrid");
        symlink("b", home.join("a")).unwrap();
        symlink("a", home.join("b")).unwrap();
        assert_eq!(CheckedPath::new("~/a/x", Some(&home)), Err(Refused::Links));
    }

    #[test]
    fn a_link_made_later_is_seen_when_the_path_is_opened() {
        let root = home();
        let home = root.path().join("sigrid");
        let path = CheckedPath::new("~/cache/logs", Some(&home)).unwrap();
        assert_eq!(path.check(), Ok(home.join("cache/logs").as_path()));
        symlink(".ssh", home.join("cache")).unwrap();
        assert_eq!(path.check(), Err(Refused::Secret));
        fs::remove_file(home.join("cache")).unwrap();
        assert!(path.check().is_ok());
    }

    #[test]
    fn a_default_that_leads_into_a_secret_is_not_used_either() {
        let root = home();
        let home = root.path().join("sigrid");
        symlink(".ssh", home.join(".cache")).unwrap();
        let resolved = resolve(Sources {
            home: Some(&home),
            ..Sources::default()
        });
        assert_eq!(resolved.options.log_dir, None);
        assert_eq!(resolved.options.state_dir, None);
        assert_eq!(resolved.notes.len(), 2);
    }
}
