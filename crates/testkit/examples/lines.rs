//! The lines of code of each crate of a repository, and of all: `cargo run -p millrace-testkit --example
//! lines [FOLDER]`. Comments, blank lines, and code for tests, fuzzing and models do not count.

use std::path::{Path, PathBuf};
use testkit::lines::of_crate;
use testkit::workspace::packages_in;

fn main() {
    let root = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let root = root.canonicalize().expect("the folder of a repository");
    let mut all = 0;
    for package in packages_in(&root) {
        if package.folder == Path::new("crates/testkit") {
            continue;
        }
        let lines = package.sources.iter().flat_map(|source| of_crate(source)).map(|(_, lines)| lines);
        let lines: usize = lines.sum();
        println!("{lines:>7}  {}", package.folder.display());
        all += lines;
    }
    println!("{all:>7}  in all");
}
