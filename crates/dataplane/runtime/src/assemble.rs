//! Builds a graph for each worker from a flat configuration.
//!
//! All errors are collected: unknown wiring, push to pull, bad arguments of any element. Programs of
//! transparent elements are compiled once; equal programs share their code.

use crate::loops;
use crate::packages;
use crate::registry::{self, KnownClasses};
use crate::services::{Opener, Wires, WorkerServices};
use chain::FusedElements;
use click::config::NameTable;
use click::flow::{self, Flow, Processing};
use click::{ElementId, Graph};
use codegen::{CodeBuilder, CodegenError, Engine, ProgramId};
use diag::{Diagnostics, Span};
use element::{Class, Configure, Element, Services, Shape, StateScope};
use ir::{Program, Verified};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use worker::counters::NodeCounters;
use worker::exchange::{Live, SharedState};
use worker::fusion::{self, FlowCache, FusedRegion, How, NotFused, TooLarge};
use worker::graph::{End, Lowered, Node, Pulled};
use worker::passage::{self, QueuePassage};
use worker::texts::ConfigurationTexts;

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of workers.
    pub workers: usize,
    /// Whether the evaluator runs the programs instead of machine code.
    pub evaluator: bool,
    /// The elements that run as a part of a fused region where possible; all others run one by one.
    pub fused: FusedElements,
    /// When fused regions use a flow cache.
    pub cache: FlowCache,
    /// The most packets of a burst.
    pub burst: usize,
    /// Whether packets pass queues in which they need not wait.
    pub pass_queues: bool,
    /// The folder of relative file names in the configuration.
    pub folder: PathBuf,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            workers: 1,
            evaluator: false,
            fused: FusedElements::Nothing,
            cache: FlowCache::Auto,
            burst: worker::DEFAULT_BURST,
            pass_queues: true,
            folder: PathBuf::from("."),
        }
    }
}

/// A chain that is ready to run: a graph for each worker.
pub struct Assembly {
    /// The graphs.
    pub graphs: Vec<Vec<Node>>,
    /// The fused regions of each graph.
    pub regions: Vec<Vec<FusedRegion>>,
    /// What could be a fused region, and is too large.
    pub refused: Vec<RefusedRegion>,
    /// Its queues, and whether packets pass them.
    pub queues: Vec<QueuePassage>,
    /// The context for exchanging elements while they run.
    pub live: Arc<Live>,
    /// Number of different programs that were compiled to machine code.
    pub programs: usize,
    /// The names of the NFs (of each instance), by [`Node::nf`].
    pub nfs: Vec<String>,
}

/// The names that `AddressInfo` and `PortInfo` elements define.
fn take_names(graph: &Graph, diags: &mut Diagnostics) -> NameTable {
    let mut names = NameTable::new();
    for element in &graph.elements {
        match element.class.as_str() {
            "AddressInfo" => names.address_info(&element.name, &element.config, diags),
            "PortInfo" => names.port_info(&element.name, &element.config, diags),
            _ => {}
        }
    }
    names
}

/// Builds the graphs of a configuration; `None` if it has errors, which are recorded.
///
/// # Errors
/// If machine code cannot be generated.
pub fn assemble(
    graph: &Graph,
    options: &Options,
    opener: &mut dyn Opener,
    diags: &mut Diagnostics,
) -> Result<Option<Assembly>, AssembleError> {
    let mut found = Diagnostics::new();
    let assembly = assemble_all(graph, options, opener, &mut found);
    chain::instances::say_once(graph, found, diags);
    Ok(assembly?.filter(|_| !diags.has_errors()))
}

fn assemble_all(
    graph: &Graph,
    options: &Options,
    opener: &mut dyn Opener,
    diags: &mut Diagnostics,
) -> Result<Option<Assembly>, AssembleError> {
    packages::check(&graph.packages, diags);
    let names = take_names(graph, diags);
    let flow = flow::resolve(graph, &|id| flow::spec(graph, id, &KnownClasses), diags);
    let (index, wires) = (graph.index(), Wires::new(graph));
    let mut shared = SharedState::default();
    let mut graphs = vec![];
    let workers = options.workers.max(1);
    let nfs = nfs(graph);
    for worker in 0..workers {
        let mut services = WorkerServices {
            worker,
            opener,
            shared: &mut shared,
            folder: &options.folder,
            graph,
            flow: &flow,
            index: &index,
            wires: &wires,
            nfs: &nfs,
        };
        // The elements of all workers have the same errors.
        let mut later = Diagnostics::new();
        let mistakes = if worker == 0 { &mut *diags } else { &mut later };
        let mut nodes = vec![];
        for id in graph.ids() {
            nodes.extend(make_node(id, workers, &names, &mut services, mistakes));
        }
        if mistakes.has_errors() || nodes.len() != graph.elements.len() {
            diags.extend(later);
            return Ok(None);
        }
        note_writers(&wires, &mut nodes);
        lead_pulls(&mut nodes);
        graphs.push(nodes);
    }
    loops::warn(graph, &graphs[0], &wires, diags);
    spread_for_state(&mut graphs);
    let queues = match options.pass_queues {
        true => passage::find(&mut graphs[0], workers, options.burst),
        false => vec![],
    };
    for nodes in &mut graphs {
        passage::open(nodes, &queues)
            .unwrap_or_else(|error| panic!("an invalid program for a queue: {error}"));
    }
    let (mut regions, refused) = fuse(&mut graphs, options);
    if options.fused != FusedElements::Nothing {
        say_refused(&refused, graph, &nfs, diags);
    }
    let programs = compile(&mut graphs, &mut regions, options)?;
    let texts = texts(graph, &flow);
    let live = Live::new(&mut graphs[0], names, texts, &options.folder, workers, options.evaluator);
    Ok(Some(Assembly { graphs, regions, refused, queues, live: Arc::new(live), programs, nfs }))
}

/// Wires what is pulled through an element unchanged ([`element::Opaque::pulls_from`]) to its source.
fn lead_pulls(nodes: &mut [Node]) {
    let source = |nodes: &mut [Node], End { node, port }: End| {
        let this = nodes.get_mut(node).filter(|node| node.answers_pull)?;
        let input = this.element.as_mut()?.as_opaque()?.pulls_from(port)?;
        Some(this.inputs.get(input).copied().flatten())
    };
    for at in 0..nodes.len() {
        for input in 0..nodes[at].inputs.len() {
            // No more steps than there are nodes: such outputs may be in a circle.
            for _ in 0..nodes.len() {
                let Some(end) = nodes[at].inputs[input] else { break };
                let Some(further) = source(nodes, end) else { break };
                nodes[at].inputs[input] = further;
            }
        }
    }
}

/// The configuration as its handlers show it.
fn texts(graph: &Graph, flow: &Flow) -> ConfigurationTexts {
    ConfigurationTexts {
        config: graph.text.clone(),
        flat: click::unparse(graph),
        requirements: graph.packages.iter().map(|package| package.text.clone()).collect(),
        ports: click::unparse_ports(graph, flow, &|id| flow::spec(graph, id, &KnownClasses)),
    }
}

/// The names of the configurations that a graph is composed of: its NFs, and each instance of one.
fn nfs(graph: &Graph) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    for id in graph.ids() {
        let name = graph.configuration(id);
        if !names.iter().any(|known| known == name) {
            names.push(name.to_string());
        }
    }
    names
}

/// Without per-flow state, packets that a device distributed by flow stay with the worker that receives them:
/// no worker parses and hashes them to find an owner worker.
fn spread_for_state(graphs: &mut [Vec<Node>]) {
    if graphs.iter().flatten().any(|node| node.class.state == StateScope::PerFlow) {
        return;
    }
    for node in graphs.iter_mut().flatten() {
        node.steering.take_if(|spread| spread.is_shared_out());
    }
}

fn make_node(
    id: ElementId,
    workers: usize,
    names: &NameTable,
    services: &mut WorkerServices<'_>,
    diags: &mut Diagnostics,
) -> Option<Node> {
    let (worker, wires) = (services.worker, services.wires);
    let declared = services.graph.element(id)?;
    let class = registry::find(declared.class.as_str())?;
    let wired = services.flow.ports(id);
    let shape = Shape { inputs: wired.inputs.len(), outputs: wired.outputs.len() };
    let mut cx = Configure {
        name: &declared.name,
        config: &declared.config,
        span: declared.span,
        shape,
        worker,
        workers,
        names: &names.scoped(&declared.name),
        diags,
        services,
    };
    let mut element = (class.make)(&mut cx)?;
    let lowered = element.lower(shape).transpose().unwrap_or_else(|error| {
        panic!("{}: {} lowers to an invalid program: {error}", declared.name, class.name)
    });
    // A node stores the wires of its push outputs and of its pull inputs.
    let ends = |wires: &[(usize, End)], side: &[Processing], pulls: bool| {
        let mut ends: Vec<Option<End>> = vec![None; side.len()];
        for (port, end) in wires {
            if side.get(*port).is_some_and(|processing| (*processing == Processing::Pull) == pulls) {
                ends[*port].get_or_insert(*end);
            }
        }
        ends
    };
    let outputs = ends(&wires.after[id.0], &wired.outputs, false);
    let inputs = ends(&wires.before[id.0], &wired.inputs, true);
    let pulls = inputs.iter().any(Option::is_some);
    let is_pulled = wired.outputs.contains(&Processing::Pull);
    let answers = is_pulled && element.as_opaque().is_some_and(|element| element.answers_pull());
    let answers_pull = answers || answers_pull(class);
    let task = element.task();
    let steering = task.as_ref().and_then(|task| task.steering());
    let is_from_port = task.as_ref().is_some_and(|task| shape.inputs == 0 && task.is_from_port());
    let works = task.is_some_and(|task| shape.inputs == 0 || pulls || task.works_alone());
    let elsewhere = class.state == StateScope::OneWorker && worker != 0;
    let (first_cells, reasons, own_reasons) = reasons_of(&*element, lowered.as_deref());
    let counters = NodeCounters {
        outputs: (0..shape.outputs).map(|_| Default::default()).collect(),
        dropped: reasons.iter().map(|_| Default::default()).collect(),
        reasons,
        ..NodeCounters::default()
    };
    Some(Node {
        name: declared.name.clone(),
        nf: services.nf(&declared.name),
        class,
        config: declared.config.as_str().to_string(),
        steering,
        is_from_port,
        has_task: works && !elsewhere,
        reader: None,
        passed: None,
        rests: false,
        is_in_passage: false,
        element: Some(element),
        lowered: lowered.map(|program| {
            let program = Arc::new(program);
            Lowered { engine: Engine::Evaluator(Arc::clone(&program)), program, own_reasons }
        }),
        first_cells,
        cells: 0..0,
        entries: vec![],
        outputs,
        inputs,
        answers_pull,
        pulled: Pulled::of(answers_pull),
        elsewhere,
        is_hooked: elsewhere,
        counters: Arc::new(counters),
    })
}

/// Passes each element the name of an element downstream that may write packets, if there is one.
fn note_writers(wires: &Wires, nodes: &mut [Node]) {
    let own = |node: &Node| node.element.as_ref().is_some_and(|element| element.writes());
    // Elements that always write have precedence.
    let surely = |node: &Node| node.lowered.as_ref().map_or(own(node), |lowered| lowered.program.writes());
    let perhaps = |node: &Node| {
        node.lowered.as_ref().is_some_and(|lowered| !lowered.program.slow.is_empty()) && own(node)
    };
    let mut writer: Vec<Option<usize>> = vec![None; nodes.len()];
    for is_writer in [&surely as &dyn Fn(&Node) -> bool, &perhaps] {
        let found = nodes.iter().enumerate().filter(|(_, node)| is_writer(node));
        let mut open: Vec<(usize, usize)> = found.map(|(at, _)| (at, at)).collect();
        while let Some((at, found)) = open.pop() {
            for (_, from) in &wires.before[at] {
                if writer[from.node].is_none() {
                    writer[from.node] = Some(found);
                    open.push((from.node, found));
                }
            }
        }
    }
    let names: Vec<Option<String>> =
        writer.iter().map(|found| found.map(|found| nodes[found].name.clone())).collect();
    for (node, name) in nodes.iter_mut().zip(names) {
        node.element.iter_mut().for_each(|element| element.note_writer(name.as_deref()));
    }
}

/// A set of elements that could be a fused region and is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedRegion {
    /// Its elements.
    pub nodes: Vec<usize>,
    /// Why.
    pub why: NotFused,
}

/// Builds the fused regions of each graph, the same in all. The elements of regions that are too large run one
/// by one.
fn fuse(graphs: &mut [Vec<Node>], options: &Options) -> (Vec<Vec<FusedRegion>>, Vec<RefusedRegion>) {
    // If no region is wanted now, all are built, because the execution mode may change.
    let is_wanted = options.fused != FusedElements::Nothing;
    let which = if is_wanted { &options.fused } else { &FusedElements::All };
    let how = How { is_wanted, is_evaluated: options.evaluator, cache: options.cache };
    let found = fusion::find(&graphs[0], which, options.workers.max(1));
    let (mut all, mut refused): (Vec<Vec<FusedRegion>>, Vec<RefusedRegion>) = (vec![], vec![]);
    for nodes in graphs.iter_mut() {
        let mut regions: Vec<FusedRegion> = vec![];
        for layout in &found {
            // What is refused is so in every graph.
            let node = layout.parts[0].node;
            if refused.iter().any(|region| region.nodes.contains(&node)) {
                continue;
            }
            let like = all.first().and_then(|first| first.get(regions.len()));
            match FusedRegion::new(regions.len(), layout, nodes, how, like) {
                Ok(region) => regions.push(region),
                Err(why) => {
                    let nodes: BTreeSet<usize> = layout.parts.iter().map(|part| part.node).collect();
                    refused.push(RefusedRegion { nodes: nodes.into_iter().collect(), why });
                }
            }
        }
        all.push(regions);
    }
    (all, refused)
}

/// Warns of regions that were to run as one program and do not, at the element that has most of it.
fn say_refused(refused: &[RefusedRegion], graph: &Graph, nfs: &[String], diags: &mut Diagnostics) {
    for RefusedRegion { nodes, why } in refused {
        let most = match why {
            NotFused::TooLarge(large) => {
                graph.index().find(&large.largest.0, "").and_then(|id| graph.element(id))
            }
            NotFused::Link(_) => None,
        };
        let at = most.or_else(|| nodes.first().and_then(|node| graph.elements.get(*node)));
        let span = at.map_or(Span::NONE, |element| element.span);
        let mut message = why.to_string();
        if let NotFused::TooLarge(TooLarge { nf: (nf, count), .. }) = why
            && let Some(name) = nfs.get(*nf).filter(|name| !name.is_empty())
        {
            message += &format!(", of its NFs {name} ({count})");
        }
        message += ": its elements run one by one";
        diags.warning(span, message).help(
            "smaller regions run as one function: give some of its NFs `runs = \"modular\"` or \"process\", or shorten \
             the lists of patterns that make an element large",
        );
    }
}

/// Whether a class's outputs are pull: its elements answer pulls themselves.
fn answers_pull(class: &Class) -> bool {
    class.codes.processing.split('/').next_back().is_some_and(|outputs| outputs.contains('l'))
}

/// The initial cells, the names of the drop reasons, and the index of the element's own among them. The last
/// two are the host's: packets at an unwired output, and packets in a loop or in front of a full handoff
/// queue.
fn reasons_of(element: &dyn Element, program: Option<&Program>) -> (Vec<u64>, Vec<String>, usize) {
    let mut reasons = program.map_or(vec![], |program| program.reasons.clone());
    let own = reasons.len();
    reasons.extend(element.reasons().iter().map(|reason| reason.to_string()));
    reasons.extend(["unwired-output", "loop-or-full-handoff"].map(str::to_string));
    let cells = program.map_or(vec![], |program| program.cells.iter().map(|cell| cell.init).collect());
    (cells, reasons, own)
}

/// Compiles every program once and sets the engine of each node and fused region. Returns the number of
/// programs.
fn compile(
    graphs: &mut [Vec<Node>],
    regions: &mut [Vec<FusedRegion>],
    options: &Options,
) -> Result<usize, CodegenError> {
    if options.evaluator {
        return Ok(0);
    }
    let mut compiler = Compiler { builder: CodeBuilder::new()?, known: HashMap::new() };
    let mut ids = vec![];
    for lowered in graphs.iter_mut().flatten().filter_map(|node| node.lowered.as_mut()) {
        let (program, id) = compiler.add(&lowered.program)?;
        lowered.program = program;
        ids.push(id);
    }
    // The fused regions of all workers are equal.
    let mut of_regions = vec![];
    let wanted = regions.first().into_iter().flatten().filter(|region| region.is_wanted());
    for (number, region) in wanted.enumerate() {
        of_regions.push(region.compiled.add_to(&mut compiler.builder)?);
        debug_assert!(regions.iter().all(|all| all[number].compiled.program == region.compiled.program));
    }
    let programs = compiler.known.values().map(Vec::len).sum::<usize>();
    let code = compiler.builder.finish()?;
    let lowered = graphs.iter_mut().flatten().filter_map(|node| node.lowered.as_mut());
    for (lowered, id) in lowered.zip(ids) {
        lowered.engine = Engine::Native(code.compiled(id));
    }
    for regions in regions {
        for (region, id) in regions.iter_mut().zip(&of_regions) {
            region.compiled.engine = Engine::Native(code.compiled(*id));
        }
    }
    Ok(programs + of_regions.len())
}

/// Compiles equal programs once.
struct Compiler {
    builder: CodeBuilder,
    known: HashMap<String, Vec<(Arc<Verified>, ProgramId)>>,
}

impl Compiler {
    fn add(&mut self, program: &Arc<Verified>) -> Result<(Arc<Verified>, ProgramId), CodegenError> {
        let alike = self.known.entry(program.name.clone()).or_default();
        if let Some(same) = alike.iter().find(|(known, _)| **known == **program) {
            return Ok(same.clone());
        }
        let made = (Arc::clone(program), self.builder.add(program)?);
        alike.push(made.clone());
        Ok(made)
    }
}

/// Why no graphs were built although the configuration has no errors.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// Machine code could not be generated.
    #[error(transparent)]
    Code(#[from] CodegenError),
}
