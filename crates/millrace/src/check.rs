//! `millrace check` and `millrace fmt`.

use crate::console;
use crate::exit::ExitStatus;
use crate::failure;
use crate::signals;
use crate::text::complain;
use anyhow::{Context, anyhow};
use chain::FusedElements;
use chain::{Chain, Define, SourceTexts};
use clap::Args;
use control::ChainRefusal;
use diag::{Diagnostics, Severity, SourceMap, Span, Spanned};
use nf_host::NfOutput;
use runtime::Assembly;
use runtime::ask::NfAnswer;
use runtime::brief::Brief;
use runtime::launch::Launch;
use runtime::machine::Machine;
use serde::Serialize;
use shm::packet_region::RegionOptions;
use std::path::{Path, PathBuf};
use worker::fusion::FlowCache;

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

    /// Also starts each NF that runs in a process or container, as it would run and without packets, and asks
    /// whether it runs with its configuration. Implies `--here`. Without it, `check` runs nothing
    #[arg(long)]
    ask: bool,

    /// The result as JSON
    #[arg(long, short = 'j')]
    json: bool,

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
    /// How many of the errors are refusals of the machine, and not mistakes.
    pub by_machine: usize,
}

impl Loaded {
    /// The exit status of a chain that cannot run.
    pub fn refused(&self) -> ExitStatus {
        ExitStatus::of_errors(&self.diags, self.by_machine)
    }
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
    Ok(Loaded { map, diags, chain, sources, by_machine: 0 })
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

/// Checks a chain for this machine without running it. The inner error has the chain's errors.
///
/// # Errors
/// When the chain cannot be read.
pub fn dry(path: &Path, defines: &[String]) -> anyhow::Result<Result<(), ChainRefusal>> {
    let mut loaded = load(path, defines, Machine::This)?;
    if let Some(chain) = &loaded.chain {
        assemble_dry(chain, true, FusedElements::Nothing, Machine::This, &mut loaded.diags)?;
    }
    let wrong = loaded.diags.has_errors();
    Ok(if wrong { Err(failure::refusal(&loaded.map, &loaded.diags, 0)) } else { Ok(()) })
}

/// Prints errors and warnings to standard error; errors as JSON to standard output if that was requested. Of
/// the errors, `by_machine` are refusals of the machine.
pub fn show(map: &SourceMap, diags: &Diagnostics, by_machine: usize, short: bool) {
    let colours = console::colours(&std::io::stderr());
    let text = if short { diags.render_short(map) } else { diags.render(map, colours) };
    if !text.is_empty() {
        complain(text.trim_end());
    }
    let errors = diags.distinct_errors();
    if errors > 0 && !short {
        complain(&crate::text::plural(errors, "mistake"));
    }
    if console::is_json() && errors > 0 {
        let status = ExitStatus::of_errors(diags, by_machine);
        failure::report_chain(&failure::refusal(map, diags, by_machine), status);
    }
}

/// A chain without errors, with an assembly for each of several modes.
pub struct Checked<const MODES: usize> {
    /// The texts, for messages.
    pub map: SourceMap,
    /// The warnings.
    pub diags: Diagnostics,
    /// The chain.
    pub chain: Chain,
    /// Its elements in each mode.
    pub assemblies: [Assembly; MODES],
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
) -> anyhow::Result<Option<Checked<MODES>>> {
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
    // `check` has warnings in its result, too.
    show(&map, &diags, 0, short);
    let assemblies = <[Assembly; MODES]>::try_from(assemblies).ok().filter(|_| !diags.has_errors());
    Ok(chain.zip(assemblies).map(|(chain, assemblies)| Checked { map, diags, chain, assemblies }))
}

/// Runs `millrace check`.
///
/// # Errors
/// When the file cannot be read, or standard output cannot be written.
pub fn run(args: &CheckArgs) -> anyhow::Result<ExitStatus> {
    // As it will run, so that it says what is too large for that.
    let modes = |chain: &Chain| [chain.fused(None)];
    let machine = if args.here || args.ask { Machine::This } else { Machine::Any };
    let Some(Checked { map, mut diags, chain, assemblies: [assembly] }) =
        assembled(&args.chain, &args.defines, !args.programs, modes, machine, args.short)?
    else {
        return Ok(ExitStatus::Refused);
    };
    let mut nfs = vec![];
    if args.ask {
        nfs = ask(&chain, args)?;
        for (span, nf) in &nfs {
            if let Some(why) = &nf.refusal {
                let wrote = nf.lines.iter().map(|line| format!("it wrote: {line}"));
                diags
                    .error(*span, why.as_str())
                    .maybe_help(wrote.reduce(|all, line| format!("{all}\n{line}")));
            }
        }
        if diags.has_errors() {
            show(&map, &diags, 0, args.short);
            return Ok(ExitStatus::Refused);
        }
    }
    let nodes = &assembly.graphs[0];
    let transparent = nodes.iter().filter(|node| node.lowered.is_some()).count();
    let lowered =
        nodes.iter().filter(|_| args.programs).filter_map(|node| Some((node, node.lowered.as_ref()?)));
    let programs = lowered.map(|(node, lowered)| ElementProgram {
        element: node.name.clone(),
        class: node.class.name,
        program: ir::text::print(&lowered.program),
    });
    let found = Found {
        chain: args.chain.display().to_string(),
        elements: nodes.len(),
        transparent,
        connections: chain.graph.connections.len(),
        ports: chain.ports.len(),
        warnings: failure::mistakes(&map, &diags),
        programs: programs.collect(),
        nfs: nfs.into_iter().map(|(_, nf)| nf).collect(),
    };
    crate::text::print_found(args.json, &found, || found.text()).context("standard output")?;
    Ok(ExitStatus::Good)
}

/// Asks the NFs of a chain, which have the texts that the chain was checked with.
///
/// # Errors
/// When they cannot be asked.
fn ask(chain: &Chain, args: &CheckArgs) -> anyhow::Result<Vec<(Span, NfFound)>> {
    // The texts are read again: those of the check are not kept, as an NF's process does not start there.
    let sources = load(&args.chain, &args.defines, Machine::This)?.sources;
    let burst = chain.run.burst.unwrap_or(worker::DEFAULT_BURST);
    let options = runtime::Options { burst, folder: chain.folder.clone(), ..runtime::Options::default() };
    let brief = Brief {
        chain: args.chain.clone(),
        defines: args.defines.clone(),
        evaluator: false,
        fused: false,
        cache: FlowCache::Off,
        sources,
    };
    let launch = Launch {
        options,
        memory: RegionOptions::slots(control::api::DEFAULT_SLOTS),
        traffic: Box::new(runtime::traffic::declared),
        cores: chain.run.cores.clone(),
        burst,
        brief,
        output: NfOutput::Log,
        interrupted: signals::end()?,
    };
    let answers =
        runtime::ask::ask(chain, launch).map_err(|why| anyhow!("the NFs cannot be asked: {why}"))?;
    let found = answers.into_iter().map(|answer| {
        let NfAnswer { name, span, kind, refusal, lines } = answer;
        (span, NfFound { name, kind, refusal, lines })
    });
    Ok(found.collect())
}

/// A chain without mistakes, as JSON.
#[derive(Serialize)]
struct Found {
    chain: String,
    elements: usize,
    transparent: usize,
    connections: usize,
    ports: usize,
    warnings: Vec<control::api::Mistake>,
    programs: Vec<ElementProgram>,
    /// The NFs that were asked.
    nfs: Vec<NfFound>,
}

/// What an NF answered.
#[derive(Serialize)]
struct NfFound {
    name: String,
    kind: String,
    #[serde(skip)]
    refusal: Option<String>,
    lines: Vec<String>,
}

/// The packet program of a transparent element.
#[derive(Serialize)]
struct ElementProgram {
    element: String,
    class: &'static str,
    program: String,
}

impl Found {
    fn text(&self) -> String {
        let Found { chain, elements, transparent, connections, ports, .. } = self;
        let mut text = format!(
            "{chain}: no mistakes; {elements} elements ({transparent} transparent), {connections} connections, {ports} ports\n"
        );
        for NfFound { name, kind, lines, .. } in &self.nfs {
            text += &format!("NF `{name}` ({kind}) is ready\n");
            lines.iter().for_each(|line| text += &format!("    {line}\n"));
        }
        for ElementProgram { element, class, program } in &self.programs {
            text += &format!("\n# {element} :: {class}\n{program}");
        }
        text
    }
}

/// Runs `millrace fmt`.
///
/// # Errors
/// When a file cannot be read or written.
pub fn format(args: &FmtArgs) -> anyhow::Result<ExitStatus> {
    let read = |file: &PathBuf| {
        click::text_file::read_text(file).with_context(|| format!("{} cannot be read", file.display()))
    };
    // Nothing is written where one cannot be read.
    let texts = args.files.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let (mut map, mut diags, mut files) = (SourceMap::new(), Diagnostics::new(), vec![]);
    for (path, text) in args.files.iter().zip(texts) {
        let (file, mut found) = (path.display().to_string(), Diagnostics::new());
        let source = map.add(file.as_str(), text.as_str());
        let ast = click::parse(&mut map, source, &mut found);
        if found.has_errors() {
            diags.extend(found);
            continue;
        }
        let formatted = click::format(&ast);
        let standard = formatted == text;
        let written = !standard && !args.check;
        if written {
            std::fs::write(path, formatted).with_context(|| format!("{file} cannot be written"))?;
        }
        files.push(FormattedFile { file, standard, written });
    }
    show(&map, &diags, 0, false);
    let wrong = files.iter().filter(|file| !file.standard && !file.written);
    let wrong: String = wrong.map(|of| format!("{} is not in the standard layout\n", of.file)).collect();
    let (has_mistakes, is_json) = (diags.has_errors(), console::is_json());
    if !is_json || !has_mistakes {
        let formatted = Formatted { files };
        crate::text::print_found(is_json, &formatted, || wrong.clone()).context("standard output")?;
    }
    Ok(if has_mistakes { ExitStatus::Refused } else { ExitStatus::of(wrong.is_empty()) })
}

/// What `fmt` has found and done, as JSON.
#[derive(Serialize)]
struct Formatted {
    files: Vec<FormattedFile>,
}

/// A configuration without mistakes.
#[derive(Serialize)]
struct FormattedFile {
    file: String,
    /// Whether it was in the standard layout.
    standard: bool,
    /// Whether it was written anew.
    written: bool,
}
