//! An ISP's chain (SNF paper, figure 9): a firewall with a long list of rules, a router, a NAPT.
//!
//! The rules are made up in the manner of ClassBench's `acl1`, the same on every machine, or come from a file
//! in ClassBench's format. All of them let packets through; what none matches is dropped. Each flow's
//! header is one that its rule decides about, so that flows meet all rules one after the other.

use super::layout::{Layout, example};
use crate::BenchError;
use elements::filter::classbench::configuration;
use std::path::Path;
use table::acl::classbench::{Filter, parse_filters};
use table::acl::generate::{Profile, filters};
use traffic::FlowOrder;

/// What becomes of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Load {
    /// All of them have a mapping; they take turns.
    Established,
    /// The same, some much more often than others.
    Zipf,
    /// The NAPT has room for a quarter of them, so that each packet is its flow's first one again.
    New,
}

impl Load {
    /// The order in which frames pick their flows.
    pub(super) fn order(self) -> FlowOrder {
        if self == Load::Zipf { FlowOrder::Zipf(1.0) } else { FlowOrder::RoundRobin }
    }
}

/// Seed of the generated rules.
const SEED: u64 = 1;

/// So many rules, made up.
pub fn generated(count: usize) -> Vec<Filter> {
    filters(Profile::Acl, count, SEED)
}

/// The rules in a file.
///
/// # Errors
/// When it cannot be read, a line is none, or nothing in it can be let through.
pub fn read(path: &Path) -> Result<Vec<Filter>, BenchError> {
    let failed = |cause| BenchError::file("read", path, cause);
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let wrong = |what: String| BenchError::contradiction(format!("{}: {what}", path.display()));
    let filters = parse_filters(&text)
        .map_err(|lines| wrong(lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))?;
    if with_ports(&filters).next().is_none() {
        return Err(wrong("no rule is about TCP or UDP".into()));
    }
    Ok(filters)
}

/// The rules that flows through a NAPT can hit.
pub(super) fn with_ports(filters: &[Filter]) -> impl Iterator<Item = Filter> + '_ {
    // Nobody is in these networks who sends through a router.
    let routed = |(address, len): (u32, u8)| len > 0 && !matches!(address >> 24, 0 | 127 | 224..);
    filters.iter().copied().filter(move |filter| {
        let proto = filter.proto;
        (proto.1 == 0 || [6, 17].map(|known| (known, 0xff)).contains(&proto))
            && routed(filter.src)
            && routed(filter.dst)
    })
}

/// The chain.
pub(super) fn layout(filters: &[Filter], load: Load, flows: u64) -> Layout {
    let rules = configuration(filters, |_| "allow");
    let room = match load {
        Load::New => format!(", MAPPING_CAPACITY {}, TCP_GUARANTEE 0, UDP_GUARANTEE 0", (flows / 4).max(1)),
        Load::Established | Load::Zipf => String::new(),
    };
    Layout {
        programs: vec![],
        nfs: vec![
            ("firewall".into(), example!("bench/isp-firewall.click").replace("$RULES", &rules)),
            ("router".into(), example!("bench/isp-router.click").into()),
            ("nat".into(), example!("bench/isp-nat.click").replace("$ROOM", &room)),
        ],
        links: vec!["IN -> [0]firewall[1] -> [0]router[1] -> [0]nat[1] -> OUT".into()],
    }
}
