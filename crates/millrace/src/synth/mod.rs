//! `millrace synth`: shows the fused regions and traffic classes of a chain.

pub mod classes;
mod click;
mod conditions;
pub mod fused_region;
mod openflow;
mod svg;

use crate::exit::ExitStatus;
use crate::{check, prove, text};
use ::prove::Limits;
use anyhow::Context;
use chain::{Chain, FusedElements};
use clap::Args;
use classes::{Detail, Walked};
use codegen::{CodeBuilder, Listed};
use fused_region::{RegionShown, Sizes};
use ir::Tables;
use runtime::Assembly;
use runtime::machine::Machine;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use worker::graph::Node;

/// Shows what becomes of a chain when it runs fused: which elements run as one function, and the classes of
/// traffic that it tells apart. Runs nothing.
#[derive(Debug, Args)]
pub struct SynthArgs {
    /// Chain file (TOML) or Click configuration
    chain: PathBuf,

    /// Sets a variable of the configuration, as `define` does
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = crate::order::definition)]
    defines: Vec<String>,

    /// The same as JSON, with every traffic class
    #[arg(long, short = 'j')]
    json: bool,

    /// Shows every traffic class
    #[arg(long)]
    classes: bool,

    /// Most traffic classes of a fused region that are looked for (2,000 by default); with --prove, of each of its
    /// entries (20,000 by default)
    #[arg(long, value_name = "COUNT", value_parser = most)]
    max_classes: Option<usize>,

    /// Shows an equivalent Click configuration instead
    #[arg(long, conflicts_with_all = ["json", "emit", "classes"])]
    click: bool,

    /// Shows it in another language instead: Click, or OpenFlow 1.3 rules for a switch in front of the server
    #[arg(long, value_enum, value_name = "LANGUAGE", conflicts_with_all = ["json", "emit", "classes", "click"])]
    to: Option<Language>,

    /// Writes a picture of it
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Shows what each fused region is made into instead
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "json")]
    emit: Option<Emit>,

    /// Says of each fused region whether it does what its elements do, for every packet
    #[arg(long, conflicts_with = "emit")]
    prove: bool,

    /// Longest time for the whole proof; a number alone counts seconds
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = crate::times::time, requires = "prove")]
    limit: Duration,
}

/// The default limit of traffic classes: more than most chains have, and still fast to compute.
pub const MAX_CLASSES: usize = 2_000;
/// The default limit for proofs, which may take longer.
const MAX_PROVEN_CLASSES: usize = 20_000;

/// Parses a count of at least 1.
fn most(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "a number from 1 on is expected".into())
}

/// Languages of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Language {
    /// A Click configuration, the same as `--click`
    Click,
    /// OpenFlow 1.3 rules
    Openflow,
}

/// What a fused region is made into.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Emit {
    /// Its packet program
    Ir,
    /// Cranelift's intermediate form
    Clif,
    /// Assembly
    Asm,
}

/// The fused regions of a chain.
#[derive(Debug, Serialize)]
struct Synthesis {
    elements: usize,
    regions: Vec<RegionShown>,
    /// Regions that are too large to run as one function.
    refused: Vec<RefusedShown>,
    /// Elements that are in no fused region, each with the reason.
    others: Vec<(String, String)>,
}

/// A region whose elements run one by one.
#[derive(Debug, Serialize)]
struct RefusedShown {
    elements: Vec<String>,
    why: String,
}

/// Runs the command.
///
/// # Errors
/// When a file cannot be read or written, a program cannot be compiled, or the chain cannot be written in the
/// requested language.
pub fn run(args: &SynthArgs) -> anyhow::Result<ExitStatus> {
    let modes = |_: &Chain| [FusedElements::All];
    let stop = args.prove.then(crate::signals::end).transpose()?;
    let Some(check::Checked { map, chain, assemblies: [mut assembly], .. }) =
        check::assembled(&args.chain, &args.defines, true, modes, Machine::Any, false)?
    else {
        return Ok(ExitStatus::Refused);
    };
    let name = args.chain.display().to_string();
    if let Some(stop) = stop {
        let classes = args.max_classes.unwrap_or(MAX_PROVEN_CLASSES);
        let limits = Limits { time: args.limit, classes, ..Limits::default() };
        return prove::run(&assembly, &name, &limits, &stop, args.json);
    }
    if args.emit.is_some() {
        text::print(&emit(&assembly, args.emit)?).context("standard output")?;
        return Ok(ExitStatus::Good);
    }
    let sizes = sizes(&mut assembly);
    let located = |at: usize| map.location(chain.graph.elements[at].span);
    let needs_all = args.json || args.classes || args.click || args.to.is_some() || args.svg.is_some();
    let detail = if needs_all { Detail::All } else { Detail::Exit };
    let mut shown = synthesis(&assembly, &sizes, args.max_classes.unwrap_or(MAX_CLASSES), detail)?;
    shown.others = others(&assembly, &located);
    if let Some(file) = &args.svg {
        std::fs::write(file, svg::picture(&name, &assembly, &shown.regions))
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    let out = match args.to.or(args.click.then_some(Language::Click)) {
        Some(Language::Openflow) => openflow::rules(&name, &chain, &assembly, &shown.regions),
        Some(Language::Click) => click::configuration(&name, &chain, &assembly, &shown.regions)?,
        None if args.json => text::json(&shown)?,
        None => shown.text(&name, args.classes),
    };
    text::print(&out).context("standard output")?;
    Ok(ExitStatus::Good)
}

/// The sizes of the elements' tables.
fn sizes(assembly: &mut Assembly) -> Sizes {
    let mut sizes = Sizes::new();
    for region in &assembly.regions[0] {
        for &(part, index) in &region.linked.tables {
            let node = region.parts[part];
            let element = assembly.graphs[0][node].element.as_mut();
            let table = element.and_then(|element| element.table(index));
            sizes.extend(table.and_then(|table| table.size()).map(|size| ((node, index), size.into())));
        }
    }
    sizes
}

fn synthesis(
    assembly: &Assembly,
    sizes: &Sizes,
    max_classes: usize,
    detail: Detail,
) -> anyhow::Result<Synthesis> {
    let (nodes, regions) = (&assembly.graphs[0], &assembly.regions[0]);
    let shown = regions
        .iter()
        .map(|region| {
            let walked = Walked::of(region, nodes, max_classes);
            fused_region::describe(region, nodes, &walked, sizes, detail)
        })
        .collect::<anyhow::Result<_>>()?;
    let refused = assembly.refused.iter().map(|region| RefusedShown {
        elements: region.nodes.iter().map(|at| nodes[*at].name.clone()).collect(),
        why: region.why.to_string(),
    });
    Ok(Synthesis { elements: nodes.len(), regions: shown, refused: refused.collect(), others: vec![] })
}

/// The elements that are in no fused region, each with the reason. `located` is where an element is declared.
fn others(assembly: &Assembly, located: &dyn Fn(usize) -> String) -> Vec<(String, String)> {
    let (nodes, regions) = (&assembly.graphs[0], &assembly.regions[0]);
    let is_part = |at: usize| {
        regions.iter().any(|region| region.parts.contains(&at))
            || assembly.refused.iter().any(|region| region.nodes.contains(&at))
    };
    let others = nodes.iter().enumerate().filter(|(at, _)| !is_part(*at));
    let parts = nodes.iter().enumerate().filter(|(at, _)| is_part(*at));
    let fed: BTreeSet<usize> =
        parts.flat_map(|(_, node)| node.outputs.iter().flatten()).map(|end| end.node).collect();
    let mut reasons: BTreeMap<usize, String> = BTreeMap::new();
    for passage in &assembly.queues {
        let why = match &passage.path {
            Err(why) => {
                let at = why.element().unwrap_or(passage.queue);
                format!("packets wait in it: {}, {}", why.describe(nodes), located(at))
            }
            Ok(path) => {
                let inner = path.iter().skip(1).map(|wire| wire.from.node);
                let queue = &nodes[passage.queue].name;
                reasons.extend(
                    inner.map(|at| (at, format!("packets that waited in {queue} are pulled through it"))),
                );
                let reader = passage.reader().map_or("", |reader| &nodes[reader].name);
                format!("packets pass it to {reader}; those that it does not take at once wait")
            }
        };
        reasons.insert(passage.queue, why);
    }
    let reason =
        |at: usize| reasons.get(&at).cloned().unwrap_or_else(|| why_not(&nodes[at], fed.contains(&at)));
    others.map(|(at, node)| (node.name.clone(), reason(at))).collect()
}

fn emit(assembly: &Assembly, what: Option<Emit>) -> anyhow::Result<String> {
    let mut builder = CodeBuilder::new()?;
    builder.keep_listing(if what == Some(Emit::Clif) { Listed::Clif } else { Listed::Assembly });
    let mut out = String::new();
    for region in &assembly.regions[0] {
        match what {
            Some(Emit::Ir) => {
                let compiled = &region.compiled;
                out += &ir::text::print(compiled.fast.as_ref().unwrap_or(&compiled.program));
            }
            _ => drop(region.compiled.add_to(&mut builder)?),
        }
    }
    Ok(out + builder.listing())
}

fn why_not(node: &Node, is_fed: bool) -> String {
    match &node.lowered {
        None => format!("{} has no program", node.class.name),
        Some(_) if node.answers_pull || node.inputs.iter().any(Option::is_some) => {
            "packets are pulled through it".into()
        }
        Some(_) if is_fed => "packets of a fused region seldom come to it".into(),
        Some(_) => "nothing with a program is wired to it".into(),
    }
}

impl Synthesis {
    fn text(&self, chain: &str, every_class: bool) -> String {
        let fused: usize = self.regions.iter().map(|region| region.elements.len()).sum();
        let mut out = format!(
            "{chain}: {fused} of {} elements run in {}\n",
            self.elements,
            text::plural(self.regions.len(), "fused region")
        );
        for (number, region) in self.regions.iter().enumerate() {
            out += &region.text(number + 1, every_class);
        }
        for RefusedShown { elements, why } in &self.refused {
            out += &format!("\nnot fused, they run one by one: {why}\n");
            out += &text::titled("  elements", 10, &[elements.join(", ")]);
        }
        if !self.others.is_empty() {
            out += "\nby themselves:\n";
        }
        for (name, why) in &self.others {
            out += &format!("  {name}: {why}\n");
        }
        out
    }
}
