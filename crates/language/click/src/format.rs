//! The formatter: one layout for every configuration.
//!
//! It walks the tokens, so that comments keep their positions, and takes only the ends of statements from the
//! tree. It keeps names, configuration strings, comments, single blank lines, line breaks before arrows and
//! after commas, and compounds on one line. Everything else gets a new layout: one statement a line, four
//! spaces for each level, a semicolon after every statement except `elementclass Name { }`.
//!
//! A second formatting changes nothing. Formatting never changes the meaning of the configuration.

use std::collections::HashMap;

use crate::ast::{Ast, Body, Class, Compound, ElementKind, Statement, StatementKind};
use crate::token::{Kind, Token};

/// The text of the file in the standard layout. A file with errors is returned unchanged.
pub fn format(ast: &Ast) -> String {
    if !ast.valid {
        return ast.text.clone();
    }
    let mut ends = HashMap::new();
    add_ends(&ast.statements, &mut ends);
    let mut printer = Printer {
        ast,
        ends,
        out: String::with_capacity(ast.text.len() + ast.text.len() / 4),
        levels: Vec::new(),
        line: Line::Empty,
        mid_statement: false,
    };
    printer.tokens();
    printer.out
}

/// The ends of statements: the byte after the last token, and whether a semicolon follows it, as it does
/// behind all but `elementclass Name { }`.
type Ends = HashMap<usize, bool>;

fn add_ends(statements: &[Statement], ends: &mut Ends) {
    for statement in statements {
        let mut semicolon = true;
        match &statement.kind {
            StatementKind::Chain(chain) => {
                for element in chain.stages.iter().flatten() {
                    match &element.element {
                        ElementKind::Named { class: Some(Class::Compound(inner)), .. }
                        | ElementKind::Compound { compound: inner, .. } => add_ends_of_compound(inner, ends),
                        ElementKind::Group(statements) => add_ends(statements, ends),
                        _ => {}
                    }
                }
            }
            StatementKind::ElementClass { class: Class::Compound(inner), .. } => {
                add_ends_of_compound(inner, ends);
                semicolon = false;
            }
            _ => {}
        }
        ends.insert(statement.span.end as usize, semicolon);
    }
}

fn add_ends_of_compound(compound: &Compound, ends: &mut Ends) {
    for Body { statements, .. } in &compound.bodies {
        add_ends(statements, ends);
    }
}

/// The kind of a bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    /// Around a configuration string.
    Config,
    /// `{ }` or `( )` on one line.
    Inline,
    /// `{ }` or `( )` over several lines.
    Block,
}

/// A token, and its kind if it is a bracket.
type Marked = (Token, Option<Bracket>);

/// The kind of each bracket token, by token index.
fn brackets(ast: &Ast) -> Vec<Option<Bracket>> {
    let mut brackets = vec![None; ast.tokens.len()];
    let mut open = Vec::new();
    for (i, token) in ast.tokens.iter().enumerate() {
        match token.kind {
            Kind::Sign(b'{' | b'(') => open.push((i, token.start)),
            Kind::Sign(b'}' | b')') => {
                let Some((start, first)) = open.pop() else { continue };
                let inside = ast.tokens.get(start + 1..i).unwrap_or_default();
                let lines = ast.text.get(first..token.end).unwrap_or("");
                let bracket = if inside.first().is_some_and(|t| t.kind == Kind::Config) {
                    Bracket::Config
                } else if lines.contains(['\n', '\r']) || inside.iter().any(|t| t.kind.is_trivia()) {
                    Bracket::Block
                } else {
                    Bracket::Inline
                };
                (brackets[start], brackets[i]) = (Some(bracket), Some(bracket));
            }
            _ => {}
        }
    }
    brackets
}

/// The content of the line that is being written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Empty,
    Text,
    /// A line comment: only a line break can follow.
    Closed,
}

struct Printer<'a> {
    ast: &'a Ast,
    ends: Ends,
    out: String,
    /// Brackets around the current token.
    levels: Vec<Bracket>,
    line: Line,
    /// Whether the current statement has begun; its further lines are indented.
    mid_statement: bool,
}

impl Printer<'_> {
    fn tokens(&mut self) {
        let tokens = self.ast.tokens.iter().copied().zip(brackets(self.ast));
        // Semicolons are written at the ends of statements instead.
        let mut tokens = tokens.filter(|(token, _)| token.kind != Kind::Sign(b';')).peekable();
        let mut before = None;
        while let Some(marked) = tokens.next() {
            self.token(before, marked, tokens.peek().map(|&(token, _)| token));
            before = Some(marked);
        }
        if self.line != Line::Empty {
            self.out.push('\n');
        }
    }

    fn token(&mut self, before: Option<Marked>, marked: Marked, after: Option<Token>) {
        let (token, bracket) = marked;
        let text = self.ast.text.get(token.start..token.end).unwrap_or("");
        let closes = matches!(token.kind, Kind::Sign(b'}' | b')'));
        if closes && bracket != Some(Bracket::Config) {
            self.levels.pop();
            self.mid_statement = false;
        }
        if token.kind.is_trivia() {
            self.comment(before, token, text);
        } else {
            self.separate(before, marked, after);
            self.write(text);
            self.mid_statement = true;
        }
        let opens = matches!(token.kind, Kind::Sign(b'{' | b'('));
        if opens && let Some(bracket @ (Bracket::Inline | Bracket::Block)) = bracket {
            self.levels.push(bracket);
            self.mid_statement = false;
        }
        if matches!(token.kind, Kind::Bars | Kind::Sign(b'|')) {
            self.mid_statement = false;
        }
        if let Some(semicolon) = self.ends.get(&token.end).filter(|_| !token.kind.is_trivia()) {
            let last = after.is_none_or(|after| matches!(after.kind, Kind::Sign(b'}' | b')') | Kind::Bars));
            if *semicolon && !(last && self.levels.last() == Some(&Bracket::Inline)) {
                self.out.push(';');
            }
            self.mid_statement = false;
        }
    }

    fn comment(&mut self, before: Option<Marked>, token: Token, text: &str) {
        let gap = self.lines_between(before.map_or(0, |(before, _)| before.end), token.start);
        if token.kind == Kind::LineDirective {
            if self.line != Line::Empty {
                self.out.push('\n');
            }
            self.out.push_str(text.trim_end());
            self.line = Line::Closed;
            return;
        }
        if before.is_none() || self.line == Line::Empty {
            self.new_line(gap.min(2), false);
        } else if gap > 0 || self.line == Line::Closed {
            self.new_line(gap.clamp(1, 2), false);
        } else {
            let line = token.kind == Kind::LineComment;
            self.out.push_str(if line { "  " } else { " " });
        }
        self.write(text.trim_end());
        if token.kind == Kind::LineComment {
            self.line = Line::Closed;
        }
    }

    /// Writes the space or the line break between two tokens.
    fn separate(&mut self, before: Option<Marked>, marked: Marked, after: Option<Token>) {
        let Some(marked_before @ (before, _)) = before else {
            return;
        };
        let (token, bracket) = marked;
        let gap = self.lines_between(before.end, token.start);
        let inside = self.levels.last().copied();
        let closes = matches!(token.kind, Kind::Sign(b'}' | b')'));
        let begins = !self.mid_statement;
        if bracket == Some(Bracket::Block) && closes {
            self.new_line(1, false);
        } else if token.kind == Kind::Bars && inside == Some(Bracket::Block) {
            self.new_line(1, true);
        } else if begins && !closes && inside != Some(Bracket::Inline) {
            let opened = matches!(before.kind, Kind::Sign(b'{' | b'(' | b'|') | Kind::Bars);
            self.new_line(if opened { 1 } else { gap.clamp(1, 2) }, false);
        } else if self.line == Line::Closed || (!begins && self.breaks_line(before, token, after, gap)) {
            self.new_line(1, false);
        } else if is_spaced(marked_before, marked) {
            self.out.push(' ');
        }
    }

    /// Whether a line break of the source inside a statement is kept.
    fn breaks_line(&self, before: Token, token: Token, after: Option<Token>, gap: usize) -> bool {
        match token.kind {
            Kind::Arrow | Kind::DoubleArrow => {
                let comment = after.is_some_and(|after| after.kind.is_trivia());
                let next_gap = after.map_or(0, |after| self.lines_between(token.end, after.start));
                // The next statement follows a last arrow.
                let last = self.ends.get(&token.end) == Some(&true);
                gap > 0 || (next_gap > 0 && !comment && !last)
            }
            _ if matches!(before.kind, Kind::Arrow | Kind::DoubleArrow) => false,
            _ if before.kind.is_trivia() => gap > 0,
            _ => before.kind == Kind::Sign(b',') && gap > 0,
        }
    }

    /// The number of line breaks between two places in the text.
    fn lines_between(&self, start: usize, end: usize) -> usize {
        let between = self.ast.text.get(start..end).unwrap_or("");
        let crlf = between.matches("\r\n").count();
        between.matches(['\n', '\r']).count() - crlf
    }

    /// Starts a new line after `breaks` line breaks (none at the start of the text).
    fn new_line(&mut self, breaks: usize, outdent: bool) {
        if !self.out.is_empty() {
            for _ in 0..breaks.max(1) {
                self.out.push('\n');
            }
        }
        let blocks = self.levels.iter().filter(|&&level| level == Bracket::Block).count();
        let indent = (blocks + usize::from(self.mid_statement)).saturating_sub(usize::from(outdent));
        self.out.push_str(&"    ".repeat(indent));
        self.line = Line::Empty;
    }

    fn write(&mut self, text: &str) {
        self.out.push_str(text);
        self.line = Line::Text;
    }
}

/// Whether a space stands between two tokens on a line.
fn is_spaced((before, bracket_before): Marked, (token, bracket): Marked) -> bool {
    let port_dash = |kind| kind == Kind::Sign(b'-');
    match (before.kind, token.kind) {
        (_, Kind::Sign(b',' | b']') | Kind::Config) => false,
        (Kind::Sign(b'['), _) | (Kind::Config, _) => false,
        (before, token) if port_dash(before) || port_dash(token) => false,
        (_, Kind::Sign(b'(' | b')')) if bracket == Some(Bracket::Config) => false,
        (Kind::Sign(b'('), _) if bracket_before != Some(Bracket::Config) => false,
        (_, Kind::Sign(b')')) => false,
        // No space separates a port list from its element.
        (Kind::Ident | Kind::Sign(b')' | b'}'), Kind::Sign(b'[')) => false,
        (Kind::Sign(b']'), Kind::Ident) => false,
        _ => true,
    }
}
