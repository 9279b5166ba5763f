//! `millrace synth`: what becomes of a chain when its elements run as one program.

use crate::{check, prove, text};
use anyhow::Context;
use clap::Args;
use codegen::{CodeBuilder, Listed};
use host::Assembly;
use host::fused::{Cut, Stretch, Wanted};
use host::node::Node;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Shows which elements of a chain run as one function when they run fused, and runs nothing.
#[derive(Debug, Args)]
pub struct SynthArgs {
    /// Chain file (TOML) or Click configuration
    chain: PathBuf,

    /// Sets a variable of the configuration, as `define` does
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = control::api::definition)]
    defines: Vec<String>,

    /// The same as JSON
    #[arg(long)]
    json: bool,

    /// Shows what each stretch is made into instead
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "json")]
    emit: Option<Emit>,

    /// Says of each stretch whether it does what its elements do, for every packet
    #[arg(long, conflicts_with = "emit")]
    prove: bool,

    /// Longest time for the proof of a stretch
    #[arg(long, value_name = "SECONDS", default_value_t = 120, requires = "prove")]
    limit: u64,

    /// Most traffic classes of a stretch that are looked at
    #[arg(long, value_name = "COUNT", default_value_t = 20_000, requires = "prove")]
    classes: usize,
}

/// What a stretch is made into.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Emit {
    /// Its packet program
    Ir,
    /// Cranelift's intermediate form
    Clif,
    /// Assembly
    Asm,
}

/// What becomes of a chain.
#[derive(Debug, Serialize)]
struct Synthesis {
    elements: usize,
    stretches: Vec<StretchShown>,
    /// Elements that are not part of one, each with the reason.
    others: Vec<(String, String)>,
}

/// A stretch.
#[derive(Debug, Serialize)]
struct StretchShown {
    elements: Vec<String>,
    enters: Vec<String>,
    leaves: Vec<String>,
    drops: usize,
    slow_paths: Vec<String>,
    tables: Vec<String>,
    blocks: usize,
    instructions: usize,
    /// Wires that a cell counts, because ways part and meet again.
    counted_wires: usize,
    build_ms: f64,
}

/// Runs the command.
///
/// # Errors
/// When the file cannot be read, or no machine code can be made.
pub fn run(args: &SynthArgs) -> anyhow::Result<ExitCode> {
    let mut loaded = check::load(&args.chain, &args.defines)?;
    let assembly = match &loaded.chain {
        Some(chain) => check::assemble_dry(chain, true, Wanted::All, &mut loaded.diags)?,
        None => None,
    };
    check::show(&loaded.map, &loaded.diags, false);
    let Some(assembly) = assembly.filter(|_| !loaded.diags.has_errors()) else {
        return Ok(ExitCode::from(2));
    };
    if args.prove {
        let limits = prove::limits(args.limit, args.classes);
        return prove::run(&assembly, &args.chain.display().to_string(), &limits, args.json);
    }
    let out = match () {
        () if args.emit.is_some() => emit(&assembly, args.emit)?,
        () if args.json => serde_json::to_string_pretty(&synthesis(&assembly)?)? + "\n",
        () => synthesis(&assembly)?.text(&args.chain.display().to_string()),
    };
    text::print(&out).context("standard output")?;
    Ok(ExitCode::SUCCESS)
}

fn synthesis(assembly: &Assembly) -> anyhow::Result<Synthesis> {
    let (nodes, stretches) = (&assembly.graphs[0], &assembly.stretches[0]);
    let shown = stretches
        .iter()
        .map(|stretch| describe(stretch, nodes, &assembly.cuts))
        .collect::<anyhow::Result<_>>()?;
    let is_part = |at: usize| stretches.iter().any(|stretch| stretch.parts.contains(&at));
    let others = nodes.iter().enumerate().filter(|(at, _)| !is_part(*at));
    let others = others.map(|(_, node)| (node.name.clone(), why_not(node)));
    Ok(Synthesis { elements: nodes.len(), stretches: shown, others: others.collect() })
}

fn emit(assembly: &Assembly, what: Option<Emit>) -> anyhow::Result<String> {
    let mut builder = CodeBuilder::new()?;
    builder.keep_listing(if what == Some(Emit::Clif) { Listed::Clif } else { Listed::Assembly });
    let mut out = String::new();
    for stretch in &assembly.stretches[0] {
        match what {
            Some(Emit::Ir) => out += &ir::text::print(&stretch.made.program),
            _ => drop(builder.add(&stretch.made.program)?),
        }
    }
    Ok(out + builder.listing())
}

fn why_not(node: &Node) -> String {
    match &node.lowered {
        None => format!("{} has no program", node.class.name),
        Some(_) if node.answers_pull || node.inputs.iter().any(Option::is_some) => {
            "packets are pulled through it".into()
        }
        Some(_) => "nothing with a program is wired to it".into(),
    }
}

fn describe(stretch: &Stretch, nodes: &[Node], cuts: &[Cut]) -> anyhow::Result<StretchShown> {
    let linked = &stretch.linked;
    let name = |part: usize| nodes[stretch.parts[part]].name.clone();
    let start = Instant::now();
    let mut builder = CodeBuilder::new()?;
    builder.add(&stretch.made.program)?;
    builder.finish()?;
    let build_ms = start.elapsed().as_secs_f64() * 1e3;
    let leaves = linked.outputs.iter().map(|&(part, port)| {
        let next = nodes[stretch.parts[part]].outputs.get(port).copied().flatten();
        match next {
            Some(end) => {
                let cut = Cut { node: stretch.parts[part], port };
                let loops = if cuts.contains(&cut) { ", which enters it again: a loop" } else { "" };
                format!("{}[{port}] -> {}{loops}", name(part), nodes[end.node].name)
            }
            None => format!("{}[{port}], which is not wired", name(part)),
        }
    });
    Ok(StretchShown {
        elements: (0..stretch.parts.len()).map(name).collect(),
        enters: stretch.entries().map(|(node, port)| format!("[{port}]{}", nodes[node].name)).collect(),
        leaves: leaves.collect(),
        drops: linked.reasons.len(),
        slow_paths: linked.program.slow.clone(),
        tables: linked
            .tables
            .iter()
            .zip(&linked.program.tables)
            .map(|(&(part, _), table)| format!("{}.{}", name(part), table.name))
            .collect(),
        blocks: linked.program.blocks.len(),
        instructions: linked.program.blocks.iter().map(|block| block.insts.len() + 1).sum(),
        counted_wires: linked.flow.counted.len(),
        build_ms,
    })
}

impl Synthesis {
    fn text(&self, chain: &str) -> String {
        let fused: usize = self.stretches.iter().map(|stretch| stretch.elements.len()).sum();
        let count = self.stretches.len();
        let mut out = format!(
            "{chain}: {fused} of {} elements run in {count} stretch{}\n",
            self.elements,
            if count == 1 { "" } else { "es" }
        );
        for (number, stretch) in self.stretches.iter().enumerate() {
            out += &format!(
                "\nstretch {}: {} elements, {} blocks of {} instructions, machine code in {:.1} ms\n",
                number + 1,
                stretch.elements.len(),
                stretch.blocks,
                stretch.instructions,
                stretch.build_ms
            );
            let mut list = |title: &str, of: &[String]| {
                for (at, line) in of.iter().enumerate() {
                    out += &format!("  {:<8} {line}\n", if at == 0 { title } else { "" });
                }
            };
            list("enters", &stretch.enters);
            list("leaves", &stretch.leaves);
            list("tables", &stretch.tables);
            list("slow", &stretch.slow_paths);
            list("elements", &[stretch.elements.join(", ")]);
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
