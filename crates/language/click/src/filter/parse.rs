//! Parses words to an expression.
//!
//! All errors of an expression are collected; each has the span of its words. While the rest is parsed, a
//! part with an error counts as `false`. Nesting is bounded, so that no text overflows the stack.

use super::ast::Expr;
use super::check::Inherited;
use super::lex;
use crate::config::Names;
use diag::{Diagnostic, Diagnostics, Span, Spanned};
use std::ops::Range;

/// The nesting limit of parentheses, `not` and `?:`.
pub const MAX_DEPTH: usize = 100;

/// An expression and its location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// The expression.
    pub expr: Expr,
    /// Its text.
    pub span: Span,
}

/// Parses an expression; `-`, `any` and `all` match everything. `None` after an error.
pub fn parse(text: &Spanned, names: &dyn Names, diags: &mut Diagnostics) -> Option<Pattern> {
    let mut parser = Parser {
        text,
        words: lex::words(text.as_str()),
        pos: 0,
        inherited: Inherited::default(),
        names,
        mistakes: vec![],
        warnings: vec![],
        too_deep: false,
    };
    let expr = parser.whole();
    let Parser { mistakes, warnings, .. } = parser;
    let fine = mistakes.is_empty();
    diags.extend(mistakes);
    if fine {
        diags.extend(warnings);
    }
    fine.then_some(Pattern { expr, span: text.span })
}

/// The first word of a text and the text that follows it.
pub fn first_word(text: &Spanned) -> Option<(Spanned, Spanned)> {
    let first = lex::words(text.as_str()).into_iter().next()?;
    Some((text.slice(first.clone()), text.slice(first.end..text.text.len()).trim()))
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a Spanned,
    words: Vec<Range<usize>>,
    pub(super) pos: usize,
    /// The qualifiers that a test without its own inherits from the previous one.
    pub(super) inherited: Inherited,
    pub(super) names: &'a dyn Names,
    mistakes: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
    too_deep: bool,
}

impl<'a> Parser<'a> {
    /// The word at a distance from the current one; empty past the end.
    pub(super) fn peek(&self, ahead: usize) -> &'a str {
        self.text.text.get(self.range(ahead)).unwrap_or("")
    }

    fn range(&self, ahead: usize) -> Range<usize> {
        let end = self.text.text.len();
        self.words.get(self.pos + ahead).cloned().unwrap_or(end..end)
    }

    /// The current word; empty past the end.
    pub(super) fn word(&self) -> &'a str {
        self.peek(0)
    }

    pub(super) fn at_end(&self) -> bool {
        self.pos >= self.words.len()
    }

    /// The word at a distance from the current one, with its location.
    pub(super) fn spanned(&self, ahead: usize) -> Spanned {
        self.text.slice(self.range(ahead))
    }

    /// The span of the words from `first` up to the current one.
    pub(super) fn span_from(&self, first: usize) -> Span {
        let start = self.words.get(first).map_or(self.text.text.len(), |word| word.start);
        let last = self.pos.checked_sub(1).and_then(|last| self.words.get(last));
        self.text.sub(start..last.map_or(start, |word| word.end).max(start))
    }

    /// The span of the current word, or of the end of the text.
    pub(super) fn here(&self) -> Span {
        self.text.sub(self.range(0))
    }

    pub(super) fn mistake(&mut self, mistake: Diagnostic) {
        self.mistakes.push(mistake);
    }

    fn whole(&mut self) -> Expr {
        if self.words.len() == 1 && ["-", "any", "all"].contains(&self.word()) {
            return Expr::True;
        }
        let expr = self.expression(0);
        if !self.at_end() && !self.too_deep {
            let mistake = match self.word() {
                ")" => Diagnostic::error(self.here(), "`)` without a `(`"),
                ":" => Diagnostic::error(self.here(), "`:` without a `?`"),
                word => Diagnostic::error(self.here(), format!("unexpected `{word}`")),
            };
            self.mistake(mistake);
        }
        expr
    }

    /// Whether deeper nesting is allowed. Reports the first violation.
    fn deeper(&mut self, depth: usize) -> bool {
        if depth <= MAX_DEPTH {
            return true;
        }
        if !self.too_deep {
            self.too_deep = true;
            let message = format!("more than {MAX_DEPTH} parentheses, `not`s or `?:`s inside each other");
            self.mistake(Diagnostic::error(self.here(), message).help("write it as several patterns"));
        }
        self.pos = self.words.len();
        false
    }

    fn expression(&mut self, depth: usize) -> Expr {
        if !self.deeper(depth) {
            return Expr::False;
        }
        let condition = self.any(depth);
        if self.word() != "?" {
            return condition;
        }
        let question = self.here();
        self.pos += 1;
        let yes = self.expression(depth + 1);
        if self.word() != ":" {
            if !self.too_deep {
                let mistake = Diagnostic::error(self.here(), "expected the `:` that goes with a `?`");
                self.mistake(mistake.with_note(question, "the `?`").help("the `:` needs spaces around it"));
            }
            return Expr::False;
        }
        self.pos += 1;
        let no = self.expression(depth + 1);
        Expr::If(Box::new([condition, yes, no]))
    }

    fn any(&mut self, depth: usize) -> Expr {
        let mut parts = vec![self.all(depth)];
        while matches!(self.word(), "or" | "||") {
            self.pos += 1;
            parts.push(self.all(depth));
        }
        one_or(parts, Expr::Any)
    }

    fn all(&mut self, depth: usize) -> Expr {
        let mut parts = vec![];
        loop {
            if matches!(self.word(), "" | ")" | "or" | "||" | "?" | ":" | "and" | "&&") {
                if !self.too_deep {
                    self.missing();
                }
                parts.push(Expr::False);
            } else {
                let before = self.pos;
                parts.push(self.factor(depth));
                if self.pos == before {
                    break;
                }
            }
            match self.word() {
                "and" | "&&" => self.pos += 1,
                "" | ")" | "or" | "||" | "?" | ":" | "]" => break,
                _ => {}
            }
        }
        one_or(parts, Expr::All)
    }

    fn missing(&mut self) {
        let before = self.pos.checked_sub(1).and_then(|last| self.words.get(last)).cloned();
        let mistake = match before {
            Some(before) => {
                let word = self.text.text.get(before.clone()).unwrap_or("");
                Diagnostic::error(self.text.sub(before), format!("expected a test after `{word}`"))
            }
            None if self.at_end() => {
                Diagnostic::error(self.text.span, "the pattern is empty").help("`all` matches every packet")
            }
            None => Diagnostic::error(self.here(), format!("expected a test before `{}`", self.word())),
        };
        self.mistake(mistake);
    }

    fn factor(&mut self, depth: usize) -> Expr {
        match self.word() {
            "not" | "!" => {
                self.pos += 1;
                if matches!(self.word(), "" | ")" | "or" | "||" | "?" | ":" | "and" | "&&") {
                    self.missing();
                    return Expr::False;
                }
                if !self.deeper(depth + 1) {
                    return Expr::False;
                }
                Expr::Not(Box::new(self.factor(depth + 1)))
            }
            "(" => {
                let open = self.here();
                self.pos += 1;
                let inner = self.expression(depth + 1);
                if self.word() == ")" {
                    self.pos += 1;
                } else if !self.too_deep {
                    let mistake = Diagnostic::error(self.here(), "expected `)`");
                    self.mistake(mistake.with_note(open, "the `(`"));
                }
                inner
            }
            "true" => {
                self.pos += 1;
                Expr::True
            }
            "false" => {
                self.pos += 1;
                Expr::False
            }
            _ => self.test(),
        }
    }
}

fn one_or(mut parts: Vec<Expr>, many: fn(Vec<Expr>) -> Expr) -> Expr {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            many(parts)
        }
        None => Expr::False,
    }
}
