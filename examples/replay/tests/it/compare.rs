//! One table for all rules; labels say who was right.

use crate::{run, same, text_of};

fn cells(table: &str) -> Vec<Vec<String>> {
    let split = |line: &str| {
        line.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(str::to_owned)
            .collect()
    };
    table.lines().map(split).collect()
}

#[test]
fn firings_are_counted_per_thousand_calls_and_by_label() {
    let directory = tempfile::tempdir().unwrap();
    let sessions = directory.path().join("sessions.jsonl");
    let other = same(5).replace(r#""s""#, r#""polls""#);
    let third = same(4).replace(r#""s""#, r#""nobody looked""#);
    let quiet: String = (0..81)
        .map(|n| {
            format!(r#"{{"session":"quiet","tool":"t","args":{{"n":{n}}},"result":"x","ok":true}}"#)
                + "\n"
        })
        .collect();
    std::fs::write(&sessions, same(10) + &other + &third + &quiet).unwrap();
    let labels = directory.path().join("labels.jsonl");
    let rows = [
        r#"{"session":"s","i":2,"end":9,"rule":"x","label":"true_loop","by":"read","note":""}"#,
        r#"{"session":"s","i":2,"end":9,"label":"legit_repeat"}"#,
        r#"{"session":"polls","i":30,"end":40,"label":"true_loop"}"#,
        r#"{"session":"polls","i":3,"end":4,"label":"legit_polling"}"#,
        r#"{"session":"nobody looked","i":3,"end":4,"label":"ambiguous"}"#,
        r#"{"session":"nobody looked","i":3,"label":"agent_says_loop"}"#,
        r#"{"session":"never read","i":3,"end":4,"label":"true_loop"}"#,
    ];
    std::fs::write(&labels, rows.join("\n")).unwrap();
    let ran = run(&[
        "--compare",
        "--labels",
        text_of(&labels),
        text_of(&sessions),
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let rows = cells(&ran.out);
    let heading = "rule,sessions,calls,notice/1k,warn/1k,escalate/1k,block/1k,halt/1k,sessions fired,loops found,true,false,unlabelled";
    assert_eq!(rows[0].join(","), heading);
    // Warned at calls 4-6 and escalated at 7-9 of `s`, warned at 4 of `polls`.
    assert_eq!(
        rows[1].join(","),
        "progress,4,100,60.00,40.00,30.00,0,0,2,2/2,6,1,0"
    );
    assert_eq!(
        rows[4].join(","),
        "opencode,4,100,0,0,0,130.00,0,3,2/2,8,3,2"
    );
    assert_eq!(
        rows.iter()
            .skip(1)
            .map(|row| row[0].as_str())
            .collect::<Vec<_>>(),
        [
            "progress",
            "repetition",
            "cycle",
            "opencode",
            "gemini",
            "openhands"
        ]
    );
    let without = run(&["--compare", text_of(&sessions)]);
    assert_eq!(
        cells(&without.out)[1].join(","),
        "progress,4,100,60.00,40.00,30.00,0,0,2"
    );
}

#[test]
fn bad_labels_are_trouble() {
    let directory = tempfile::tempdir().unwrap();
    let labels = directory.path().join("labels.jsonl");
    std::fs::write(&labels, "{\"session\":\"s\"}\n").unwrap();
    let ran = run(&["--compare", "--labels", text_of(&labels)]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("line 1 is no label"), "{}", ran.err);
    assert_eq!(
        run(&[
            "--compare",
            "--labels",
            text_of(&directory.path().join("absent"))
        ])
        .code,
        Some(2)
    );
}
