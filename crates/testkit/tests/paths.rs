//! Paths of code that the documentation names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use testkit::names::{defined, files};
use testkit::workspace::{packages, root};

/// Paths in code spans, such as `worker::fusion::FlowCache`, each with its line from 1. Spans within fenced
/// code are left out.
fn paths(page: &str) -> Vec<(usize, Vec<&str>)> {
    let mut found = vec![];
    let mut is_fenced = false;
    for (number, line) in page.lines().enumerate() {
        is_fenced ^= line.trim_start().starts_with("```");
        if is_fenced {
            continue;
        }
        for span in line.split('`').skip(1).step_by(2) {
            let parts: Vec<&str> = span.trim_end_matches("()").split("::").collect();
            let is_name = |part: &&str| {
                !part.is_empty() && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
            };
            if parts.len() > 1 && parts.iter().all(is_name) {
                found.push((number + 1, parts));
            }
        }
    }
    found
}

#[test]
fn paths_are_found_in_code_spans() {
    let page = "`a::b`, `one`, `a::b::C()` and `a b::c`\n```\n`x::y`\n```\n`d::e`";
    assert_eq!(paths(page), [(1, vec!["a", "b"]), (1, vec!["a", "b", "C"]), (5, vec!["d", "e"])]);
}

/// What code calls a crate.
fn library(package: &str) -> String {
    package.strip_prefix("millrace-").unwrap_or(package).replace('-', "_")
}

/// The words of the `pub use` lines of a crate's root file.
fn exported(root_file: &str) -> BTreeSet<String> {
    let uses = root_file.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let words = uses.flat_map(|names| names.split(|letter: char| !letter.is_alphanumeric() && letter != '_'));
    words.map(str::to_owned).collect()
}

/// Pages that describe the tree as it is name what is there. (Decisions in `docs/adr` stay as they were
/// written.)
#[test]
fn paths_in_pages_exist() {
    let root = root();
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let of_package = names.entry(library(&package.name)).or_default();
        for file in files(&root.join(&package.folder).join("src"), &["rs"]) {
            of_package.extend(defined(&file, &root).into_iter().map(|name| name.name));
        }
        let root_file = std::fs::read_to_string(root.join(&package.sources[0])).expect("its root file");
        of_package.extend(exported(&root_file));
    }
    let mut wrong = vec![];
    let folders = [root.clone(), root.join("docs"), root.join("docs/guide")]
        .map(|folder| std::fs::read_dir(folder).expect("a folder"));
    let files = folders.into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let is_page = |file: &PathBuf| {
        file.extension().is_some_and(|extension| extension == "md") && !file.ends_with("CHANGELOG.md")
    };
    for page in files.filter(is_page) {
        let text = std::fs::read_to_string(&page).expect("a page");
        for (line, path) in paths(&text) {
            let Some(of_package) = names.get(path[0]) else { continue };
            if let Some(part) = path[1..].iter().find(|part| !of_package.contains(**part)) {
                let page = page.strip_prefix(&root).unwrap_or(&page).display();
                wrong.push(format!("{page}:{line}: `{}`: nothing is called `{part}` there", path.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
