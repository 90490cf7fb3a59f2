//! What `install`, `uninstall`, `status`, `doctor` and `prompt` do to a home.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use bizar_testkit::Sandbox;
use serde_json::json;

use crate::rig::PROGRAM;

struct Home(Sandbox);

impl Home {
    fn new() -> Self {
        Self(Sandbox::new().unwrap())
    }

    /// Runs the program; gives whether it succeeded and everything it said.
    fn run(&self, args: &[&str]) -> (bool, String) {
        let output = self
            .0
            .command(Path::new(PROGRAM))
            .args(args)
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    fn done(&self, args: &[&str]) -> String {
        let (succeeded, said) = self.run(args);
        assert!(succeeded, "{args:?}: {said}");
        said
    }

    fn refused(&self, args: &[&str]) -> String {
        let (succeeded, said) = self.run(args);
        assert!(!succeeded, "{args:?}: {said}");
        said
    }

    fn plugin(&self) -> PathBuf {
        self.0.opencode_config().join("plugins/bizar.ts")
    }

    /// All files of the home and of the project.
    fn files(&self) -> Vec<PathBuf> {
        fn list(folder: &Path, files: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    list(&path, files)
                } else {
                    files.push(path)
                }
            }
        }
        let mut files = Vec::new();
        list(&self.0.root(), &mut files);
        files.sort();
        files
    }
}

#[test]
fn installing_twice_is_installing_once_and_uninstalling_leaves_nothing() {
    let home = Home::new();
    assert_eq!(home.files(), Vec::<PathBuf>::new());
    home.done(&["install", "--force", "--dry-run"]);
    assert_eq!(home.files(), Vec::<PathBuf>::new());

    home.done(&["install", "--force"]);
    let files = home.files();
    assert_eq!(
        files,
        [
            home.0.opencode_config().join("plugins/bizar/index.ts"),
            home.plugin()
        ]
    );
    let text = fs::read_to_string(home.plugin()).unwrap();
    assert!(home.done(&["install", "--force"]).contains("already there"));
    assert_eq!(fs::read_to_string(home.plugin()).unwrap(), text);

    assert!(
        home.done(&["uninstall", "--dry-run"])
            .contains("would be removed")
    );
    assert_eq!(home.files(), files);
    home.done(&["uninstall"]);
    assert_eq!(home.files(), Vec::<PathBuf>::new());
    assert!(home.done(&["uninstall"]).contains("not there"));
}

#[test]
fn an_edited_file_is_kept_and_a_foreign_one_is_never_touched() {
    let home = Home::new();
    home.done(&["install", "--force"]);
    let ours = fs::read_to_string(home.plugin()).unwrap();
    let edited = format!("{ours}// mine\n");
    fs::write(home.plugin(), &edited).unwrap();
    assert!(home.refused(&["uninstall"]).contains("was edited"));
    assert_eq!(fs::read_to_string(home.plugin()).unwrap(), edited);
    home.done(&["install", "--force"]);
    assert_eq!(fs::read_to_string(home.plugin()).unwrap(), ours);
    assert_eq!(
        fs::read_to_string(home.plugin().with_extension("ts.bak")).unwrap(),
        edited
    );

    let foreign = "export const Mine = async () => ({})\n";
    fs::write(home.plugin(), foreign).unwrap();
    for args in [["install", "--force"], ["uninstall", "--force"]] {
        assert!(
            home.refused(&args)
                .contains("was not written by this program")
        );
        assert_eq!(fs::read_to_string(home.plugin()).unwrap(), foreign);
    }
}

#[test]
fn a_link_is_followed_and_its_mode_stays() {
    let home = Home::new();
    home.done(&["install", "--force"]);
    let target = home.0.home().join("dotfiles.ts");
    fs::rename(home.plugin(), &target).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&target, home.plugin()).unwrap();
    home.done(&["install", "--force", "--mode", "cycle"]);
    assert!(fs::symlink_metadata(home.plugin()).unwrap().is_symlink());
    assert!(
        fs::read_to_string(&target)
            .unwrap()
            .contains(r#"{"loopMode":"cycle"}"#)
    );
    assert_eq!(
        fs::metadata(&target).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn options_of_an_earlier_installation_stay() {
    let home = Home::new();
    let stamp = || -> serde_json::Value {
        let plugin = fs::read_to_string(home.plugin()).unwrap();
        let line = plugin.lines().nth(1).unwrap();
        serde_json::from_str(line.strip_prefix("const stamp = ").unwrap()).unwrap()
    };
    home.done(&[
        "install",
        "--force",
        "--mode",
        "repetition",
        "--background-agent",
        "odin",
        "--background-agent",
        "thor",
    ]);
    let options = json!({"backgroundAgents": ["odin", "thor"], "loopMode": "repetition"});
    assert_eq!(stamp()["options"], options);
    home.done(&["install", "--force"]);
    assert_eq!(stamp()["options"], options);
    assert_eq!(stamp()["program"], PROGRAM);
    home.done(&["install", "--force", "--mode", "progress"]);
    assert_eq!(stamp()["options"]["loopMode"], "progress");
}

#[test]
fn a_project_gets_no_path_of_this_machine() {
    let home = Home::new();
    let said = home.done(&["install", "--project"]);
    let plugin = home.0.project().join(".opencode/plugins/bizar.ts");
    assert!(said.contains(plugin.to_str().unwrap()), "{said}");
    let text = fs::read_to_string(&plugin).unwrap();
    assert!(text.contains(r#"const stamp = {"program":"","version":"","options":{}}"#));
    assert!(!text.contains(home.0.root().to_str().unwrap()) && !text.contains(PROGRAM));
    home.done(&["uninstall", "--project"]);
    assert!(!plugin.exists());
}

#[test]
fn a_program_in_a_build_folder_is_not_installed_by_accident() {
    let home = Home::new();
    let said = home.refused(&["install"]);
    assert!(
        said.contains("cargo install --path examples/opencode") && said.contains("--force"),
        "{said}"
    );
    assert_eq!(home.files(), Vec::<PathBuf>::new());
    // Where it was forced, it is not forgotten.
    home.done(&["install", "--force"]);
    let said = home.done(&["doctor"]);
    assert!(
        said.contains(&format!("look  plugin: {PROGRAM} lies in a build folder")),
        "{said}"
    );
}

#[test]
fn a_home_that_is_no_directory_is_named() {
    let home = Home::new();
    let file = home.0.root().join("file");
    fs::write(&file, "").unwrap();
    for args in [
        vec!["install", "--force"],
        vec!["uninstall"],
        vec!["doctor"],
        vec!["status"],
    ] {
        let output = home
            .0
            .command(Path::new(PROGRAM))
            .args(&args)
            .env("HOME", &file)
            .env_remove("XDG_CONFIG_HOME")
            .output()
            .unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let named = format!("{}/.config/opencode/plugins", file.display());
        assert!(said.contains(&named), "{args:?}: {said}");
        assert_eq!(
            output.status.success(),
            args == ["status"],
            "{args:?}: {said}"
        );
    }
}

#[test]
fn a_configuration_that_cannot_be_read_is_named_with_the_place_of_the_mistake() {
    let home = Home::new();
    home.done(&["install", "--force"]);
    assert!(home.done(&["doctor"]).contains("ok    plugin"));
    let good = r#"{"plugin": [["./plugins/bizar/index.ts", {"loopThresholdWarn": 6}]]}"#;
    fs::write(home.0.opencode_config().join("opencode.json"), good).unwrap();
    let bad = home.0.project().join("opencode.jsonc");
    fs::write(&bad, "{\n  // mine\n  \"plugin\": [\"a\" \"b\"]\n}\n").unwrap();
    let place = "at line 3 column 18";
    let said = home.refused(&["doctor"]);
    let broken = |line: &str| {
        line.starts_with("BAD   configuration: ")
            && line.contains(bad.to_str().unwrap())
            && line.contains(place)
    };
    assert!(said.lines().any(broken), "{said}");
    // The others still count.
    let said = home.done(&["status"]);
    assert!(
        said.contains(place) && said.contains("6 (options of the host)"),
        "{said}"
    );
    // What opencode makes JSON of, or takes for none, is no mistake.
    for text in ["{\"provider\": {env:PROVIDER}}", " \n"] {
        fs::write(&bad, text).unwrap();
        assert!(!home.done(&["doctor"]).contains("configuration"), "{text}");
    }
}

#[test]
fn offline_seeds_only_an_empty_folder_and_uninstall_takes_the_seed_back() {
    let home = Home::new();
    // Any program that says a version will do for opencode.
    let bin = home.0.root().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("opencode"), "#!/bin/sh\necho 9.8.7\n").unwrap();
    fs::set_permissions(bin.join("opencode"), fs::Permissions::from_mode(0o755)).unwrap();
    let run = |args: &[&str]| {
        let output = home
            .0
            .command(Path::new(PROGRAM))
            .args(args)
            .env("PATH", &bin)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let config = home.0.opencode_config();
    assert!(run(&["install", "--force", "--offline"]).contains("seeded"));
    let lock: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(config.join("package-lock.json")).unwrap())
            .unwrap();
    assert_eq!(
        lock["packages"][""]["dependencies"]["@opencode-ai/plugin"],
        "9.8.7"
    );
    // Again, it is there already.
    assert!(!run(&["install", "--force"]).contains("npm"));
    run(&["uninstall"]);
    assert!(!config.join("package.json").exists() && !config.join("node_modules").exists());

    // Where somebody has packages, or another plugin, nothing is seeded and nothing removed.
    fs::write(config.join("package.json"), "{}").unwrap();
    assert!(run(&["install", "--force", "--offline"]).contains("not seeded"));
    run(&["uninstall"]);
    assert_eq!(
        fs::read_to_string(config.join("package.json")).unwrap(),
        "{}"
    );
    fs::remove_file(config.join("package.json")).unwrap();
    fs::create_dir_all(config.join("plugin")).unwrap();
    fs::write(config.join("plugin/other.ts"), "").unwrap();
    assert!(run(&["install", "--force", "--offline"]).contains("not seeded"));
}

#[test]
fn status_shows_the_options_that_are_in_force_and_where_they_come_from() {
    let home = Home::new();
    assert!(home.done(&["status"]).contains("not installed"));
    home.done(&["install", "--force", "--mode", "cycle"]);
    let config = home.0.opencode_config();
    fs::write(
        config.join("opencode.json"),
        r#"{ // mine
            "plugin": ["other", ["./plugins/bizar/index.ts", {"loopThresholdWarn": 6, "loopTresholdBlock": 1,}],],
        }"#,
    )
    .unwrap();
    fs::create_dir_all(home.0.home().join(".config/bizarharness")).unwrap();
    let own = r#"{"loopHaltAfterBlocks": 9, "hosts": {"opencode": {"opencodeDoomLoop": "leave"}}}"#;
    fs::write(home.0.home().join(".config/bizarharness/options.json"), own).unwrap();
    let said = home.done(&["status"]);
    let squeezed = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "loopMode cycle (default of this host)",
        "loopThresholdWarn 6 (options of the host)",
        "loopHaltAfterBlocks 9 (options file)",
        "opencodeDoomLoop leave (options file, this host)",
        "loopThresholdBlock 12 (default)",
        "did you mean loopThresholdBlock?",
        "refused nothing lately",
    ] {
        assert!(squeezed.contains(part), "{part}: {said}");
    }
    assert!(said.contains(&format!("runs {PROGRAM}")), "{said}");
}

#[test]
fn doctor_says_what_is_wrong_and_how_to_mend_it() {
    let home = Home::new();
    let said = home.refused(&["doctor"]);
    assert!(
        said.contains("BAD   plugin: not installed: run bizar-opencode install"),
        "{said}"
    );
    home.done(&["install", "--force"]);
    let said = home.done(&["doctor"]);
    assert!(said.contains("ok    program: a verdict in "), "{said}");
    assert!(said.contains("look  npm: "), "{said}");
    // A directory that lets others read.
    let cache = home.0.home().join(".cache/bizarharness");
    fs::create_dir_all(&cache).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(home.done(&["doctor"]).contains("chmod 700"));
    // A program that was moved away.
    let text = fs::read_to_string(home.plugin()).unwrap();
    fs::write(
        home.plugin(),
        text.replace(PROGRAM, "/nowhere/bizar-opencode"),
    )
    .unwrap();
    let said = home.refused(&["doctor"]);
    assert!(
        said.contains("edited by hand") && said.contains("/nowhere/bizar-opencode is gone"),
        "{said}"
    );
    // Nothing was left behind by trying.
    assert!(!cache.join("logs").exists());
}

#[test]
fn prompt_names_the_texts_that_the_guard_sends() {
    let home = Home::new();
    let said = home.done(&["prompt"]);
    assert!(said.starts_with("## Loop Guard Handling\n"));
    for text in [
        "[loop guard:",
        "Loop protection:",
        "`task`",
        "materially different",
    ] {
        assert!(said.contains(text), "{text}");
    }
    // The README shows it word by word.
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    assert!(readme.contains(&said));
}
