//! A text that remembers where it came from.
//!
//! Variables are substituted into configuration strings, so the text an element parses is often
//! not the text in the file. A [`Spanned`] keeps, for each range of its text, the span it came
//! from and whether it stands there letter by letter.

use std::fmt;
use std::ops::Range;

use crate::Span;
use crate::source_map::floor_boundary;

/// A text with where it came from.
///
/// `text` may differ from the source under `span` (after variable substitution, unquoting).
/// [`Spanned::sub`] gives a precise span where the text is verbatim from the source, else the
/// span of the range it came from (the `$variable`, the whole argument).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned {
    /// The text.
    pub text: String,
    /// Where it came from as a whole.
    pub span: Span,
    origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// The text is the source text under the span.
    Verbatim,
    /// The text came from the span, but not letter by letter.
    Derived,
    /// Ranges of the two kinds, in text order, without gaps.
    Pieces(Vec<Piece>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    text: Range<usize>,
    span: Span,
    verbatim: bool,
}

impl Piece {
    /// The span of the part of this piece that lies in `range` (a range of the whole text).
    fn sub(&self, range: &Range<usize>) -> Span {
        if !self.verbatim {
            return self.span;
        }
        let start = range.start.max(self.text.start) - self.text.start;
        let end = range.end.min(self.text.end).max(self.text.start) - self.text.start;
        offset_span(self.span, start, end.max(start))
    }
}

fn offset_span(base: Span, start: usize, end: usize) -> Span {
    let at = base.start as usize;
    Span::new(base.source, at + start, at + end)
}

impl Spanned {
    /// A text that stands letter by letter under `span`.
    pub fn verbatim(text: impl Into<String>, span: Span) -> Spanned {
        let text = text.into();
        let origin =
            if text.len() == span.len() && !span.is_none() { Origin::Verbatim } else { Origin::Derived };
        Spanned { text, span, origin }
    }

    /// A text that came from `span` in some other way (substituted, unquoted, made up).
    pub fn derived(text: impl Into<String>, span: Span) -> Spanned {
        Spanned { text: text.into(), span, origin: Origin::Derived }
    }

    /// One text from several, each keeping its own origin; `span` is where the whole came from.
    pub fn concat<'a>(parts: impl IntoIterator<Item = &'a Spanned>, span: Span) -> Spanned {
        let mut text = String::new();
        let mut pieces = Vec::new();
        for part in parts {
            let base = text.len();
            text.push_str(&part.text);
            for piece in part.pieces() {
                if !piece.text.is_empty() {
                    pieces.push(Piece { text: piece.text.start + base..piece.text.end + base, ..piece });
                }
            }
        }
        match pieces.as_slice() {
            // A value that stands for the whole text still stands where it is used.
            [only] if only.span != span => {
                let origin = Origin::Pieces(pieces);
                Spanned { text, span, origin }
            }
            _ => Spanned::from_pieces(text, span, pieces),
        }
    }

    fn from_pieces(text: String, span: Span, mut pieces: Vec<Piece>) -> Spanned {
        match (pieces.pop(), pieces.is_empty()) {
            (Some(only), true) if only.verbatim => Spanned::verbatim(text, only.span),
            (Some(only), true) => Spanned::derived(text, only.span),
            (Some(last), false) => {
                pieces.push(last);
                let origin = Origin::Pieces(pieces);
                Spanned { text, span, origin }
            }
            (None, _) => Spanned::derived(text, span),
        }
    }

    fn pieces(&self) -> Vec<Piece> {
        match &self.origin {
            Origin::Pieces(pieces) => pieces.clone(),
            origin => vec![Piece {
                text: 0..self.text.len(),
                span: self.span,
                verbatim: *origin == Origin::Verbatim,
            }],
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether the text stands in the source letter by letter.
    pub fn is_verbatim(&self) -> bool {
        self.origin == Origin::Verbatim
    }

    /// The span of the bytes `range` of the text, as precise as its origin allows.
    pub fn sub(&self, range: Range<usize>) -> Span {
        let range = self.clamp(range);
        match &self.origin {
            Origin::Verbatim => offset_span(self.span, range.start, range.end),
            Origin::Derived => self.span,
            Origin::Pieces(pieces) => match touched(pieces, &range) {
                [only] => only.sub(&range),
                // Ranges from elsewhere cannot be underlined as one: those that stand
                // where the whole stands are shown.
                several => several
                    .iter()
                    .map(|piece| piece.sub(&range))
                    .filter(|span| self.span.contains(*span))
                    .reduce(Span::join)
                    .unwrap_or(self.span),
            },
        }
    }

    /// The bytes `range` of the text with their origin; a range outside the text is cut.
    pub fn slice(&self, range: Range<usize>) -> Spanned {
        let range = self.clamp(range);
        let text = self.text.get(range.clone()).unwrap_or("").to_owned();
        let span = self.sub(range.clone());
        match &self.origin {
            Origin::Verbatim => Spanned::verbatim(text, span),
            Origin::Derived => Spanned::derived(text, span),
            Origin::Pieces(pieces) => {
                let inside = touched(pieces, &range)
                    .iter()
                    .map(|piece| Piece {
                        text: piece.text.start.max(range.start) - range.start
                            ..piece.text.end.min(range.end) - range.start,
                        span: piece.sub(&range),
                        verbatim: piece.verbatim,
                    })
                    .collect();
                Spanned::from_pieces(text, span, inside)
            }
        }
    }

    /// Without white space at both ends.
    pub fn trim(&self) -> Spanned {
        let start = self.text.len() - self.text.trim_start().len();
        let end = start + self.text.trim().len();
        self.slice(start..end)
    }

    fn clamp(&self, range: Range<usize>) -> Range<usize> {
        let start = floor_boundary(&self.text, range.start);
        let end = floor_boundary(&self.text, range.end).max(start);
        start..end
    }
}

/// The pieces that share a byte with the range; an empty range touches those around it. Pieces stand in
/// the order of the text, and there may be as many as a table has routes.
fn touched<'a>(pieces: &'a [Piece], range: &Range<usize>) -> &'a [Piece] {
    let (start, end) = if range.is_empty() {
        (
            pieces.partition_point(|piece| piece.text.end < range.start),
            pieces.partition_point(|piece| piece.text.start <= range.start),
        )
    } else {
        (
            pieces.partition_point(|piece| piece.text.end <= range.start),
            pieces.partition_point(|piece| piece.text.start < range.end),
        )
    };
    pieces.get(start..end).unwrap_or_default()
}

impl fmt::Display for Spanned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl AsRef<str> for Spanned {
    fn as_ref(&self) -> &str {
        &self.text
    }
}
