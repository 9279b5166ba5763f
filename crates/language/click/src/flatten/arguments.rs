//! Assigns the arguments of compound elements to formal parameters.

use diag::{Diagnostics, Span, Spanned};

use super::class::{Template, plural};
use crate::ast::Formal;
use crate::config::{join_args, split_keyword};

const REST: &str = "__REST__";

/// Checks the formal parameters of one compound body.
pub(super) fn check_formals(formals: &[Formal], diags: &mut Diagnostics) {
    for (i, formal) in formals.iter().enumerate() {
        let before = formals.get(..i).unwrap_or_default();
        if let Some(first) = before.iter().find(|other| other.name.name == formal.name.name) {
            diags
                .error(formal.name.span, format!("parameter `${}` is defined twice", formal.name.name))
                .with_note(first.name.span, "first defined here");
        }
        if let Some(keyword) = &formal.keyword
            && let Some(first) = before.iter().find(|other| other.has_keyword(&keyword.name))
        {
            diags
                .error(keyword.span, format!("two parameters for keyword `{}`", keyword.name))
                .with_note(first.name.span, "first used here");
        }
    }
    let out_of_order = formals.windows(2).find(|pair| match pair {
        [before, after] => is_rest(before) || (before.keyword.is_some() && after.keyword.is_none()),
        _ => false,
    });
    if let Some([_, after]) = out_of_order {
        diags
            .error(after.name.span, "parameters of a compound element are out of order")
            .help("positional ones come first, then keywords, then `__REST__`");
    }
}

/// The value of each formal parameter, in order; else the error, and its location. (`cp_assign_arguments` of
/// Click: positional parameters receive the first arguments, all keywords are mandatory, `__REST__` receives
/// the rest.)
pub(super) fn assign(
    template: &Template,
    args: &[Spanned],
    place: Span,
) -> Result<Vec<Spanned>, (Span, String)> {
    let (formals, name) = (&template.formals, template.printable_name());
    let positional = formals.iter().take_while(|formal| formal.keyword.is_none()).count();
    let Some((placed, others)) = args.split_at_checked(positional) else {
        let wanted = plural(positional, "argument");
        return Err((place, format!("`{name}` takes {wanted}, {} given", args.len())));
    };
    let keyed = formals.get(positional..).unwrap_or_default();
    let rest_wanted = keyed.iter().any(is_rest);
    let mut keyword_values: Vec<Option<Spanned>> = vec![None; keyed.len()];
    let mut rest: Vec<&Spanned> = Vec::new();
    let mut stranger = None;
    for arg in others {
        let split = split_keyword(arg);
        let slot = split.as_ref().and_then(|(keyword, _)| {
            keyed.iter().position(|formal| !is_rest(formal) && formal.has_keyword(&keyword.text))
        });
        match (slot.and_then(|slot| keyword_values.get_mut(slot)), split) {
            (Some(slot), Some((_, value))) => *slot = Some(value),
            (None, _) if rest_wanted => rest.push(arg),
            _ if stranger.is_some() => {}
            (_, Some((keyword, _))) if !keyed.is_empty() => {
                stranger = Some((keyword.span, format!("`{name}` has no argument `{keyword}`")));
            }
            _ => {
                let wanted = plural(positional, "positional argument");
                stranger = Some((arg.span, format!("`{name}` takes {wanted}, this one is too many")));
            }
        }
    }
    let mut values = placed.to_vec();
    for (formal, value) in keyed.iter().zip(keyword_values) {
        if is_rest(formal) {
            values.push(join_args(rest.iter().copied(), place));
            continue;
        }
        match (value, &formal.keyword) {
            (Some(value), _) => values.push(value),
            (None, Some(keyword)) => {
                let message = format!("required argument {} of `{name}` is missing", keyword.name);
                return Err((place, message));
            }
            // A parameter in the wrong order, which was reported.
            (None, None) => values.push(Spanned::derived("", place)),
        }
    }
    stranger.map_or(Ok(values), Err)
}

fn is_rest(formal: &Formal) -> bool {
    formal.has_keyword(REST)
}
