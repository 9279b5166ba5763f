//! The order of the tree. See `testkit::order`, and ADR 26 for why.

use testkit::order::{Circle, against_the_order, circles};
use testkit::workspace::packages;

#[test]
fn crates_use_crates_above_them() {
    let wrong = against_the_order(&packages());
    assert!(
        wrong.is_empty(),
        "`members` in Cargo.toml is the order of the crates, and these run up: {wrong:#?}\n\
         Move what is used to a crate above, or the crate to its place in the list"
    );
}

#[test]
fn nothing_in_a_crate_is_used_in_a_circle() {
    let mut found = vec![];
    for package in packages() {
        for Circle { members, arrows } in package.sources.iter().flat_map(|source| circles(source)) {
            let members = Vec::from_iter(members).join(" ");
            found.push(format!("{} {members}\n    {}", package.folder.display(), arrows.join("\n    ")));
        }
    }
    assert!(found.is_empty(), "circles:\n{}", found.join("\n"));
}
