//! The TOML text that configures an NF, read key by key.
//!
//! Serde would stop at the first error. Here the NF reads each key, every error is recorded with its line,
//! and [`read`] returns all of them at once, including the keys that the NF did not read.

use packet::MacAddr;
use std::cell::RefCell;
use std::fmt::Display;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Errors, each with its line.
struct Mistakes<'a> {
    text: &'a str,
    found: RefCell<Vec<(usize, String)>>,
}

impl Mistakes<'_> {
    fn line(&self, at: usize) -> usize {
        self.text.get(..at).unwrap_or_default().matches('\n').count() + 1
    }

    fn warn(&self, at: usize, sentence: impl Display) {
        self.found.borrow_mut().push((self.line(at), sentence.to_string()));
    }
}

/// A table that is being read.
pub struct Keys<'a> {
    what: String,
    /// Its offset in the text.
    at: usize,
    entries: Vec<(&'a str, &'a Spanned<DeValue<'a>>, bool)>,
    asked: Vec<&'static str>,
    mistakes: &'a Mistakes<'a>,
}

/// Reads a configuration.
///
/// # Errors
///
/// All errors, a line each.
pub fn read<T>(config: &[u8], build: impl FnOnce(&mut Keys<'_>) -> T) -> Result<T, String> {
    let text = std::str::from_utf8(config)
        .map_err(|error| format!("the configuration is no UTF-8 from byte {} on", error.valid_up_to()))?;
    let mistakes = Mistakes { text, found: RefCell::default() };
    let (table, syntax) = DeTable::parse_recoverable(text);
    for mistake in &syntax {
        let at = mistake.span().map_or(0, |span| span.start);
        mistakes.warn(at, format_args!("this is not TOML: {}", mistake.message().replace('\n', "; ")));
    }
    // After a syntax error, a key that seems to be missing may be in the unread part.
    let mut value = None;
    if syntax.is_empty() {
        let mut keys = Keys::new("the configuration".into(), 0, table.get_ref(), &mistakes);
        value = Some(build(&mut keys));
        keys.finish();
    }
    let mut found = mistakes.found.into_inner();
    found.sort();
    found.dedup();
    match value.filter(|_| found.is_empty()) {
        Some(value) => Ok(value),
        None => {
            let lines = found.iter().map(|(line, sentence)| format!("config:{line}: {sentence}"));
            Err(lines.collect::<Vec<_>>().join("\n"))
        }
    }
}

impl<'a> Keys<'a> {
    fn new(what: String, at: usize, table: &'a DeTable<'a>, mistakes: &'a Mistakes<'a>) -> Keys<'a> {
        let entry =
            |(key, value): (&'a Spanned<std::borrow::Cow<'a, str>>, _)| (&**key.get_ref(), value, false);
        Keys { what, at, entries: table.iter().map(entry).collect(), asked: vec![], mistakes }
    }

    /// Records an error of the table as a whole.
    pub fn mistake(&self, sentence: impl Display) {
        self.mistakes.warn(self.at, sentence);
    }

    /// Whether the table has a key.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, ..)| *name == key)
    }

    fn take(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.asked.push(key);
        let (_, value, taken) = self.entries.iter_mut().find(|(name, ..)| *name == key)?;
        *taken = true;
        Some(value)
    }

    /// A quoted value, or a number, parsed by `parse`.
    pub fn value<T, E: Display>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let value = self.take(key)?;
        self.parsed(key, value, parse)
    }

    /// The same for a required key.
    pub fn required<T, E: Display>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        if !self.has(key) {
            self.mistake(format_args!("{} needs `{key}`", self.what));
        }
        self.value(key, parse)
    }

    fn parsed<T, E: Display>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let outcome = match value.get_ref() {
            DeValue::String(text) => parse(text).map_err(|error| error.to_string()),
            DeValue::Integer(number) => parse(number.as_str()).map_err(|error| error.to_string()),
            _ => Err("it takes text in quotes or a number".into()),
        };
        outcome
            .inspect_err(|sentence| {
                self.mistakes.warn(value.span().start, format_args!("`{key}`: {sentence}"))
            })
            .ok()
    }

    /// An integer in a range.
    pub fn integer(&mut self, key: &'static str, range: RangeInclusive<u64>, default: u64) -> u64 {
        let (least, most) = (*range.start(), *range.end());
        let parse = |text: &str| {
            let number = text.replace('_', "").parse().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| format!("{text} is not a whole number from {least} to {most}"))
        };
        self.value(key, parse).unwrap_or(default)
    }

    /// `true` or `false`.
    pub fn truth(&mut self, key: &'static str, default: bool) -> bool {
        match self.take(key).map(|value| (value.get_ref(), value.span().start)) {
            None => default,
            Some((DeValue::Boolean(value), _)) => *value,
            Some((_, at)) => {
                self.mistakes.warn(at, format_args!("`{key}` is `true` or `false`"));
                default
            }
        }
    }

    /// One of the given words.
    pub fn choice<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)], default: T) -> T {
        self.value(key, choose(words)).unwrap_or(default)
    }

    /// A list of quoted values or numbers.
    pub fn list<T, E: Display>(
        &mut self,
        key: &'static str,
        mut parse: impl FnMut(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let Some(value) = self.take(key) else { return vec![] };
        let DeValue::Array(items) = value.get_ref() else {
            self.mistakes.warn(value.span().start, format_args!("`{key}` takes a list in [ ]"));
            return vec![];
        };
        items.iter().filter_map(|item| self.parsed(key, item, &mut parse)).collect()
    }

    /// The tables `[[key]]`, in their order, without those that have errors.
    pub fn tables<T>(
        &mut self,
        key: &'static str,
        mut each: impl FnMut(&mut Keys<'_>) -> Option<T>,
    ) -> Vec<T> {
        let Some(value) = self.take(key) else { return vec![] };
        let items: &[Spanned<DeValue<'_>>] = match value.get_ref() {
            DeValue::Array(items) => items,
            _ => std::slice::from_ref(value),
        };
        items.iter().filter_map(|item| self.table(format!("[[{key}]]"), item, &mut each)).collect()
    }

    /// The tables `[key.NAME]`, with their names.
    pub fn named<T>(
        &mut self,
        key: &'static str,
        mut each: impl FnMut(&str, &mut Keys<'_>) -> Option<T>,
    ) -> Vec<T> {
        let Some(value) = self.take(key) else { return vec![] };
        let DeValue::Table(table) = value.get_ref() else {
            self.mistakes.warn(value.span().start, format_args!("`{key}` takes tables: [{key}.NAME]"));
            return vec![];
        };
        let mut found = vec![];
        for (name, value) in table.iter() {
            let name: &str = name.get_ref();
            found.extend(self.table(format!("[{key}.{name}]"), value, |keys| each(name, keys)));
        }
        found
    }

    fn table<T>(
        &self,
        what: String,
        value: &Spanned<DeValue<'_>>,
        each: impl FnOnce(&mut Keys<'_>) -> Option<T>,
    ) -> Option<T> {
        let DeValue::Table(table) = value.get_ref() else {
            self.mistakes.warn(value.span().start, format_args!("{what} is a table"));
            return None;
        };
        let mut keys = Keys::new(what, value.span().start, table, self.mistakes);
        let found = each(&mut keys);
        keys.finish();
        found
    }

    /// Records the keys that were not read.
    fn finish(self) {
        for (name, value, _) in self.entries.iter().filter(|(.., taken)| !taken) {
            let takes = || format!("it takes {}", self.asked.join(", "));
            let help = diag::did_you_mean(name, self.asked.iter().copied()).unwrap_or_else(takes);
            self.mistakes.warn(value.span().start, format_args!("{} has no key `{name}`: {help}", self.what));
        }
    }
}

/// A parser for one of the given words.
pub fn choose<T: Copy>(words: &[(&str, T)]) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let known = words.iter().find(|(word, _)| *word == text);
        known.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            format!("`{text}` is none of {}", words.join(", "))
        })
    }
}

/// A parser for a type, with a sentence for its errors.
pub fn as_a<T: FromStr>(wanted: &str) -> impl Fn(&str) -> Result<T, String> {
    move |text| text.parse().map_err(|_| format!("`{text}` is not {wanted}"))
}

/// Parses an IPv4 address.
///
/// # Errors
///
/// A sentence, when the text is none.
pub fn ipv4(text: &str) -> Result<Ipv4Addr, String> {
    as_a("an IPv4 address")(text)
}

/// Parses an Ethernet address.
///
/// # Errors
///
/// A sentence, when the text is none.
pub fn mac(text: &str) -> Result<MacAddr, String> {
    as_a("an Ethernet address such as 02:00:00:00:00:01")(text)
}

/// A parser for the name of one of the NF's interfaces, which returns its number.
pub fn interface(names: &[impl AsRef<str>]) -> impl Fn(&str) -> Result<usize, String> {
    move |text| {
        names.iter().position(|name| name.as_ref() == text).ok_or_else(|| {
            let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            format!("there is no interface `{text}`, only {}", names.join(", "))
        })
    }
}

/// Parses a range of ports: `80` or `1024-65535`.
///
/// # Errors
///
/// A sentence, when the text is none.
pub fn ports(text: &str) -> Result<(u16, u16), String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.trim().parse(), high.trim().parse()) {
        (Ok(low), Ok(high)) if low <= high => Ok((low, high)),
        _ => Err(format!("`{text}` is no port or range of ports: write 80 or `1024-65535`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(PartialEq, Debug)]
    struct Example {
        rate: u64,
        strict: bool,
        ports: Vec<(u16, u16)>,
        hosts: Vec<Ipv4Addr>,
    }

    fn example(text: &str) -> Result<Example, String> {
        read(text.as_bytes(), |keys| Example {
            rate: keys.integer("rate", 1..=1000, 7),
            strict: keys.truth("strict", true),
            ports: keys.list("ports", ports),
            hosts: keys.tables("host", |host| host.required("ip", as_a("an IPv4 address"))),
        })
    }

    #[test]
    fn what_is_there_is_read_and_the_rest_is_as_usual() {
        let all = "rate = 1_000\nstrict = false\nports = [80, \"1-2\"]\n[[host]]\nip = \"10.0.0.1\"\n";
        let hosts = vec![Ipv4Addr::new(10, 0, 0, 1)];
        let expected = Example { rate: 1000, strict: false, ports: vec![(80, 80), (1, 2)], hosts };
        assert_eq!(example(all), Ok(expected));
        assert_eq!(example(""), Ok(Example { rate: 7, strict: true, ports: vec![], hosts: vec![] }));
    }

    #[test]
    fn all_mistakes_are_told_at_once_with_their_lines() {
        let text = "rate = 0\nstrict = 1\nports = [80, \"2-1\", 70000]\nrat = 1\n[[host]]\n[[host]]\nip = \"x\"\nmac = 1\n";
        let told = example(text).expect_err("it is full of mistakes");
        let expected = "\
config:1: `rate`: 0 is not a whole number from 1 to 1000
config:2: `strict` is `true` or `false`
config:3: `ports`: `2-1` is no port or range of ports: write 80 or `1024-65535`
config:3: `ports`: `70000` is no port or range of ports: write 80 or `1024-65535`
config:4: the configuration has no key `rat`: did you mean `rate`?
config:5: [[host]] needs `ip`
config:7: `ip`: `x` is not an IPv4 address
config:8: [[host]] has no key `mac`: it takes ip";
        assert_eq!(told, expected);
        assert!(example("rate = \n= 1\n").expect_err("no TOML").starts_with("config:1: this is not TOML"));
        assert!(read(&[0xff], |_| ()).is_err());
    }
}
