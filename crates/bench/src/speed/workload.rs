//! The workloads: Click files, how they are linked, and the traffic that they are given.
//!
//! The files lie in `examples/bench/` and are built in. Traffic is 64-byte UDP from 10.0.0.0/16 to
//! 198.18.0.0/15, which every workload lets pass: one that drops something is not comparable, and
//! [`super::report`] says so.

use crate::BenchError;
use crate::traffic::{SizeMix, TrafficSpec};

macro_rules! example {
    ($file:literal) => {
        include_str!(concat!("../../../../examples/", $file))
    };
}

/// The handler that takes the routes of a full table.
pub const FULL_TABLE_HANDLER: &str = "nf/routes.ctrl";

/// Something to measure.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
    /// Whether it has to reach FastClick's share.
    pub gated: bool,
    /// Whether any frame will do, also one of zeros: what a port without contents can measure.
    pub any_frame: bool,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// One file.
    File(&'static str),
    /// A file that defines the element class `Stage`, and how many of them stand in a row.
    Row(&'static str, u32),
    /// One file whose element `routes` gets a full table.
    FullTable(&'static str),
    /// The chain of the SNF paper's figure 5.
    Chain,
}

/// Files of a chain, and how they are linked; `IN` and `OUT` stand for the ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Name of the NF and text of its Click file.
    pub nfs: Vec<(String, String)>,
    /// Links in the chain file's notation.
    pub links: Vec<String>,
}

const fn file(name: &'static str, about: &'static str, text: &'static str) -> Workload {
    Workload { name, about, gated: false, any_frame: false, source: Source::File(text) }
}

const fn row(name: &'static str, about: &'static str, text: &'static str, count: u32) -> Workload {
    Workload { name, about, gated: false, any_frame: false, source: Source::Row(text, count) }
}

const ROUTER: &str = example!("bench/router.click");
const LEAN: &str = example!("bench/lean-router.click");
const NAPT: &str = example!("bench/napt.click");

static WORKLOADS: &[Workload] = &[
    Workload {
        any_frame: true,
        ..file("floor", "receive and drop: the floor", example!("bench/floor.click"))
    },
    Workload { any_frame: true, ..file("forward", "receive and send: I/O", example!("bench/forward.click")) },
    Workload {
        any_frame: true,
        gated: true,
        ..file("l2", "L2 forwarding (EtherMirror)", example!("bench/l2.click"))
    },
    Workload { gated: true, ..file("l3-10", "L3 forwarding, 10 routes", example!("bench/l3-10.click")) },
    file("l3-10-spread", "the same to 10 next hops", example!("bench/l3-10-spread.click")),
    Workload {
        source: Source::FullTable(example!("bench/l3-full.click")),
        ..file("l3-full", "L3 forwarding, full table", "")
    },
    Workload {
        gated: true,
        ..file("firewall-10", "firewall, 10 rules (IPFilter)", example!("bench/firewall-10.click"))
    },
    Workload { gated: true, ..row("napt-1", "NAPT (IPRewriter)", NAPT, 1) },
    row("napt-2", "2 NAPTs", NAPT, 2),
    row("napt-4", "4 NAPTs", NAPT, 4),
    row("napt-10", "10 NAPTs", NAPT, 10),
    Workload {
        source: Source::Chain,
        ..file("nat-firewall-balancer", "NAPT, firewall, load balancer (SNF figure 5)", "")
    },
    row("lean-router-1", "lean router", LEAN, 1),
    row("lean-router-2", "2 lean routers", LEAN, 2),
    row("lean-router-4", "4 lean routers", LEAN, 4),
    row("lean-router-10", "10 lean routers", LEAN, 10),
    row("router-1", "standards-compliant router", ROUTER, 1),
    row("router-2", "2 standards-compliant routers", ROUTER, 2),
    row("router-4", "4 standards-compliant routers", ROUTER, 4),
    row("router-10", "10 standards-compliant routers", ROUTER, 10),
];

/// All workloads, in the order of reports.
pub fn all() -> impl Iterator<Item = &'static Workload> {
    WORKLOADS.iter()
}

/// The workload with that name.
pub fn find(name: &str) -> Option<&'static Workload> {
    all().find(|workload| workload.name == name)
}

impl Workload {
    /// Whether it needs the routes of a full table.
    pub fn needs_full_table(&self) -> bool {
        matches!(self.source, Source::FullTable(_))
    }

    /// Its files and links.
    pub fn layout(&self) -> Layout {
        let one = |text: String| {
            let ends = text.contains("ToDevice(");
            let mut links = vec!["IN -> [in]nf".to_string()];
            links.extend(ends.then(|| "nf[out] -> OUT".to_string()));
            Layout { nfs: vec![("nf".into(), text)], links }
        };
        match self.source {
            Source::File(text) | Source::FullTable(text) => one(text.into()),
            Source::Row(class, count) => {
                let stages: String = (1..=count).map(|number| format!("    -> Stage({number})\n")).collect();
                one(format!("{class}\nFromDevice(in)\n{stages}    -> ToDevice(out);\n"))
            }
            Source::Chain => Layout {
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
            },
        }
    }

    /// The traffic that it is given.
    ///
    /// # Errors
    /// None that a user could cause.
    pub fn traffic(&self, flows: u64) -> Result<TrafficSpec, BenchError> {
        // No router of the workloads has one of these destination addresses for itself.
        let dst =
            if self.needs_full_table() { "1.0.0.0-223.255.255.255" } else { "198.18.1.0-198.19.254.255" };
        Ok(TrafficSpec {
            size: SizeMix::fixed(64),
            flows,
            src: "10.0.0.0/16".parse()?,
            dst: dst.parse()?,
            src_port: "1024-65535".parse()?,
            // What the firewall of the chain lets pass.
            dst_port: "1234".parse()?,
            ..TrafficSpec::default()
        })
    }
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
        let layout = find("napt-2").expect("there").layout();
        let text = &layout.nfs[0].1;
        assert!(text.ends_with("FromDevice(in)\n    -> Stage(1)\n    -> Stage(2)\n    -> ToDevice(out);\n"));
        assert_eq!(layout.links, ["IN -> [in]nf", "nf[out] -> OUT"]);
    }

    #[test]
    fn the_floor_sends_nothing() {
        assert_eq!(find("floor").expect("there").layout().links, ["IN -> [in]nf"]);
    }

    #[test]
    fn the_full_table_has_an_element_to_go_to() {
        let text = &find("l3-full").expect("there").layout().nfs[0].1;
        assert!(text.contains("routes :: RadixIPLookup("), "{text}");
        assert_eq!(FULL_TABLE_HANDLER, "nf/routes.ctrl");
    }

    #[test]
    fn frames_are_of_64_bytes_with_fcs_and_of_as_many_flows() {
        for workload in all() {
            let frames = workload.traffic(500).expect("valid").prepare(500).expect("frames");
            assert!(frames.iter().all(|frame| frame.len() == 60));
            let mut tuples: Vec<&[u8]> = frames.iter().map(|frame| &frame[26..38]).collect();
            tuples.sort_unstable();
            tuples.dedup();
            assert_eq!(tuples.len(), 500);
        }
    }

    #[test]
    fn files_parse() {
        for workload in all() {
            for (name, text) in workload.layout().nfs {
                let (mut map, mut diags) = (diag::SourceMap::new(), diag::Diagnostics::new());
                let source = map.add(name, text);
                click::parse(&mut map, source, &mut diags);
                assert!(!diags.has_errors(), "{}: {}", workload.name, diags.render(&map, false));
            }
        }
    }
}
