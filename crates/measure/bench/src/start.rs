//! Loads a chain file, and starts the chain in this process to measure it.

use crate::BenchError;
use crate::machine::apart::{Apart, NEAR_IN};
use crate::machine::core_time::Thread;
use crate::shape::Shape;
use chain::{Chain, PortKind, PortSource, SourceTexts, TrafficDecl};
use diag::{Diagnostics, SourceMap};
use nf_host::NfOutput;
use port::FrameSet;
use runtime::brief::Brief;
use runtime::launch::{self, Launch};
use runtime::resources::Resources;
use runtime::running::{Outcome, RunPlan, Running};
use runtime::traffic::{Change, frame_set};
use runtime::{Assembly, Opener};
use shm::packet_region::{HugePages, RegionOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use worker::fusion::FlowCache;

/// How a measured chain runs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunOptions {
    /// Burst size, in packets.
    pub burst: usize,
    /// Whether workers poll and never sleep.
    pub polls: bool,
    /// The cores of the workers; there is one worker for each.
    pub cores: Vec<usize>,
    /// Packet slots.
    pub slots: u32,
    /// The pages of the packet memory.
    pub pages: HugePages,
    /// The execution mode of the NFs in this process; that of the chain file where it is `None`.
    pub shape: Option<Shape>,
    /// Changes to the chain file's traffic.
    pub change: Change,
}

/// A chain that was read from its file.
pub struct Loaded {
    /// The chain.
    pub chain: Chain,
    path: PathBuf,
    sources: SourceTexts,
    output: NfOutput,
    map: SourceMap,
    diags: Diagnostics,
    frames: Arc<Mutex<Vec<Arc<FrameSet>>>>,
}

impl Loaded {
    /// Reads a chain file.
    ///
    /// # Errors
    /// When the chain has errors.
    pub fn read(path: &Path) -> Result<Loaded, BenchError> {
        Loaded::from_sources(SourceTexts::of_files(), path, NfOutput::Inherit)
    }

    /// Reads a chain file from `sources`, which may replace texts of files. `output` says where the output of
    /// its NFs goes.
    ///
    /// # Errors
    /// As [`Loaded::read`].
    pub fn from_sources(
        mut sources: SourceTexts,
        path: &Path,
        output: NfOutput,
    ) -> Result<Loaded, BenchError> {
        let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
        let chain = chain::load_from(&mut sources, path, &[], &runtime::KnownClasses, &mut map, &mut diags);
        match chain.filter(|_| !diags.has_errors()) {
            Some(chain) => {
                let path = path.to_owned();
                Ok(Loaded { chain, path, sources, output, map, diags, frames: Arc::default() })
            }
            None => Err(BenchError::BadText(diags.render_short(&map))),
        }
    }

    fn refused(&self) -> BenchError {
        BenchError::BadText(self.diags.render_short(&self.map))
    }

    /// Its ports and NFs, with the frames of ports with generated traffic.
    ///
    /// # Errors
    /// When the chain's generated traffic or its NFs have errors.
    pub fn resources(&mut self, options: &RunOptions) -> Result<Resources, BenchError> {
        let (frames, change) = (Arc::clone(&self.frames), options.change.clone());
        let kept = move |declared: &TrafficDecl, diags: &mut Diagnostics| {
            let set = frame_set(declared, &change, diags)?;
            frames.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&set));
            Some(set)
        };
        let brief = Brief {
            chain: self.path.clone(),
            defines: vec![],
            evaluator: false,
            fused: options.shape.is_some_and(|shape| shape != Shape::Modular),
            cache: options.cache(),
            sources: self.sources.clone(),
        };
        let launch = Launch {
            options: self.options(options),
            memory: RegionOptions { huge_pages: options.pages, ..RegionOptions::slots(options.slots) },
            traffic: Box::new(kept),
            cores: options.cores.clone(),
            burst: options.burst,
            brief,
            output: self.output,
            interrupted: Arc::default(),
        };
        let resources = launch.resources(&mut self.chain, &mut self.diags).map_err(failed)?;
        if self.diags.has_errors() { Err(self.refused()) } else { Ok(resources) }
    }

    /// The frames of the ports with generated traffic, in the order of ports; empty before
    /// [`Loaded::resources`].
    pub fn frames(&self) -> Vec<Arc<FrameSet>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Creates the chain's elements, with the ports that `open` opens.
    ///
    /// # Errors
    /// When the chain has errors, or a port cannot be opened.
    pub fn assemble(&mut self, options: &RunOptions, open: &mut dyn Opener) -> Result<Assembly, BenchError> {
        let wanted = self.options(options);
        let assembly =
            runtime::assemble(&self.chain.graph, &wanted, open, &mut self.diags).map_err(failed)?;
        assembly.ok_or_else(|| self.refused())
    }

    /// Has generated traffic last for as long as it is measured.
    pub(crate) fn last(&mut self) {
        for port in &mut self.chain.ports {
            if let PortKind::Local(PortSource::Traffic(traffic), _) = &mut port.kind {
                traffic.count = None;
            }
        }
    }

    /// Starts what was assembled with these resources.
    ///
    /// # Errors
    /// When the machine has no memory or threads.
    pub(crate) fn start(
        &self,
        options: &RunOptions,
        (assembly, resources): (Assembly, Resources),
        plan: RunPlan,
    ) -> Result<RunningChain, BenchError> {
        Ok(RunningChain {
            running: Some(launch::start(assembly, &resources, plan).map_err(failed)?),
            resources,
            workers: options.cores.len().max(1),
            threads: vec![],
            apart: Apart::of_chain(&self.chain, &options.cores),
            shape: options.shape,
            frames: self.frames(),
            processes: self.chain.processes.len(),
        })
    }

    fn options(&self, options: &RunOptions) -> runtime::Options {
        runtime::Options {
            workers: options.cores.len(),
            folder: self.chain.folder.clone(),
            fused: self.chain.fused(options.shape.map(Shape::mode)),
            cache: options.cache(),
            burst: options.burst,
            ..runtime::Options::default()
        }
    }
}

impl RunOptions {
    pub(crate) fn plan(&self) -> RunPlan {
        let Self { burst, polls, .. } = *self;
        RunPlan { burst, polls, cores: self.cores.clone(), ..RunPlan::default() }
    }

    fn cache(&self) -> FlowCache {
        self.shape.map(Shape::cache).unwrap_or_default()
    }
}

/// A chain that runs in this process. When it goes, its packet threads have ended, and then its devices,
/// processes and containers.
pub struct RunningChain {
    running: Option<Running>,
    pub(crate) resources: Resources,
    workers: usize,
    /// Its packet threads, once they were looked for.
    pub(crate) threads: Vec<Thread>,
    /// The cores that its packets go back and forth between.
    pub(crate) apart: Apart,
    pub(crate) shape: Option<Shape>,
    /// The frames of each port that makes some up.
    pub frames: Vec<Arc<FrameSet>>,
    /// How many of its NFs run in processes of their own.
    pub processes: usize,
}

impl RunningChain {
    /// The run itself, for its accounts and handlers.
    pub fn running(&self) -> &Running {
        self.running.as_ref().unwrap_or_else(|| unreachable!("a run that has ended has no chain"))
    }

    /// Looks for its packet threads, which have their names a little later than they are started.
    pub(crate) fn find_threads(&mut self) {
        self.threads = Thread::workers(self.workers);
    }

    /// Whether its cores are further apart than at other times. To be asked beside what is measured, not
    /// meanwhile: it takes both cores for a moment.
    pub fn is_far(&self) -> bool {
        self.apart.is_far()
    }

    /// Waits until they are not, for a moment at most; whether they are near.
    pub fn await_near(&self) -> bool {
        self.apart.await_near(NEAR_IN)
    }

    /// Ends it.
    pub fn end(mut self) -> Outcome {
        self.halt().unwrap_or_else(|| unreachable!("a run ends once"))
    }

    fn halt(&mut self) -> Option<Outcome> {
        let running = self.running.take()?;
        running.stop();
        Some(running.wait())
    }
}

impl Drop for RunningChain {
    fn drop(&mut self) {
        self.halt();
    }
}

/// Why there is no figure.
pub(crate) fn failed(error: impl std::fmt::Display) -> BenchError {
    BenchError::Measurement(error.to_string())
}

#[cfg(test)]
pub(crate) mod testing {
    /// Writes a chain file with generated traffic, one NF and a port that discards; returns its folder and
    /// its path.
    pub fn chain(nf: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chain.toml");
        let text = format!(
            "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\nin = {{ traffic = {{ flows = 50, size = \"64\" }} }}\n\
             out = {{ discard = true }}\n[nf.nf]\ninline = \"{nf}\"\n"
        );
        std::fs::write(&path, text).expect("written");
        (folder, path)
    }
}
