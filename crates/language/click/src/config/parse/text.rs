//! Strings, words, file names and references to elements and handlers.

use diag::{Diagnostic, Spanned, did_you_mean};

use super::super::{unquote, unquote_bytes};
use super::{Names, Parsed, Parser, expected};

/// The argument unchanged, with its quotes.
pub fn any(text: &Spanned, _names: &dyn Names) -> Parsed<Spanned> {
    Ok(text.clone())
}

/// One string, up to the first white space, without its quotes. Only a quoted string may be empty.
pub fn string(text: &Spanned, _names: &dyn Names) -> Parsed<Spanned> {
    one_string(text, "a string")
}

fn one_string(text: &Spanned, wanted: &str) -> Parsed<Spanned> {
    match super::super::split_words(text).as_slice() {
        [only] => Ok(unquote(only)),
        [] => expected(wanted, text),
        [_, second, ..] => {
            let message = format!("expected {wanted}, found more after it");
            let help = "put a string with spaces into double quotes";
            Err(Diagnostic::error(second.span, message).help(help))
        }
    }
}

/// Bytes: a string whose escapes (`"\r\n"`, `\<00 0a>`) denote any bytes.
pub fn bytes(text: &Spanned, _names: &dyn Names) -> Parsed<Vec<u8>> {
    one_string(text, "a string or `\\<hex digits>`").map(|_| unquote_bytes(text))
}

/// One word: printable characters without quotes, commas, backslashes and spaces.
pub fn word(text: &Spanned, _names: &dyn Names) -> Parsed<Spanned> {
    string_of(|c| c.is_ascii_graphic() && !"\"'\\,".contains(c), text, "a word")
}

/// A string of these characters, with at least one of them.
fn string_of(good: impl Fn(char) -> bool, text: &Spanned, wanted: &str) -> Parsed<Spanned> {
    let string = one_string(text, wanted)?;
    if string.text.is_empty() || !string.text.chars().all(good) {
        return expected(wanted, text);
    }
    Ok(string)
}

/// One of several fixed words, each with its value. It may stand in quotes, as any word.
pub fn keyword<T: Clone>(choices: &[(&'static str, T)]) -> impl Parser<T> {
    let choices = choices.to_vec();
    move |text, _| {
        let word = unquote(text);
        let found = choices.iter().find(|(name, _)| *name == word.as_str());
        if let Some((_, value)) = found {
            return Ok(value.clone());
        }
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("`{name}`")).collect();
        let suggestion = did_you_mean(&text.text, choices.iter().map(|(name, _)| *name));
        expected(&names.join(" or "), text).map_err(|error| error.maybe_help(suggestion))
    }
}

/// A file name: a string; a leading `~/` denotes the home folder.
pub fn filename(text: &Spanned, _names: &dyn Names) -> Parsed<std::path::PathBuf> {
    let name = one_string(text, "a file name")?;
    if name.text.is_empty() {
        return expected("a file name", text);
    }
    if name.text.contains('\0') {
        return Err(Diagnostic::error(text.span, "a file name cannot hold a NUL character"));
    }
    match (name.text.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Ok(std::path::Path::new(&home).join(rest)),
        _ => Ok(name.text.into()),
    }
}

/// The name of an element, as written; [`crate::NameIndex::find`] resolves it.
pub fn element(text: &Spanned, _names: &dyn Names) -> Parsed<Spanned> {
    string_of(|c| c.is_ascii_alphanumeric() || "_@/".contains(c), text, "the name of an element")
}

/// `element.handler`, or `handler` alone (of the element itself, or of the whole router).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerRef {
    /// The element; `None` for a bare handler name and for `.handler`.
    pub element: Option<Spanned>,
    /// The handler; never empty.
    pub handler: Spanned,
}

/// A reference to a handler.
pub fn handler(text: &Spanned, _names: &dyn Names) -> Parsed<HandlerRef> {
    let name = one_string(text, "a handler like `element.handler`")?;
    let (element, handler) = match name.text.find('.') {
        None => (None, name.clone()),
        Some(0) => (None, name.slice(1..name.text.len())),
        Some(dot) => (Some(name.slice(0..dot)), name.slice(dot + 1..name.text.len())),
    };
    if handler.text.is_empty() {
        return expected("a handler like `element.handler`", text);
    }
    Ok(HandlerRef { element, handler })
}
