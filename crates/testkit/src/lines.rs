//! Lines of code: those that are neither blank nor comments, in files and items that ship. Code for tests,
//! fuzzing and models does not count.

use crate::order::{module, names};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The lines of code of the crate whose root file this is, in each of its files.
///
/// # Panics
/// When a file cannot be read, or is no Rust.
pub fn of_crate(root: &Path) -> Vec<(PathBuf, usize)> {
    let files: BTreeSet<PathBuf> = module::read(root).into_iter().map(|module| module.file).collect();
    let count = |file: PathBuf| {
        let lines = of_text(&std::fs::read_to_string(&file).expect("a file that can be read"));
        (file, lines)
    };
    files.into_iter().map(count).collect()
}

/// The lines of code of a file with this text.
///
/// # Panics
/// When it is no Rust.
pub fn of_text(text: &str) -> usize {
    let mut tests = Tests(vec![]);
    tests.visit_file(&syn::parse_file(text).expect("Rust"));
    let counts = |(line, text): &(usize, &str)| {
        let text = text.trim_start();
        !text.is_empty() && !text.starts_with("//") && !tests.0.iter().any(|lines| lines.contains(line))
    };
    (1..).zip(text.lines()).filter(counts).count()
}

/// The lines of items that do not ship.
struct Tests(Vec<RangeInclusive<usize>>);

impl<'ast> Visit<'ast> for Tests {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if names::attributes(item).iter().any(module::is_for_tests) {
            self.0.push(item.span().start().line..=item.span().end().line);
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.attrs.iter().any(module::is_for_tests) {
            self.0.push(item.span().start().line..=item.span().end().line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ships_is_counted() {
        let text = "//! A page.\n\nuse a::b;\n/// A function.\nfn f() {\n    // Why.\n    b();\n}\n\n\
                    impl S {\n    #[cfg(test)]\n    fn g() {\n    }\n}\n\
                    #[cfg(any(test, feature = \"fuzzing\"))]\nmod fuzz {\n    fn h() {}\n}\n";
        assert_eq!(of_text(text), 6);
    }

    #[test]
    fn files_of_tests_are_no_code() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write("lib.rs", "mod a;\n#[cfg(test)]\nmod tests;\n");
        write("a.rs", "fn f() {}\n");
        write("tests.rs", "fn f() {}\n");
        let counted = of_crate(&folder.path().join("lib.rs"));
        let counted: Vec<usize> = counted.into_iter().map(|(_, lines)| lines).collect();
        assert_eq!(counted, [1, 1]);
    }
}
