//! A fused region of one worker's graph: the linked program of its elements, the compiled program, and the
//! values for which it is compiled again.

use super::cache::{Cache, CacheCounts, FlowCache};
use super::compiled::{CompiledRegion, Config, config_cells, holds};
use super::cpu::{aside, compiled};
use super::layout::{Leads, RegionLayout};
use super::part_tables::PartTables;
use super::region_source::{NotFused, RegionSource, RegionSources};
use super::unions::Unions;
use crate::graph::{Node, RegionEntry};
use crate::order::NodeOrder;
use codegen::CodegenError;
use ir::Verified;
use ir::program::Matching;
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;
use synth::link::Linked;

/// A compilation on a thread: its sources, the linked program and the compiled program.
type Making = JoinHandle<Result<(Arc<RegionSources>, Arc<Linked>, CompiledRegion), CannotMake>>;

/// Why a fused region could not be compiled.
#[derive(Debug, thiserror::Error)]
enum CannotMake {
    #[error(transparent)]
    Code(#[from] CodegenError),
    #[error(transparent)]
    NotFused(#[from] NotFused),
}

/// How a fused region is to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How {
    /// Whether it runs as one program from the start.
    pub is_wanted: bool,
    /// Whether the evaluator runs the program instead of machine code.
    pub is_evaluated: bool,
    /// Whether it has a flow cache.
    pub cache: FlowCache,
}

/// A fused region of one worker's graph.
pub struct FusedRegion {
    /// The nodes of its parts: a node once for each part that is an input of it.
    pub parts: Vec<usize>,
    /// Its parts' inputs, and where their outputs lead.
    pub layout: RegionLayout,
    /// The programs from which it is linked.
    sources: Arc<RegionSources>,
    /// The linked program before optimization, and the origin of its tables, cells and exits.
    pub linked: Arc<Linked>,
    /// Whether `linked` and `compiled` come from other programs than those in `sources`.
    is_stale: bool,
    /// The program that runs: `linked` after optimization.
    pub compiled: CompiledRegion,
    /// The unions of tables that its machine code asks for.
    unions: Unions,
    /// A compilation in progress for other values of configuration cells or other programs.
    next: Option<Making>,
    /// Programs and cell values that could not be compiled.
    failed: Option<(Arc<RegionSources>, Config)>,
    /// Whether the program is wanted and fits the cells' values.
    is_ready: bool,
    is_wanted: bool,
    is_evaluated: bool,
    cache_wanted: FlowCache,
    /// The flow cache, while the region runs as one program.
    pub(crate) cache: Option<Box<Cache>>,
    /// The statistics of its earlier flow caches, and its own.
    before: CacheCounts,
    /// The range of its cells among the worker's.
    pub(crate) cells: Range<usize>,
    /// For each part, the packets that entered it less those that left the fused region from it, since the
    /// counters were last settled.
    pub(crate) balance: Vec<u64>,
    /// The values of the counting cells when the counters were last settled.
    pub(crate) counted: Vec<u64>,
    /// The packets of each wire; kept for its allocation.
    pub(crate) passed: Vec<u64>,
    /// Whether there are counters to settle.
    pub(crate) is_due: bool,
    /// The nodes from which packets reach a table that packets change; empty if it has none.
    pub(crate) before_tables: Vec<bool>,
    /// The outputs of the program that lead to one of these nodes.
    pub(crate) returning: Vec<u16>,
    /// The queues among its parts, each with what pulls from it.
    pub(crate) queues: Vec<(usize, usize)>,
    /// The most packets that its queues let pass at once; none while packets wait in one of them.
    pub(crate) room: usize,
}

impl FusedRegion {
    /// Links the programs of a region's parts, and sets the entries of the nodes at which packets enter. `like` is
    /// the same region of another worker's graph, whose programs are equal: they are shared.
    ///
    /// # Errors
    /// When the fused region is too large.
    pub fn new(
        number: usize,
        layout: &RegionLayout,
        nodes: &mut [Node],
        how: How,
        like: Option<&FusedRegion>,
    ) -> Result<FusedRegion, NotFused> {
        let parts: Vec<usize> = layout.parts.iter().map(|part| part.node).collect();
        let input = |part: &usize| (*part, layout.parts[*part].input);
        let inputs: Vec<(usize, usize)> = layout.entries.iter().map(input).collect();
        let source = |(at, node): (usize, &usize)| {
            let next = |leads: &Leads| match leads {
                Leads::Inside(part) => Some(input(part)),
                _ => None,
            };
            let (this, leads) = (&nodes[*node], &layout.parts[at].leads);
            let is_seldom = |port: &usize| matches!(leads[*port], Leads::Seldom | Leads::Loop);
            // Parts are in the order of their nodes.
            let first = parts.partition_point(|part| part < node);
            Some(RegionSource {
                name: this.name.clone(),
                nf: this.nf,
                program: Arc::clone(&this.lowered.as_ref()?.program),
                input: layout.parts[at].input,
                shares: (first != at).then_some(first),
                next: leads.iter().map(next).collect(),
                seldom: (0..leads.len()).filter(is_seldom).collect(),
            })
        };
        let (sources, linked, compiled) = match like {
            Some(like) => (Arc::clone(&like.sources), Arc::clone(&like.linked), like.compiled.clone()),
            None => {
                let parts = parts.iter().enumerate().filter_map(source).collect();
                let sources = RegionSources { parts, entries: inputs, from_ports: layout.from_ports.clone() };
                let linked = sources.link()?;
                let start: Vec<u64> = linked.program.cells.iter().map(|cell| cell.init).collect();
                let compiled = match how.is_wanted {
                    true => CompiledRegion::of(&linked, &start),
                    false => CompiledRegion::nothing(&linked.program),
                };
                // What is not optimised yet is larger than its functions will be.
                if how.is_wanted {
                    sources.check_functions(compiled.functions_size())?;
                }
                (Arc::new(sources), Arc::new(linked), compiled)
            }
        };
        for (input, (part, port)) in sources.entries.iter().enumerate() {
            let node = &mut nodes[parts[*part]];
            node.entries.resize(node.entries.len().max(port + 1), None);
            node.entries[*port] = Some(RegionEntry { region: number, input });
        }
        let queues = parts.iter().filter_map(|at| Some((*at, nodes[*at].reader?))).collect();
        Ok(FusedRegion {
            queues,
            before_tables: vec![],
            returning: vec![],
            room: usize::MAX,
            balance: vec![0; parts.len()],
            counted: vec![0; linked.flow.counted.len()],
            passed: vec![],
            cells: 0..0,
            is_due: false,
            sources,
            linked,
            is_stale: false,
            compiled,
            unions: Unions::default(),
            next: None,
            failed: None,
            is_ready: how.is_wanted,
            is_wanted: how.is_wanted,
            is_evaluated: how.is_evaluated,
            cache_wanted: how.cache,
            cache: None,
            before: CacheCounts::default(),
            layout: layout.clone(),
            parts,
        })
    }

    /// Finds out which packets outside can still reach its tables.
    pub(crate) fn find_returning(&mut self, nodes: &[Node], order: &NodeOrder) {
        let tables = self.linked.program.tables.iter().zip(&self.linked.tables);
        let changing = tables.filter(|(decl, _)| decl.matching == Matching::Unknown);
        let changing: Vec<usize> = changing.map(|(_, (part, _))| self.parts[*part]).collect();
        let reaches = |node: usize| changing.iter().any(|table| order.reaches(node, *table));
        self.before_tables = match changing.is_empty() {
            true => vec![],
            false => (0..nodes.len()).map(reaches).collect(),
        };
        let comes_back = |&(part, port): &(usize, usize)| {
            let next = nodes[self.parts[part]].outputs.get(port).copied().flatten();
            next.is_some_and(|next| self.before_tables.get(next.node) == Some(&true))
        };
        let outputs = (0..).zip(&self.linked.outputs).filter(|(_, output)| comes_back(output));
        self.returning = outputs.map(|(output, _)| output).collect();
    }

    /// The statistics of its flow caches.
    pub fn cache_counts(&self) -> CacheCounts {
        let mut counts = self.before;
        counts.add(self.cache.as_ref().map_or(CacheCounts::default(), |cache| cache.counts()));
        counts
    }

    /// The number of its unions of tables (ADR 32) that are as the tables were when it last looked.
    pub fn unions(&self) -> usize {
        self.unions.count()
    }

    /// Counts packets that leave the program for an element's own code.
    pub(crate) fn count_aside(&mut self, packets: usize) {
        self.before.aside += packets as u64;
    }

    /// Counts packets that leave by one of a part's outputs, if few do.
    pub(crate) fn count_seldom(&mut self, part: usize, port: usize, packets: usize) {
        let leads = self.layout.parts.get(part).and_then(|part| part.leads.get(port));
        if leads == Some(&Leads::Seldom) {
            self.count_aside(packets);
        }
    }

    /// The nodes and inputs at which packets enter, in the order of the program's inputs.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize)> {
        self.layout.entries.iter().map(|part| (self.parts[*part], self.layout.parts[*part].input))
    }

    /// Its tables.
    #[inline(always)]
    pub(crate) fn tables<'a>(&'a self, nodes: &'a mut [Node]) -> PartTables<'a> {
        PartTables { nodes, parts: &self.parts, tables: &self.linked.tables, unions: Some(&self.unions) }
    }

    /// Its nodes, each once, in order.
    pub fn nodes(&self) -> impl Iterator<Item = usize> {
        // The parts of a node are side by side.
        self.parts.chunk_by(|a, b| a == b).map(|parts| parts[0])
    }

    /// The part that packets at an input of a node enter.
    pub fn entry(&self, node: usize, input: usize) -> Option<usize> {
        let is_entry = |part: &&usize| self.parts[**part] == node && self.layout.parts[**part].input == input;
        self.layout.entries.iter().find(is_entry).copied()
    }

    /// Moves the cells of its nodes to the end of the worker's cells, followed by the cells that count wires.
    pub(crate) fn settle_in(&mut self, nodes: &mut [Node], cells: &mut Vec<u64>) {
        let start = cells.len();
        for node in self.nodes() {
            nodes[node].settle_in(cells);
        }
        cells.resize(cells.len() + self.counted.len(), 0);
        self.cells = start..cells.len();
    }

    /// Whether its program can run now.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether its program is being compiled.
    pub(crate) fn is_in_the_making(&self) -> bool {
        self.next.is_some()
    }

    /// Whether it is requested to run as one program.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Ends the flow cache, and merges what it counted.
    fn end_cache(&mut self, nodes: &mut [Node], now_ns: u64) {
        if let Some(mut cache) = self.cache.take() {
            cache.merge(&mut self.tables(nodes), now_ns);
            self.before.add(CacheCounts { flows: 0, templates: 0, ..cache.counts() });
            cache.end();
        }
    }

    /// Keeps a flow cache only while the program runs: the elements' own code may change records without
    /// invalidating entries.
    fn follow_cache(&mut self, nodes: &mut [Node], now_ns: u64) {
        let is_wanted = self.is_ready && Cache::can_help(self.cache_wanted, &self.compiled.program);
        if is_wanted != self.cache.is_some() {
            let new = || Cache::new(self.cache_wanted, self.is_evaluated, &self.compiled);
            let cache = is_wanted.then(|| Box::new(new()));
            self.end_cache(nodes, now_ns);
            self.cache = cache;
        }
    }

    /// Compiles the program for the values of these cells if it is `wanted`: after a handler was written, and
    /// regularly while a compilation is in progress. Packets do not wait for the compilation. While a burst
    /// is `under_way`, the old program stays in place until the burst has left it.
    pub(crate) fn update(
        &mut self,
        cells: &[u64],
        (nodes, now_ns): (&mut [Node], u64),
        wanted: bool,
        under_way: bool,
    ) {
        self.is_wanted = wanted;
        let cells = &cells[self.cells.clone()];
        if !under_way && let Some(made) = compiled(&mut self.next) {
            self.end_cache(nodes, now_ns);
            self.take(made, cells);
        }
        self.is_ready = wanted && !self.is_stale && self.compiled.is_for(cells);
        self.follow_cache(nodes, now_ns);
        if self.is_ready {
            self.update_unions(nodes);
        }
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
            let mut made = CompiledRegion::of(&linked, &cells);
            sources.check_functions(made.functions_size()).map_err(NotFused::from)?;
            if !is_evaluated {
                made.engine = made.native()?;
            }
            Ok((sources, linked, made))
        };
        if is_evaluated {
            self.end_cache(nodes, now_ns);
            self.take(make(), &[]);
            self.is_ready = !self.is_stale;
            self.follow_cache(nodes, now_ns);
            return;
        }
        self.next = aside("synthesis", make);
    }

    /// Makes the unions of tables that the program asks for, where tables have changed.
    fn update_unions(&mut self, nodes: &mut [Node]) {
        let rows = self.compiled.engine.rows();
        let (parts, tables) = (&self.parts, &self.linked.tables);
        self.unions.update(rows, &mut PartTables { nodes, parts, tables, unions: None });
        if let Some(cache) = &mut self.cache {
            cache.has_unions = self.unions.are_there();
        }
    }

    /// Takes the result of a compilation.
    fn take(
        &mut self,
        made: Result<(Arc<RegionSources>, Arc<Linked>, CompiledRegion), CannotMake>,
        cells: &[u64],
    ) {
        match made {
            Ok((sources, linked, made)) if Arc::ptr_eq(&sources, &self.sources) => {
                (self.linked, self.compiled, self.is_stale) = (linked, made, false);
            }
            // A program was replaced in the meantime.
            Ok(_) => {}
            // The elements keep running one by one until a program or a cell changes.
            Err(error) => {
                tracing::error!("no code for a fused region of elements: {error}");
                self.failed = Some((Arc::clone(&self.sources), config_cells(&self.linked, cells)));
            }
        }
    }

    /// Replaces the program of a node whose element was exchanged. If the new program equals the old one,
    /// only the tables changed. Else the region is linked again before it next runs as one program, see
    /// [`FusedRegion::update`].
    pub(crate) fn replace(&mut self, node: usize, program: &Arc<Verified>, nodes: &mut [Node], now_ns: u64) {
        if !self.parts.contains(&node) {
            return;
        }
        // Entries and unions store results of the old tables.
        self.end_cache(nodes, now_ns);
        self.unions.clear();
        for at in (0..self.parts.len()).filter(|at| self.parts[*at] == node) {
            if self.sources.parts[at].program != *program {
                Arc::make_mut(&mut self.sources).parts[at].program = Arc::clone(program);
                self.is_stale = true;
            }
        }
    }
}
