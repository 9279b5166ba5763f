//! Tokens of the language, split as Click's `lib/lexer.cc` does.
//!
//! Comments are tokens too, and the formatter keeps them. A configuration string is one token: the parser
//! requests it after the opening `(`, and the lexer only balances parentheses, quotes and comments in it.

use diag::{Diagnostics, SourceId, SourceMap, Span};

use crate::scan;

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Ident,
    /// `$name`; the span covers the dollar sign.
    Variable,
    ElementClass,
    Require,
    Provide,
    Define,
    /// `->`
    Arrow,
    /// `=>`
    DoubleArrow,
    /// `::`
    Colons,
    /// `||`
    Bars,
    /// `...`
    Dots,
    /// `;` `,` `(` `)` `[` `]` `{` `}` `|` `-`
    Sign(u8),
    /// The text between the parentheses of `Class(...)`.
    Config,
    LineComment,
    BlockComment,
    /// `# 12 "file"` or `#line 12 "file"`
    LineDirective,
    /// A character that is not part of the language.
    Unknown,
    End,
}

impl Kind {
    /// Whether the parser skips the token.
    pub(crate) fn is_trivia(self) -> bool {
        matches!(self, Kind::LineComment | Kind::BlockComment | Kind::LineDirective)
    }
}

/// A token and its location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

pub(crate) struct Lexer<'a> {
    pub(crate) map: &'a mut SourceMap,
    pub(crate) source: SourceId,
    pub(crate) text: String,
    at: usize,
    /// All tokens read so far, including comments, without `End`.
    pub(crate) tokens: Vec<Token>,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(map: &'a mut SourceMap, source: SourceId) -> Lexer<'a> {
        let text = map.text(source).to_owned();
        Lexer { map, source, text, at: 0, tokens: Vec::new() }
    }

    pub(crate) fn span(&self, token: Token) -> Span {
        Span::new(self.source, token.start, token.end)
    }

    pub(crate) fn slice(&self, token: Token) -> &str {
        self.text.get(token.start..token.end).unwrap_or("")
    }

    /// The next token that is no comment.
    pub(crate) fn next(&mut self, diags: &mut Diagnostics) -> Token {
        loop {
            let token = self.next_any(diags);
            if token.kind == Kind::End {
                return token;
            }
            self.tokens.push(token);
            if !token.kind.is_trivia() {
                return token;
            }
        }
    }

    fn next_any(&mut self, diags: &mut Diagnostics) -> Token {
        let text = self.text.as_bytes();
        while text.get(self.at).is_some_and(|&byte| scan::is_space(byte)) {
            self.at += 1;
        }
        let start = self.at;
        let Some(&byte) = text.get(start) else {
            return Token { kind: Kind::End, start, end: start };
        };
        let next = text.get(start + 1).copied();
        let line_start = start == 0 || matches!(text.get(start - 1), Some(b'\n' | b'\r'));
        let (kind, end) = match (byte, next) {
            (b'/', Some(b'/')) => (Kind::LineComment, line_end(text, start)),
            (b'/', Some(b'*')) => (Kind::BlockComment, self.block_comment(start, diags)),
            (b'#', _) if line_start => (Kind::LineDirective, self.line_directive(start, diags)),
            (b'$', Some(c)) if scan::is_variable(c) => {
                let rest = text.get(start + 1..).unwrap_or_default();
                let len = rest.iter().take_while(|&&c| scan::is_variable(c)).count();
                (Kind::Variable, start + 1 + len)
            }
            (b'-', Some(b'>')) => (Kind::Arrow, start + 2),
            (b'=', Some(b'>')) => (Kind::DoubleArrow, start + 2),
            (b':', Some(b':')) => (Kind::Colons, start + 2),
            (b'|', Some(b'|')) => (Kind::Bars, start + 2),
            (b'.', Some(b'.')) if text.get(start + 2) == Some(&b'.') => (Kind::Dots, start + 3),
            (b';' | b',' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'|' | b'-', _) => {
                (Kind::Sign(byte), start + 1)
            }
            (byte, _) if scan::is_word(byte) => word(&self.text, start),
            _ => {
                let char_len = self.text.get(start..).and_then(|s| s.chars().next());
                (Kind::Unknown, start + char_len.map_or(1, char::len_utf8))
            }
        };
        self.at = end;
        Token { kind, start, end }
    }

    fn block_comment(&self, start: usize, diags: &mut Diagnostics) -> usize {
        scan::skip_block_comment(self.text.as_bytes(), start + 2).unwrap_or_else(|| {
            diags
                .error(Span::new(self.source, start, start + 2), "comment is never closed")
                .label("opened here")
                .help("close it with `*/`");
            self.text.len()
        })
    }

    /// `# 12 "file"`: the following lines come from another file (the output of a preprocessor).
    fn line_directive(&mut self, start: usize, diags: &mut Diagnostics) -> usize {
        let end = line_end(self.text.as_bytes(), start);
        let line = self.text.get(start + 1..end).unwrap_or("").trim();
        let line = line.strip_prefix("line").unwrap_or(line).trim_start();
        let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = line.split_at(digits);
        match number.parse::<u32>() {
            Ok(number) => {
                let name = rest.trim().strip_prefix('"').and_then(|rest| rest.split('"').next());
                // An empty name refers to this file.
                let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
                let next_line = scan::skip_line(self.text.as_bytes(), start);
                self.map.relabel_lines(self.source, next_line, number, name);
            }
            Err(_) => {
                diags
                    .error(Span::new(self.source, start, end), "unknown preprocessor directive")
                    .help("a line directive reads `# 12 \"file\"`; comments start with `//`");
            }
        }
        end
    }

    /// The configuration string after the `(` at `open`, up to the matching `)`, which is not consumed.
    pub(crate) fn config(&mut self, open: Token, diags: &mut Diagnostics) -> Token {
        let text = self.text.as_bytes();
        let start = self.at;
        let mut at = start;
        let mut depth = 1usize;
        let mut unclosed: Option<(usize, &str)> = None;
        // The last `;` at the end of a line. An unclosed string is taken to end there.
        let mut statement_end = None;
        while let Some(&byte) = text.get(at) {
            let next = match byte {
                b'(' => {
                    depth += 1;
                    Some(at + 1)
                }
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                    Some(at + 1)
                }
                b'\'' | b'"' => scan::skip_quote(text, at),
                b'\\' if text.get(at + 1) == Some(&b'<') => scan::skip_hex(text, at + 2),
                b'/' if text.get(at + 1) == Some(&b'*') => scan::skip_block_comment(text, at + 2),
                b'/' if text.get(at + 1) == Some(&b'/') => Some(scan::skip_line(text, at + 2)),
                b';' if statement_end.is_none() && ends_line(text, at + 1) => {
                    statement_end = Some(at);
                    Some(at + 1)
                }
                _ => Some(at + 1),
            };
            match next {
                Some(next) => at = next,
                None => {
                    let what = match byte {
                        b'\'' | b'"' => "quote",
                        b'\\' => "`\\<` string",
                        _ => "comment",
                    };
                    unclosed = Some((at, what));
                    break;
                }
            }
        }
        if unclosed.is_some() || at >= text.len() {
            match unclosed.filter(|_| statement_end.is_none()) {
                Some((at, what)) => diags
                    .error(Span::new(self.source, at, at + 1), format!("{what} is never closed"))
                    .label("opened here"),
                None => diags
                    .error(self.span(open), "`(` is never closed")
                    .label("opened here")
                    .help("close the configuration string with `)`"),
            };
            // Continue after it: the rest of the text has errors of its own.
            at = statement_end.unwrap_or_else(|| line_end(text, unclosed.map_or(start, |(at, _)| at)));
        }
        self.at = at;
        let token = Token { kind: Kind::Config, start, end: at };
        self.tokens.push(token);
        token
    }
}

/// The end of the line that holds `at`, line end excluded.
fn line_end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let len = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    at + len.unwrap_or(rest.len())
}

/// Whether nothing but white space or a comment follows on the line.
fn ends_line(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..line_end(text, at)).unwrap_or_default();
    let blank = rest.iter().take_while(|&&byte| scan::is_space(byte)).count();
    blank == rest.len() || rest.get(blank..).is_some_and(|rest| rest.starts_with(b"//"))
}

/// An identifier: word characters, with single slashes inside.
fn word(text: &str, start: usize) -> (Kind, usize) {
    let bytes = text.as_bytes();
    let mut end = start;
    while let Some(&byte) = bytes.get(end) {
        let slash = byte == b'/' && bytes.get(end + 1).is_some_and(|&next| scan::is_word(next));
        if !scan::is_word(byte) && !slash {
            break;
        }
        end += 1;
    }
    let kind = match text.get(start..end).unwrap_or("") {
        "elementclass" => Kind::ElementClass,
        "require" => Kind::Require,
        "provide" => Kind::Provide,
        "define" => Kind::Define,
        _ => Kind::Ident,
    };
    (kind, end)
}
