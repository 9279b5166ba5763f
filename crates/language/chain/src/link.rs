//! The notation of links: `a[1] -> [0]b[1] -> [0]c`, `<->` for both directions (SNF, section 4).
//!
//! This module parses the notation only; [`super::wiring`] resolves the names.

use diag::{Diagnostics, Span, Spanned};

/// A name in a link, with the interfaces in brackets on its two sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// `[0]` before the name: the interface that receives.
    pub input: Option<Spanned>,
    /// The NF or port.
    pub name: Spanned,
    /// `[1]` after the name: the interface that sends.
    pub output: Option<Spanned>,
}

/// One link text: names and the arrows between them, one arrow fewer than names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinkText {
    /// The names.
    pub stops: Vec<Stop>,
    /// Whether each arrow links both directions.
    pub both_ways: Vec<bool>,
}

/// Whether a text is allowed as the name of a port or NF. The allowed characters keep links and element names
/// unambiguous.
pub(super) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        && !text.ends_with('-')
}

/// Parses a link. `None` after an error, which is recorded.
pub(super) fn parse(link: &Spanned, diags: &mut Diagnostics) -> Option<LinkText> {
    let mut reader = Reader { link, at: 0, diags };
    let mut text = LinkText { stops: vec![reader.stop()?], both_ways: vec![] };
    loop {
        reader.skip_space();
        if reader.rest().is_empty() {
            break;
        }
        let both = reader.accept("<->");
        if !both && !reader.accept("->") {
            return reader.expected("`->` or `<->`");
        }
        text.both_ways.push(both);
        text.stops.push(reader.stop()?);
    }
    if text.both_ways.is_empty() {
        return reader.expected("`->` and where packets go");
    }
    Some(text)
}

struct Reader<'a> {
    link: &'a Spanned,
    at: usize,
    diags: &'a mut Diagnostics,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.link.text.get(self.at..).unwrap_or("")
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn accept(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    fn expected<T>(&mut self, what: &str) -> Option<T> {
        let next: String = self.rest().chars().take_while(|c| !c.is_whitespace()).take(20).collect();
        let span: Span = self.link.sub(self.at..self.at + next.len());
        let found = if next.is_empty() { "the link ends".to_string() } else { format!("there is `{next}`") };
        self.diags
            .error(span, format!("expected {what}, and here {found}"))
            .help("links are written `a[1] -> [0]b`, or `a[1] <-> [0]b` for both directions");
        None
    }

    fn stop(&mut self) -> Option<Stop> {
        let input = self.interface()?;
        self.skip_space();
        let (start, rest) = (self.at, self.rest());
        let in_name = |&(at, c): &(usize, char)| {
            let arrow = rest.get(at..).is_some_and(|rest| rest.starts_with("->"));
            (c.is_ascii_alphanumeric() || c == '_' || c == '-') && !arrow
        };
        let len = rest.char_indices().take_while(in_name).count();
        if !is_name(rest.get(..len).unwrap_or("")) {
            return self.expected("the name of an NF or a port");
        }
        self.at += len;
        let name = self.link.slice(start..self.at);
        Some(Stop { input, name, output: self.interface()? })
    }

    /// `[...]` or nothing; `None` if the bracket is not closed or is empty.
    fn interface(&mut self) -> Option<Option<Spanned>> {
        self.skip_space();
        if !self.rest().starts_with('[') {
            return Some(None);
        }
        let Some(len) = self.rest().find(']') else { return self.expected("`[INTERFACE]`") };
        let inside = self.link.slice(self.at + 1..self.at + len).trim();
        if inside.is_empty() || inside.text.contains(['[', '<', '>']) {
            return self.expected("`[INTERFACE]`");
        }
        self.at += len + 1;
        Some(Some(inside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diag::SourceMap;

    fn read(text: &str) -> Result<String, String> {
        let mut map = SourceMap::new();
        let source = map.add("link", text);
        let mut diags = Diagnostics::new();
        let link = Spanned::verbatim(text, map.whole(source));
        let Some(link) = parse(&link, &mut diags) else { return Err(diags.render_short(&map)) };
        let side = |side: &Option<Spanned>| side.as_ref().map_or("-".into(), |text| text.text.clone());
        let stops = link.stops.iter().map(|stop| {
            assert_eq!(map.slice(stop.name.span), stop.name.text);
            format!("{}.{}.{}", side(&stop.input), stop.name, side(&stop.output))
        });
        Ok(format!("{} {:?}", stops.collect::<Vec<_>>().join(" "), link.both_ways))
    }

    #[test]
    fn links_are_read_as_written() {
        assert_eq!(read("a->b").as_deref(), Ok("-.a.- -.b.- [false]"));
        assert_eq!(read(" a[1] -> [0]b[eth1.7]<->c ").as_deref(), Ok("-.a.1 0.b.eth1.7 -.c.- [false, true]"));
        assert_eq!(read("a-b->[ x y ]c_2").as_deref(), Ok("-.a-b.- x y.c_2.- [false]"));
    }

    #[test]
    fn what_is_no_link_is_refused_where_it_breaks() {
        for (text, column, expected) in [
            ("", 1, "the name"),
            ("a", 2, "`->` and where"),
            ("a ->", 5, "the name"),
            ("a => b", 3, "`->` or"),
            ("a[1 -> b", 2, "`[INTERFACE]`"),
            ("a[] -> b", 2, "`[INTERFACE]`"),
            ("1a -> b", 1, "the name"),
            ("a -> b c", 8, "`->` or"),
            ("é -> b", 1, "the name"),
        ] {
            let mistake = read(text).expect_err(text);
            let place = format!("link:1:{column}: error: expected {expected}");
            assert!(mistake.starts_with(&place), "{text}: {mistake}");
        }
    }
}
