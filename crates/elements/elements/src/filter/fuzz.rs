//! One entry for fuzzing the expression language.

use super::boxes::Boxer;
use super::chain::chain;
use super::expr::{self, Headers};
use super::filter_plan::NO_MATCH;
use super::formula::Formula;
use click::config::{NoNames, unquote};
use diag::{Diagnostics, SourceMap, Spanned};

/// Reads arbitrary bytes as an expression, writes it, reads that again, and lowers it.
///
/// # Panics
/// When a promise of the language is broken: a mistake without a place, a canonical text that says
/// something else. Anything else that panics is a bug, too.
pub fn fuzz_expression(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut map = SourceMap::new();
    let source = map.add("fuzz", text.as_ref());
    let spanned = Spanned::verbatim(text.as_ref(), map.whole(source));
    let mut diags = Diagnostics::new();
    let Some(pattern) = expr::parse(&unquote(&spanned), &NoNames, &mut diags) else {
        assert!(diags.has_errors(), "no expression and no mistake: {text}");
        assert!(diags.iter().all(|mistake| !mistake.span.is_none()), "a mistake without a place: {text}");
        assert!(!diags.render(&map, false).is_empty());
        return;
    };
    let written = pattern.expr.to_string();
    let again =
        expr::parse(&Spanned::derived(written.as_str(), spanned.span), &NoNames, &mut Diagnostics::new());
    let again = again.unwrap_or_else(|| panic!("its own text is wrong: {text} became {written}"));
    assert_eq!(again.expr, pattern.expr, "{text} became {written}");
    pattern.expr.matches(&Headers::default());
    pattern.expr.matches(&Headers { mac: data, net: data, trans: data });
    Boxer::default().boxes(&pattern.expr);
    chain(&[(Formula::from(&pattern.expr), 0)], NO_MATCH);
}
