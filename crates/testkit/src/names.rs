//! The names that code defines, each with the place of its definition.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use syn::parse::{ParseStream, Parser};
use syn::visit::{self, Visit};

/// A name and what it is the name of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name {
    /// The file, from the repository's root.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What it names: `struct`, `fn`, `field`, …
    pub kind: &'static str,
    /// The name as written.
    pub name: String,
}

/// The files below a folder whose names end in a dot and one of `extensions`.
///
/// # Panics
/// When the folder cannot be read.
pub fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            found.extend(files(&path, extensions));
        } else if extensions.iter().any(|one| path.extension().is_some_and(|extension| extension == *one)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The names that a file defines: types, traits, modules, functions, constants, statics, fields, variants,
/// handlers of elements and NFs, and metrics.
///
/// # Panics
/// When the file cannot be read, or is no Rust.
pub fn defined(file: &Path, root: &Path) -> Vec<Name> {
    let text = std::fs::read_to_string(file).expect("a file that can be read");
    let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut walk = Walk { file: file.strip_prefix(root).unwrap_or(file).to_owned(), names: vec![] };
    walk.visit_file(&syntax);
    walk.names
}

/// The identifiers of a C file, each where it stands first, outside of comments and texts. Names of the NF
/// library have no prefix `millrace_` here.
///
/// # Panics
/// When the file cannot be read.
pub fn in_c(file: &Path, root: &Path) -> Vec<Name> {
    let text = std::fs::read_to_string(file).expect("a file that can be read");
    let file = file.strip_prefix(root).unwrap_or(file);
    let (mut names, mut seen) = (vec![], BTreeSet::new());
    for (line, text) in (1..).zip(without_comments(&text).lines()) {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        for word in text.split(|letter| !is_part(letter)) {
            let name = word.strip_prefix("millrace_").unwrap_or(word);
            if word.starts_with(|letter: char| !letter.is_ascii_digit()) && seen.insert(word.to_owned()) {
                names.push(Name { file: file.to_owned(), line, kind: "C", name: name.to_owned() });
            }
        }
    }
    names
}

/// The text of a C file with its lines, where comments and texts are blank. It knows neither the character
/// `'"'` nor texts that end with a backslash.
fn without_comments(text: &str) -> String {
    let mut left = text;
    let mut code = String::with_capacity(text.len());
    let ends = [("/*", "*/"), ("//", "\n"), ("\"", "\"")];
    while let Some((at, (begin, end))) =
        ends.iter().filter_map(|ends| Some((left.find(ends.0)?, *ends))).min_by_key(|(at, _)| *at)
    {
        code += &left[..at];
        let inside = &left[at + begin.len()..];
        // Behind a backslash a quote is a part of the text.
        let is_end = |at: &usize| end != "\"" || !inside[..*at].ends_with('\\');
        let until = inside.match_indices(end).map(|(at, _)| at).find(is_end).unwrap_or(inside.len());
        code.extend(inside[..until].chars().filter(|letter| *letter == '\n'));
        left = inside.get(until + usize::from(end != "\n") * end.len()..).unwrap_or_default();
        code.push(' ');
    }
    code + left
}

struct Walk {
    file: PathBuf,
    names: Vec<Name>,
}

impl Walk {
    fn add(&mut self, kind: &'static str, ident: &proc_macro2::Ident) {
        self.add_text(kind, ident.to_string(), ident.span());
    }

    /// Adds the text that is the first argument of a call.
    fn add_first(
        &mut self,
        kind: &'static str,
        args: &syn::punctuated::Punctuated<syn::Expr, syn::Token![,]>,
    ) {
        if let Some(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(name), .. })) = args.first() {
            self.add_text(kind, name.value(), name.span());
        }
    }

    /// Visits the rows and handlers in the tokens of a macro, which are not parsed.
    fn visit_rows(&mut self, tokens: TokenStream) {
        let mut rest = tokens.into_iter();
        loop {
            let from = rest.clone();
            match rest.next() {
                Some(TokenTree::Group(group)) => self.visit_rows(group.stream()),
                Some(TokenTree::Ident(of)) if of == "Row" || of == "Handler" => {
                    if let Ok((row, _)) = leading_expr.parse2(from.collect()) {
                        self.visit_expr(&row);
                    }
                }
                Some(_) => {}
                None => return,
            }
        }
    }

    fn add_text(&mut self, kind: &'static str, name: String, span: proc_macro2::Span) {
        self.names.push(Name { file: self.file.clone(), line: span.start().line, kind, name });
    }
}

/// The expression that tokens begin with, and what follows.
fn leading_expr(input: ParseStream<'_>) -> syn::Result<(syn::Expr, TokenStream)> {
    Ok((input.parse()?, input.parse()?))
}

/// For each kind of definition with a name of its own: its visitor and type, what it is called, and its name.
macro_rules! definitions {
    ($($visitor:ident($type:ident): $kind:literal, $($name:ident).+;)*) => {$(
        fn $visitor(&mut self, item: &'ast syn::$type) {
            self.add($kind, &item.$($name).+);
            visit::$visitor(self, item);
        }
    )*};
}

impl<'ast> Visit<'ast> for Walk {
    definitions! {
        visit_item_struct(ItemStruct): "struct", ident;
        visit_item_enum(ItemEnum): "enum", ident;
        visit_item_trait(ItemTrait): "trait", ident;
        visit_item_type(ItemType): "type", ident;
        visit_item_mod(ItemMod): "mod", ident;
        visit_item_const(ItemConst): "const", ident;
        visit_item_static(ItemStatic): "static", ident;
        visit_impl_item_const(ImplItemConst): "const", ident;
        visit_item_fn(ItemFn): "fn", sig.ident;
        visit_impl_item_fn(ImplItemFn): "fn", sig.ident;
        visit_trait_item_fn(TraitItemFn): "fn", sig.ident;
        visit_variant(Variant): "variant", ident;
    }

    fn visit_field(&mut self, item: &'ast syn::Field) {
        if let Some(ident) = &item.ident {
            self.add("field", ident);
        }
        visit::visit_field(self, item);
    }
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(path) = &*call.func {
            let names: Vec<String> =
                path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            match &*names.iter().map(String::as_str).collect::<Vec<_>>() {
                // A row of an element's handlers, or a handler of an NF.
                ["Row" | "Handler", _] => self.add_first("handler", &call.args),
                // How metrics are made.
                ["counter" | "gauge"] => self.add_first("metric", &call.args),
                _ => {}
            }
        }
        visit::visit_expr_call(self, call);
    }
    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.visit_rows(mac.tokens.clone());
        visit::visit_macro(self, mac);
    }
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if call.method == "register" {
            self.add_first("metric", &call.args);
        }
        visit::visit_expr_method_call(self, call);
    }
}

/// The words of a name in small letters: `FlowCache`, `flow_cache` and `FLOW_CACHE` are `flow cache`.
pub fn words(name: &str) -> String {
    let mut words = String::new();
    let mut before = '_';
    for letter in name.chars() {
        let begins = letter.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit());
        if (begins || letter == '_' || letter == '-') && !words.is_empty() {
            words.push(' ');
        }
        if letter != '_' && letter != '-' {
            words.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        for name in ["FlowCache", "flow_cache", "FLOW_CACHE", "flow-cache"] {
            assert_eq!(words(name), "flow cache");
        }
        assert_eq!(words("Bell"), "bell");
    }

    #[test]
    fn identifiers_of_c_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.c");
        let text = "/* not\nthis */ int millrace_up(struct s *s) { // nor this\n  \
                    return puts(\"or \\\" this\", s->count); }\n#define LEFT 7\n";
        std::fs::write(&file, text).expect("written");
        let found = in_c(&file, folder.path());
        let found: Vec<(usize, &str)> = found.iter().map(|name| (name.line, &*name.name)).collect();
        let expected =
            [(2, "int"), (2, "up"), (2, "struct"), (2, "s"), (3, "return"), (3, "puts"), (3, "count")];
        assert_eq!(found[..7], expected);
        assert_eq!(found[7..], [(4, "define"), (4, "LEFT")]);
    }

    #[test]
    fn definitions_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.rs");
        let text = "mod m { pub struct S { f: u8 } enum E { V } impl S { fn g() {} } }\n\
                    const H: &[Row<S>] = &[Row::read(\"way\", |_, _| None)];\n\
                    static T: u8 = 0; fn h() { Handler::named(\"rules\"); registry.register(\"up\", \"\", up); }\n\
                    rows![$own, Row::sum::<u8>(\"lent\", f).or(g), other(\"no\")];";
        std::fs::write(&file, text).expect("written");
        let found = defined(&file, folder.path());
        let found: Vec<(&str, &str)> = found.iter().map(|name| (name.kind, &*name.name)).collect();
        let expected = [
            ("mod", "m"),
            ("struct", "S"),
            ("field", "f"),
            ("enum", "E"),
            ("variant", "V"),
            ("fn", "g"),
            ("const", "H"),
            ("handler", "way"),
            ("static", "T"),
            ("fn", "h"),
            ("handler", "rules"),
            ("metric", "up"),
            ("handler", "lent"),
        ];
        assert_eq!(found, expected);
    }
}
