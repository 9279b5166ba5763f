//! The workloads: Click files, their links, and their traffic.
//!
//! The files are in `examples/bench/` and built in. Traffic is 64-byte UDP from 10.0.0.0/16 to 198.18.0.0/15.
//! Every workload lets it pass, except those that measure drops; [`super::report`] notes drops.

use super::both_ways::{self, NAPTS, OutAndBack, ROUTERS, out_and_back};
use super::isp::{self, Directions, Load};
pub use super::layout::Layout;
use super::layout::example;
use crate::BenchError;
use std::path::Path;
use table::acl::classbench::Filter;
use traffic::{AclTraffic, ProtocolMix, SizeMix, TrafficSpec};

/// The handler that takes the routes of a full table.
pub const FULL_TABLE_HANDLER: &str = "nf/routes.ctrl";

/// A workload to measure.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The name of the workload.
    pub name: &'static str,
    /// A description, in a few words.
    pub about: &'static str,
    /// Whether the workload has to reach FastClick's share.
    pub gated: bool,
    /// Whether any frame is suitable, even one of zeros: such a workload can run on a port without contents.
    pub any_frame: bool,
    source: WorkloadSource,
}

#[derive(Clone, Copy, Debug)]
enum WorkloadSource {
    /// One Click file.
    File(&'static str),
    /// A Click file that defines the element class `Stage`, and the number of stages in a row.
    Row(&'static str, u32),
    /// The same, each stage an NF of its own that is written as for Click: with a queue at its output.
    Queued(&'static str, u32),
    /// The same, of stages with both ways, behind the last of which a mirror answers.
    BothWays(OutAndBack, u32),
    /// A chain of the examples, with mirrors in place of what is behind it, and the destination MAC address of its
    /// frames where that matters.
    Example(fn() -> Layout, Option<&'static str>),
    /// One Click file, whose element `routes` gets a full table.
    FullTable(&'static str),
    /// The chain of the SNF paper's figure 5, and the destination port of its packets.
    Chain(&'static str),
    /// An ISP's chain with this number of rules, or those of a file.
    Isp(Option<usize>, Load, Directions),
    /// A number of NFs in a row, each in a process of its own, that read and write the first bytes of each
    /// packet.
    Relays(u32, Relay),
}

/// How NFs in processes share packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relay {
    /// All NFs are in one trust group: packets stay where ports receive them.
    Together,
    /// Each NF is in a trust group of its own: packets between several groups are copied.
    Apart,
    /// Each NF is an observer with copies; the packets themselves do not pass through it.
    Observing,
    /// Each NF is a tap, which reads packets in place.
    Tapping,
    /// The same NFs as elements in one process.
    Modular,
}

const fn file(name: &'static str, about: &'static str, text: &'static str) -> Workload {
    Workload::of(name, about, WorkloadSource::File(text))
}

const fn row(name: &'static str, about: &'static str, text: &'static str, count: u32) -> Workload {
    Workload::of(name, about, WorkloadSource::Row(text, count))
}

const fn queued(name: &'static str, about: &'static str, text: &'static str, count: u32) -> Workload {
    Workload::of(name, about, WorkloadSource::Queued(text, count))
}

const fn both_ways(name: &'static str, about: &'static str, row: OutAndBack, count: u32) -> Workload {
    Workload::of(name, about, WorkloadSource::BothWays(row, count))
}

const fn example(name: &'static str, about: &'static str, layout: fn() -> Layout) -> Workload {
    Workload::of(name, about, WorkloadSource::Example(layout, None))
}

const fn chain(name: &'static str, about: &'static str, port: &'static str) -> Workload {
    Workload::of(name, about, WorkloadSource::Chain(port))
}

const fn relays(name: &'static str, about: &'static str, count: u32, relay: Relay) -> Workload {
    Workload::of(name, about, WorkloadSource::Relays(count, relay)).any_frame()
}

const fn isp(name: &'static str, about: &'static str, rules: Option<usize>, load: Load) -> Workload {
    Workload::of(name, about, WorkloadSource::Isp(rules, load, Directions::Out))
}

const fn isp_replies(name: &'static str, about: &'static str, rules: Option<usize>) -> Workload {
    Workload::of(name, about, WorkloadSource::Isp(rules, Load::Established, Directions::OutAndBack))
}

const ROUTER: &str = example!("bench/router.click");
const LEAN: &str = example!("bench/lean-router.click");
const NAPT: &str = example!("bench/napt.click");
const MIXED: &str = example!("bench/mixed.click");

/// The most flows of the demo chain's NAPT, which has this many ports towards the balancer's one address.
const MOST_OF_CHAIN: u64 = 60_000;
/// Frames of a capture in which flows occur at random.
const RANDOM_FRAMES: u64 = 65_536;

static WORKLOADS: &[Workload] = &[
    file("floor", "receive and drop: the floor", example!("bench/floor.click")).any_frame(),
    file("forward", "receive and send: I/O", example!("bench/forward.click")).any_frame(),
    file("l2", "L2 forwarding (EtherMirror)", example!("bench/l2.click")).any_frame().gated(),
    file("l3-10", "L3 forwarding, 10 routes", example!("bench/l3-10.click")).gated(),
    file("l3-10-spread", "the same to 10 next hops", example!("bench/l3-10-spread.click")),
    Workload::of(
        "l3-full",
        "L3 forwarding, full table",
        WorkloadSource::FullTable(example!("bench/l3-full.click")),
    ),
    file("firewall-10", "firewall, 10 rules (IPFilter)", example!("bench/firewall-10.click")).gated(),
    row("napt-1", "NAPT (IPRewriter)", NAPT, 1).gated(),
    row("napt-2", "2 NAPTs", NAPT, 2),
    row("napt-4", "4 NAPTs", NAPT, 4),
    row("napt-10", "10 NAPTs", NAPT, 10),
    both_ways("both-ways-1", "NAPT, out and back (IPMirror)", NAPTS, 1),
    both_ways("both-ways-2", "2 NAPTs, out and back", NAPTS, 2),
    both_ways("both-ways-4", "4 NAPTs, out and back", NAPTS, 4),
    both_ways("both-ways-10", "10 NAPTs, out and back", NAPTS, 10),
    example("zones", "two zones with one prefix, 3 NAPTs, out and back (SNF figure 3)", both_ways::zones),
    example("dmz", "two zones, 2 NAPTs and a DMZ, out and back (SNF figure 4)", both_ways::dmz),
    chain("nat-firewall-balancer", "NAPT, firewall, load balancer (SNF figure 5)", "1234"),
    example("service", "the same with TCP to the Internet, out and back", both_ways::service),
    chain("nat-firewall-denies", "the same, where the firewall drops all", "80"),
    row("lean-router-1", "lean router", LEAN, 1),
    row("lean-router-2", "2 lean routers", LEAN, 2),
    row("lean-router-4", "4 lean routers", LEAN, 4),
    row("lean-router-10", "10 lean routers", LEAN, 10),
    queued("queued-router-1", "lean router with a Queue at its output", LEAN, 1),
    queued("queued-router-2", "2 lean routers, a Queue at each output", LEAN, 2),
    queued("queued-router-4", "4 lean routers, a Queue at each output", LEAN, 4),
    queued("queued-router-10", "10 lean routers, a Queue at each output", LEAN, 10),
    row("mixed-1", "10 rules, 10 routes, TTL, NAPT", MIXED, 1),
    row("mixed-2", "the same twice", MIXED, 2),
    row("mixed-4", "the same four times", MIXED, 4),
    row("router-1", "standards-compliant router", ROUTER, 1),
    row("router-2", "2 standards-compliant routers", ROUTER, 2),
    row("router-4", "4 standards-compliant routers", ROUTER, 4),
    row("router-10", "10 standards-compliant routers", ROUTER, 10),
    both_ways("both-ways-router-1", "router, out and back", ROUTERS, 1),
    both_ways("both-ways-router-2", "2 routers, out and back", ROUTERS, 2),
    both_ways("both-ways-router-4", "4 routers, out and back", ROUTERS, 4),
    both_ways("both-ways-router-10", "10 routers, out and back", ROUTERS, 10),
    Workload::of(
        "field",
        "firewall, router, NAPT as people write them, out and back",
        WorkloadSource::Example(both_ways::field, Some(both_ways::FIRST_OF_FIELD)),
    ),
    isp("isp-251", "firewall of 251 rules, router, NAPT (SNF figure 9)", Some(251), Load::Established),
    isp("isp-713", "the same with 713 rules", Some(713), Load::Established),
    isp("isp-8550", "the same with 8,550 rules", Some(8_550), Load::Established),
    isp("isp-8550-zipf", "the same, a few heavy flows and many light ones", Some(8_550), Load::Zipf),
    isp("isp-8550-new", "the same, each packet of a flow unknown to the NAPT", Some(8_550), Load::New),
    isp("isp-100000", "the same with 100,000 rules", Some(100_000), Load::Established),
    isp("isp-file", "the same with the rules of --acl FILE", None, Load::Established),
    isp("isp-file-zipf", "the same, a few heavy flows and many light ones", None, Load::Zipf),
    isp("isp-file-new", "the same, each packet of a flow unknown to the NAPT", None, Load::New),
    isp_replies("isp-251-replies", "251 rules, out and back: Internet and servers answer", Some(251)),
    isp_replies("isp-713-replies", "the same with 713 rules", Some(713)),
    isp_replies("isp-8550-replies", "the same with 8,550 rules", Some(8_550)),
    isp_replies("isp-file-replies", "the same with the rules of --acl FILE", None),
    relays("process-1", "1 NF in a process", 1, Relay::Together),
    relays("process-2", "2 NFs in processes, one trust group", 2, Relay::Together),
    relays("process-3", "3 NFs in processes, one trust group", 3, Relay::Together),
    relays("process-4", "4 NFs in processes, one trust group", 4, Relay::Together),
    relays("process-5", "5 NFs in processes, one trust group", 5, Relay::Together),
    relays("apart-2", "2 NFs in processes, a trust group each", 2, Relay::Apart),
    relays("apart-5", "5 NFs in processes, a trust group each", 5, Relay::Apart),
    relays("observed-1", "1 observer", 1, Relay::Observing),
    relays("observed-2", "2 observers", 2, Relay::Observing),
    relays("observed-4", "4 observers", 4, Relay::Observing),
    relays("tapped-1", "1 tap", 1, Relay::Tapping),
    relays("tapped-2", "2 taps", 2, Relay::Tapping),
    relays("tapped-4", "4 taps", 4, Relay::Tapping),
    relays("modular-1", "the same as elements: 1 NF", 1, Relay::Modular),
    relays("modular-5", "the same as elements: 5 NFs", 5, Relay::Modular),
];

/// Elements that do what the program of the other relays does: read and write the first bytes of each packet.
const RELAY: &str = "FromDevice(0) -> EtherMirror -> ToDevice(1);";

/// All workloads, in the order of reports.
pub fn all() -> impl Iterator<Item = &'static Workload> {
    WORKLOADS.iter()
}

/// The workload with that name.
pub fn find(name: &str) -> Option<&'static Workload> {
    all().find(|workload| workload.name == name)
}

impl Workload {
    const fn of(name: &'static str, about: &'static str, source: WorkloadSource) -> Workload {
        Workload { name, about, gated: false, any_frame: false, source }
    }

    const fn gated(self) -> Workload {
        Workload { gated: true, ..self }
    }

    const fn any_frame(self) -> Workload {
        Workload { any_frame: true, ..self }
    }

    /// Whether it needs the routes of a full table.
    pub fn needs_full_table(&self) -> bool {
        matches!(self.source, WorkloadSource::FullTable(_))
    }

    /// The rules of the workload: generated ones, or `given`. `None` where it has no rules, or `given` is
    /// missing.
    pub fn rules(&self, given: Option<&[Filter]>) -> Option<Vec<Filter>> {
        match self.source {
            WorkloadSource::Isp(Some(count), ..) => Some(isp::generated(count)),
            WorkloadSource::Isp(None, ..) => given.map(<[Filter]>::to_vec),
            _ => None,
        }
    }

    /// Whether the workload needs a user's rules.
    pub fn needs_rules(&self) -> bool {
        matches!(self.source, WorkloadSource::Isp(None, ..))
    }

    /// The number of flows that the workload gets if `asked` are requested.
    pub fn flows(&self, asked: u64) -> u64 {
        if matches!(self.source, WorkloadSource::Chain(_)) { asked.min(MOST_OF_CHAIN) } else { asked }
    }

    /// The number of frames that represent its traffic.
    pub fn frames(&self, flows: u64) -> u64 {
        match self.source {
            WorkloadSource::Isp(_, Load::Zipf, _) => flows.max(RANDOM_FRAMES),
            _ => flows,
        }
    }

    /// The files and links of the workload, with these rules where it needs some.
    pub fn layout(&self, flows: u64, rules: &[Filter]) -> Layout {
        let one = |text: String| {
            let ends = text.contains("ToDevice(");
            let mut links = vec!["IN -> [in]nf".to_string()];
            links.extend(ends.then(|| "nf[out] -> OUT".to_string()));
            Layout { nfs: vec![("nf".into(), text)], links, ..Layout::default() }
        };
        match self.source {
            WorkloadSource::File(text) | WorkloadSource::FullTable(text) => one(text.into()),
            WorkloadSource::Row(class, count) => {
                let stages: String = (1..=count).map(|number| format!("    -> Stage({number})\n")).collect();
                one(format!("{class}\nFromDevice(in)\n{stages}    -> ToDevice(out);\n"))
            }
            WorkloadSource::Queued(class, count) => queued_in_a_row(class, count),
            WorkloadSource::BothWays(row, count) => one(out_and_back(row, count)),
            WorkloadSource::Example(layout, _) => layout(),
            WorkloadSource::Relays(count, relay) => in_a_row(count, relay),
            WorkloadSource::Isp(_, load, directions) => isp::layout(rules, load, directions, flows),
            WorkloadSource::Chain(_) => Layout {
                nfs: [
                    ("nat", example!("nat-firewall-balancer/nat.click")),
                    ("firewall", example!("nat-firewall-balancer/firewall.click")),
                    ("balancer", example!("nat-firewall-balancer/balancer.click")),
                ]
                .map(|(name, text)| (name.to_string(), text.to_string()))
                .to_vec(),
                links: [
                    "IN -> [0]nat",
                    "nat[2] -> OUT",
                    "nat[1] -> [0]firewall",
                    "firewall[1] -> [0]balancer",
                    "balancer[1] -> OUT",
                ]
                .map(String::from)
                .to_vec(),
                ..Layout::default()
            },
        }
    }

    /// Whether its NFs can run in more than one execution mode.
    pub fn has_forms(&self) -> bool {
        !self.has_processes() && !["floor", "forward"].contains(&self.name)
    }

    /// Whether its NFs run in processes.
    pub fn has_processes(&self) -> bool {
        matches!(self.source, WorkloadSource::Relays(_, relay) if relay != Relay::Modular)
    }

    /// The name of its traffic, which is the same for workloads with the same traffic. `rules` is as in
    /// [`Workload::traffic`].
    pub fn traffic_name(&self, rules: Option<&Path>) -> String {
        match self.source {
            WorkloadSource::FullTable(_) => "full-table".into(),
            WorkloadSource::Chain(port) => format!("one-address-port-{port}"),
            WorkloadSource::Isp(_, load, _) => {
                let rules = rules.and_then(Path::file_stem).unwrap_or_default().to_string_lossy();
                format!("{rules}-{}", load.order().to_string().replace([':', '.'], "-"))
            }
            WorkloadSource::Example(_, Some(mac)) => format!("to-{}", mac.replace(':', "-")),
            _ => "any".into(),
        }
    }

    /// The traffic of the workload; `rules` is the file with the rules that its flows match.
    ///
    /// # Errors
    /// None that a user could cause.
    pub fn traffic(&self, flows: u64, rules: Option<&Path>) -> Result<TrafficSpec, BenchError> {
        let spec = TrafficSpec { size: SizeMix::fixed(64), flows, ..TrafficSpec::default() };
        if let WorkloadSource::Isp(_, load, _) = self.source {
            let acl = AclTraffic { rules: rules.map(Path::to_owned), ..AclTraffic::default() };
            return Ok(TrafficSpec { acl, order: load.order(), protocols: ProtocolMix::UDP_ONLY, ..spec });
        }
        // No router of the workloads has one of these destination addresses itself.
        let dst = match self.source {
            WorkloadSource::FullTable(_) => "1.0.0.0-223.255.255.255",
            // The balancer has one address.
            WorkloadSource::Chain(_) => "198.18.1.1",
            _ => "198.18.1.0-198.19.254.255",
        };
        let (src, dst_mac) = match self.source {
            // Hosts behind a router: one for whom the first NF asks.
            WorkloadSource::Example(_, Some(mac)) => ("10.1.0.0/16", mac.parse()?),
            _ => ("10.0.0.0/16", spec.dst_mac),
        };
        Ok(TrafficSpec {
            dst_mac,
            src: src.parse()?,
            dst: dst.parse()?,
            src_port: "1024-65535".parse()?,
            // The firewall of the chain allows this port.
            dst_port: if let WorkloadSource::Chain(port) = self.source { port } else { "1234" }.parse()?,
            ..spec
        })
    }
}

/// NFs of one stage that are linked in a row, each with a queue in front of its output.
fn queued_in_a_row(class: &str, count: u32) -> Layout {
    let names: Vec<String> = (1..=count).map(|number| format!("nf{number}")).collect();
    let stops: String = names.iter().map(|name| format!("[in]{name}[out] -> ")).collect();
    let text =
        |number| format!("{class}\nFromDevice(in) -> Stage({number}) -> Queue(1000) -> ToDevice(out);\n");
    let nfs = names.into_iter().zip((1..=count).map(text)).collect();
    Layout { nfs, links: vec![format!("IN -> {stops}OUT")], ..Layout::default() }
}

/// NFs that are linked in a row.
fn in_a_row(count: u32, relay: Relay) -> Layout {
    let names: Vec<String> = (1..=count).map(|number| format!("nf{number}")).collect();
    let stops: String = names.iter().map(|name| format!("[0]{name}[1] -> ")).collect();
    let links = vec![format!("IN -> {stops}OUT")];
    if relay == Relay::Modular {
        let nfs = names.into_iter().map(|name| (name, RELAY.to_string())).collect();
        return Layout { nfs, links, ..Layout::default() };
    }
    let mut keys = toml::Table::new();
    let key = match relay {
        Relay::Observing => ("access", "observe"),
        Relay::Tapping => ("access", "tap"),
        Relay::Together | Relay::Apart | Relay::Modular => ("trust", "bench"),
    };
    if relay != Relay::Apart {
        keys.insert(key.0.into(), key.1.into());
    }
    // All NFs run on one core: on a machine with two cores, their host uses the last.
    keys.insert("cores".into(), vec![toml::Value::Integer(0)].into());
    let programs = names.into_iter().map(|name| (name, keys.clone())).collect();
    Layout { links, programs, ..Layout::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (at, workload) in all().enumerate() {
            assert!(all().skip(at + 1).all(|other| other.name != workload.name), "{}", workload.name);
        }
    }

    #[test]
    fn a_row_has_its_stages_between_the_ports() {
        let row = find("process-2").expect("there").layout(100, &[]);
        assert_eq!(
            (row.links.as_slice(), row.programs.len()),
            (&["IN -> [0]nf1[1] -> [0]nf2[1] -> OUT".into()][..], 2)
        );
        let layout = find("napt-2").expect("there").layout(100, &[]);
        let text = &layout.nfs[0].1;
        assert!(text.ends_with("FromDevice(in)\n    -> Stage(1)\n    -> Stage(2)\n    -> ToDevice(out);\n"));
        assert_eq!(layout.links, ["IN -> [in]nf", "nf[out] -> OUT"]);
    }

    #[test]
    fn the_floor_sends_nothing() {
        assert_eq!(find("floor").expect("there").layout(100, &[]).links, ["IN -> [in]nf"]);
    }

    #[test]
    fn the_full_table_has_an_element_to_go_to() {
        let text = &find("l3-full").expect("there").layout(100, &[]).nfs[0].1;
        assert!(text.contains("routes :: RadixIPLookup("), "{text}");
        assert_eq!(FULL_TABLE_HANDLER, "nf/routes.ctrl");
    }

    #[test]
    fn frames_are_of_64_bytes_with_fcs_and_of_as_many_flows() {
        for workload in all().filter(|workload| !matches!(workload.source, WorkloadSource::Isp(..))) {
            let frames = workload.traffic(500, None).expect("valid").prepare(500).expect("frames");
            assert!(frames.iter().all(|frame| frame.len() == 60));
            let mut tuples: Vec<&[u8]> = frames.iter().map(|frame| &frame[26..38]).collect();
            tuples.sort_unstable();
            tuples.dedup();
            assert_eq!(tuples.len(), 500);
        }
    }

    #[test]
    fn files_parse() {
        let few = isp::generated(20);
        for workload in all() {
            for (name, text) in workload.layout(100, &few).nfs {
                let (mut map, mut diags) = (diag::SourceMap::new(), diag::Diagnostics::new());
                let source = map.add(name, text);
                click::parse(&mut map, source, &mut diags);
                assert!(!diags.has_errors(), "{}: {}", workload.name, diags.render(&map, false));
            }
        }
    }
}
