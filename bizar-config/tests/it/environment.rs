//! The environment variables.

use bizar_config::{Environment, LogLevel};

fn of<const N: usize>(pairs: [(&str, &str); N]) -> Environment {
    Environment::from_pairs(pairs)
}

#[test]
fn an_environment_without_our_variables_is_the_default() {
    assert_eq!(
        of([("PATH", "/bin"), ("BIZARRE", "1"), ("bizar_disable", "1")]),
        Environment::default()
    );
    assert_eq!(
        of([("BIZAR_DISABLE", ""), ("BIZAR_LOG_LEVEL", "")]),
        Environment::default()
    );
}

#[test]
fn only_1_switches_on() {
    for (value, is_on, notes) in [
        ("1", true, 0),
        ("0", false, 0),
        ("true", false, 1),
        ("yes", false, 1),
        ("01", false, 1),
    ] {
        let env = of([
            ("BIZAR_DISABLE", value),
            ("BIZAR_DISABLE_LOOP", value),
            ("BIZAR_DISABLE_LOG", value),
            ("BIZAR_BACKGROUND_CHILD", value),
            ("BIZAR_BACKGROUND_SKIP_PERMISSIONS", value),
        ]);
        let switches = [
            env.disable,
            env.disable_loop,
            env.disable_log,
            env.background_child,
            env.background_skip_permissions,
        ];
        assert_eq!(switches, [is_on; 5], "{value}");
        assert_eq!(env.notes().len(), notes * 5, "{value}");
    }
}

#[test]
fn log_levels() {
    for level in [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Warn,
        LogLevel::Error,
    ] {
        let env = of([("BIZAR_LOG_LEVEL", level.as_str())]);
        assert_eq!((env.log_level, env.notes()), (level, &[][..]));
    }
    let env = of([("BIZAR_LOG_LEVEL", "trace")]);
    assert_eq!((env.log_level, env.notes().len()), (LogLevel::Info, 1));
}

#[test]
fn counts_are_clamped() {
    let cases = [
        ("5", Some(5), 0),
        ("0", Some(1), 1),
        ("-4", Some(1), 1),
        ("33", Some(32), 1),
        ("7.5", Some(7), 1),
        ("many", None, 1),
        ("9".repeat(500).leak(), Some(32), 1),
    ];
    for (text, count, notes) in cases {
        let env = of([("BIZAR_MAX_CONCURRENT_INSTANCES", text)]);
        assert_eq!(
            (env.max_concurrent_instances, env.notes().len()),
            (count, notes),
            "{text}"
        );
    }
    assert_eq!(
        of([("BIZAR_BACKGROUND_TOOL_CALL_CAP", "6000")]).background_tool_call_cap,
        Some(5000)
    );
}

#[test]
fn notes_never_hold_the_value() {
    let secret = "hunter2";
    for name in [
        "BIZAR_DISABLE",
        "BIZAR_LOG_LEVEL",
        "BIZAR_MAX_CONCURRENT_INSTANCES",
    ] {
        let env = of([(name, secret)]);
        assert_eq!(env.notes().len(), 1);
        assert!(!env.notes()[0].to_string().contains(secret));
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_unicode_is_passed_over() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

    let odd = OsStr::from_bytes(b"\xff\xfe");
    let env = Environment::from_pairs([(odd, odd), (OsStr::new("BIZAR_DISABLE"), odd)]);
    assert!(!env.disable);
    assert_eq!(env.notes().len(), 1);
}

#[test]
fn slips_in_names_are_found_by_who_asks() {
    assert_eq!(
        Environment::suggest("BIZAR_DISABLE_LOOPS"),
        Some("BIZAR_DISABLE_LOOP")
    );
    assert_eq!(Environment::suggest("BIZAR_DISABLE"), None);
    assert_eq!(Environment::suggest("PATH"), None);
    assert_eq!(Environment::suggest("BIZAR_ENTIRELY_OTHER_THING"), None);
}
