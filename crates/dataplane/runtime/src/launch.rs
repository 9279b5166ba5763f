//! From a chain that was read to one that runs: its ports, what is wrong with it, its elements, its workers.
//!
//! Whoever opens ports in a way of its own makes the elements between [`Launch::ports`] and [`start`] itself, with
//! [`assemble()`]. [`dry`] makes them and opens nothing.

use crate::assemble::{AssembleError, Assembly, Options, assemble};
use crate::brief::{self, Brief};
use crate::check::check;
use crate::cores::keep_off;
use crate::ports::{MakeTraffic, Ports};
use crate::running::{RunPlan, Running};
use chain::Chain;
use diag::Diagnostics;
use nf_host::{NfOutput, Supervisor};
use port::PortError;
use shm::packet_region::RegionOptions;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Slots where nothing is received.
const DRY_SLOTS: u32 = 512;

/// Why a chain without mistakes does not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The texts of the chain cannot be passed on to processes.
    #[error("the texts of the chain: {0}")]
    Texts(serde_json::Error),
    /// There are no graphs.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// There is no packet memory.
    #[error("packet memory: {0}")]
    Memory(PortError),
    /// There are no threads.
    #[error(transparent)]
    Threads(std::io::Error),
}

/// How a chain is launched.
pub struct Launch {
    /// How its elements are made and run.
    pub options: Options,
    /// Packet memory.
    pub memory: RegionOptions,
    /// Makes the frames of ports with generated traffic.
    pub traffic: MakeTraffic,
    /// Cores of packet threads, in order; none where those may run anywhere. NFs in processes keep off them.
    pub cores: Vec<usize>,
    /// Packets to work on at a time.
    pub burst: usize,
    /// What the processes of Click configurations are told.
    pub brief: Brief,
    /// Where what processes write goes.
    pub output: NfOutput,
    /// Set when nobody is to wait for processes any more.
    pub interrupted: Arc<AtomicBool>,
}

impl Launch {
    /// The ports of a chain, none of them open. Records what is wrong with generated traffic and with NFs that run in
    /// processes of their own.
    ///
    /// # Errors
    /// When the texts of the chain cannot be passed on, or no machine code can be made.
    pub fn ports(self, chain: &mut Chain, diags: &mut Diagnostics) -> Result<Ports, StartError> {
        keep_off(chain, &self.cores);
        let starter = brief::starter(&self.brief, self.burst, self.output).map_err(StartError::Texts)?;
        let mut ports = Ports::new(chain, self.options.workers, self.memory, self.traffic)
            .start_by(starter, self.interrupted);
        check(chain, &self.options, diags)?;
        ports.prepare(diags);
        Ok(ports)
    }
}

/// Makes the elements of a chain and opens nothing that could change a file or a device; `None` when it has mistakes,
/// which are recorded.
///
/// # Errors
/// When no machine code can be made.
pub fn dry(
    chain: &Chain,
    options: &Options,
    made: MakeTraffic,
    diags: &mut Diagnostics,
) -> Result<Option<Assembly>, AssembleError> {
    let mut ports = Ports::new(chain, options.workers, RegionOptions::slots(DRY_SLOTS), made).dry();
    ports.prepare(diags);
    check(chain, options, diags)?;
    assemble(&chain.graph, options, &mut ports, diags)
}

/// Starts the workers of what was assembled with these ports. The handlers of NFs in processes are those of the ports.
///
/// # Errors
/// When the machine has no memory or no threads.
pub fn start(assembly: Assembly, ports: &Ports, plan: RunPlan) -> Result<Running, StartError> {
    let nfs = ports.supervisor().map(Supervisor::handlers).unwrap_or_default();
    let pools = ports.pools().map_err(StartError::Memory)?;
    Running::start(assembly, &RunPlan { nfs, ..plan }, pools).map_err(StartError::Threads)
}
