//! Substitution while a script runs: `$variable`, `${variable-default}`, `$(handler arguments)`.

use click::config::{self, Notation, escape, quote, split_words, unquote};
use diag::{Span, Spanned};

/// The most bytes of a substituted text: a script that doubles a variable in a loop must not use up the
/// memory.
pub const MOST_BYTES: usize = 64 << 10;
/// The deepest nesting of `$(...)`.
const MOST_DEEP: usize = 32;

/// The source of values.
pub trait Values {
    /// The value of a variable; `None` leaves the text unchanged.
    fn variable(&mut self, name: &str) -> Option<String>;
    /// The value of a handler.
    fn call(&mut self, call: &str) -> Option<String>;
}

/// Substitutes a text. With `protect`, values are quoted, so that unquoting the text restores them.
///
/// # Errors
/// If the text becomes too long, or substitutions are nested too deep.
pub fn expand(text: &str, protect: bool, values: &mut dyn Values) -> Result<String, String> {
    expand_at(text, protect, values, 0)
}

fn expand_at(text: &str, protect: bool, values: &mut dyn Values, depth: usize) -> Result<String, String> {
    if depth > MOST_DEEP {
        return Err(format!("substitutions are nested more than {MOST_DEEP} deep"));
    }
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut quoted) = (text, None);
    while let Some(next) = rest.chars().next() {
        let (mut used, mut value) = (next.len_utf8(), None);
        match next {
            '\\' if quoted == Some('"') => {
                used += rest.chars().nth(1).map_or(0, char::len_utf8);
            }
            '\'' | '"' if quoted.is_none() => quoted = Some(next),
            '\'' | '"' if quoted == Some(next) => quoted = None,
            '$' if quoted != Some('\'') => {
                if let Some((reference, len)) = reference(rest) {
                    used = len;
                    value = match reference {
                        Reference::Variable(name) => values.variable(name),
                        Reference::Default(name, default) => {
                            let set = values.variable(name).filter(|value| !value.is_empty());
                            Some(match set {
                                Some(value) => value,
                                None => expand_at(default, false, values, depth + 1)?,
                            })
                        }
                        Reference::Call(call) => {
                            let call = expand_at(call, false, values, depth + 1)?;
                            values.call(&call)
                        }
                    };
                }
            }
            _ => {}
        }
        let (taken, behind) = rest.split_at(used);
        match value {
            None => out.push_str(taken),
            Some(value) if quoted.is_some() => out.push_str(&escape(&value)),
            Some(value) if protect => out.push_str(&quote(&value)),
            Some(value) => out.push_str(&value),
        }
        rest = behind;
        if out.len() > MOST_BYTES {
            return Err(format!("the text became longer than {MOST_BYTES} bytes"));
        }
    }
    Ok(out)
}

enum Reference<'a> {
    Variable(&'a str),
    Default(&'a str, &'a str),
    Call(&'a str),
}

/// The reference at the start of a text that begins with `$`, and its length.
fn reference(text: &str) -> Option<(Reference<'_>, usize)> {
    if let Some(special @ ("?" | "#" | "$")) = text.get(1..2) {
        return Some((Reference::Variable(special), 2));
    }
    let found = config::Reference::read(text.as_bytes(), 0)?;
    let inside = text.get(found.inside)?;
    let reference = match (found.notation, inside.split_once('-')) {
        (Notation::Script, _) => Reference::Call(inside),
        (Notation::Braced, Some((name, default))) => Reference::Default(name, default),
        (Notation::Braced | Notation::Plain, _) => Reference::Variable(inside),
    };
    Some((reference, found.end))
}

/// A text with one level of quotes removed.
pub fn without_quotes(text: &str) -> String {
    unquote(&Spanned::derived(text, Span::NONE)).text
}

/// The words of a text, with their quotes.
pub fn words(text: &str) -> Vec<String> {
    split_words(&Spanned::derived(text, Span::NONE)).into_iter().map(|word| word.text).collect()
}

/// The first word, and what follows it.
pub fn shift(text: &str) -> (String, String) {
    let text = text.trim();
    let first = words(text).into_iter().next().unwrap_or_default();
    let rest = text.get(first.len()..).unwrap_or("").trim().to_string();
    (first, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Table;

    impl Values for Table {
        fn variable(&mut self, name: &str) -> Option<String> {
            match name {
                "x" => Some("7".into()),
                "q" => Some("a \"b\" $x".into()),
                "empty" => Some(String::new()),
                "?" => Some("0".into()),
                "long" => Some("x".repeat(MOST_BYTES / 2 + 1)),
                _ => None,
            }
        }
        fn call(&mut self, call: &str) -> Option<String> {
            (!call.starts_with("no.")).then(|| format!("<{call}>"))
        }
    }

    #[test]
    fn variables_and_calls_are_substituted_and_others_left() {
        let expanded = |text: &str| expand(text, false, &mut Table).unwrap();
        assert_eq!(expanded("$x ${x}y $xy $? $ 5"), "7 7y $xy 0 $ 5");
        assert_eq!(expanded("${none-d$x} ${empty-e} ${x-e}"), "d7 e 7");
        assert_eq!(expanded("$(add $x $(a.b 1)) $(no.handler)"), "<add 7 <a.b 1>> $(no.handler)");
        assert_eq!(expanded("'$x' \"$x\" \"\\$x\""), "'$x' \"7\" \"\\$x\"");
        assert_eq!(expanded("$(f \")\") $(open"), "<f \")\"> $(open");
    }

    #[test]
    fn protected_values_survive_unquoting() {
        let shown = |text: &str| without_quotes(&expand(text, true, &mut Table).unwrap());
        assert_eq!(shown("$q"), "a \"b\" $x");
        assert_eq!(shown("\"[$q]\" '$q'"), "[a \"b\" $x] $q");
    }

    #[test]
    fn growth_and_depth_are_bounded() {
        assert!(expand("$long$long", false, &mut Table).unwrap_err().contains("longer than"));
        let deep = format!("{}x{}", "$(a ".repeat(200), ")".repeat(200));
        assert!(expand(&deep, false, &mut Table).unwrap_err().contains("nested"));
    }

    proptest! {
        #[test]
        fn any_text_is_expanded_without_a_panic(text in "[$(){}'\"\\\\x q?#-]{0,60}|.{0,40}") {
            let _ = expand(&text, true, &mut Table).map(|text| without_quotes(&text));
            let (first, rest) = shift(&text);
            prop_assert!(first.len() + rest.len() <= text.len());
        }
    }
}
