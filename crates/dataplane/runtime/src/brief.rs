//! What the process of an NF that is a Click configuration is told, and how processes of NFs are started.

use crate::nfs::Starter;
use chain::{Body, ProcessNf, Sources};
use nf_host::{Command, NfOutput, NfSpec};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use worker::fusion::FlowCache;

/// The first argument of this program where it is to be the process of an NF.
pub const SUBCOMMAND: &str = "nf-process";

/// What the process of a Click configuration is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Brief {
    /// Chain file.
    pub chain: PathBuf,
    /// Variables, as the chain was given them.
    pub defines: Vec<String>,
    /// Whether elements run by the reference evaluator.
    pub evaluator: bool,
    /// Whether its elements run as one program where they can.
    pub fused: bool,
    /// When they have a flow cache then.
    pub cache: FlowCache,
    /// The texts that the chain was read from: what a user writes meanwhile is not for this run.
    pub sources: Sources,
}

/// Says how the process of each NF is started: that of a Click configuration is this program again, with
/// [`SUBCOMMAND`].
///
/// # Errors
/// When the texts cannot be passed on.
pub fn starter(brief: &Brief, burst: usize, output: NfOutput) -> serde_json::Result<Starter> {
    let brief = serde_json::to_vec(brief)?;
    Ok(Box::new(move |nf: &ProcessNf| match &nf.body {
        Body::Click(_) => {
            let arguments = vec![SUBCOMMAND.into(), "--".into(), nf.name.clone()];
            // Also when the file was replaced meanwhile.
            let program = PathBuf::from("/proc/self/exe");
            let command = Command { program, arguments, folder: PathBuf::new() };
            NfSpec::of(nf, Some(command), brief.clone(), burst, output)
        }
        Body::Program(program) => NfSpec::of_program(nf, program, burst, output),
        Body::External(config) => NfSpec::of(nf, None, config.clone().into_bytes(), burst, output),
    }))
}
