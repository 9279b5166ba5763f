//! The error of a command: text on standard error, and if requested JSON on standard output, too.

use crate::console;
use crate::exit::ExitStatus;
use crate::text::{complain, print_json};
use control::api::Mistake;
use control::{ChainRefusal, ClientError, Refusal};
use diag::{Diagnostics, Severity, SourceMap};
use serde::Serialize;

/// An error as JSON, in the envelope of all commands.
#[derive(Serialize)]
struct Failed<'a> {
    error: Failure<'a>,
}

#[derive(Serialize)]
struct Failure<'a> {
    /// The exit status of the command.
    status: u8,
    message: &'a str,
    /// The mistakes of a chain, if it has any.
    #[serde(skip_serializing_if = "<[Mistake]>::is_empty")]
    mistakes: &'a [Mistake],
}

/// Reports the error of a command.
pub fn report(error: &anyhow::Error, status: ExitStatus) {
    complain(&format!("millrace: {error:#}"));
    if !console::is_json() {
        return;
    }
    if let Some(ClientError::Refused(Refusal::Chain(chain))) = error.downcast_ref() {
        return report_chain(chain, status);
    }
    report_json(&format!("{error:#}"), status, &[]);
}

/// Reports a chain that does not run, as JSON.
pub fn report_chain(chain: &ChainRefusal, status: ExitStatus) {
    report_json(chain.lines.trim_end(), status, &chain.mistakes);
}

/// Reports an error as JSON.
pub fn report_json(message: &str, status: ExitStatus, mistakes: &[Mistake]) {
    let failed = Failed { error: Failure { status: status as u8, message, mistakes } };
    // There is no other way to say it than the exit status.
    let _ = print_json(&failed);
}

/// The errors and warnings of a chain for the interface and for JSON.
pub fn mistakes(map: &SourceMap, diags: &Diagnostics) -> Vec<Mistake> {
    let mistake = |one: &diag::Diagnostic| {
        let position = map.position(one.span);
        let notes = one.notes.iter().map(|(span, note)| match map.location(*span) {
            place if place.is_empty() => note.clone(),
            place => format!("{place}: {note}"),
        });
        Mistake {
            severity: if one.severity == Severity::Error { "error" } else { "warning" }.into(),
            file: map.file(one.span).into(),
            line: position.line,
            column: position.column,
            text: map.slice(one.span).into(),
            message: one.message.clone(),
            help: one.help.clone(),
            notes: notes.collect(),
        }
    };
    diags.sorted().into_iter().map(mistake).collect()
}

/// The refusal of a chain that has errors, of which `by_machine` are refusals of the machine.
pub fn refusal(map: &SourceMap, diags: &Diagnostics, by_machine: usize) -> ChainRefusal {
    ChainRefusal {
        lines: diags.render_short(map),
        drawn: diags.render(map, false),
        mistakes: mistakes(map, diags),
        is_by_machine: ExitStatus::of_errors(diags, by_machine) == ExitStatus::Failed,
    }
}
