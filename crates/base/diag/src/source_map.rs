//! The texts and the byte ranges in them.
//!
//! Offsets are `u32`: a text beyond 4 GiB keeps working, its spans stick to the last offset.

/// Names one text of a [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SourceId(pub u32);

/// A byte range `start..end` in one text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// The text.
    pub source: SourceId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// "No text": for what the program made up itself. Rendered without a place.
    pub const NONE: Span = Span { source: SourceId(u32::MAX), start: 0, end: 0 };

    /// The bytes `start..end` of `source`.
    pub fn new(source: SourceId, start: usize, end: usize) -> Span {
        let clamp = |x: usize| u32::try_from(x).unwrap_or(u32::MAX);
        Span { source, start: clamp(start), end: clamp(end.max(start)) }
    }

    /// Whether this is [`Span::NONE`].
    pub fn is_none(self) -> bool {
        self.source == Span::NONE.source
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Whether the span holds no byte (a place between two characters, or [`Span::NONE`]).
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether `other` lies inside this span.
    pub fn contains(self, other: Span) -> bool {
        self.source == other.source && self.start <= other.start && other.end <= self.end
    }

    /// The empty span just after this one.
    pub fn after(self) -> Span {
        Span { start: self.end, ..self }
    }

    /// The smallest span that holds both. Spans of different texts do not join: the first wins,
    /// unless it is [`Span::NONE`].
    pub fn join(a: Span, b: Span) -> Span {
        if a.is_none() {
            b
        } else if a.source != b.source {
            a
        } else {
            Span { source: a.source, start: a.start.min(b.start), end: a.end.max(b.end) }
        }
    }

    /// [`Span::join`] as a method.
    pub fn to(self, other: Span) -> Span {
        Span::join(self, other)
    }
}

/// Where a user finds a place: both count from 1, the column in characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A `#line` directive: from `offset` on, lines count from `line` and belong to `name`.
#[derive(Debug)]
struct Relabel {
    offset: u32,
    physical_line: u32,
    line: u32,
    name: Option<String>,
}

#[derive(Debug)]
struct SourceFile {
    name: String,
    text: String,
    /// Byte offset at which each line starts; the first is 0.
    line_starts: Vec<u32>,
    relabels: Vec<Relabel>,
}

/// Owns the texts that diagnostics point into.
#[derive(Debug, Default)]
pub struct SourceMap {
    sources: Vec<SourceFile>,
}

impl SourceMap {
    /// An empty map.
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// Adds a text under the name that messages show (a path, mostly). A byte order mark in front, which some
    /// editors write, is no part of it.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let id = SourceId(u32::try_from(self.sources.len()).unwrap_or(u32::MAX - 1));
        self.sources.push(SourceFile {
            name: name.into(),
            line_starts: line_starts(&text),
            text,
            relabels: Vec::new(),
        });
        id
    }

    fn get(&self, id: SourceId) -> Option<&SourceFile> {
        self.sources.get(id.0 as usize)
    }

    /// The name given to [`SourceMap::add`]; empty for an unknown id.
    pub fn name(&self, id: SourceId) -> &str {
        self.get(id).map_or("", |s| &s.name)
    }

    /// The whole text; empty for an unknown id.
    pub fn text(&self, id: SourceId) -> &str {
        self.get(id).map_or("", |s| &s.text)
    }

    /// The span of the whole text.
    pub fn whole(&self, id: SourceId) -> Span {
        Span::new(id, 0, self.text(id).len())
    }

    /// The text under a span, cut to what exists.
    pub fn slice(&self, span: Span) -> &str {
        let text = self.text(span.source);
        let start = floor_boundary(text, span.start as usize);
        let end = floor_boundary(text, span.end as usize).max(start);
        text.get(start..end).unwrap_or("")
    }

    /// Records that the lines after byte `offset` are lines `line`, `line + 1`, … of `name`
    /// (`None`: of this text itself), as a `#line` directive says. Calls come in text order.
    pub fn relabel_lines(&mut self, id: SourceId, offset: usize, line: u32, name: Option<String>) {
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        if let Some(source) = self.sources.get_mut(id.0 as usize) {
            let physical_line = source.line_index(offset) as u32 + 1;
            source.relabels.push(Relabel { offset, physical_line, line, name });
        }
    }

    /// Line and column of the span's start, after `#line` directives.
    pub fn position(&self, span: Span) -> Position {
        let mut position = self.physical_position(span);
        if let Some(relabel) = self.relabel(span) {
            position.line = position.line.saturating_sub(relabel.physical_line).saturating_add(relabel.line);
        }
        position
    }

    /// The file of the span's start, after `#line` directives; empty for [`Span::NONE`].
    pub fn file(&self, span: Span) -> &str {
        self.relabel(span)
            .and_then(|relabel| relabel.name.as_deref())
            .unwrap_or_else(|| self.name(span.source))
    }

    /// `file:line:column` of the span's start; empty for [`Span::NONE`].
    pub fn location(&self, span: Span) -> String {
        if self.get(span.source).is_none() {
            return String::new();
        }
        let Position { line, column } = self.position(span);
        format!("{}:{line}:{column}", self.file(span))
    }

    /// Line and column in the text as it stands, `#line` directives ignored.
    pub(crate) fn physical_position(&self, span: Span) -> Position {
        let Some(source) = self.get(span.source) else {
            return Position { line: 1, column: 1 };
        };
        let offset = floor_boundary(&source.text, span.start as usize);
        let index = source.line_index(u32::try_from(offset).unwrap_or(u32::MAX));
        let start = source.line_starts.get(index).copied().unwrap_or(0) as usize;
        let column = source.text.get(start..offset).map_or(0, |s| s.chars().count());
        Position { line: index as u32 + 1, column: column as u32 + 1 }
    }

    fn relabel(&self, span: Span) -> Option<&Relabel> {
        let relabels = &self.get(span.source)?.relabels;
        let after = relabels.partition_point(|relabel| relabel.offset <= span.start);
        relabels.get(after.checked_sub(1)?)
    }
}

impl SourceFile {
    /// Index of the line that holds `offset`.
    fn line_index(&self, offset: u32) -> usize {
        self.line_starts.partition_point(|&start| start <= offset).saturating_sub(1)
    }
}

/// Lines end at `\n`, `\r\n` or a lone `\r` (Click takes all three).
fn line_starts(text: &str) -> Vec<u32> {
    let bytes = text.as_bytes();
    let mut starts = vec![0];
    for (i, &byte) in bytes.iter().enumerate() {
        let ends_line = byte == b'\n' || (byte == b'\r' && bytes.get(i + 1) != Some(&b'\n'));
        if ends_line {
            starts.push(u32::try_from(i + 1).unwrap_or(u32::MAX));
        }
    }
    starts
}

/// The nearest character boundary at or before `offset`.
pub(crate) fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
