//! `IPRewriterPatterns`: named patterns, which several rewriters may use.

use super::pattern::SharedPattern;
use super::reader::SpecReader;
use crate::basic::information::Information;
use click::config::split_words;
use element::{BoxElement, Class, Configure, PortCodes, Scope, StateScope};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The class.
pub const CLASS: Class = Class {
    name: "IPRewriterPatterns",
    summary: "specifies shared IPRewriter patterns",
    page: "\
# IPRewriterPatterns(NAME PATTERN, ...)

Names patterns that `IPRewriter` and related elements use as `pattern NAME FOUTPUT ROUTPUT`. Inputs with the same
pattern, also of several elements, share its range: none takes a port that another uses towards the same remote
end.

- **ports**: none
- **arguments**: each a name and a pattern, `NAME SADDR SPORT DADDR DPORT`
- **workers**: each has its part of every range
- **difference**: elements that share a pattern never choose the same port for the same remote end,
  because replies could not be told apart; in Click each looks at its own mappings only
",
    codes: PortCodes::new("0/0", "a/a"),
    state: StateScope::PerFlow,
    make,
};

/// The named patterns of a worker, by their scope and name.
#[derive(Default)]
pub struct NamedPatterns(HashMap<String, SharedPattern>);

impl NamedPatterns {
    /// The pattern of that name, looked up from an element outwards.
    pub fn find(&self, element: &str, name: &str) -> Option<SharedPattern> {
        click::scopes(element).find_map(|scope| self.0.get(&format!("{scope}{name}")).cloned())
    }
}

/// The named patterns of the worker that an element is made for.
pub fn registry(cx: &mut Configure<'_>) -> Arc<Mutex<NamedPatterns>> {
    cx.shared(Scope::Worker, "IPRewriterPatterns", || Mutex::new(NamedPatterns::default()))
        .unwrap_or_default()
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let rest = args.rest();
    let mut fine = args.finish();
    let (registry, reader) = (registry(cx), SpecReader::new(cx, 0));
    for text in rest {
        let words = split_words(&text);
        let Some((name, words)) = words.split_first() else { continue };
        let made = match words {
            [] | [_] => Err((text.span, "expected `NAME SADDR SPORT DADDR DPORT`".to_string())),
            words => reader.pattern(words, text.span),
        };
        let key = format!("{}{name}", click::scopes(cx.name).next().unwrap_or_default());
        let made = made.and_then(|state| {
            let mut known = registry.lock().map_err(|_| (text.span, "unusable".to_string()))?;
            match known.0.insert(key, Arc::new(Mutex::new(state.shared()))) {
                None => Ok(()),
                Some(_) => Err((name.span, format!("pattern `{name}` is defined twice"))),
            }
        });
        if let Err((span, message)) = made {
            cx.error(span, message);
            fine = false;
        }
    }
    fine.then(|| BoxElement::opaque(Information))
}
