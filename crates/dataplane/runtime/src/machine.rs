//! What a chain needs of the machine that runs it. Where this machine lacks it, a check for another machine
//! warns, and everything else reports an error.

use crate::cores;
use chain::Chain;
use diag::{Diagnostic, Diagnostics, Severity};

/// The machine that a chain is built for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Machine {
    /// This one: what it lacks is an error.
    #[default]
    This,
    /// Any other one: what this machine lacks is a warning.
    Any,
}

impl Machine {
    /// Records what this machine lacks.
    pub fn record(self, missing: impl IntoIterator<Item = Diagnostic>, diags: &mut Diagnostics) {
        diags.extend(missing.into_iter().map(|mut one| {
            if self == Machine::Any && one.severity == Severity::Error {
                one.severity = Severity::Warning;
                one.help = one.help.map(|help| format!("{help}; {HERE}"));
            }
            one
        }));
    }
}

/// What a warning about this machine adds to its remedy.
pub const HERE: &str = "with `check --here` this is an error";

/// Records the cores of a chain file that this process may not use. NFs in processes run on other cores then,
/// so that theirs are a warning in any case.
pub(crate) fn check_cores(chain: &Chain, machine: Machine, diags: &mut Diagnostics) {
    let (missing, all) = cores::missing(&chain.run.cores);
    let help = format!("this process may run on {all}");
    let cores = chain.run.cores.iter().zip(&chain.run.core_spans).filter(|(core, _)| missing.contains(core));
    let cores = cores.map(|(core, span)| {
        Diagnostic::error(*span, format!("this machine has no core {core}")).help(help.clone())
    });
    machine.record(cores, diags);
    for nf in chain.processes.iter().filter(|nf| chain::instances::is_first(&nf.name)) {
        if let Some(core) = cores::missing(&nf.terms.cores).0.first() {
            let name = chain::instances::family(&nf.name);
            let message = format!("this machine has no core {core}, which `cores` of NF `{name}` lists");
            diags.warning(nf.span, message).help(help.clone());
        }
    }
}
