//! Reads `[run]`: the settings of the run.

use super::table::{Keys, Value, one_of};
use crate::model::{EndsWith, NfDecl, Run};
use diag::{Diagnostics, did_you_mean};

/// A number of workers above this is reported as an error.
pub(super) const MOST_WORKERS: u64 = 1024;

/// Reads the settings.
pub(super) fn read(keys: &mut Keys<'_>, diags: &mut Diagnostics) -> Run {
    let number = |value: Value<'_>, range, diags: &mut Diagnostics| {
        value.integer(range, diags).and_then(|number| usize::try_from(number).ok())
    };
    let workers_at = keys.take("workers");
    let workers = workers_at.and_then(|value| number(value, 1..=MOST_WORKERS, diags));
    let (mut cores, mut core_spans) = (vec![], vec![]);
    if let Some(list) = keys.take("cores") {
        for core in list.list(diags).unwrap_or_default() {
            let Some(number) = number(core, 0..=MOST_WORKERS - 1, diags) else { continue };
            if cores.contains(&number) {
                diags.error(core.span(), format!("core {number} is listed twice"));
            }
            cores.push(number);
            core_spans.push(core.span());
        }
        if let (Some(workers), Some(at)) = (workers, workers_at)
            && workers != cores.len()
        {
            let message = format!("{workers} workers on {} cores", cores.len());
            diags
                .error(at.span(), message)
                .with_note(list.span(), "the cores")
                .help("say `workers` or `cores`, not both");
        }
    }
    let burst = keys.take("burst").and_then(|value| number(value, 1..=256, diags));
    let poll = keys.take("poll").and_then(|value| value.truth(diags)).unwrap_or(false);
    let ends_with = keys.take("ends_with").and_then(|value| read_ends_with(value, diags)).unwrap_or_default();
    let workers = workers.or((!cores.is_empty()).then_some(cores.len()));
    Run { workers, cores, core_spans, burst, poll, ends_with }
}

fn read_ends_with(value: Value<'_>, diags: &mut Diagnostics) -> Option<EndsWith> {
    let help = "write `\"all\"`, which is the default, `\"first\"`, or a list of NFs such as `[\"nat\"]`";
    if value.is_list() {
        let names = value.texts(diags);
        if names.is_empty() {
            diags.error(value.span(), "the run ends with no NF").help(help);
        }
        return Some(EndsWith::Nfs(names));
    }
    let word = value.text(diags)?;
    let wrong = format!("a run does not end with `{word}`");
    let first = one_of(&word, &[("all", false), ("first", true)], wrong, help, diags)?;
    Some(if first { EndsWith::First } else { EndsWith::All })
}

/// Reports names that are not those of NFs. Syntax errors may hide declarations.
pub(super) fn check(run: &Run, nfs: &[NfDecl], damaged: bool, diags: &mut Diagnostics) {
    let EndsWith::Nfs(names) = &run.ends_with else { return };
    for (at, name) in names.iter().enumerate() {
        if names[..at].iter().any(|other| other.text == name.text) {
            diags.error(name.span, format!("NF `{name}` is listed twice"));
        }
        if !damaged && !nfs.iter().any(|nf| nf.name == name.text) {
            let near = did_you_mean(name.as_str(), nfs.iter().map(|nf| nf.name.as_str()));
            diags.error(name.span, format!("there is no NF `{name}`")).maybe_help(near);
        }
    }
}
