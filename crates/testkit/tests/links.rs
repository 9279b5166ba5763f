//! Links between pages of the documentation.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use testkit::names::files;
use testkit::workspace::root;

/// The lines outside of fenced code, each with its number from 1.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    page.lines().enumerate().filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (!is_fenced && !is_fence).then_some((number + 1, line))
    })
}

/// What a page's links lead to: `target` of `[text](target)`. Code spans have no links.
fn links(page: &str) -> Vec<(usize, String)> {
    let mut found = vec![];
    for (number, line) in prose(page) {
        let without_code: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        let targets = without_code.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(targets.map(|target| (number, target.to_owned())));
    }
    found
}

/// The anchors of a page: those of its headings, as GitHub makes them, and those that it sets.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(page) {
        anchors.extend(
            line.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned),
        );
        if line.starts_with('#') {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
            anchors.insert(kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect());
        }
    }
    anchors
}

#[test]
fn links_and_anchors_are_found() {
    let page = "# One: a *thing*\n[a](b.md#c) and ([d](e)), `[x](y)`\n```\n[f](g)\n# no\n```\n- <a id=\"h\"></a>[i](#h)";
    let expected = [(2, "b.md#c"), (2, "e"), (7, "#h")].map(|(line, target)| (line, target.to_owned()));
    assert_eq!(links(page), expected);
    assert_eq!(anchors(page), BTreeSet::from(["one-a-thing".to_owned(), "h".to_owned()]));
}

/// The pages of the repository.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let mut pages = vec![];
    for entry in std::fs::read_dir(&root).expect("the repository") {
        let entry = entry.expect("an entry").path();
        match entry.file_name().and_then(|name| name.to_str()) {
            Some("target") => {}
            Some(name) if entry.is_dir() && !name.starts_with('.') => pages.extend(files(&entry, &["md"])),
            Some(name) if name.ends_with(".md") => pages.push(entry),
            _ => {}
        }
    }
    pages.retain(|page| !page.components().any(|part| part.as_os_str() == "target"));
    pages
}

/// What is wrong with a link.
fn mistake(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() { page.to_owned() } else { page.with_file_name("").join(file) };
    if !file.exists() {
        return Some("there is no such file".into());
    }
    if anchor.is_empty() || file.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let text = std::fs::read_to_string(&file).expect("a page");
    (!anchors(&text).contains(anchor)).then(|| "that page has no such heading".into())
}

#[test]
fn links_between_pages_lead_somewhere() {
    let (mut wrong, mut count) = (vec![], 0);
    for page in pages() {
        for (line, target) in links(&std::fs::read_to_string(&page).expect("a page")) {
            count += 1;
            if let Some(mistake) = mistake(&page, &target) {
                wrong.push(format!("{}:{line}: {target}: {mistake}", page.display()));
            }
        }
    }
    assert!(count > 100, "{count} links");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The contents of the operators' guide lists every page of it.
#[test]
fn the_guide_lists_its_pages() {
    let root = root();
    let contents = std::fs::read_to_string(root.join("docs/operators-guide.md")).expect("the contents");
    let listed: BTreeSet<String> = links(&contents)
        .into_iter()
        .filter_map(|(_, target)| Some(target.split('#').next()?.strip_prefix("guide/")?.to_owned()))
        .collect();
    let there: BTreeSet<String> = files(&root.join("docs/guide"), &["md"])
        .iter()
        .filter_map(|page| Some(page.file_name()?.to_str()?.to_owned()))
        .collect();
    assert_eq!(listed, there);
}
