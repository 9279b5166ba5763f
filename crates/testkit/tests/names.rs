//! The words of `docs/TERMS.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use testkit::names::{defined, files, in_c, words};
use testkit::workspace::{packages, root};

/// The rows of the first table below a heading: the cells of each.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, below) = page.split_once(&format!("\n## {heading}\n")).expect("the page has that heading");
    let lines =
        below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    lines.skip(2).map(cells).collect()
}

fn terms() -> String {
    std::fs::read_to_string(root().join("docs/TERMS.md")).expect("docs/TERMS.md")
}

#[test]
fn no_term_is_explained_twice() {
    let mut seen = BTreeSet::new();
    let page = terms();
    for row in table(&page, "Terms") {
        for term in row[0].split(',').map(str::trim) {
            assert!(seen.insert(term.to_lowercase()), "docs/TERMS.md explains `{term}` twice");
        }
        assert!(row.len() == 3 && row.iter().all(|cell| !cell.is_empty()), "{row:?}: term, meaning, source");
    }
    for row in table(&page, "Words that are not used") {
        for word in row[0].split(',').map(str::trim) {
            assert!(!seen.contains(word), "docs/TERMS.md explains `{word}` and says not to use it");
        }
    }
}

/// Whether a file of a package is part of what is shipped: not of tests, which have their own folders.
fn is_shipped(file: &Path, package: &Path) -> bool {
    let inside = file.strip_prefix(package).expect("a file of the package");
    !inside.iter().any(|folder| folder == "tests" || folder == "target")
}

/// Names of definitions that are a word which `docs/TERMS.md` replaces. `names.txt` lists the exceptions: a
/// file (or `*`), a kind and a name, and behind a colon the reason. `BLESS=1` removes what is not there any
/// more.
#[test]
fn names_are_the_fields_words() {
    let root = root();
    let mut replaced: BTreeMap<String, (String, bool)> = BTreeMap::new();
    for row in table(&terms(), "Words that are not used") {
        let only_types = row[2] == "types, modules";
        assert!(only_types || row[2] == "all", "{row:?}: for names of `all` or of `types, modules`");
        for word in row[0].split(',') {
            replaced.insert(word.trim().to_owned(), (row[1].clone(), only_types));
        }
    }
    let list = root.join("crates/testkit/tests/names.txt");
    let text = std::fs::read_to_string(&list).expect("the exceptions");
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for line in text.lines() {
        let (what, reason) = line.split_once(": ").unwrap_or_else(|| panic!("`{line}` gives no reason"));
        known.insert(what, reason);
    }
    let mut found = BTreeSet::new();
    let mut wrong = vec![];
    for package in packages() {
        let folder = root.join(&package.folder);
        for file in files(&folder, &["rs", "c", "h"]).into_iter().filter(|file| is_shipped(file, &folder)) {
            let is_rust = file.extension().is_some_and(|extension| extension == "rs");
            for name in if is_rust { defined(&file, &root) } else { in_c(&file, &root) } {
                let words = words(&name.name);
                let singular = words.strip_suffix('s').unwrap_or(&words);
                let Some((instead, only_types)) = replaced.get(&words).or(replaced.get(singular)) else {
                    continue;
                };
                if *only_types && !["struct", "enum", "trait", "type", "mod"].contains(&name.kind) {
                    continue;
                }
                let anywhere = format!("* {} {}", name.kind, name.name);
                if known.contains_key(&*anywhere) {
                    found.insert(anywhere);
                    continue;
                }
                let what = format!("{} {} {}", name.file.display(), name.kind, name.name);
                if !known.contains_key(&*what) {
                    wrong.push(format!(
                        "{}:{}: {} `{}`: {instead}",
                        name.file.display(),
                        name.line,
                        name.kind,
                        name.name
                    ));
                }
                found.insert(what);
            }
        }
    }
    let in_folder = |folder: &str| {
        std::fs::read_dir(root.join(folder)).expect(folder).map(|entry| entry.expect("an entry").path())
    };
    let readmes = in_folder("nfs").chain(in_folder("examples")).map(|folder| folder.join("README.md"));
    let pages = ["", "docs", "docs/adr", "docs/guide", "nfs", "fuzz"].into_iter().flat_map(in_folder);
    let pages = pages.chain(readmes.filter(|page| page.exists()));
    for page in pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        for heading in
            std::fs::read_to_string(&page).expect("a page").lines().filter(|line| line.starts_with('#'))
        {
            let name = heading.trim_start_matches('#').trim().to_lowercase();
            if let Some((instead, _)) = replaced.get(&name) {
                wrong.push(format!("{}: heading `{name}`: {instead}", page.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} names are words that docs/TERMS.md replaces:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let gone: Vec<&str> = known.keys().copied().filter(|what| !found.contains(*what)).collect();
    if std::env::var_os("BLESS").is_some() {
        let left =
            text.lines().filter(|line| line.split_once(": ").is_some_and(|(what, _)| found.contains(what)));
        let left: String = left.map(|line| format!("{line}\n")).collect();
        std::fs::write(&list, left).expect("the list can be written");
    } else {
        assert!(
            gone.is_empty(),
            "exceptions that are not needed (`BLESS=1` removes them):\n{}",
            gone.join("\n")
        );
    }
}
