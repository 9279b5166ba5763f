//! An ISP's chain (SNF paper, figure 9): a firewall with many rules, a router, and a NAPT.
//!
//! The rules are generated in the manner of ClassBench's `acl1`, the same on every machine, or are read from
//! a file in ClassBench's format. All rules allow packets; the firewall drops packets that match no rule. The
//! header of each flow is one that its rule decides about, so that flows match all rules in turn. With
//! replies, what left by the NAPT is answered, and so is what the router sends to the ISP's own servers
//! (160.0.0.0/3; in the paper 204.152.0.0/16, for which few of generated rules have an address).

use super::layout::{Layout, example};
use crate::BenchError;
use elements::filter::classbench::configuration;
use std::path::Path;
use table::acl::classbench::{Filter, parse_filters};
use table::acl::generate::{Profile, filters};
use traffic::FlowOrder;

/// How packets select their flows, and whether the NAPT knows these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Load {
    /// All flows have a mapping in the NAPT, and take turns.
    Established,
    /// All flows have a mapping; some have many more packets than others.
    Zipf,
    /// The NAPT has room for a quarter of the flows, so that each packet is again the first of its flow.
    New,
}

impl Load {
    /// The order in which frames select their flows.
    pub(super) fn order(self) -> FlowOrder {
        if self == Load::Zipf { FlowOrder::Zipf(1.0) } else { FlowOrder::RoundRobin }
    }
}

/// Seed of the generated rules.
const SEED: u64 = 1;

/// Generates `count` rules.
pub fn generated(count: usize) -> Vec<Filter> {
    filters(Profile::Acl, count, SEED)
}

/// Reads rules from a file.
///
/// # Errors
/// When the file cannot be read, a line is no rule, or flows through a NAPT can match no rule.
pub fn read(path: &Path) -> Result<Vec<Filter>, BenchError> {
    let text = traffic::read_text(path)?;
    let wrong = |what: String| BenchError::contradiction(format!("{}: {what}", path.display()));
    let filters = parse_filters(&text)
        .map_err(|lines| wrong(lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))?;
    if with_ports(&filters).next().is_none() {
        return Err(wrong("no rule is about TCP or UDP".into()));
    }
    Ok(filters)
}

/// The rules that flows through a NAPT can match.
pub(super) fn with_ports(filters: &[Filter]) -> impl Iterator<Item = Filter> + '_ {
    // No host in these networks sends through a router.
    let routed = |(address, len): (u32, u8)| len > 0 && !matches!(address >> 24, 0 | 127 | 224..);
    filters.iter().copied().filter(move |filter| {
        let proto = filter.proto;
        (proto.1 == 0 || [6, 17].map(|known| (known, 0xff)).contains(&proto))
            && routed(filter.src)
            && routed(filter.dst)
    })
}

/// The directions in which packets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Directions {
    /// From the customers to the Internet.
    Out,
    /// The same, and to the ISP's own servers; both answer, and the answers go back to the customers.
    OutAndBack,
}

/// The chain.
pub(super) fn layout(filters: &[Filter], load: Load, directions: Directions, flows: u64) -> Layout {
    let rules = configuration(filters, |_| "allow");
    let room = match load {
        Load::New => format!(", MAPPING_CAPACITY {}, TCP_GUARANTEE 0, UDP_GUARANTEE 0", (flows / 4).max(1)),
        Load::Established | Load::Zipf => String::new(),
    };
    let (files, links): (&[(&str, &str)], &[&str]) = match directions {
        Directions::Out => (
            &[
                ("firewall", example!("bench/isp-firewall.click")),
                ("router", example!("bench/isp-router.click")),
                ("nat", example!("bench/isp-nat.click")),
            ],
            &["IN -> [0]firewall[1] -> [0]router[1] -> [0]nat[1] -> OUT"],
        ),
        Directions::OutAndBack => (
            &[
                ("firewall", example!("bench/isp-firewall-replies.click")),
                ("router", example!("bench/isp-router-replies.click")),
                ("nat", example!("bench/isp-nat-replies.click")),
                ("internet", example!("bench/isp-mirror.click")),
                ("servers", example!("bench/isp-mirror.click")),
            ],
            &[
                "IN -> [0]firewall[1] <-> [0]router[1] <-> [0]nat[1] <-> [0]internet",
                "router[2] <-> [0]servers",
                "firewall[0] -> OUT",
            ],
        ),
    };
    let text = |file: &str| file.replace("$RULES", &rules).replace("$ROOM", &room);
    Layout {
        nfs: files.iter().map(|(name, file)| (name.to_string(), text(file))).collect(),
        links: links.iter().map(ToString::to_string).collect(),
        ..Layout::default()
    }
}
