//! From a loaded chain to a running one: its ports, its errors, its elements, its workers.
//!
//! A caller that opens ports in its own way builds the elements between [`Launch::resources`] and [`start`]
//! itself, with [`assemble()`]. [`dry`] builds them and opens nothing.

use crate::assemble::{AssembleError, Assembly, Options, assemble};
use crate::brief::{self, Brief};
use crate::check::check;
use crate::cores::keep_off;
use crate::machine::{Machine, check_cores};
use crate::ports::MakeTraffic;
use crate::resources::Resources;
use crate::running::{RunPlan, Running};
use chain::Chain;
use diag::Diagnostics;
use nf_host::{NfOutput, Supervisor};
use port::PortError;
use shm::packet_region::RegionOptions;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Slots of a chain that receives no packets.
const DRY_SLOTS: u32 = 512;

/// Why a chain without errors does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The texts of the chain cannot be sent to processes.
    #[error("the texts of the chain: {0}")]
    Texts(serde_json::Error),
    /// The graphs cannot be built.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// There is no packet memory.
    #[error("packet memory: {0}")]
    Memory(PortError),
    /// Threads cannot be started.
    #[error(transparent)]
    Threads(std::io::Error),
}

/// The options for starting a chain.
pub struct Launch {
    /// The options for its elements.
    pub options: Options,
    /// The options of its packet memory.
    pub memory: RegionOptions,
    /// Generates the frames of ports with generated traffic.
    pub traffic: MakeTraffic,
    /// Cores of packet threads, in order; empty if they may use any core. NFs in processes do not use these
    /// cores.
    pub cores: Vec<usize>,
    /// The most packets of a burst.
    pub burst: usize,
    /// The configuration of the processes of Click configurations.
    pub brief: Brief,
    /// The destination of the processes' output.
    pub output: NfOutput,
    /// Set when the host must not wait for processes any more.
    pub interrupted: Arc<AtomicBool>,
}

impl Launch {
    /// The ports and NFs of a chain, none of them open or started. Records errors of generated traffic and of
    /// NFs that run in processes of their own.
    ///
    /// # Errors
    /// If the texts of the chain cannot be sent, or machine code cannot be generated.
    pub fn resources(self, chain: &mut Chain, diags: &mut Diagnostics) -> Result<Resources, StartError> {
        keep_off(chain, &self.cores);
        let starter = brief::starter(&self.brief, self.burst, self.output).map_err(StartError::Texts)?;
        let mut resources = Resources::new(chain, self.options.workers, self.memory, self.traffic)
            .start_by(starter, self.interrupted);
        check_cores(chain, Machine::This, diags);
        check(chain, &self.options, Machine::This, diags)?;
        resources.ports.prepare(diags);
        Ok(resources)
    }
}

/// Builds the elements of a chain for a machine and opens nothing that could change a file or a device;
/// `None` if it has errors, which are recorded.
///
/// # Errors
/// If machine code cannot be generated.
pub fn dry(
    chain: &Chain,
    options: &Options,
    made: MakeTraffic,
    machine: Machine,
    diags: &mut Diagnostics,
) -> Result<Option<Assembly>, AssembleError> {
    let memory = RegionOptions::slots(DRY_SLOTS);
    let mut resources = Resources::new(chain, options.workers, memory, made).dry(machine);
    resources.ports.prepare(diags);
    check_cores(chain, machine, diags);
    check(chain, options, machine, diags)?;
    assemble(&chain.graph, options, &mut resources, diags)
}

/// Starts the workers of an assembled chain with its ports and NFs.
///
/// # Errors
/// If the machine has too little memory or cannot start the threads.
pub fn start(assembly: Assembly, resources: &Resources, plan: RunPlan) -> Result<Running, StartError> {
    let nfs = resources.supervisor().map(Supervisor::handlers).unwrap_or_default();
    let pools = resources.pools().map_err(StartError::Memory)?;
    Running::start(assembly, &RunPlan { nfs, ..plan }, pools).map_err(StartError::Threads)
}
