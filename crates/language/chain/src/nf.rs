//! The NFs' Click files and their interfaces.

use super::source_texts::{Texts, folder_of};
use super::variables;
use crate::model::{ChainFile, Define, NfDecl, NfText};
use click::ast::Ast;
use click::config::{join_args, quote, split_args, split_keyword, unquote};
use click::flow::{self, PortSpec, Processing};
use click::{Classes, ElementId, Graph};
use diag::{Diagnostics, SourceId, SourceMap, Span, Spanned, did_you_mean};
use port::Direction;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// An NF: its declaration, and what its Click text adds to that.
pub(super) struct Nf {
    pub declared: NfDecl,
    pub file: PathBuf,
    pub graph: Graph,
    pub interfaces: Vec<Interface>,
    /// Elements whose input is pull: they pull the packets that they send.
    pub pulling: Vec<ElementId>,
    /// Whether an error in its text may hide interfaces.
    pub incomplete: bool,
}

impl Nf {
    /// Reports a name that no interface has.
    pub fn check_interface(&self, name: &Spanned, diags: &mut Diagnostics) {
        let names = || self.interfaces.iter().map(|interface| interface.name.as_str());
        if !self.incomplete && !names().any(|known| known == name.text) {
            let message = format!("`{}` has no interface `{name}`", self.name);
            diags.error(name.span, message).maybe_help(did_you_mean(&name.text, names()));
        }
    }
}

impl std::ops::Deref for Nf {
    type Target = NfDecl;

    fn deref(&self) -> &NfDecl {
        &self.declared
    }
}

/// An interface: the elements that receive from it and send to it.
#[derive(Debug)]
pub(super) struct Interface {
    pub name: String,
    pub ingress: Vec<ElementId>,
    pub egress: Vec<ElementId>,
    /// Interfaces by which packets from this one can leave.
    pub leads_to: Vec<usize>,
}

/// The direction in which elements of a class use a device, which their first argument names; `None` for
/// other classes.
pub fn device_direction(class: &str) -> Option<Direction> {
    match class {
        "FromDevice" | "FromDPDKDevice" => Some(Direction::Receive),
        "ToDevice" | "ToDPDKDevice" => Some(Direction::Send),
        _ => None,
    }
}

/// Whether an unknown class may be a misspelt class of a device element.
fn may_be_device(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("dev") || name.starts_with("from") || name.starts_with("to")
}

/// Position of the argument that names the device, and the name.
fn device_arg(args: &[Spanned]) -> Option<(usize, Spanned)> {
    let named = args.iter().enumerate().rev().find_map(|(at, arg)| {
        let (keyword, value) = split_keyword(arg)?;
        (keyword.as_str() == "DEVNAME").then_some((at, value))
    });
    let (at, name) = named.or_else(|| Some((0, args.first()?.clone())))?;
    Some((at, unquote(&name)))
}

/// The device that the arguments of a device element name.
pub fn device_name(config: &Spanned) -> Option<Spanned> {
    device_arg(&split_args(config)).map(|(_, name)| name)
}

/// The arguments with another device.
pub(super) fn with_device(config: &Spanned, device: &str, span: Span) -> Spanned {
    let mut args = split_args(config);
    let plain = device.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte));
    let device = Spanned::derived(if plain { device.to_string() } else { quote(device) }, span);
    match device_arg(&args).and_then(|(at, _)| args.get_mut(at)) {
        Some(arg) => *arg = device,
        None => args.push(device),
    }
    join_args(&args, config.span)
}

/// Reads the Click texts of all NFs; each file once.
pub(super) fn load_all(
    chain: &ChainFile,
    path: &Path,
    defines: &[Define],
    classes: &dyn Classes,
    texts: &mut dyn Texts,
    map: &mut SourceMap,
    diags: &mut Diagnostics,
) -> Vec<Nf> {
    let folder = folder_of(path);
    let mut parsed: HashMap<PathBuf, Option<Ast>> = HashMap::new();
    let (mut nfs, mut known) = (vec![], vec![]);
    for declared in &chain.nfs {
        let own = declared.defines.iter().map(|define| (define.name.text.clone(), define.value.clone()));
        let mut values: Vec<(String, Spanned)> = own.collect();
        values.extend(defines.iter().filter_map(|Define { name, value }| {
            let name = name.as_str();
            let of_nf = name.strip_prefix(declared.name.as_str()).and_then(|rest| rest.strip_prefix('.'));
            let name = of_nf.or((!name.contains('.')).then_some(name))?;
            Some((name.to_string(), value.clone()))
        }));
        let inline;
        let (file, ast) = match &declared.text {
            NfText::Missing => continue,
            NfText::Program(_, interfaces) => {
                known.push((declared.name.as_str(), variables::of(None)));
                nfs.push(of_program(declared, path, interfaces));
                continue;
            }
            NfText::Inline(text) => {
                let source = inline_source(chain.source, text, map);
                inline = Some(click::parse_with(map, source, texts, diags));
                (path.to_path_buf(), &inline)
            }
            NfText::File(name) => {
                let file = folder.join(&name.text);
                let file = file.strip_prefix(".").unwrap_or(&file).to_path_buf();
                let ast = parsed.entry(file.clone()).or_insert_with(|| {
                    let bytes = match texts.read(&file) {
                        Ok(bytes) => bytes,
                        Err(error) => {
                            diags.error(name.span, format!("cannot read {}: {error}", file.display()));
                            return None;
                        }
                    };
                    let source = map.add(file.display().to_string(), String::from_utf8_lossy(&bytes));
                    Some(click::parse_with(map, source, texts, diags))
                });
                (file, &*ast)
            }
        };
        known.push((declared.name.as_str(), variables::of(ast.as_ref())));
        let before = diags.errors();
        let graph = ast.as_ref().map(|ast| click::flatten(ast, classes, &values, diags)).unwrap_or_default();
        // An element of any other unknown class is not an interface.
        let hides = graph.unknown.iter().any(|name| may_be_device(name));
        let others = diags.errors() - before > graph.unknown.len();
        let incomplete = ast.is_none() || graph.incomplete || hides || others;
        let (interfaces, pulling) = describe(&graph, classes);
        nfs.push(Nf { declared: declared.clone(), file, graph, interfaces, pulling, incomplete });
    }
    variables::check_chain(chain, &known, defines, diags);
    nfs
}

/// An NF that is a program. Each interface may receive and send, and needs neither.
fn of_program(declared: &NfDecl, chain: &Path, interfaces: &[Spanned]) -> Nf {
    let mut graph = Graph::default();
    let mut add = |class: &str, name: &Spanned| {
        let span = name.span;
        let class = Spanned::derived(class, span);
        vec![graph.add(click::Element { name: format!("{class}-{name}"), class, config: name.clone(), span })]
    };
    let all: Vec<usize> = (0..interfaces.len()).collect();
    let interface = |name: &Spanned| Interface {
        name: name.text.clone(),
        ingress: add("FromDevice", name),
        egress: add("ToDevice", name),
        leads_to: all.clone(),
    };
    let interfaces = interfaces.iter().map(interface).collect();
    let (declared, file) = (declared.clone(), chain.to_path_buf());
    Nf { declared, file, graph, interfaces, pulling: vec![], incomplete: false }
}

/// The source of Click text inside the chain file: the chain file up to the text's end, with blanks in front
/// of the text, so that locations in the source are locations in the chain file. A text with escapes is a
/// source of its own.
fn inline_source(chain: SourceId, text: &Spanned, map: &mut SourceMap) -> SourceId {
    let name = map.name(chain).to_string();
    if !text.is_verbatim() {
        return map.add(format!("{name} (inline)"), text.text.clone());
    }
    let before = map.text(chain).get(..text.span.start as usize).unwrap_or("");
    let blank = |c: char| match c {
        '\n' | '\r' => c.to_string(),
        // The byte length is kept. Columns count characters, so they are right in lines of ASCII text.
        other => " ".repeat(other.len_utf8()),
    };
    let blanked: String = before.chars().map(blank).collect();
    map.add(name, blanked + text.as_str())
}

/// The interfaces in the order of the text, and the elements that pull the packets that they send.
fn describe(graph: &Graph, classes: &dyn Classes) -> (Vec<Interface>, Vec<ElementId>) {
    let mut interfaces: Vec<Interface> = vec![];
    for id in graph.ids() {
        let Some(element) = graph.element(id) else { continue };
        let Some(direction) = device_direction(element.class.as_str()) else { continue };
        let Some(name) = device_name(&element.config) else { continue };
        let known = interfaces.iter().position(|interface| interface.name == name.text);
        let at = known.unwrap_or_else(|| {
            interfaces.push(Interface { name: name.text, ingress: vec![], egress: vec![], leads_to: vec![] });
            interfaces.len() - 1
        });
        match direction {
            Direction::Receive => interfaces[at].ingress.push(id),
            Direction::Send => interfaces[at].egress.push(id),
        }
    }
    let spec = |id: ElementId| flow::spec(graph, id, classes);
    let specs: Vec<PortSpec> = graph.ids().map(spec).collect();
    // Resolving the whole graph reports wiring errors again, under the names of that graph, so these are
    // discarded.
    let flow = flow::resolve(graph, &spec, &mut Diagnostics::new());
    let pulls = |id: &ElementId| flow.ports(*id).inputs.first() == Some(&Processing::Pull);
    let pulling = graph.ids().filter(pulls).collect();
    let leads: Vec<Vec<usize>> = interfaces
        .iter()
        .map(|from| {
            let reached = reach(graph, &specs, &from.ingress);
            let leaves = |to: &&Interface| to.egress.iter().any(|id| reached.get(id.0) == Some(&true));
            interfaces.iter().enumerate().filter(|(_, to)| leaves(to)).map(|(at, _)| at).collect()
        })
        .collect();
    for (interface, leads_to) in interfaces.iter_mut().zip(leads) {
        interface.leads_to = leads_to;
    }
    (interfaces, pulling)
}

/// The elements that packets from these elements can reach, by the elements' flow codes.
fn reach(graph: &Graph, specs: &[PortSpec], from: &[ElementId]) -> Vec<bool> {
    let mut wires: HashMap<ElementId, Vec<&click::Connection>> = HashMap::new();
    for wire in &graph.connections {
        wires.entry(wire.from).or_default().push(wire);
    }
    let mut reached = vec![false; graph.elements.len()];
    let mut seen = std::collections::HashSet::new();
    let mut open: Vec<(ElementId, Option<u32>)> = from.iter().map(|id| (*id, None)).collect();
    while let Some((id, input)) = open.pop() {
        for wire in wires.get(&id).into_iter().flatten() {
            let flows = match (input, specs.get(id.0)) {
                (Some(input), Some(spec)) => spec.flows(input, wire.from_port),
                _ => true,
            };
            if flows && seen.insert((wire.to, wire.to_port)) {
                if let Some(reached) = reached.get_mut(wire.to.0) {
                    *reached = true;
                }
                open.push((wire.to, Some(wire.to_port)));
            }
        }
    }
    reached
}
