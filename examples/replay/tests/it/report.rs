//! The report in a real browser: what was recorded is shown and never executed, it is fast, and keys work.
//!
//! Needs chromium. Without it these tests say loudly that they did not run; with `CI` set they fail.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;

use crate::browser::Page;
use crate::{run, run_on};

/// What a hostile recording would like to do.
const OWNED: &str = "window.owned = true; document.title = 'owned'";

#[test]
fn hostile_content_is_shown_and_never_executed() {
    let names = [
        format!("<img src=x onerror=\"{OWNED}\">"),
        format!("</script><script>{OWNED}</script>"),
        format!("<!--<script>{OWNED}"),
        format!("\"><svg onload=\"{OWNED}\">"),
        format!("javascript:{OWNED}"),
        format!("${{{OWNED}}}`+'\\"),
        "__proto__".to_owned(),
        "constructor".to_owned(),
        "right \u{202e}to left\u{202c} \u{2067}שלום\u{2069}".to_owned(),
        "nul \u{0} escape \u{1b}[31m line \u{2028} end".to_owned(),
        "DATA SCRIPT STYLE POLICY $& $1".to_owned(),
        "long ".repeat(40_000),
    ];
    let mut text = String::new();
    for name in &names {
        for _ in 0..6 {
            let line = json!({"session": name, "tool": name, "args": {"a": name}, "result": name, "ok": false, "parent": name, "batch": name});
            writeln!(text, "{line}").unwrap();
        }
    }
    let report = Report::of(&run_on(&text, &["--format", "html", "--show-args", "-"]).out);
    let Some(mut page) = Page::open(&report.path, "the report with hostile content") else {
        return;
    };
    page.settle();
    // Walk through everything that shows recorded text.
    page.eval("for (let n = 0; n < sessions.length; n++) { choose(n); for (let i = 0; i < sessions[n].n; i++) select(i); openSession(n, 0); }");
    page.eval("document.querySelectorAll('#prints button').forEach((button) => button.click())");
    page.eval("canvas.dispatchEvent(new MouseEvent('mousemove', { clientX: 400, clientY: 100 }))");
    page.settle();
    assert_eq!(page.eval("String(window.owned)"), "undefined");
    assert_ne!(page.eval("document.title"), "owned");
    assert_eq!(page.eval("document.querySelectorAll('img, svg, iframe, object, embed, link, a:not(.skip)').length"), 0);
    assert_eq!(
        page.eval("document.querySelectorAll('script').length"),
        2,
        "the data and the page's own"
    );
    assert_eq!(page.eval("sessions.length"), names.len());
    page.eval("choose(table.rows.findIndex((s) => s.name.startsWith('<img')))");
    let title = page.eval("document.getElementById('session-title').textContent");
    assert_eq!(title, names[0], "shown as it is");
    let args = page.eval("document.querySelector('#call pre').textContent");
    assert!(
        args.as_str().unwrap().contains("<img src=x onerror="),
        "{args}"
    );
    page.eval("choose(table.rows.findIndex((s) => s.name.startsWith('right')))");
    let title = page.eval("document.getElementById('session-title').textContent");
    assert!(
        title
            .as_str()
            .unwrap()
            .starts_with("right \\u202eto left\\u202c"),
        "marks are spelled out: {title}"
    );
    page.eval("choose(table.rows.findIndex((s) => s.name.startsWith('long')))");
    assert!(
        page.eval("document.documentElement.scrollWidth <= innerWidth")
            .as_bool()
            .unwrap(),
        "the page does not grow wider"
    );
    page.finish();
}

#[test]
fn a_recording_that_broke_out_would_still_be_stopped() {
    // The policy is the second line of defence: markup that did get into the page may not run.
    let report = Report::of(&run(&["--format", "html"]).out);
    let Some(mut page) = Page::open(&report.path, "the report's policy") else {
        return;
    };
    page.settle();
    page.eval(&format!(
        "document.body.insertAdjacentHTML('beforeend', `<img src=x onerror=\"{OWNED}\">`)"
    ));
    page.eval(&format!("{{ const s = document.createElement('script'); s.textContent = `{OWNED}`; document.body.append(s); }}"));
    page.settle();
    assert_eq!(page.eval("String(window.owned)"), "undefined");
    let blocked = page.eval("fetch('http://127.0.0.1:9/').then(() => 'fetched', () => 'refused')");
    assert_eq!(blocked, "refused");
}

#[test]
fn keys_reach_every_call_and_every_session() {
    let report = Report::of(&run(&["--format", "html"]).out);
    let Some(mut page) = Page::open(&report.path, "the report's keyboard") else {
        return;
    };
    page.settle();
    assert_eq!(
        page.eval("document.getElementById('session-title').textContent"),
        "brew-timer"
    );
    page.eval("document.getElementById('scroll').focus()");
    let now = |page: &mut Page| page.eval("document.activeElement.getAttribute('aria-valuetext')");
    assert_eq!(
        now(&mut page),
        "call 17, edit, warn: 9 calls and nothing new: a circle of 3"
    );
    page.key("ArrowLeft");
    assert_eq!(
        now(&mut page),
        "call 16, read, notice: 8 calls and nothing new: a circle of 3"
    );
    page.key("PageDown");
    page.key("PageDown");
    assert_eq!(
        now(&mut page),
        "call 20, edit, escalate: 12 calls and nothing new: a circle of 3"
    );
    page.key("End");
    page.key("ArrowRight");
    assert_eq!(now(&mut page), "call 39, bash, allow: something new");
    page.key("Home");
    assert_eq!(now(&mut page), "call 0, glob, allow: something new");
    page.eval("document.getElementById('grid').focus()");
    page.key("ArrowDown");
    assert_eq!(
        page.eval("document.getElementById('session-title').textContent"),
        "stubborn-mule"
    );
    page.key("End");
    page.key("Enter");
    assert_eq!(page.eval("document.activeElement.id"), "scroll");
    assert_eq!(
        page.eval("document.querySelectorAll('#grid-body [aria-selected=true]').length"),
        1
    );
    // Everything that can be clicked has a name.
    assert_eq!(page.eval("[...document.querySelectorAll('button')].filter((b) => !(b.ariaLabel || b.textContent.trim())).length"), 0);
    page.finish();
}

#[test]
fn text_has_enough_contrast_in_both_schemes() {
    let report = Report::of(&run(&["--format", "html"]).out);
    let Some(mut page) = Page::open(&report.path, "the report's contrast") else {
        return;
    };
    for scheme in ["light", "dark"] {
        page.send(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
        page.settle();
        let lowest = page.eval(
            "(() => { readColours();
               const light = (hex) => { const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
                   .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
               const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
               const hex = (c) => (c.length === 4 ? '#' + [...c.slice(1)].map((d) => d + d).join('') : c);
               return Math.min(...['ink', 'soft', 'focus'].map((name) => contrast(hex(colours[name]), hex(colours.card))),
                   ...['warn', 'notice', 'escalate', 'block', 'halt', 'fresh'].map((name) => 1.5 * contrast(hex(colours[name]), hex(colours.card)))); })()",
        );
        assert!(
            lowest.as_f64().unwrap() >= 4.5,
            "{scheme}: {lowest} (4.5 for text, 3 for marks)"
        );
    }
}

#[test]
fn thousands_of_sessions_are_painted_within_two_seconds() {
    let mut text = String::new();
    for session in 0..2_576_u32 {
        for call in 0..if session % 3 == 0 { 23 } else { 22 } {
            let n = if session % 5 == 0 { call % 3 } else { call };
            writeln!(text, r#"{{"session":"corpus__of__calls:session-{session}","tool":"tool{}","args":{{"n":{n},"s":{session}}},"result":"r{n}","ok":true,"ms":{}}}"#, n % 9, call * 37).unwrap();
        }
    }
    let report = Report::of(&run_on(&text, &["--format", "html", "-"]).out);
    assert!(report.size < 4 << 20, "{} bytes", report.size);
    let Some(mut page) = Page::open(&report.path, "the report of 57,531 calls") else {
        return;
    };
    // The best of three, and below of many: this is about the page, not about what else the machine does.
    let (mut paint, mut loaded) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..3 {
        page.go(&report.path);
        page.settle();
        let number = |value: serde_json::Value| value.as_f64().unwrap();
        paint = paint.min(number(page.eval(
            "performance.getEntriesByName('first-contentful-paint')[0].startTime",
        )));
        loaded = loaded.min(number(page.eval(
            "performance.timing.loadEventEnd - performance.timing.navigationStart",
        )));
    }
    assert_eq!(page.eval("sessions.length"), 2_576);
    assert!(paint < 2_000.0, "first paint after {paint} ms");
    assert!(loaded < 3_000.0, "loaded after {loaded} ms");
    assert!(
        page.eval("document.querySelectorAll('*').length")
            .as_u64()
            .unwrap()
            < 2_000,
        "only rows in sight are in the page"
    );
    page.eval(
        "window.scrolled = (range) => { const body = document.getElementById('grid-body'); let best = Infinity;
           for (let n = 1; n < 60; n++) { const begin = performance.now(); body.scrollTop = (n * 7919) % range; drawRows();
               best = Math.min(best, performance.now() - begin); }
           return best; }",
    );
    let frame = page.eval("scrolled(80000)").as_f64().unwrap();
    page.eval("table.find = 'session-25'; sortAndFilter()");
    assert_eq!(page.eval("table.rows.length"), 87);
    let few = page.eval("scrolled(2500)").as_f64().unwrap();
    assert!(
        frame < 4.0 * few.max(1.0),
        "a scrolled frame takes {frame} ms, with few sessions {few} ms"
    );
    page.eval("table.find = ''; sortAndFilter()");
    let sort = page.eval(
        "(() => { let best = Infinity; for (let n = 0; n < 10; n++) { const begin = performance.now();
           table.sorted = n % 2 ? 0 : 3; sortAndFilter(); best = Math.min(best, performance.now() - begin); } return best; })()",
    );
    assert!(sort.as_f64().unwrap() < 100.0, "sorting takes {sort} ms");
    eprintln!(
        "first paint {paint} ms, loaded {loaded} ms, a scrolled frame {frame} ms, sorting {sort} ms"
    );
    page.finish();
}

#[test]
fn the_report_holds_arguments_only_when_asked() {
    let secret =
        r#"{"session":"s","tool":"t","args":{"k":"hunter2"},"result":"hunter2","ok":true}"#;
    assert!(
        !run_on(secret, &["--format", "html", "-"])
            .out
            .contains("hunter2")
    );
    let shown = run_on(secret, &["--format", "html", "--show-args", "-"]).out;
    assert_eq!(
        shown.matches("hunter2").count(),
        1,
        "arguments, never results"
    );
}

#[test]
fn every_mode_and_an_empty_recording_are_drawn() {
    let bundled = |mode| run(&["--format", "html", "--mode", mode]).out;
    let empty = run_on(
        r#"{"session":"s","event":"idle"}"#,
        &["--format", "html", "-"],
    )
    .out;
    let modes = [
        "progress",
        "repetition",
        "cycle",
        "opencode",
        "gemini",
        "openhands",
    ];
    let mut page: Option<Page> = None;
    for text in modes.into_iter().map(bundled).chain([empty]) {
        let report = Report::of(&text);
        match &mut page {
            Some(page) => page.go(&report.path),
            None => page = Page::open(&report.path, "the report of every mode"),
        }
        let Some(page) = &mut page else { return };
        page.settle();
        page.eval("sessions.forEach((s, n) => { choose(n); select(s.n >> 1); select(s.n - 1); zoomBy(2); fit(true); })");
        page.eval("dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint')); redraw()");
        page.eval("table.find = 'no such session'; sortAndFilter(); choose(3)");
        assert_eq!(page.exceptions, [""; 0]);
        assert!(
            !page
                .eval("document.getElementById('headline').textContent")
                .as_str()
                .unwrap()
                .is_empty()
        );
    }
}

/// A report on disk.
struct Report {
    path: PathBuf,
    size: usize,
    _directory: tempfile::TempDir,
}

impl Report {
    fn of(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.html");
        std::fs::write(&path, text).unwrap();
        Self {
            path,
            size: text.len(),
            _directory: directory,
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_does_not_go_to_a_terminal() {
    let mut command = std::process::Command::new("script");
    let report = concat!(env!("CARGO_BIN_EXE_bizar-replay"), " --format html");
    let output = command
        .args(["-qec", report, "/dev/null"])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("> report.html") && !text.contains("<html"),
        "needs `script` of util-linux: {text}"
    );
}
