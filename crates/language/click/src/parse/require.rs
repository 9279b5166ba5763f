//! Parses `require` and loads the libraries that it names.

use diag::Spanned;

use super::parser::{Nesting, Parser, parse_file};
use crate::ast::{Ast, Requirement, StatementKind};
use crate::config::{split_args, split_words, unquote};

/// The nesting limit of libraries that require libraries; each level uses stack.
const MAX_LIBRARY_DEPTH: usize = 8;

impl Parser<'_> {
    pub(super) fn require(&mut self) -> Option<StatementKind> {
        let text = self.keyword_config()?;
        let requirements = split_args(&text).iter().filter_map(|arg| self.requirement(arg)).collect();
        Some(StatementKind::Require(requirements))
    }

    fn requirement(&mut self, arg: &Spanned) -> Option<Requirement> {
        let words = split_words(arg);
        match words.as_slice() {
            [] => None,
            [word] => match word.as_str() {
                "compact_config" => Some(Requirement::CompactConfig(word.span)),
                "package" | "library" => {
                    let message = format!("`require({word})` does not say which {word}");
                    self.diags.error(word.span, message).help(format!("write `require({word} name)`"));
                    None
                }
                _ => Some(Requirement::Package(unquote(word))),
            },
            [kind, name] if kind.as_str() == "package" => Some(Requirement::Package(unquote(name))),
            [kind, name] if kind.as_str() == "library" => {
                let name = unquote(name);
                let ast = self.library(&name);
                Some(Requirement::Library(name, ast.map(Box::new)))
            }
            _ => {
                self.diags
                    .error(arg.span, format!("`{arg}` is not a requirement"))
                    .help("write `package NAME` or `library FILE`");
                None
            }
        }
    }

    fn library(&mut self, name: &Spanned) -> Option<Ast> {
        if self.nesting.contains(&Nesting::Compound) {
            self.diags
                .error(name.span, "`require(library ...)` inside a compound element")
                .help("move it to the top of the file");
            return None;
        }
        if self.library_depth >= MAX_LIBRARY_DEPTH {
            self.diags.error(name.span, "libraries require each other too deeply");
            return None;
        }
        let from = self.lexer.map.name(self.lexer.source).to_owned();
        let (path, text) = match self.libraries.load(&name.text, &from) {
            Ok(found) => found,
            Err(why) => {
                self.diags.error(name.span, format!("cannot load library `{name}`: {why}"));
                return None;
            }
        };
        if self.loaded.contains(&path) {
            return None;
        }
        self.loaded.push(path.clone());
        let source = self.lexer.map.add(path, text);
        let depth = self.library_depth + 1;
        Some(parse_file(self.lexer.map, source, self.libraries, self.loaded, depth, self.diags))
    }
}
