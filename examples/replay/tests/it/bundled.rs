//! The session that comes with the program shows every kind of verdict, and what is none.

use crate::run;

#[test]
fn loops_are_found_and_work_is_left_alone() {
    let ran = run(&["--format", "jsonl"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let worst = |session: &str| {
        let order = ["notice", "warn", "escalate", "block", "halt"];
        let verdicts = ran.verdicts();
        let levels = verdicts.iter().filter(|verdict| verdict.0 == session);
        levels
            .filter_map(|verdict| order.iter().position(|level| *level == verdict.2))
            .max()
            .map(|at| order[at])
    };
    assert_eq!(worst("brew-timer"), Some("halt"));
    assert_eq!(worst("stubborn-mule"), Some("halt"));
    assert_eq!(worst("wrong-key"), Some("escalate"));
    assert_eq!(worst("early-bird"), None, "edit and test again is work");
    assert_eq!(
        worst("brew-timer/firmware-build"),
        None,
        "waiting is no loop"
    );
    let rules: std::collections::BTreeSet<_> = ran
        .verdicts()
        .into_iter()
        .map(|verdict| verdict.3)
        .collect();
    assert_eq!(
        rules.into_iter().collect::<Vec<_>>(),
        ["error", "halt", "stale"]
    );
}
