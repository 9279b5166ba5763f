//! Reads TOML tables key by key, with a location for every error.
//!
//! Serde stops at the first error. Here each reader takes the keys that it uses, and [`Keys::finish`] reports
//! the keys that no reader took.

use super::link::is_name;
use diag::{Diagnostics, SourceId, SourceMap, Span, Spanned, did_you_mean};
use std::ops::RangeInclusive;
use toml::de::{DeTable, DeValue};

/// A value of the file.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    file: File<'a>,
    /// Its name in messages.
    pub key: &'a str,
    /// The location of its key.
    pub key_span: Span,
    value: &'a toml::Spanned<DeValue<'a>>,
}

/// The text that values are read from.
#[derive(Clone, Copy)]
pub(super) struct File<'a> {
    /// The source.
    pub source: SourceId,
    /// Its text.
    pub text: &'a str,
    /// Whether syntax errors may hide tables and keys: a missing key may be one of these.
    pub damaged: bool,
}

/// A table that is being read.
pub(super) struct Keys<'a> {
    what: String,
    damaged: bool,
    entries: Vec<(Value<'a>, bool)>,
    asked: Vec<&'static str>,
}

impl File<'_> {
    /// Whether a span is on a line on which one of these errors starts.
    pub fn shares_line(&self, place: Span, mistakes: &[Span]) -> bool {
        let line = |at: u32| self.text.get(..at as usize).unwrap_or("").matches('\n').count();
        place.source == self.source && mistakes.iter().any(|mistake| line(mistake.start) == line(place.start))
    }

    /// A range of the text.
    pub fn span(&self, range: std::ops::Range<usize>) -> Span {
        Span::new(self.source, range.start, range.end)
    }
}

/// Checks a name of a port or NF: links and element names contain it.
pub(super) fn check_name(what: &str, name: &str, span: Span, diags: &mut Diagnostics) {
    if !is_name(name) {
        diags
            .error(span, format!("`{name}` cannot be the name of a {what}"))
            .help("names have letters, digits, `_` and `-`, a letter first, and do not end with `-`");
    }
}

/// The value of a word in a list of known words; `wrong` is the message for an unknown word.
pub(super) fn one_of<T: Copy>(
    word: &Spanned,
    known: &[(&str, T)],
    wrong: String,
    help: &str,
    diags: &mut Diagnostics,
) -> Option<T> {
    let found = known.iter().find(|(name, _)| *name == word.as_str());
    if found.is_none() {
        let near = did_you_mean(word.as_str(), known.iter().map(|(name, _)| *name));
        diags.error(word.span, wrong).help(near.unwrap_or_else(|| help.into()));
    }
    found.map(|(_, value)| *value)
}

/// The help for a top-level key behind a table's header: TOML assigns such a key to that table.
pub(super) fn misplaced(key: &str) -> Option<String> {
    let top = ["links", "entries", "run", "ports", "device", "nf"].contains(&key);
    top.then(|| format!("`{key}` of the whole chain stands in front of the first [table]"))
}

/// Parses the text and records all syntax errors. The table contains the parts that could be read.
pub(super) fn parse<'a>(
    source: SourceId,
    map: &'a SourceMap,
    diags: &mut Diagnostics,
) -> (File<'a>, toml::Spanned<DeTable<'a>>) {
    let text = map.text(source);
    let (table, mistakes) = DeTable::parse_recoverable(text);
    let file = File { source, text, damaged: !mistakes.is_empty() };
    let mut line = None;
    for mistake in &mistakes {
        // After an unclosed string or bracket, the parser reports every following word of the line.
        let at = mistake.span().map_or(0, |range| range.start);
        let this = file.text.get(..at).unwrap_or("").matches('\n').count();
        if line.replace(this) == Some(this) {
            continue;
        }
        let span = mistake.span().map_or(Span::new(source, 0, 0), |range| file.span(range));
        diags.error(span, format!("this is not TOML: {}", mistake.message().replace('\n', "; ")));
    }
    (file, table)
}

impl<'a> Keys<'a> {
    /// Reads the entries of a table, in the order of the text.
    pub fn new(what: impl Into<String>, file: File<'a>, table: &'a DeTable<'a>) -> Keys<'a> {
        let value = |(key, value): (&'a toml::Spanned<_>, &'a toml::Spanned<DeValue<'a>>)| {
            let name: &std::borrow::Cow<'a, str> = key.get_ref();
            (Value { file, key: name, key_span: file.span(key.span()), value }, false)
        };
        let mut entries: Vec<(Value<'a>, bool)> = table.iter().map(value).collect();
        entries.sort_by_key(|(entry, _)| (entry.key_span.start, entry.key_span.end));
        Keys { what: what.into(), damaged: file.damaged, entries, asked: vec![] }
    }

    /// The value of a key, if it is there.
    pub fn take(&mut self, key: &'static str) -> Option<Value<'a>> {
        self.asked.push(key);
        let (value, taken) = self.entries.iter_mut().find(|(value, _)| value.key == key)?;
        *taken = true;
        Some(*value)
    }

    /// Whether syntax errors may hide keys.
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// Whether the key is present, with any type of value.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(value, _)| value.key == key)
    }

    /// Takes all remaining entries, unread.
    pub fn rest(&mut self) -> Vec<Value<'a>> {
        let mut rest = vec![];
        for (value, taken) in self.entries.iter_mut().filter(|(_, taken)| !*taken) {
            *taken = true;
            rest.push(*value);
        }
        rest
    }

    /// Reports the keys that no reader took; `elsewhere` returns where a known key belongs.
    pub fn finish(self, diags: &mut Diagnostics, elsewhere: impl Fn(&str) -> Option<String>) {
        for (value, _) in self.entries.iter().filter(|(_, taken)| !taken) {
            let takes = || format!("it takes {}", self.asked.join(", "));
            let help = elsewhere(value.key)
                .or_else(|| did_you_mean(value.key, self.asked.iter().copied()))
                .unwrap_or_else(takes);
            diags.error(value.key_span, format!("{} has no key `{}`", self.what, value.key)).help(help);
        }
    }
}

impl<'a> Value<'a> {
    /// The location of the value.
    pub fn span(&self) -> Span {
        self.file.span(self.value.span())
    }

    /// The text of the whole file.
    pub fn file_text(&self) -> &'a str {
        self.file.text
    }

    /// The value.
    pub fn get(&self) -> &'a DeValue<'a> {
        self.value.get_ref()
    }

    fn mismatch<T>(&self, takes: &str, diags: &mut Diagnostics) -> Option<T> {
        let is = match self.get() {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "a truth value",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        diags.error(self.span(), format!("`{}` takes {takes}, and this is {is}", self.key));
        None
    }

    /// A text with its location; byte by byte where the file contains it without escapes.
    pub fn text(&self, diags: &mut Diagnostics) -> Option<Spanned> {
        let DeValue::String(text) = self.get() else { return self.mismatch("text in quotes", diags) };
        Some(spanned(self.file, self.value.span(), text))
    }

    /// A whole number in a range.
    pub fn integer(&self, range: RangeInclusive<u64>, diags: &mut Diagnostics) -> Option<u64> {
        let DeValue::Integer(number) = self.get() else { return self.mismatch("a whole number", diags) };
        let value = u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok();
        let value = value.filter(|value| range.contains(value));
        if value.is_none() {
            let (least, most) = (range.start(), range.end());
            let expected =
                if *most == u64::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
            diags.error(self.span(), format!("`{}` is {expected}", self.key));
        }
        value
    }

    /// A Boolean.
    pub fn truth(&self, diags: &mut Diagnostics) -> Option<bool> {
        match self.get() {
            DeValue::Boolean(value) => Some(*value),
            _ => self.mismatch("`true` or `false`", diags),
        }
    }

    /// The items of a list. Each has the list's name in messages.
    pub fn list(&self, diags: &mut Diagnostics) -> Option<Vec<Value<'a>>> {
        let DeValue::Array(items) = self.get() else { return self.mismatch("a list in [ ]", diags) };
        Some(items.iter().map(|value| Value { value, ..*self }).collect())
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.get(), DeValue::Array(_))
    }

    /// A list of texts.
    pub fn texts(&self, diags: &mut Diagnostics) -> Vec<Spanned> {
        let items = self.list(diags).unwrap_or_default();
        items.iter().filter_map(|item| item.text(diags)).collect()
    }

    /// The entries of a table.
    pub fn keys(&self, what: impl Into<String>, diags: &mut Diagnostics) -> Option<Keys<'a>> {
        match self.get() {
            DeValue::Table(table) => Some(Keys::new(what, self.file, table)),
            _ => self.mismatch("a table", diags),
        }
    }

    /// A text, number or Boolean as text.
    pub fn plain(&self, diags: &mut Diagnostics) -> Option<Spanned> {
        let number = match self.get() {
            DeValue::String(_) => return self.text(diags),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.as_str().to_string(),
            DeValue::Boolean(value) => value.to_string(),
            _ => return self.mismatch("text or a number", diags),
        };
        Some(Spanned::verbatim(number, self.span()))
    }
}

/// A string value with its location. Without escapes, the file contains it between the quotes unchanged.
fn spanned(file: File<'_>, range: std::ops::Range<usize>, value: &str) -> Spanned {
    let whole = file.span(range.clone());
    let Some(raw) = file.text.get(range.clone()) else { return Spanned::derived(value, whole) };
    let triple = raw.len() >= 6 && (raw.starts_with("\"\"\"") || raw.starts_with("'''"));
    let quotes = if triple { 3 } else { 1 };
    let Some(inside) = raw.get(quotes..raw.len().saturating_sub(quotes)) else {
        return Spanned::derived(value, whole);
    };
    // The line break right after the opening quotes is not part of the text.
    let text = if triple { inside.strip_prefix("\r\n").or(inside.strip_prefix('\n')) } else { None };
    let text = text.unwrap_or(inside);
    let start = range.start + quotes + (inside.len() - text.len());
    if text == value {
        Spanned::verbatim(value, file.span(start..start + text.len()))
    } else {
        Spanned::derived(value, whole)
    }
}
