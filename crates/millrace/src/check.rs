//! `millrace check` and `millrace fmt`.

use crate::console;
use crate::exit::ExitStatus;
use anyhow::Context;
use chain::FusedElements;
use chain::{Chain, Define, SourceTexts};
use clap::Args;
use diag::{Diagnostics, Severity, SourceMap, Spanned};
use runtime::Assembly;
use runtime::machine::Machine;
use std::path::{Path, PathBuf};

/// Reports all mistakes of a chain at once, and runs nothing.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Chain file (TOML) or Click configuration
    chain: PathBuf,

    /// Sets a variable of the configuration, as `define` does
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = crate::order::definition)]
    defines: Vec<String>,

    /// One line for each mistake
    #[arg(long)]
    short: bool,

    /// Checks the chain for this machine: what it needs and this machine does not have (a device, a core, a
    /// program along PATH, a container runtime) is an error. Otherwise it is a warning, and the chain may run
    /// elsewhere
    #[arg(long)]
    here: bool,

    /// Also shows the packet programs that transparent elements become
    #[arg(long)]
    programs: bool,
}

/// Rewrites a Click configuration in the standard layout; comments stay.
#[derive(Debug, Args)]
pub struct FmtArgs {
    /// Click configurations
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// Changes nothing; fails when a file is not in the standard layout
    #[arg(long)]
    check: bool,
}

/// The variables of the command line, with the source locations of their names and values.
fn given(defines: &[String], map: &mut SourceMap) -> Vec<Define> {
    let text: Vec<String> = defines.iter().map(|define| format!("-D {define}")).collect();
    let source = map.add("command line", text.join("\n"));
    let whole = Spanned::verbatim(map.text(source), map.whole(source));
    let mut start = 0;
    let of_line = |line: &String| {
        let name = start + "-D ".len();
        let end = start + line.len();
        start = end + 1;
        let equals = name + line.get("-D ".len()..)?.find('=')?;
        let sign =
            whole.text.get(name..equals)?.len() - whole.text.get(name..equals)?.trim_start_matches('$').len();
        Some(Define { name: whole.slice(name + sign..equals), value: whole.slice(equals + 1..end) })
    };
    text.iter().filter_map(of_line).collect()
}

/// A chain with its texts.
pub struct Loaded {
    /// The texts, for messages.
    pub map: SourceMap,
    /// The errors and warnings so far.
    pub diags: Diagnostics,
    /// The chain; `None` if it has errors.
    pub chain: Option<Chain>,
    /// The texts by file, from which an NF's process loads the chain again.
    pub sources: SourceTexts,
}

/// Reads a chain for a machine. If it has errors, its elements are checked, too, so that the user sees all
/// errors at once.
pub fn load(path: &Path, defines: &[String], machine: Machine) -> anyhow::Result<Loaded> {
    std::fs::metadata(path).with_context(|| format!("{} cannot be read", path.display()))?;
    load_from(SourceTexts::of_files(), path, defines, machine)
}

/// [`load`] with texts from `sources`.
pub fn load_from(
    mut sources: SourceTexts,
    path: &Path,
    defines: &[String],
    machine: Machine,
) -> anyhow::Result<Loaded> {
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let defines = given(defines, &mut map);
    let mut chain =
        chain::load_from(&mut sources, path, &defines, &runtime::KnownClasses, &mut map, &mut diags);
    if diags.has_errors()
        && let Some(chain) = chain.take()
    {
        assemble_dry(&chain, true, FusedElements::Nothing, machine, &mut diags)?;
    }
    Ok(Loaded { map, diags, chain, sources })
}

/// Makes the elements of a chain without opening anything that could change a file or a device; `None` if the
/// chain has errors.
pub fn assemble_dry(
    chain: &Chain,
    evaluator: bool,
    fused: FusedElements,
    machine: Machine,
    diags: &mut Diagnostics,
) -> anyhow::Result<Option<Assembly>> {
    let options = runtime::Options {
        evaluator,
        fused,
        burst: chain.run.burst.unwrap_or(worker::DEFAULT_BURST),
        folder: chain.folder.clone(),
        ..runtime::Options::default()
    };
    Ok(runtime::launch::dry(chain, &options, Box::new(runtime::traffic::declared), machine, diags)?)
}

/// Checks a chain for this machine without running it. The inner error is the text of the chain's errors.
///
/// # Errors
/// When the chain cannot be read.
pub fn dry(path: &Path, defines: &[String]) -> anyhow::Result<Result<(), String>> {
    let mut loaded = load(path, defines, Machine::This)?;
    if let Some(chain) = &loaded.chain {
        assemble_dry(chain, true, FusedElements::Nothing, Machine::This, &mut loaded.diags)?;
    }
    let wrong = loaded.diags.has_errors();
    Ok(if wrong { Err(loaded.diags.render(&loaded.map, false)) } else { Ok(()) })
}

/// Prints errors and warnings to standard error.
pub fn show(map: &SourceMap, diags: &Diagnostics, short: bool) {
    let colours = console::colours(&std::io::stderr());
    let text = if short { diags.render_short(map) } else { diags.render(map, colours) };
    eprint!("{text}");
    let errors = diags.errors();
    if errors > 0 && !short {
        eprintln!("{}", crate::text::plural(errors, "mistake"));
    }
}

/// Reads a chain, assembles it for a machine in each mode, each with a state of its own, and prints the
/// diagnostics; `None` after an error.
///
/// # Errors
/// When the file cannot be read, or the assembly fails for a reason that is not the chain's.
pub fn assembled<const MODES: usize>(
    path: &Path,
    defines: &[String],
    evaluator: bool,
    modes: impl Fn(&Chain) -> [FusedElements; MODES],
    machine: Machine,
    short: bool,
) -> anyhow::Result<Option<(SourceMap, Chain, [Assembly; MODES])>> {
    let Loaded { map, mut diags, chain, .. } = load(path, defines, machine)?;
    let mut assemblies = vec![];
    let modes = chain.as_ref().map(modes);
    for (number, mode) in modes.into_iter().flatten().enumerate() {
        if let Some(chain) = chain.as_ref().filter(|_| !diags.has_errors()) {
            // Each mode finds the same.
            let mut again = Diagnostics::new();
            let found = if number == 0 { &mut diags } else { &mut again };
            assemblies.extend(assemble_dry(chain, evaluator, mode, machine, found)?);
            diags.extend(again.into_iter().filter(|one| one.severity == Severity::Error));
        }
    }
    show(&map, &diags, short);
    let assemblies = <[Assembly; MODES]>::try_from(assemblies).ok().filter(|_| !diags.has_errors());
    Ok(chain.zip(assemblies).map(|(chain, assemblies)| (map, chain, assemblies)))
}

/// Runs `millrace check`.
///
/// # Errors
/// When the file cannot be read, or standard output cannot be written.
pub fn run(args: &CheckArgs) -> anyhow::Result<ExitStatus> {
    // As it will run, so that it says what is too large for that.
    let modes = |chain: &Chain| [chain.fused(None)];
    let machine = if args.here { Machine::This } else { Machine::Any };
    let Some((_, chain, [assembly])) =
        assembled(&args.chain, &args.defines, !args.programs, modes, machine, args.short)?
    else {
        return Ok(ExitStatus::Refused);
    };
    let nodes = &assembly.graphs[0];
    let transparent = nodes.iter().filter(|node| node.lowered.is_some()).count();
    let mut out = format!(
        "{}: no mistakes; {} elements ({transparent} transparent), {} connections, {} ports\n",
        args.chain.display(),
        nodes.len(),
        chain.graph.connections.len(),
        chain.ports.len(),
    );
    if args.programs {
        for node in nodes {
            if let Some(lowered) = &node.lowered {
                out += &format!(
                    "\n# {} :: {}\n{}",
                    node.name,
                    node.class.name,
                    ir::text::print(&lowered.program)
                );
            }
        }
    }
    crate::text::print(&out).context("standard output")?;
    Ok(ExitStatus::Good)
}

/// Runs `millrace fmt`.
///
/// # Errors
/// When a file cannot be read or written.
pub fn format(args: &FmtArgs) -> anyhow::Result<ExitStatus> {
    let mut code = ExitStatus::Good;
    for file in &args.files {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
        let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
        let source = map.add(file.display().to_string(), text.as_str());
        let ast = click::parse(&mut map, source, &mut diags);
        if diags.has_errors() {
            show(&map, &diags, false);
            code = ExitStatus::Refused;
            continue;
        }
        let formatted = click::format(&ast);
        if formatted == text {
            continue;
        }
        if args.check {
            let told = format!("{} is not in the standard layout\n", file.display());
            crate::text::print(&told).context("standard output")?;
            code = ExitStatus::Failed;
        } else {
            std::fs::write(file, formatted)
                .with_context(|| format!("{} cannot be written", file.display()))?;
        }
    }
    Ok(code)
}
