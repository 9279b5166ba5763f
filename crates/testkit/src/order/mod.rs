//! Which way dependencies point.
//!
//! Between crates: `members` of the root `Cargo.toml` is the order, a crate uses crates above it
//! ([`against_the_order`]). Inside a crate there must be an order, whichever: neither files nor sibling
//! modules use each other in a circle ([`circles`]). What counts is where a name is defined, not where it is
//! re-exported; code for tests, fuzzing and models (`cfg(test)`, `cfg(fuzzing)`, `cfg(loom)`, the features
//! `testing` and `fuzzing`) does not count.

mod circle;
pub(crate) mod module;
pub(crate) mod names;

pub use circle::{Circle, circles};

use crate::workspace::Package;

/// The arrows between crates that run up: `a -> b`, where `b` does not stand above `a`.
pub fn against_the_order(packages: &[Package]) -> Vec<String> {
    let place = |name: &str| packages.iter().position(|package| package.name == name);
    let mut wrong = vec![];
    for package in packages {
        let above = |used: &&String| place(used) < place(&package.name);
        let others = package.uses.iter().filter(|used| !above(used));
        wrong.extend(others.map(|used| format!("{} -> {used}", package.name)));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &[&str]) -> Package {
        let uses = uses.iter().map(|used| (*used).to_owned()).collect();
        Package { name: name.to_owned(), folder: "".into(), sources: vec![], uses }
    }

    #[test]
    fn a_crate_uses_crates_above_it_only() {
        let packages = [package("a", &["b"]), package("b", &[]), package("c", &["a", "b"])];
        assert_eq!(against_the_order(&packages), ["a -> b"]);
    }
}
