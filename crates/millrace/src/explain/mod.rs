//! `millrace explain`: the path of one packet through a chain, with the decision of each element.

mod packet;
mod walk;

use crate::exit::{ExitStatus, Mistake, refuse};
use crate::synth::classes::is_entrance;
use crate::{check, text};
use anyhow::Context;
use chain::{Chain, FusedElements, device_name};
use clap::Args;
use packet::{Held, Which, which};
use runtime::machine::Machine;
use serde::Serialize;
use std::path::PathBuf;
use walk::{Hop, Walk, Walker};
use worker::graph::Node;

/// Shows what a chain that has just started does to one packet, and which element decides each step: element
/// by element, and fused. Runs nothing.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Chain file (TOML) or Click configuration
    chain: PathBuf,

    /// Sets a variable of the configuration, as `define` does
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = crate::order::definition)]
    defines: Vec<String>,

    /// The packet: a capture, and which packet of it, from 1
    #[arg(long, value_name = "FILE[:N]", value_parser = which)]
    packet: Which,

    /// The port that it enters by, where there are several
    #[arg(long, value_name = "NAME")]
    port: Option<String>,

    /// The same as JSON
    #[arg(long, short = 'j')]
    json: bool,

    /// Most traffic classes of a fused region that are looked for
    #[arg(long, value_name = "COUNT", default_value_t = crate::synth::MAX_CLASSES)]
    max_classes: usize,
}

/// The explanation of a packet, as it is printed or serialized.
#[derive(Debug, Serialize)]
struct Explained {
    packet: u64,
    bytes: usize,
    port: String,
    source: String,
    modular: Walk,
    fused: Walk,
    /// Whether the modular and the fused chain do the same to the packet.
    agree: bool,
    /// The elements on its path or with a decision, each with the source location of its declaration.
    places: Vec<(String, String)>,
}

/// An element that receives from a port.
struct PacketEntrance {
    node: usize,
    port: String,
}

fn entrances(chain: &Chain, nodes: &[Node]) -> Vec<PacketEntrance> {
    let entrances = nodes.iter().enumerate().filter(|(_, node)| is_entrance(node)).map(|(at, _)| {
        let port = device_name(&chain.graph.elements[at].config).map(|name| name.text).unwrap_or_default();
        PacketEntrance { node: at, port }
    });
    entrances.collect()
}

/// The element at which the packet enters: the only one that receives from a port, or the one that `wanted`
/// names.
fn choose(chain: &Chain, nodes: &[Node], wanted: Option<&str>) -> anyhow::Result<PacketEntrance> {
    let mut entrances = entrances(chain, nodes);
    let list = |names: &mut dyn Iterator<Item = &str>| names.collect::<Vec<_>>().join(", ");
    let all = list(&mut entrances.iter().map(|entrance| &*entrance.port));
    if let Some(wanted) = wanted {
        entrances.retain(|entrance| entrance.port == wanted || nodes[entrance.node].name == wanted);
        if entrances.is_empty() {
            let known: Vec<&str> = all.split(", ").collect();
            let help = diag::did_you_mean(wanted, known).unwrap_or_else(|| format!("there are {all}"));
            refuse!("nothing receives from a port `{wanted}`; {help}");
        }
    }
    if entrances.len() > 1 {
        let names = match wanted {
            Some(_) => list(&mut entrances.iter().map(|entrance| &*nodes[entrance.node].name)),
            None => all,
        };
        refuse!("the packet could enter by several ports: {names}; choose one by --port");
    }
    let entrance =
        entrances.pop().ok_or_else(|| Mistake::new("no element of this chain receives from a port"))?;
    let node = &nodes[entrance.node];
    if node.config.contains("FORCE_IP") {
        refuse!("{} looks at packets by its own code (FORCE_IP), which is not followed", node.name);
    }
    Ok(entrance)
}

/// Runs the command.
///
/// # Errors
/// When a file cannot be read, or it is not clear at which element the packet enters.
pub fn run(args: &ExplainArgs) -> anyhow::Result<ExitStatus> {
    let modes = |_: &Chain| [FusedElements::Nothing, FusedElements::All];
    let Some(check::Checked { map, chain, assemblies: [modular, fused], .. }) =
        check::assembled(&args.chain, &args.defines, true, modes, Machine::Any, false)?
    else {
        return Ok(ExitStatus::Refused);
    };
    let entrance = choose(&chain, &modular.graphs[0], args.port.as_deref())?;
    let mut held = packet::read(&args.packet)?;
    // Ports are numbered as the chain file has them.
    let number = chain.ports.iter().position(|port| port.name == entrance.port);
    held.packet.origin = number.and_then(|at| u16::try_from(at).ok()).unwrap_or(shm::descriptor::NO_PORT);
    let source = modular.graphs[0][entrance.node].name.clone();
    let Held { packet, .. } = &held;
    let bytes = packet.len() as usize;
    let modular = Walker::new(&chain.graph, modular, args.max_classes).walk(entrance.node, held.clone())?;
    let fused = Walker::new(&chain.graph, fused, args.max_classes).walk(entrance.node, held)?;
    let had_a_say = modular.hops.iter().map(|hop| &hop.at);
    let mut places: Vec<(String, String)> = vec![];
    let decided =
        modular.hops.iter().chain(&fused.hops).flat_map(|hop| hop.decided.iter().map(|step| &step.0));
    for name in had_a_say.chain(decided) {
        let known = places.iter().any(|(known, _)| known == name);
        if let Some(element) = chain.graph.elements.iter().find(|element| element.name == *name && !known) {
            places.push((name.clone(), map.location(element.span)));
        }
    }
    let agree = modular.outcomes == fused.outcomes;
    let number = args.packet.number;
    let explained =
        Explained { packet: number, bytes, port: entrance.port, source, modular, fused, agree, places };
    let text = || explained.text(&args.packet.file.display().to_string());
    text::print_found(args.json, &explained, text).context("standard output")?;
    Ok(ExitStatus::of(agree))
}

impl Explained {
    fn place(&self, element: &str) -> String {
        let place = self.places.iter().find(|(name, _)| name == element);
        place.map_or_else(|| element.to_string(), |(_, place)| format!("{element} ({place})"))
    }

    fn text(&self, file: &str) -> String {
        let mut out = format!(
            "packet {} of {file}: {} bytes, enters by {} at {}\nof a chain that has just started: no flow is known, \
             tables are as configured\n",
            self.packet, self.bytes, self.port, self.source
        );
        out += "\nelement by element:\n";
        for hop in &self.modular.hops {
            out += &format!("  {}\n", self.place(&hop.at));
            let asked: Vec<&str> = hop.decided.iter().map(|(_, text)| text.as_str()).collect();
            out += &said(hop, &asked);
        }
        out += &outcomes(&self.modular);
        out += "\nfused:\n";
        for hop in &self.fused.hops {
            match hop.class {
                Some(class) => out += &format!("  {}, class {class} of {}\n", hop.at, hop.of),
                None if hop.of > 0 => {
                    out += &format!("  {}, no class of the {} that were looked for\n", hop.at, hop.of);
                }
                None => out += &format!("  {}\n", self.place(&hop.at)),
            }
            let mut last = "";
            let mut asked: Vec<String> = vec![];
            for (name, text) in &hop.decided {
                if name != last {
                    asked.push(format!("{}:", self.place(name)));
                    last = name;
                }
                asked.push(format!("  {text}"));
            }
            out += &said(hop, &asked.iter().map(String::as_str).collect::<Vec<_>>());
        }
        out += &outcomes(&self.fused);
        let is_followed = self.modular.outcomes.iter().all(|outcome| outcome.ends != "unknown");
        out += if self.agree && is_followed {
            "\nboth execution modes do the same to it\n"
        } else if self.agree {
            "\nboth execution modes do the same to it, as far as it was followed\n"
        } else {
            "\nthe execution modes do not do the same to it: this is a fault of Millrace, please report it\n"
        };
        out
    }
}

fn said(hop: &Hop, asked: &[&str]) -> String {
    let mut out = String::new();
    let wrote: Vec<&str> = hop.wrote.iter().map(String::as_str).collect();
    for (title, of) in [("asks", asked), ("sets", &wrote), ("goes", &[hop.went.as_str()])] {
        out += &text::titled(&format!("    {title}"), 9, of);
    }
    out
}

fn outcomes(walk: &Walk) -> String {
    let line = |fate: &walk::PacketOutcome| match fate.ends {
        "sent" => format!("  => sent {} ({}), {} bytes\n", fate.why, fate.at, fate.bytes.len()),
        "dropped" => format!("  => dropped by {}: {}\n", fate.at, fate.why),
        _ => format!("  => not known further at {}: {}\n", fate.at, fate.why),
    };
    walk.outcomes.iter().map(line).collect()
}
