//! Reads the declarations of a chain file.

use super::device;
use super::image;
use super::instances;
use super::l3_interface;
use super::ports;
use super::run::{self, MOST_WORKERS};
use super::table::{self, Keys, Value, check_name, misplaced, one_of};
use crate::model::{Body, ChainFile, Define, NfDecl, NfText, Program, Run};
use crate::spec::{Access, Container, ContainerKind, ExecutionMode, Rights, RuntimeName, Terms, WhenDown};
use diag::{Diagnostics, SourceId, SourceMap, Span, Spanned};
use std::path::{Path, PathBuf};

/// Reads the declarations. From a text that is not valid TOML, it reads the lines without syntax errors.
pub(super) fn read(source: SourceId, folder: &Path, map: &SourceMap, diags: &mut Diagnostics) -> ChainFile {
    let mut syntax = Diagnostics::new();
    let (file, root) = table::parse(source, map, &mut syntax);
    let broken: Vec<Span> = syntax.iter().map(|mistake| mistake.span).collect();
    diags.extend(syntax);
    let mut found = Diagnostics::new();
    let chain = declarations(file, &root, folder, &mut found);
    // An error on a line with a syntax error is not reported: the line was not read as the user meant it.
    diags.extend(found.into_iter().filter(|mistake| !file.shares_line(mistake.span, &broken)));
    chain
}

fn declarations(
    file: table::File<'_>,
    root: &toml::Spanned<toml::de::DeTable<'_>>,
    folder: &Path,
    diags: &mut Diagnostics,
) -> ChainFile {
    let source = file.source;
    let mut keys = Keys::new("the chain file", file, root.get_ref());
    let links = keys.take("links");
    let entries = keys.take("entries");
    let mut settings = Run::default();
    if let Some(mut run) = keys.take("run").and_then(|run| run.keys("`run`", diags)) {
        settings = run::read(&mut run, diags);
        run.finish(diags, misplaced);
    }
    let ports = keys.take("ports").and_then(|ports| ports.keys("`ports`", diags));
    let ports = ports.map_or(vec![], |keys| ports::read(keys, folder, diags));
    let devices = keys.take("device").and_then(|devices| devices.keys("`device`", diags));
    let devices = devices.map_or(vec![], |keys| device::read(keys, &ports, diags));
    l3_interface::check(&ports, &devices, diags);
    let mut nfs = vec![];
    for nf in keys.take("nf").and_then(|nfs| nfs.keys("`nf`", diags)).map_or(vec![], |mut nfs| nfs.rest()) {
        nfs.extend(read_nf(nf, folder, diags));
    }
    let port = |name: &str| ports.iter().find(|port| port.name == name).map(|port| ("port", port.span));
    let nf = |name: &str| nfs.iter().find(|nf| nf.name == name).map(|nf| ("NF", nf.span));
    let of_nfs = nfs.iter().map(|nf| (&nf.name, nf.span, port(&nf.name), "a port and an NF"));
    let of_devices = devices.iter().map(|device| match port(&device.name) {
        None => (&device.name, device.span, nf(&device.name), "a device and an NF"),
        port => (&device.name, device.span, port, "a device and a port"),
    });
    for (name, span, other, both) in of_nfs.chain(of_devices) {
        if let Some((what, place)) = other {
            diags
                .error(span, format!("`{name}` is {both}"))
                .with_note(place, format!("the {what}"))
                .help("give one of them another name");
        }
    }
    if nfs.is_empty() && !keys.has("nf") && !file.damaged {
        diags
            .error(Span::new(source, 0, 0), "the chain has no NF")
            .help("add a table for each, such as `[nf.nat]` with `click = \"nat.click\"`");
    }
    if links.is_none() && !nfs.is_empty() && !file.damaged {
        let help = "add `links = [\"PORT <-> [INTERFACE]NF[INTERFACE] <-> PORT\"]` in front of the tables";
        diags.error(Span::new(source, 0, 0), "the chain has no links").help(help);
    }
    run::check(&settings, &nfs, file.damaged, diags);
    let links = links.map_or(vec![], |links| links.texts(diags));
    let entries = entries.map(|entries| entries.texts(diags));
    keys.finish(diags, |_| None);
    ChainFile { source, run: settings, ports, devices, nfs, links, entries, damaged: file.damaged }
}

fn read_nf(nf: Value<'_>, folder: &Path, diags: &mut Diagnostics) -> Option<NfDecl> {
    check_name("network function", nf.key, nf.key_span, diags);
    let mut keys = nf.keys(format!("NF `{}`", nf.key), diags)?;
    let (click, inline) = (keys.take("click"), keys.take("inline"));
    let (program, contained) = read_program(&mut keys, folder, diags);
    let text = match (click, inline) {
        (Some(text), _) | (None, Some(text)) if program.is_some() => {
            diags
                .error(text.key_span, format!("NF `{}` has Click text and a program", nf.key))
                .help("an NF is one or the other; make two of them and link them");
            NfText::Missing
        }
        (None, None) if program.is_some() => match program {
            Some((program, interfaces)) => NfText::Program(program, interfaces),
            None => NfText::Missing,
        },
        (Some(click), Some(inline)) => {
            diags
                .error(inline.key_span, "`click` and `inline` in one NF")
                .with_note(click.key_span, "`click` is here")
                .help("an NF has its Click text in a file or here");
            NfText::Missing
        }
        (Some(click), None) => click.text(diags).map_or(NfText::Missing, NfText::File),
        (None, Some(inline)) => inline.text(diags).map_or(NfText::Missing, NfText::Inline),
        (None, None) if keys.is_damaged() => NfText::Missing,
        (None, None) => {
            diags
                .error(nf.key_span, format!("NF `{}` has no Click text", nf.key))
                .help("add `click = \"FILE\"`, `inline = '''...'''`, `program`, `bundle` or `image`");
            NfText::Missing
        }
    };
    let is_program = matches!(text, NfText::Program(..));
    let runs = keys.take("runs").and_then(|runs| runs.text(diags));
    let mode = runs.as_ref().map(|runs| read_mode(runs, diags));
    if let (Some(runs), Some(ExecutionMode::Modular | ExecutionMode::Fused)) = (&runs, mode)
        && is_program
        && ["modular", "fused"].contains(&runs.as_str())
    {
        diags
            .error(runs.span, format!("NF `{}` is a program, which has a process of its own", nf.key))
            .help("write `runs = \"process\"`, or leave it out");
    }
    let mode = match (mode, contained) {
        (Some(ExecutionMode::Process), Some((_, key))) => {
            diags
                .error(key.key_span, format!("`{}` is for NFs in containers", key.key))
                .help("write `runs = \"container\"`");
            ExecutionMode::Container
        }
        (_, Some(_)) | (Some(ExecutionMode::Container), None) => ExecutionMode::Container,
        (Some(ExecutionMode::Modular | ExecutionMode::Fused) | None, None) if is_program => {
            ExecutionMode::Process
        }
        (mode, None) => mode.unwrap_or_default(),
    };
    if mode == ExecutionMode::Container
        && let NfText::Program(Body::External(_), _) = &text
        && let Some(runs) = &runs
    {
        diags
            .error(
                runs.span,
                "an NF that attaches by itself is not started here, in a container or otherwise",
            )
            .help("leave `runs` out; whoever starts it may do so in a container");
    }
    let runtime = keys.take("runtime").and_then(|runtime| read_runtime(runtime, mode, diags));
    let when_down = keys.take("when_down").and_then(|value| {
        if mode.is_here() {
            let message = format!("NF `{}` runs in this process, and is never down by itself", nf.key);
            diags.error(value.key_span, message).help("add `runs = \"process\"`, or leave `when_down` out");
        }
        value.text(diags)
    });
    let spread = instances::read(&mut keys, nf, &text, when_down.as_ref(), diags);
    let when_down = when_down.map_or(WhenDown::Drop, |text| read_when_down(&text, diags));
    let mut of_process = |key: &'static str, diags: &mut Diagnostics| {
        let value = keys.take(key)?;
        if mode.is_here() {
            let message = format!("NF `{}` runs in this process, where `{key}` means nothing", nf.key);
            let help = format!("add `runs = \"process\"`, or leave `{key}` out");
            diags.error(value.key_span, message).help(help);
        }
        Some(value)
    };
    let trust = of_process("trust", diags).and_then(|trust| trust.text(diags));
    let (rights, cores) = read_rights(&mut of_process, folder, diags);
    let what = contained.map_or(ContainerKind::Program, |(what, _)| what);
    if mode == ExecutionMode::Container && rights.is_none() && what != ContainerKind::Bundle {
        let message = format!("NF `{}` runs in a container, which nothing else says how to confine", nf.key);
        let help = "leave `confine` out, or give it a `bundle` whose config.json says what it may do";
        diags.error(nf.key_span, message).help(help);
    }
    let access = of_process("access", diags).and_then(|access| access.text(diags));
    let known = [("inline", Access::Inline), ("observe", Access::Observe), ("tap", Access::Tap)];
    let access = access.and_then(|access| {
        let wrong = format!("there is no access `{access}`");
        one_of(&access, &known, wrong, "write `inline`, `observe` or `tap`", diags)
    });
    let access = access.unwrap_or(Access::Inline);
    let mut defines = vec![];
    let table = keys.take("defines").and_then(|defines| defines.keys("`defines`", diags));
    for define in table.map_or(vec![], |mut table| table.rest()) {
        let name = define.key.trim_start_matches('$');
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            diags.error(define.key_span, format!("`{}` cannot be the name of a variable", define.key));
        }
        let name = Spanned::derived(name, define.key_span);
        defines.extend(define.plain(diags).map(|value| Define { name, value }));
    }
    let idle = keys.take("idle").map_or(vec![], |idle| idle.texts(diags));
    let misspelt = |key: &str| (key == "run").then(|| "how an NF runs is said by `runs`".to_string());
    keys.finish(diags, |key| misspelt(key).or_else(|| misplaced(key)));
    let (name, span) = (nf.key.to_string(), nf.key_span);
    let trust = trust.map_or_else(|| name.clone(), |trust| trust.text);
    let container = (mode == ExecutionMode::Container).then_some(Container { what, runtime });
    let terms = Terms { when_down, trust, access, rights, cores, container };
    Some(NfDecl { name, span, text, defines, idle, mode, terms, instances: spread })
}

/// The program of an NF, and its interfaces.
type ProgramText = (Body, Vec<Spanned>);

/// Reads the keys of an NF that is a program, and the key that runs it in a container.
fn read_program<'a>(
    keys: &mut Keys<'a>,
    folder: &Path,
    diags: &mut Diagnostics,
) -> (Option<ProgramText>, Option<(ContainerKind, Value<'a>)>) {
    let kinds = [
        ("program", ContainerKind::Program),
        ("bundle", ContainerKind::Bundle),
        ("image", ContainerKind::Image),
    ];
    let given: Vec<_> = kinds.into_iter().filter_map(|(key, what)| Some((what, keys.take(key)?))).collect();
    let program = given.first().copied();
    let attach = keys.take("attach");
    let attaches = attach.and_then(|attach| attach.truth(diags)).unwrap_or(false);
    let (arguments, interfaces) = (keys.take("arguments"), keys.take("interfaces"));
    let config = keys.take("config");
    let contained = program.filter(|(what, _)| *what != ContainerKind::Program);
    for (one, (_, other)) in program.into_iter().map(|(_, one)| one).cycle().zip(given.iter().skip(1)) {
        diags
            .error(other.key_span, format!("`{}` and `{}` in one NF", one.key, other.key))
            .with_note(one.key_span, format!("`{}` is here", one.key))
            .help("an NF runs one of them");
    }
    let key = program.map(|(_, key)| key);
    let Some(key_span) = key.or(attach.filter(|_| attaches)).map(|key| key.key_span) else {
        for only in [arguments, interfaces, config].into_iter().flatten() {
            diags
                .error(only.key_span, format!("`{}` is for programs, and there is no `program`", only.key))
                .help("a Click text has its interfaces in `FromDevice(NAME)` and its values in `defines`");
        }
        return (None, contained);
    };
    if let (Some(program), Some(attach), true) = (key, attach, attaches) {
        diags
            .error(attach.key_span, "an NF is started or attaches, not both")
            .with_note(program.key_span, format!("the {}", program.key))
            .help("leave one of them out");
    }
    let arguments = arguments.map_or(vec![], |arguments| arguments.texts(diags));
    let given = interfaces.map(|interfaces| interfaces.texts(diags));
    let default = || ["0", "1"].map(|name| Spanned::derived(name, key_span)).to_vec();
    let interfaces = given.unwrap_or_else(default);
    for (at, name) in interfaces.iter().enumerate() {
        if interfaces[..at].iter().any(|other| other.text == name.text) {
            diags.error(name.span, format!("interface `{name}` is there twice"));
        }
    }
    let config = config.and_then(|config| config.text(diags)).map_or(String::new(), |text| text.text);
    let Some((what, program)) = program else {
        return (Some((Body::External(config), interfaces)), None);
    };
    let Some(path) = program.text(diags) else { return (None, contained) };
    // A bare program name is searched in PATH. Any other path is relative to the chain file.
    let bare = match what {
        ContainerKind::Program => !path.text.contains('/'),
        ContainerKind::Image => image::is_name_in(folder, &path.text),
        ContainerKind::Bundle => false,
    };
    let file = if bare { PathBuf::from(&path.text) } else { folder.join(&path.text) };
    let arguments = arguments.into_iter().map(|argument| argument.text).collect();
    let program = Program { path: file, span: path.span, arguments, config };
    (Some((Body::Program(program), interfaces)), contained)
}

/// Reads the runtime that starts the NF's container.
fn read_runtime(runtime: Value<'_>, mode: ExecutionMode, diags: &mut Diagnostics) -> Option<RuntimeName> {
    if mode != ExecutionMode::Container {
        let message = "`runtime` is for NFs in containers";
        diags.error(runtime.key_span, message).help("add `runs = \"container\"`, or leave it out");
    }
    let name = runtime.text(diags)?;
    let known = RuntimeName::ALL.map(|runtime| (runtime.name(), runtime));
    let wrong = format!("there is no container runtime `{name}` that Millrace knows");
    let help = format!("write one of {}", known.map(|(name, _)| format!("`{name}`")).join(", "));
    one_of(&name, &known, wrong, &help, diags)
}

/// Reads the rights of an NF's process, and its cores.
fn read_rights<'a>(
    take: &mut impl FnMut(&'static str, &mut Diagnostics) -> Option<Value<'a>>,
    folder: &Path,
    diags: &mut Diagnostics,
) -> (Option<Rights>, Vec<usize>) {
    let confine = take("confine", diags).and_then(|confine| confine.truth(diags)).unwrap_or(true);
    let mut paths = |key, diags: &mut Diagnostics| {
        let texts = take(key, diags).map_or(vec![], |paths| paths.texts(diags));
        texts.iter().map(|path| folder.join(&path.text)).collect()
    };
    let (reads, writes) = (paths("reads", diags), paths("writes", diags));
    let network = take("network", diags).and_then(|network| network.truth(diags)).unwrap_or(false);
    let memory_mib = take("memory_mib", diags).and_then(|value| value.integer(16..=1 << 20, diags));
    let cpu_share = take("cpu_share", diags).and_then(|value| value.integer(1..=10_000, diags));
    let cores = take("cores", diags).and_then(|cores| cores.list(diags)).unwrap_or_default();
    let cores = cores.into_iter().filter_map(|core| core.integer(0..=MOST_WORKERS - 1, diags));
    let cores = cores.filter_map(|core| usize::try_from(core).ok()).collect();
    let rights = Rights {
        reads,
        writes,
        network,
        memory_bytes: memory_mib.map(|mib| mib << 20),
        cpu_share: cpu_share.and_then(|share| u32::try_from(share).ok()),
    };
    (confine.then_some(rights), cores)
}

fn read_when_down(text: &Spanned, diags: &mut Diagnostics) -> WhenDown {
    let known = [
        ("drop", WhenDown::Drop),
        ("bypass", WhenDown::Bypass),
        ("hold", WhenDown::Hold),
        // `steer` sends the packets to the other instances. While all instances are down, packets are
        // dropped.
        ("steer", WhenDown::Drop),
    ];
    let wrong = format!("packets of an NF that is down cannot be `{text}`");
    one_of(text, &known, wrong, "write `drop`, `bypass` or `hold`", diags).unwrap_or(WhenDown::Drop)
}

fn read_mode(mode: &Spanned, diags: &mut Diagnostics) -> ExecutionMode {
    let known = ExecutionMode::NAMES.map(|(name, mode)| (name, Some(mode)));
    // A mode that is not implemented.
    let known: Vec<_> = known.into_iter().chain([("vm", None)]).collect();
    let wrong = format!("there is no form `{mode}` for an NF");
    let found = one_of(mode, &known, wrong, "write `modular`, `fused`, `process` or `container`", diags);
    if let Some(None) = found {
        diags
            .error(mode.span, format!("an NF cannot run as `{mode}` yet"))
            .help("write `modular`, which is the default, `fused`, `process` or `container`");
    }
    found.flatten().unwrap_or_default()
}
