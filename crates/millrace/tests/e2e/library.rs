//! `elements` and `doctor`.

use crate::program::Folder;
use std::collections::BTreeSet;

#[test]
fn every_listed_class_has_a_page() {
    let folder = Folder::new();
    let list = folder.millrace(&["elements"]).sound().text();
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len());
    assert!(names.len() >= 32, "{names:?}");
    let documented = |name: &&str| folder.millrace(&["elements", name]).code == Some(0);
    assert!(["AddressInfo", "ScheduleInfo", "AlignmentInfo", "StaticThreadSched"].iter().all(documented));
    let pages = folder.millrace(&["elements", "--pages"]).sound().text();
    for name in &names {
        assert!(pages.contains(&format!("## {name}")), "no page of {name}");
    }
    for name in [names[0], "CheckIPHeader", names[names.len() - 1]] {
        let page = folder.millrace(&["elements", name]).sound().text();
        assert!(page.starts_with(&format!("# {name}")) && page.contains("**ports**"), "{page}");
    }
}

#[test]
fn a_class_that_is_not_there_is_told_with_a_suggestion() {
    let missing = Folder::new().millrace(&["elements", "CheckIPHeadr"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("CheckIPHeader"), "{}", missing.stderr);
    let renamed = Folder::new().millrace(&["elements", "LookupIPRoute"]);
    assert!(renamed.stderr.contains("RadixIPLookup"), "{}", renamed.stderr);
}

#[test]
fn the_doctor_says_the_same_in_words_and_in_json() {
    let folder = Folder::new();
    let json = folder.millrace(&["doctor", "--json"]).sound();
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let (mut counted, mut names) = ([0u64; 3], vec![]);
    for section in report["sections"].as_array().expect("sections") {
        for finding in section["findings"].as_array().expect("findings") {
            let status = finding["status"].as_str().expect("a status");
            let at = ["ok", "limited", "missing"].iter().position(|known| *known == status).expect("known");
            counted[at] += 1;
            let name = finding["name"].as_str().expect("a name");
            assert!(finding["finding"].as_str().is_some_and(|text| !text.is_empty()), "{finding}");
            assert!(at < 2 || finding["remedy"].as_str().is_some(), "{name} lacks a remedy");
            names.push(name.to_string());
        }
    }
    let total = ["ok", "limited", "missing"].map(|status| report[status].as_u64().expect("a number"));
    assert_eq!(counted, total);
    let words = folder.millrace(&["doctor"]).sound().text();
    for name in names {
        assert!(words.contains(&name), "{name} is missing in\n{words}");
    }
}

#[test]
fn help_and_version_are_there() {
    let folder = Folder::new();
    let version = folder.millrace(&["--version"]).sound().text();
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    for command in ["run", "check", "gen", "doctor", "elements", "fmt"] {
        assert!(folder.millrace(&[command, "--help"]).sound().text().contains("Usage"), "{command}");
    }
    assert_eq!(folder.millrace(&["rum"]).code, Some(2));
}
