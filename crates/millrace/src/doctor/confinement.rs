//! The mechanisms that isolate NFs in processes from each other and from the host.

use confine::ProbeState;

use super::machine::Machine;
use super::report::{Finding, Probe, Status};

/// The probes of this section.
pub const PROBES: &[Probe] = &[mechanisms];

fn mechanisms(machine: &Machine<'_>) -> Vec<Finding> {
    let finding = |offer: confine::Offer| {
        let status = match offer.state {
            ProbeState::Whole => Status::Ok,
            ProbeState::Partly => Status::Limited,
            ProbeState::Missing => Status::Missing,
        };
        let finding = Finding { status, ..Finding::ok(offer.name, offer.text) };
        match offer.remedy {
            Some(remedy) => finding.remedy(remedy),
            None => finding,
        }
    };
    machine.kernel.confinement().into_iter().map(finding).collect()
}
