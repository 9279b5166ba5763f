//! A fused region of one worker's graph: the linked program of its elements, what is run of it, and what it is made
//! again for.

use super::cache::{Cache, CacheCounts, FlowCache};
use super::compiled::{CompiledRegion, Config, config_cells, holds};
use super::cpu::aside;
use super::find::{Cut, entries};
use super::region_source::{RegionSource, Sources};
use crate::graph::{End, Node, RegionEntry};
use codegen::{CodegenError, Engine};
use ir::Verified;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use synth::link::{LinkError, Linked};

/// A program that a thread makes, of what it is made, and what that is linked to.
type Making = JoinHandle<Result<(Arc<Sources>, Arc<Linked>, CompiledRegion), CannotMake>>;

/// Why a fused region has no program of its own.
#[derive(Debug, thiserror::Error)]
enum CannotMake {
    #[error(transparent)]
    Code(#[from] CodegenError),
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// Whether the fused regions of a run are to run as one program each, now.
#[derive(Debug, Default)]
pub struct FormWanted(AtomicBool);

impl FormWanted {
    /// For a start.
    pub fn new(is_fused: bool) -> FormWanted {
        FormWanted(AtomicBool::new(is_fused))
    }

    /// Says so; workers follow within milliseconds, or when the programs are made.
    pub fn set(&self, is_fused: bool) {
        self.0.store(is_fused, Ordering::Relaxed);
    }

    /// What was said.
    pub fn is_fused(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How a fused region is to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How {
    /// As one program from the start.
    pub is_wanted: bool,
    /// By the evaluator.
    pub is_evaluated: bool,
    /// Whether with a flow cache.
    pub cache: FlowCache,
}

/// A fused region of one worker's graph.
pub struct FusedRegion {
    /// The nodes of its parts.
    pub parts: Vec<usize>,
    /// What it is linked of.
    sources: Arc<Sources>,
    /// The linked program as its elements are written, and where each thing of it came from.
    pub linked: Arc<Linked>,
    /// Whether `linked` and `made` are of other programs than those in `sources`.
    is_stale: bool,
    /// What is run: the same with less to do.
    pub compiled: CompiledRegion,
    /// Another one that is being made, because a handler changed what this one was made for.
    next: Option<Making>,
    /// Programs, and what cells held, for which none could be made.
    failed: Option<(Arc<Sources>, Config)>,
    /// Whether the program is wanted and for the cells as they are.
    is_ready: bool,
    is_wanted: bool,
    is_evaluated: bool,
    cache_wanted: FlowCache,
    /// The flow cache, while it runs as one program.
    pub(crate) cache: Option<Box<Cache>>,
    /// What those did that it had before.
    before: CacheCounts,
    /// For each input of the program, the part and its input.
    pub(crate) inputs: Vec<(usize, usize)>,
    /// Its cells among the worker's.
    pub(crate) cells: Range<usize>,
    /// For each part, packets that entered less those that left the fused region there, since the counters were
    /// written up.
    pub(crate) balance: Vec<u64>,
    /// The counting cells when the counters were written up.
    pub(crate) counted: Vec<u64>,
    /// What passed each wire: kept for its memory.
    pub(crate) passed: Vec<u64>,
    /// Whether something is to be written up.
    pub(crate) is_due: bool,
}

impl FusedRegion {
    /// Links the programs of the nodes `parts`, and tells them where packets enter.
    ///
    /// # Errors
    /// When the fused region is too large.
    pub fn new(
        number: usize,
        parts: Vec<usize>,
        cuts: &[Cut],
        nodes: &mut [Node],
        how: How,
    ) -> Result<FusedRegion, LinkError> {
        let place = |node: usize| parts.iter().position(|part| *part == node);
        let mut places: Vec<Option<usize>> = vec![None; nodes.len()];
        for (part, node) in parts.iter().enumerate() {
            places[*node] = Some(part);
        }
        let inputs: Vec<(usize, usize)> = entries(nodes, &places, cuts)
            .into_iter()
            .filter_map(|(node, input)| Some((place(node)?, input)))
            .collect();
        let source = |node: &usize| {
            let next = |(port, end): (usize, &Option<End>)| {
                let end = end.filter(|_| !cuts.contains(&Cut { node: *node, port }))?;
                places[end.node].map(|part| (part, end.port))
            };
            let this = &nodes[*node];
            let program = Arc::clone(&this.lowered.as_ref()?.program);
            Some(RegionSource {
                name: this.name.clone(),
                program,
                next: this.outputs.iter().enumerate().map(next).collect(),
            })
        };
        let sources = Sources { parts: parts.iter().filter_map(source).collect(), entries: inputs.clone() };
        let linked = sources.link()?;
        let start: Vec<u64> = linked.program.cells.iter().map(|cell| cell.init).collect();
        let made = match how.is_wanted {
            true => CompiledRegion::of(&linked.program, &start),
            false => CompiledRegion::nothing(&linked.program),
        };
        for (input, (part, port)) in inputs.iter().enumerate() {
            let node = &mut nodes[parts[*part]];
            node.entries.resize(node.entries.len().max(port + 1), None);
            node.entries[*port] = Some(RegionEntry { region: number, input });
        }
        Ok(FusedRegion {
            inputs,
            balance: vec![0; parts.len()],
            counted: vec![0; linked.flow.counted.len()],
            passed: vec![],
            cells: 0..0,
            is_due: false,
            sources: Arc::new(sources),
            linked: Arc::new(linked),
            is_stale: false,
            compiled: made,
            next: None,
            failed: None,
            is_ready: how.is_wanted,
            is_wanted: how.is_wanted,
            is_evaluated: how.is_evaluated,
            cache_wanted: how.cache,
            cache: None,
            before: CacheCounts::default(),
            parts,
        })
    }

    /// What its flow cache has done.
    pub fn cache_counts(&self) -> CacheCounts {
        let mut counts = self.before;
        counts.add(self.cache.as_ref().map_or(CacheCounts::default(), |cache| cache.counts()));
        counts
    }

    /// Where packets enter: nodes and their inputs, in the order of the program's.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize)> {
        self.inputs.iter().map(|&(part, port)| (self.parts[part], port))
    }

    /// Moves its nodes' cells to the end of the worker's, side by side, and those that count wires.
    pub(crate) fn settle_in(&mut self, nodes: &mut [Node], cells: &mut Vec<u64>) {
        let start = cells.len();
        for &part in &self.parts {
            nodes[part].settle_in(cells);
        }
        cells.resize(cells.len() + self.counted.len(), 0);
        self.cells = start..cells.len();
    }
}

impl FusedRegion {
    /// Whether its program can run now.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether somebody wants it to run as one.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    fn end_cache(&mut self) {
        if let Some(mut cache) = self.cache.take() {
            self.before.add(CacheCounts { flows: 0, templates: 0, ..cache.counts() });
            // A large one goes beside the packets.
            cache.clear();
        }
    }

    /// Has a flow cache while the program runs. Without it records may change in ways that it does not see.
    fn follow_cache(&mut self) {
        let is_wanted = self.is_ready && self.cache_wanted != FlowCache::Off;
        if is_wanted != self.cache.is_some() {
            let new = || Cache::new(self.cache_wanted, self.is_evaluated, Arc::clone(&self.compiled.program));
            let cache = is_wanted.then(|| Box::new(new()));
            self.end_cache();
            self.cache = cache;
        }
    }

    /// Sees to it that the program is one for these cells, where one is `wanted`: after a handler was written, and
    /// from time to time while one is being made. No packet waits for it. While a burst is `under_way` it is still the
    /// old one that packets leave.
    pub(crate) fn update(&mut self, cells: &[u64], wanted: bool, under_way: bool) {
        self.is_wanted = wanted;
        let cells = &cells[self.cells.clone()];
        if !under_way {
            self.take_made(cells);
        }
        self.is_ready = wanted && !self.is_stale && self.compiled.is_for(cells);
        self.follow_cache();
        let has_failed = self
            .failed
            .as_ref()
            .is_some_and(|(sources, config)| Arc::ptr_eq(sources, &self.sources) && holds(cells, config));
        if !wanted || self.is_ready || under_way || self.next.is_some() || has_failed {
            return;
        }
        let (sources, cells) = (Arc::clone(&self.sources), cells.to_vec());
        let linked = (!self.is_stale).then(|| Arc::clone(&self.linked));
        let is_evaluated = self.is_evaluated;
        let make = move || {
            let linked = linked.map_or_else(|| sources.link().map(Arc::new), Ok)?;
            let mut made = CompiledRegion::of(&linked.program, &cells);
            if !is_evaluated {
                made.engine = Engine::native(&made.program)?;
            }
            Ok((sources, linked, made))
        };
        if is_evaluated {
            self.take(make(), &[]);
            self.is_ready = !self.is_stale;
            self.follow_cache();
            return;
        }
        self.next = aside("synthesis", make);
    }

    /// Takes in what a thread has made.
    fn take_made(&mut self, cells: &[u64]) {
        if let Some(next) = self.next.take_if(|next| next.is_finished()) {
            let broke = |_| CodegenError::Machine("the thread that makes code broke".into());
            self.take(next.join().map_err(broke).map_err(CannotMake::from).and_then(|made| made), cells);
        }
    }

    fn take(&mut self, made: Result<(Arc<Sources>, Arc<Linked>, CompiledRegion), CannotMake>, cells: &[u64]) {
        match made {
            Ok((sources, linked, made)) if Arc::ptr_eq(&sources, &self.sources) => {
                (self.linked, self.compiled, self.is_stale) = (linked, made, false);
                self.end_cache();
            }
            // A program has changed meanwhile.
            Ok(_) => {}
            // The elements go on one by one, until something else changes.
            Err(error) => {
                tracing::error!("no code for a fused region of elements: {error}");
                self.failed = Some((Arc::clone(&self.sources), config_cells(&self.linked.program, cells)));
            }
        }
    }
}

impl FusedRegion {
    /// Told that a node has another element now, with that program. Where the program is the one that it was, only its
    /// tables changed; else the fused region is linked anew when it runs as one again, see [`FusedRegion::update`].
    pub(crate) fn replace(&mut self, node: usize, program: &Arc<Verified>) {
        let Some(part) = self.parts.iter().position(|part| *part == node) else { return };
        // Entries hold for tables that are gone.
        self.end_cache();
        if self.sources.parts[part].program != *program {
            Arc::make_mut(&mut self.sources).parts[part].program = Arc::clone(program);
            self.is_stale = true;
        }
    }
}
