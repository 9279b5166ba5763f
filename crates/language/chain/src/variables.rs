//! Checks that each variable of a command line or of `defines` exists in the NF's Click text.

use crate::model::{ChainFile, Define};
use click::ast::Ast;
use diag::{Diagnostics, did_you_mean};
use std::collections::BTreeSet;

/// The variables that an NF's Click text names, if they are known.
pub(super) type Known = Option<BTreeSet<String>>;

/// The variables of a text; unknown for a text that was not read or has errors.
pub(super) fn of(ast: Option<&Ast>) -> Known {
    Some(ast?.variables()?.into_iter().map(str::to_string).collect())
}

/// Checks a command line's variables for a Click file that is a chain by itself.
pub(super) fn check_alone(ast: &Ast, defines: &[Define], diags: &mut Diagnostics) {
    let known = of(Some(ast));
    for define in defines {
        check(define, "the configuration", &[&known], diags);
    }
}

/// Checks the variables of a command line and of the NFs' `defines`; `known` contains those of the NFs with a
/// text.
pub(super) fn check_chain(
    chain: &ChainFile,
    known: &[(&str, Known)],
    defines: &[Define],
    diags: &mut Diagnostics,
) {
    let of_nf = |name: &str| known.iter().find(|(nf, _)| *nf == name).map(|(_, known)| known);
    for nf in &chain.nfs {
        for define in &nf.defines {
            check(define, &format!("`{}`", nf.name), of_nf(&nf.name).as_slice(), diags);
        }
    }
    for define in defines {
        let Some((nf, variable)) = define.name.text.split_once('.') else {
            let all: Vec<&Known> = known.iter().map(|(_, known)| known).collect();
            check(define, "any NF", &all, diags);
            continue;
        };
        if chain.nfs.iter().any(|known| known.name == nf) {
            let name = define.name.slice(nf.len() + 1..nf.len() + 1 + variable.len());
            let define = Define { name, value: define.value.clone() };
            check(&define, &format!("`{nf}`"), of_nf(nf).as_slice(), diags);
        } else if !chain.damaged {
            let names = chain.nfs.iter().map(|nf| nf.name.as_str());
            let help = did_you_mean(nf, names.clone());
            let help =
                help.unwrap_or_else(|| format!("the NFs are {}", names.collect::<Vec<_>>().join(", ")));
            diags.error(define.name.sub(0..nf.len()), format!("there is no NF `{nf}`")).help(help);
        }
    }
}

fn check(define: &Define, whose: &str, known: &[&Known], diags: &mut Diagnostics) {
    let mut names = BTreeSet::new();
    for known in known {
        let Some(known) = known else { return };
        names.extend(known.iter().map(String::as_str));
    }
    let name = define.name.as_str();
    if known.is_empty() || names.contains(name) {
        return;
    }
    let help = did_you_mean(name, names.iter().copied()).unwrap_or_else(|| match names.is_empty() {
        true => "there are no variables".into(),
        false => format!("the variables are {}", names.into_iter().collect::<Vec<_>>().join(", ")),
    });
    diags.error(define.name.span, format!("`{name}` is no variable of {whose}")).help(help);
}
