//! Stretches of transparent elements that run as one program.
//!
//! A *stretch* is a set of push elements with programs that are wired to each other. Packets that enter it
//! from elsewhere run through the linked program ([`synth::link`]) and come out at its exits: a wire to an
//! element that is not of the stretch, a drop, a slow path. The elements stay: they own the tables, answer
//! handlers, have slow paths, and run one by one what enters the stretch in its middle, which is rare: what
//! a slow path let go, what an element sends by itself. Cells are the same in both ways, see
//! [`crate::node::Node::cells`].
//!
//! - [`Stretch`]: a stretch of one worker
//! - `run`: a burst's way through, and the books

mod cache;
mod find;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
mod made;
mod run;
mod sources;

pub use cache::{CacheCounts, FlowCache};
pub use find::{Cut, find};
#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::fuzz_forms;
pub use made::Made;

use crate::node::Node;
use cache::Cache;
pub use chain::FusedElements as Wanted;
use made::{Config, Making};
use sources::{Source, Sources};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use synth::link::{LinkError, Linked};

/// Where packets enter a stretch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The stretch.
    pub stretch: usize,
    /// The input of its program.
    pub input: usize,
}

/// Whether the stretches of a run are to run as one program each, now.
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

/// How a stretch is to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How {
    /// As one program from the start.
    pub is_wanted: bool,
    /// By the evaluator.
    pub is_evaluated: bool,
    /// Whether with a flow cache.
    pub cache: FlowCache,
}

/// A stretch of one worker's graph.
pub struct Stretch {
    /// The nodes of its parts.
    pub parts: Vec<usize>,
    /// What it is linked of.
    sources: Arc<Sources>,
    /// The linked program as its elements are written, and where each thing of it came from.
    pub linked: Arc<Linked>,
    /// Whether `linked` and `made` are of other programs than those in `sources`.
    is_stale: bool,
    /// What is run: the same with less to do.
    pub made: Made,
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
    cache: Option<Box<Cache>>,
    /// What those did that it had before.
    before: CacheCounts,
    /// For each input of the program, the part and its input.
    inputs: Vec<(usize, usize)>,
    /// Its cells among the worker's.
    cells: Range<usize>,
    /// For each part, packets that entered less those that left the stretch there, since the books were
    /// written up.
    balance: Vec<u64>,
    /// The counting cells when the books were written up.
    counted: Vec<u64>,
    /// What passed each wire: kept for its memory.
    passed: Vec<u64>,
    /// Whether something is to be written up.
    is_due: bool,
}

impl Stretch {
    /// Links the programs of the nodes `parts`, and tells them where packets enter.
    ///
    /// # Errors
    /// When the stretch is too large.
    pub fn new(
        number: usize,
        parts: Vec<usize>,
        cuts: &[Cut],
        nodes: &mut [Node],
        how: How,
    ) -> Result<Stretch, LinkError> {
        let place = |node: usize| parts.iter().position(|part| *part == node);
        let mut places: Vec<Option<usize>> = vec![None; nodes.len()];
        for (part, node) in parts.iter().enumerate() {
            places[*node] = Some(part);
        }
        let entries: Vec<(usize, usize)> = find::entries(nodes, &places, cuts)
            .into_iter()
            .filter_map(|(node, input)| Some((place(node)?, input)))
            .collect();
        let source = |node: &usize| {
            let next = |(port, end): (usize, &Option<crate::node::End>)| {
                let end = end.filter(|_| !cuts.contains(&Cut { node: *node, port }))?;
                places[end.node].map(|part| (part, end.port))
            };
            let this = &nodes[*node];
            let program = Arc::clone(&this.lowered.as_ref()?.program);
            Some(Source {
                name: this.name.clone(),
                program,
                next: this.outputs.iter().enumerate().map(next).collect(),
            })
        };
        let sources = Sources { parts: parts.iter().filter_map(source).collect(), entries: entries.clone() };
        let linked = sources.link()?;
        let start: Vec<u64> = linked.program.cells.iter().map(|cell| cell.init).collect();
        let made = match how.is_wanted {
            true => Made::of(&linked.program, &start),
            false => Made::nothing(&linked.program),
        };
        for (input, (part, port)) in entries.iter().enumerate() {
            let node = &mut nodes[parts[*part]];
            node.entries.resize(node.entries.len().max(port + 1), None);
            node.entries[*port] = Some(Entry { stretch: number, input });
        }
        Ok(Stretch {
            inputs: entries,
            balance: vec![0; parts.len()],
            counted: vec![0; linked.flow.counted.len()],
            passed: vec![],
            cells: 0..0,
            is_due: false,
            sources: Arc::new(sources),
            linked: Arc::new(linked),
            is_stale: false,
            made,
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

#[cfg(test)]
mod tests;
mod users;
