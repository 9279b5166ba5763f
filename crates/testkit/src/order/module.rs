//! The modules of a crate, read from its files: what each defines, which names it brings in, what it names.

use super::names;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use syn::ext::IdentExt;
use syn::visit::Visit;

/// A path as it is written: its segments.
pub type Written = Vec<String>;

/// One module.
#[derive(Debug, Default)]
pub struct Module {
    /// The module around it; the root has itself.
    pub parent: usize,
    /// Its name; the root's is empty.
    pub name: String,
    /// The file that it stands in.
    pub file: PathBuf,
    /// Its modules, by name.
    pub children: HashMap<String, usize>,
    /// What it defines, modules aside.
    pub items: HashSet<String>,
    /// The names that `use` brings in, with what they may stand for.
    pub aliases: HashMap<String, Vec<Written>>,
    /// What is brought in whole (`use a::*`).
    pub globs: Vec<Written>,
    /// The paths that its code names, re-exports aside.
    pub named: Vec<Written>,
}

/// The modules of the crate whose root file this is; the first is the root.
///
/// # Panics
/// When a file cannot be read or is no Rust.
pub fn read(root: &Path) -> Vec<Module> {
    let mut modules = vec![Module { file: root.to_owned(), ..Module::default() }];
    let folder = root.parent().expect("a file lies in a folder").to_owned();
    read_file(&mut modules, 0, root, &folder);
    modules
}

fn read_file(modules: &mut Vec<Module>, module: usize, file: &Path, folder: &Path) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    read_items(modules, module, &parsed.items, folder);
}

fn read_items(modules: &mut Vec<Module>, module: usize, items: &[syn::Item], folder: &Path) {
    for item in items {
        if names::attributes(item).iter().any(is_for_tests) {
            continue;
        }
        if let syn::Item::Mod(inner) = item {
            read_module(modules, module, inner, folder);
            continue;
        }
        let mut reader = Reader { module: &mut modules[module], named: vec![], bound: HashSet::new() };
        reader.module.items.extend(names::defined(item));
        reader.visit_item(item);
        // A variable may be called as something that `use` brings in.
        let Reader { mut named, bound, .. } = reader;
        named.retain(|path| path.len() > 1 || !bound.contains(&path[0]));
        modules[module].named.extend(named);
    }
}

fn read_module(modules: &mut Vec<Module>, parent: usize, inner: &syn::ItemMod, folder: &Path) {
    let name = inner.ident.unraw().to_string();
    let number = modules.len();
    let file = modules[parent].file.clone();
    modules.push(Module { parent, name: name.clone(), file, ..Module::default() });
    modules[parent].children.insert(name.clone(), number);
    let below = folder.join(&name);
    if let Some((_, items)) = &inner.content {
        return read_items(modules, number, items, &below);
    }
    let named = inner.attrs.iter().find_map(names::path_attribute);
    let beside = folder.join(format!("{name}.rs"));
    let file = match named {
        Some(path) => modules[parent].file.parent().expect("a file lies in a folder").join(path),
        None if beside.is_file() => beside,
        None => below.join("mod.rs"),
    };
    modules[number].file.clone_from(&file);
    read_file(modules, number, &file, &below);
}

/// Whether an attribute keeps what it stands at out of what ships.
pub fn is_for_tests(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else { return false };
    attribute.path().is_ident("cfg") && names_tests(list.tokens.clone())
}

/// Whether a condition names tests, fuzzing or models, as such or as a feature, and does not exclude them.
fn names_tests(condition: TokenStream) -> bool {
    let mut excluded = false;
    for token in condition {
        match token {
            TokenTree::Ident(word) => {
                if ["test", "fuzzing", "loom"].contains(&word.to_string().as_str()) {
                    return true;
                }
                excluded = word == "not";
            }
            TokenTree::Literal(feature)
                if ["\"testing\"", "\"fuzzing\""].contains(&feature.to_string().as_str()) =>
            {
                return true;
            }
            TokenTree::Group(group) if !excluded && names_tests(group.stream()) => return true,
            _ => {}
        }
    }
    false
}

/// Collects what a module's code names.
struct Reader<'a> {
    module: &'a mut Module,
    named: Vec<Written>,
    /// Variables.
    bound: HashSet<String>,
}

impl Reader<'_> {
    fn bring_in(&mut self, tree: &syn::UseTree, so_far: &[String], public: bool) {
        let with = |name: &syn::Ident| [so_far, &[name.unraw().to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.bring_in(&path.tree, &with(&path.ident), public),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.bring_in(tree, so_far, public));
            }
            syn::UseTree::Glob(_) => self.module.globs.push(so_far.to_vec()),
            syn::UseTree::Name(name) if name.ident == "self" => {
                let alias = so_far.last().cloned().unwrap_or_default();
                self.name(alias, so_far.to_vec(), public);
            }
            syn::UseTree::Name(name) => self.name(name.ident.unraw().to_string(), with(&name.ident), public),
            syn::UseTree::Rename(name) => {
                let path = if name.ident == "self" { so_far.to_vec() } else { with(&name.ident) };
                self.name(name.rename.unraw().to_string(), path, public);
            }
        }
    }

    /// A name that `use` brings in. One that is passed on is nothing that this module needs.
    fn name(&mut self, alias: String, path: Written, public: bool) {
        self.module.aliases.entry(alias).or_default().push(path.clone());
        if !public {
            self.named.push(path);
        }
    }

    /// The paths in the tokens of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Written = vec![];
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(word) if path.is_empty() || colons == 2 => {
                    path.push(word.unraw().to_string())
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Punct(mark) if mark.as_char() == '$' => {}
                other => {
                    self.end_of_path(&mut path);
                    match other {
                        TokenTree::Ident(word) => path.push(word.unraw().to_string()),
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        _ => {}
                    }
                }
            }
            colons = 0;
        }
        self.end_of_path(&mut path);
    }

    fn end_of_path(&mut self, path: &mut Written) {
        if !path.is_empty() {
            self.named.push(std::mem::take(path));
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        // Items inside of functions, too.
        if !names::attributes(item).iter().any(is_for_tests) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !item.attrs.iter().any(is_for_tests) {
            syn::visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let public = !matches!(item.vis, syn::Visibility::Inherited);
        self.bring_in(&item.tree, &[], public);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let segments = path.segments.iter().map(|segment| segment.ident.unraw().to_string());
            self.named.push(segments.collect());
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_pat_ident(&mut self, variable: &'ast syn::PatIdent) {
        self.bound.insert(variable.ident.unraw().to_string());
        syn::visit::visit_pat_ident(self, variable);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {
        // `pub(in crate::a)` needs nothing of `a`.
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }
}
