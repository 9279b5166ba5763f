//! Names of figures for file names, URLs and HTML.

use super::model::Report;
use std::collections::BTreeSet;

/// The longest file name made from a figure's name, in bytes without its extension.
const LONGEST_NAME: usize = 80;

/// A unique name for each figure that is safe in file names, URLs and HTML.
pub(super) fn file_names(report: &Report) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut name = |name: &str| {
        let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let words: String = name.chars().take(LONGEST_NAME).map(safe).collect();
        let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
        let base = if words.is_empty() { "figure".into() } else { words.join("-") };
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let free = std::iter::once(base.clone()).chain(numbered).find(|name| !taken.contains(name));
        let free = free.unwrap_or(base);
        taken.insert(free.clone());
        free
    };
    report.figures.iter().map(|figure| name(&figure.name)).collect()
}
