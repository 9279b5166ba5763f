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
        if let Some(keyword) = &formal.keyword {
            let same =
                |other: &&Formal| other.keyword.as_ref().is_some_and(|other| other.name == keyword.name);
            if let Some(first) = before.iter().find(same) {
                diags
                    .error(keyword.span, format!("two parameters for keyword `{}`", keyword.name))
                    .with_note(first.name.span, "first used here");
            }
        }
    }
    let out_of_order = formals.windows(2).find(|pair| match pair {
        [before, after] => {
            let rest = before.keyword.as_ref().is_some_and(|keyword| keyword.name == REST);
            rest || (before.keyword.is_some() && after.keyword.is_none())
        }
        _ => false,
    });
    if let Some([_, after]) = out_of_order {
        diags
            .error(after.name.span, "parameters of a compound element are out of order")
            .help("positional ones come first, then keywords, then `__REST__`");
    }
}

/// Why arguments do not fit.
pub(super) enum Mismatch {
    Few { wanted: usize },
    Many { wanted: usize, first: Span },
    Missing { keyword: String },
    UnknownKeyword { keyword: Spanned },
}

/// The value of each formal parameter, in order. (`cp_assign_arguments` of Click: positional parameters receive the
/// first arguments, all keywords are mandatory, `__REST__` receives the rest.)
pub(super) fn assign(formals: &[Formal], args: &[Spanned], place: Span) -> Result<Vec<Spanned>, Mismatch> {
    let positional = formals.iter().take_while(|formal| formal.keyword.is_none()).count();
    let Some((placed, others)) = args.split_at_checked(positional) else {
        return Err(Mismatch::Few { wanted: positional });
    };
    let keyed = formals.get(positional..).unwrap_or_default();
    let rest_wanted = keyed.iter().any(is_rest);
    let mut keyword_values: Vec<Option<Spanned>> = vec![None; keyed.len()];
    let mut rest: Vec<&Spanned> = Vec::new();
    let mut stranger = None;
    for arg in others {
        let split = split_keyword(arg);
        let slot = split.as_ref().and_then(|(keyword, _)| {
            let matches = |formal: &Formal| {
                !is_rest(formal) && formal.keyword.as_ref().is_some_and(|k| k.name == keyword.text)
            };
            keyed.iter().position(matches)
        });
        match (slot.and_then(|slot| keyword_values.get_mut(slot)), split) {
            (Some(slot), Some((_, value))) => *slot = Some(value),
            (None, _) if rest_wanted => rest.push(arg),
            (_, Some((keyword, _))) if !keyed.is_empty() => {
                stranger = stranger.or(Some(Mismatch::UnknownKeyword { keyword }));
            }
            _ => {
                let many = Mismatch::Many { wanted: positional, first: arg.span };
                stranger = stranger.or(Some(many));
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
                return Err(Mismatch::Missing { keyword: keyword.name.clone() });
            }
            // A parameter in the wrong order, which was reported.
            (None, None) => values.push(Spanned::derived("", place)),
        }
    }
    stranger.map_or(Ok(values), Err)
}

fn is_rest(formal: &Formal) -> bool {
    formal.keyword.as_ref().is_some_and(|keyword| keyword.name == REST)
}

impl Mismatch {
    /// Reports the mismatch for an element whose class has this definition only.
    pub(super) fn report(self, template: &Template, given: usize, place: Span, diags: &mut Diagnostics) {
        let name = template.printable_name();
        let (span, message) = match self {
            Mismatch::Few { wanted } => {
                let wanted = plural(wanted, "argument");
                (place, format!("`{name}` takes {wanted}, {given} given"))
            }
            Mismatch::Many { wanted, first } => {
                let wanted = plural(wanted, "positional argument");
                (first, format!("`{name}` takes {wanted}, this one is too many"))
            }
            Mismatch::Missing { keyword } => {
                (place, format!("required argument {keyword} of `{name}` is missing"))
            }
            Mismatch::UnknownKeyword { keyword } => {
                (keyword.span, format!("`{name}` has no argument `{keyword}`"))
            }
        };
        diags
            .error(span, message)
            .with_note(template.span, format!("defined here: {}", template.signature()));
    }
}
