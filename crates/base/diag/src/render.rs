//! Diagnostics as text.
//!
//! `ariadne` draws; this file feeds it only what it can draw: characters that do not move the
//! cursor, spans inside the text, lines of bearable length. What it cannot draw is shown in the
//! short form.

use std::collections::HashMap;
use std::fmt::Write;

use ariadne::{Color, Config, Label, Report, ReportKind, Source};

use crate::{Diagnostic, Diagnostics, Severity, SourceId, SourceMap, Span};

/// Above this many, the rest is counted only: nobody reads on.
const MAX_SHOWN: usize = 100;
/// A longer line is machine-made; drawing it would flood the terminal.
const MAX_LINE_CHARS: usize = 500;
/// A span over more lines is underlined on its first line only.
const MAX_SPAN_LINES: usize = 6;

impl Diagnostics {
    /// For people: the text underlined, with `file:line:column`, sorted by place.
    pub fn render(&self, map: &SourceMap, color: bool) -> String {
        let sorted = self.sorted();
        let mut cache = Cache { map, drawn: HashMap::new() };
        let mut out = String::new();
        for diag in sorted.iter().take(MAX_SHOWN) {
            match draw(diag, &mut cache, color) {
                Some(text) => out.push_str(&text),
                None => out.push_str(&short_line(diag, map)),
            }
        }
        if let Some(rest) = sorted.len().checked_sub(MAX_SHOWN).filter(|&rest| rest > 0) {
            let _ = writeln!(out, "… and {rest} more");
        }
        out
    }

    /// For tools and logs: one line each, `file:line:column: error: message; help`.
    pub fn render_short(&self, map: &SourceMap) -> String {
        self.sorted().into_iter().map(|d| short_line(d, map)).collect()
    }
}

fn short_line(diag: &Diagnostic, map: &SourceMap) -> String {
    let severity = match diag.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut line = map.location(diag.span);
    if !line.is_empty() {
        line.push_str(": ");
    }
    let _ = write!(line, "{severity}: {}", diag.message);
    for (span, note) in &diag.notes {
        let _ = write!(line, "; {note}");
        let place = map.location(*span);
        if !place.is_empty() {
            let _ = write!(line, " ({place})");
        }
    }
    if let Some(help) = &diag.help {
        let _ = write!(line, "; {help}");
    }
    let mut line = visible(&line.replace(['\n', '\r'], " "));
    line.push('\n');
    line
}

/// A text as ariadne gets it, with what is needed to turn byte offsets into character offsets.
struct Drawn {
    source: Source<String>,
    name: String,
    too_wide: bool,
}

struct Cache<'a> {
    map: &'a SourceMap,
    drawn: HashMap<SourceId, Drawn>,
}

impl Cache<'_> {
    fn load(&mut self, id: SourceId) -> &Drawn {
        let map = self.map;
        self.drawn.entry(id).or_insert_with(|| {
            let mut text = visible(map.text(id));
            // The empty line behind the last line end is a place too, where a text breaks off.
            if text.ends_with('\n') {
                text.push(' ');
            }
            let too_wide = text.split(['\n', '\r']).any(|line| line.chars().count() > MAX_LINE_CHARS);
            Drawn { source: Source::from(text), name: visible(map.name(id)), too_wide }
        })
    }

    /// The span in characters, inside the text and not over too many lines.
    fn chars(&self, span: Span) -> (SourceId, std::ops::Range<usize>) {
        let text = self.map.text(span.source);
        let head = Span { start: 0, end: span.start, ..span };
        let start = self.map.slice(head).chars().count();
        let body = self.map.slice(span);
        let mut shown = body;
        if body.lines().count() > MAX_SPAN_LINES {
            shown = body.lines().next().unwrap_or("");
        }
        let end = start + shown.chars().count();
        // An empty span is drawn on the character it stands before, if there is one.
        let has_next = (span.start as usize) < text.len() || text.ends_with(['\n', '\r']);
        let end = if end == start && has_next { end + 1 } else { end };
        (span.source, start..end)
    }
}

impl ariadne::Cache<SourceId> for &mut Cache<'_> {
    type Storage = String;

    fn fetch(&mut self, id: &SourceId) -> Result<&Source<String>, impl std::fmt::Debug> {
        Ok::<_, String>(&self.load(*id).source)
    }

    fn display<'a>(&self, id: &'a SourceId) -> Option<impl std::fmt::Display + 'a> {
        self.drawn.get(id).map(|drawn| drawn.name.clone())
    }
}

fn draw(diag: &Diagnostic, cache: &mut Cache<'_>, color: bool) -> Option<String> {
    let map = cache.map;
    let spans = std::iter::once(diag.span).chain(diag.notes.iter().map(|(span, _)| *span));
    for span in spans {
        if map.text(span.source).is_empty() {
            // No text (or an empty one): a note without a place is still drawn below.
            if span == diag.span {
                return None;
            }
        } else if cache.load(span.source).too_wide {
            return None;
        }
    }
    let (kind, paint) = match diag.severity {
        Severity::Error => (ReportKind::Error, Color::Red),
        Severity::Warning => (ReportKind::Warning, Color::Yellow),
    };
    let mut label = Label::new(cache.chars(diag.span)).with_color(paint);
    // Without a text, ariadne would not underline.
    label = label.with_message(visible(diag.label.as_deref().unwrap_or("here")));
    let mut report = Report::build(kind, cache.chars(diag.span))
        .with_config(Config::new().with_color(color))
        .with_message(visible(&diag.message))
        .with_label(label);
    for (span, note) in &diag.notes {
        if map.text(span.source).is_empty() {
            report = report.with_note(visible(note));
        } else {
            let label = Label::new(cache.chars(*span)).with_color(Color::Blue);
            report = report.with_label(label.with_message(visible(note)));
        }
    }
    if map.position(diag.span) != map.physical_position(diag.span) {
        report = report.with_note(format!("by a #line directive this is {}", map.location(diag.span)));
    }
    if let Some(help) = &diag.help {
        report = report.with_help(visible(help));
    }
    let mut bytes = Vec::new();
    report.finish().write(cache, &mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

/// Replaces what would move the cursor, colour the terminal or break a line where we count
/// none; one character stays one character.
fn visible(text: &str) -> String {
    let mut chars = text.chars().peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        out.push(match c {
            '\n' | '\t' => c,
            '\r' if chars.peek() == Some(&'\n') => c,
            '\r' => '\n',
            '\u{2028}' | '\u{2029}' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        });
    }
    out
}
