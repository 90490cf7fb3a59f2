//! What the plugin file may hold.

use std::collections::BTreeSet;

const PLUGIN: &str = include_str!("../../plugin/bizar.ts");

#[test]
fn the_plugin_needs_no_package_and_opens_no_connection() {
    let mut modules = BTreeSet::new();
    for line in PLUGIN
        .lines()
        .filter(|line| line.starts_with("import") || line.contains("require("))
    {
        let module = line.rsplit('"').nth(1).unwrap_or(line);
        if !line.starts_with("import type ") {
            modules.insert(module);
        }
    }
    assert_eq!(
        modules.into_iter().collect::<Vec<_>>(),
        ["node:child_process", "node:fs", "node:path"]
    );
    let forbidden = [
        "fetch(",
        "Bun.",
        "WebSocket",
        "XMLHttpRequest",
        "EventSource",
        "import(",
        "require(",
        "eval(",
        "node:net",
        "node:http",
    ];
    for word in forbidden {
        assert!(!PLUGIN.contains(word), "{word}");
    }
    // One export: opencode takes every exported value for a plugin.
    assert_eq!(PLUGIN.matches("\nexport ").count(), 1);
}

#[test]
fn the_plugin_reads_only_the_variables_that_its_readme_names() {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for rest in PLUGIN.split("process.env.").skip(1) {
        names.insert(
            rest.split(|c: char| c != '_' && !c.is_ascii_alphanumeric())
                .next()
                .unwrap(),
        );
    }
    let destructured = "const { BIZAR_LOG_LEVEL, BIZAR_DISABLE, BIZAR_DISABLE_LOOP, BIZAR_BACKGROUND_CHILD } = process.env\n";
    assert_eq!(
        PLUGIN.matches("process.env").count(),
        PLUGIN.matches("process.env.").count() + PLUGIN.matches(destructured).count()
    );
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        ["HOME", "OPENCODE_SERVER_PASSWORD", "PATH", "USERPROFILE"]
    );
}

#[test]
fn the_plugin_stays_a_short_file() {
    let code = |line: &&str| {
        !line.trim().is_empty()
            && !line.trim_start().starts_with("//")
            && !line.trim_start().starts_with("/**")
    };
    let lines = PLUGIN.lines().filter(code).count();
    assert!(lines <= 225, "{lines} lines of code");
    assert!(PLUGIN.lines().all(|line| line.len() <= 130), "long lines");
}

#[test]
fn the_changelog_begins_with_this_version() {
    let changelog = include_str!("../../CHANGELOG.md");
    let newest = changelog
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .nth(1);
    assert_eq!(newest, Some(env!("CARGO_PKG_VERSION")));
}
