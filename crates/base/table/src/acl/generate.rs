//! Generated filter sets in the style of ClassBench, and headers that match rules; seeded and repeatable,
//! so that tests and benchmarks need no files.
//!
//! A profile draws prefixes from a limited number of networks, so that they nest and overlap as real ones
//! do, and ports from ClassBench's classes (any, low, high, an arbitrary range, an exact value). The
//! proportions are similar to those in ClassBench's seeds of the same names, but fitted to none of them.

use super::classbench::Filter;
use super::rule::{MAX_DIMS, Rule, Schema};
use crate::Random;

/// The kind of filter set to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// An ISP's access list: long prefixes on both sides, exact destination ports, TCP.
    Acl,
    /// A firewall: many wildcards, port ranges on both sides.
    Firewall,
    /// An IP chain: between the two.
    Chain,
}

struct Shares {
    /// Of a hundred prefixes: any, a network of 8 to 23 bits, one of 24 to 31, else a host.
    src: [u64; 3],
    dst: [u64; 3],
    /// Of a hundred ranges: any, 0 to 1023, 1024 and up, an arbitrary range, else exact.
    sport: [u64; 4],
    dport: [u64; 4],
    /// Of a hundred protocols: any, TCP, UDP, else another.
    proto: [u64; 3],
}

impl Profile {
    fn shares(self) -> Shares {
        let (src, dst, sport, dport, proto) = match self {
            Self::Acl => ([0, 3, 30], [0, 5, 28], [100, 0, 0, 0], [30, 1, 2, 7], [7, 87, 2]),
            Self::Firewall => ([40, 15, 15], [25, 10, 20], [60, 2, 18, 5], [35, 3, 12, 10], [15, 55, 25]),
            Self::Chain => ([10, 15, 30], [15, 10, 30], [75, 1, 6, 4], [50, 1, 8, 8], [30, 45, 20]),
        };
        Shares { src, dst, sport, dport, proto }
    }
}

/// Chooses one of several classes by shares of a hundred; the number of shares means the remaining class.
fn class(random: &mut Random, shares: &[u64]) -> usize {
    let mut drawn = random.below(100);
    for (at, &share) in shares.iter().enumerate() {
        if drawn < share {
            return at;
        }
        drawn -= share;
    }
    shares.len()
}

fn keep(value: u32, len: u8) -> u32 {
    if len == 0 { 0 } else { value & (u32::MAX << (32 - u32::from(len.min(32)))) }
}

fn prefix(random: &mut Random, networks: &[u32], shares: &[u64; 3]) -> (u32, u8) {
    let network = networks.get(random.below(networks.len() as u64) as usize).copied().unwrap_or(0);
    let len = match class(random, shares) {
        0 => 0,
        1 => random.within(8, 23) as u8,
        2 => random.within(24, 31) as u8,
        _ => 32,
    };
    (keep(network | random.within(0, 255), len), len)
}

const PORTS: [u16; 16] = [80, 443, 53, 25, 22, 21, 110, 123, 135, 1521, 1433, 1526, 3306, 5060, 6000, 8080];

fn ports(random: &mut Random, shares: &[u64; 4]) -> (u16, u16) {
    match class(random, shares) {
        0 => (0, u16::MAX),
        1 => (0, 1023),
        2 => (1024, u16::MAX),
        3 => {
            let lo = random.within(0, 0xf000) as u16;
            (lo, lo.saturating_add(random.within(1, 2000) as u16))
        }
        _ if random.percent(60) => {
            let port = PORTS[random.below(PORTS.len() as u64) as usize % PORTS.len()];
            (port, port)
        }
        _ => {
            let port = random.within(1, 0xffff) as u16;
            (port, port)
        }
    }
}

/// Generates a filter set. The wider filters are last, as in lists that people write, so that few filters
/// hide others.
#[must_use]
pub fn filters(profile: Profile, count: usize, seed: u64) -> Vec<Filter> {
    let mut random = Random::new(seed);
    let shares = profile.shares();
    let networks: Vec<u32> = (0..(count as f64).sqrt().ceil() as usize * 2 + 1)
        .map(|_| random.within(0x0100_0000, 0xdfff_ffff) & !0xff)
        .collect();
    let mut filters: Vec<Filter> = (0..count)
        .map(|_| Filter {
            src: prefix(&mut random, &networks, &shares.src),
            dst: prefix(&mut random, &networks, &shares.dst),
            sport: ports(&mut random, &shares.sport),
            dport: ports(&mut random, &shares.dport),
            proto: match class(&mut random, &shares.proto) {
                0 => (0, 0),
                1 => (6, 0xff),
                2 => (17, 0xff),
                _ => ([1u8, 47, 50, 89][random.below(4) as usize % 4], 0xff),
            },
            flags: (0, 0),
        })
        .collect();
    filters.sort_by_key(|filter| std::cmp::Reverse((filter.src.1 + filter.dst.1) / 8));
    filters
}

/// Generates headers for rules chosen at random, with repetitions whose lengths follow a Pareto
/// distribution (ClassBench's `trace_generator` with a = 1): each header is repeated `ceil(b / u)` times,
/// `u` uniform in 0 to 1. The published traces use `b = 0.1`; 0 means no repetition.
#[must_use]
pub fn headers(schema: &Schema, rules: &[Rule], count: usize, b: f64, seed: u64) -> Vec<[u32; MAX_DIMS]> {
    let mut random = Random::new(seed);
    let mut headers = Vec::with_capacity(count);
    while headers.len() < count {
        let Some(rule) = rules.get(random.below(rules.len() as u64) as usize) else { break };
        let header = inside(&mut random, schema, rule);
        let uniform = (random.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64;
        let times = ((b / uniform).ceil() as usize).clamp(1, count - headers.len());
        headers.extend(std::iter::repeat_n(header, times));
    }
    headers
}

/// A header that matches a rule: in each dimension one end, or any value between.
pub fn inside(random: &mut Random, schema: &Schema, rule: &Rule) -> [u32; MAX_DIMS] {
    let mut header = [0; MAX_DIMS];
    for (value, range) in header.iter_mut().zip(&rule.ranges).take(schema.dims()) {
        *value = match random.below(3) {
            0 => range.lo,
            1 => range.hi,
            _ => random.within(range.lo, range.hi),
        };
    }
    header
}
