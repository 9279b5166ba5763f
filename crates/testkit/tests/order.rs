//! The order of the tree. See `testkit::order`, and ADR 26 for why.

use std::collections::BTreeSet;
use testkit::order::{Circle, against_the_order, circles};
use testkit::workspace::{packages, root};

#[test]
fn crates_use_crates_above_them() {
    let wrong = against_the_order(&packages());
    assert!(
        wrong.is_empty(),
        "`members` in Cargo.toml is the order of the crates, and these run up: {wrong:#?}\n\
         Move what is used to a crate above, or the crate to its place in the list"
    );
}

/// Circles that are there still, a line each: the crate's folder, and who is in the circle. Each line can only lose
/// members, and the list lines: `BLESS=1` writes what is left of it.
#[test]
fn nothing_in_a_crate_is_used_in_a_circle() {
    let list = root().join("crates/testkit/tests/circles.txt");
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    let known: Vec<BTreeSet<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let mut left = vec![];
    let mut new = vec![];
    for package in packages() {
        for Circle { members, arrows } in circles(&package.source) {
            let folder = package.folder.display().to_string();
            let members = members.iter().map(String::as_str);
            let line: Vec<&str> = std::iter::once(folder.as_str()).chain(members).collect();
            if !known.iter().any(|known| line.iter().all(|member| known.contains(member))) {
                new.push(format!("{}\n    {}", line.join(" "), arrows.join("\n    ")));
            }
            left.push(line.join(" ") + "\n");
        }
    }
    assert!(new.is_empty(), "new circles:\n{}", new.join("\n"));
    let gone: Vec<&str> =
        text.lines().filter(|line| !left.iter().any(|left| left.trim_end() == *line)).collect();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&list, left.concat()).expect("the list can be written");
    } else {
        assert!(
            gone.is_empty(),
            "circles are gone or smaller, `BLESS=1` takes them off the list:\n{}",
            gone.join("\n")
        );
    }
}
