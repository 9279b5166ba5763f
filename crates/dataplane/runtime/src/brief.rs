//! The configuration of an NF process that runs a Click configuration, and the start of NF processes.

use crate::nfs::Starter;
use chain::{Body, ProcessNf, SourceTexts};
use nf_host::{Command, NfOutput, NfSpec};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use worker::fusion::FlowCache;

/// The first argument of this program when it runs as the process of an NF.
pub const SUBCOMMAND: &str = "nf-process";

/// The configuration of the process of a Click configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Brief {
    /// Path of the chain file.
    pub chain: PathBuf,
    /// The variables that were set for the chain.
    pub defines: Vec<String>,
    /// Whether the reference evaluator runs its elements.
    pub evaluator: bool,
    /// Whether its elements run as one program where possible.
    pub fused: bool,
    /// When fused regions use a flow cache.
    pub cache: FlowCache,
    /// The texts from which the chain was loaded: later changes of the files do not affect this run.
    pub sources: SourceTexts,
}

/// Returns how the process of each NF is started: the process of a Click configuration is this program,
/// started again with [`SUBCOMMAND`].
///
/// # Errors
/// If the texts cannot be encoded.
pub fn starter(brief: &Brief, burst: usize, output: NfOutput) -> serde_json::Result<Starter> {
    let brief = serde_json::to_vec(brief)?;
    Ok(Box::new(move |nf: &ProcessNf| match &nf.body {
        Body::Click(_) => {
            let arguments = vec![SUBCOMMAND.into(), "--".into(), nf.name.clone()];
            // The same program, even if its file was replaced in the meantime.
            let program = PathBuf::from("/proc/self/exe");
            let command = Command { program, arguments, folder: PathBuf::new() };
            NfSpec::of(nf, Some(command), brief.clone(), burst, output)
        }
        Body::Program(program) => NfSpec::of_program(nf, program, burst, output),
        Body::External(config) => NfSpec::of(nf, None, config.clone().into_bytes(), burst, output),
    }))
}
