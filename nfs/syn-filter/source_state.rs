//! The state of a source: its rates, whether it is blocked, and whether it has completed a connection.

use millrace_nfs::{Prefix, SECOND_NS};
use packet::FlowKey;
use std::net::IpAddr;

/// IPv6 sources are /64 networks: a host can use any number of addresses in one.
const IPV6_BITS: u8 = 64;

/// The limits of a source.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The mean time between SYNs, and between packets, in nanoseconds; 0 is no limit. A burst may have a
    /// second's packets.
    syn_ns: u64,
    packet_ns: u64,
    block_ns: u64,
}

impl Limits {
    /// The SYNs and packets per second, 0 for no limit, and how long a source that exceeds them is blocked.
    pub fn new(syns_per_s: u64, packets_per_s: u64, block_ns: u64) -> Limits {
        let gap = |per_s: u64| SECOND_NS.checked_div(per_s).unwrap_or(0);
        Limits { syn_ns: gap(syns_per_s), packet_ns: gap(packets_per_s), block_ns }
    }

    /// How long a source is stored.
    pub fn memory_ns(&self, trust_ns: u64) -> u64 {
        self.block_ns.max(trust_ns).max(SECOND_NS)
    }
}

/// The state of a source.
#[derive(Clone, Copy, Default, Debug)]
pub struct SourceState {
    blocked_until_ns: u64,
    trusted_until_ns: u64,
    /// The theoretical arrival times of its next SYN and packet at the mean rate.
    syns_ns: u64,
    packets_ns: u64,
}

/// The result for a packet's source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    Fine,
    /// The source exceeded a limit and is blocked from now on.
    TooFast,
    Blocked,
}

impl SourceState {
    /// The key of a source.
    pub fn key(address: IpAddr) -> FlowKey {
        let src = if address.is_ipv6() { Prefix::of(address, IPV6_BITS).address() } else { address };
        FlowKey { src, dst: src, protocol: 0, src_port: 0, dst_port: 0 }
    }

    /// Checks a packet of the source against the limits.
    pub fn check(&mut self, limits: &Limits, opens: bool, now_ns: u64) -> Decision {
        if now_ns < self.blocked_until_ns {
            return Decision::Blocked;
        }
        let mut is_fine = take(&mut self.packets_ns, limits.packet_ns, now_ns);
        if opens {
            is_fine &= take(&mut self.syns_ns, limits.syn_ns, now_ns);
        }
        if is_fine {
            return Decision::Fine;
        }
        (self.blocked_until_ns, self.trusted_until_ns) = (now_ns + limits.block_ns, 0);
        Decision::TooFast
    }

    pub fn is_trusted(&self, now_ns: u64) -> bool {
        now_ns < self.trusted_until_ns
    }

    pub fn trust_until(&mut self, until_ns: u64) {
        self.trusted_until_ns = until_ns;
    }
}

/// Takes one packet of a rate of one in `gap_ns`; a burst may have a second's packets.
fn take(due_ns: &mut u64, gap_ns: u64, now_ns: u64) -> bool {
    let next = (*due_ns).max(now_ns) + gap_ns;
    let is_fine = next <= now_ns + SECOND_NS.max(gap_ns);
    if is_fine {
        *due_ns = next;
    }
    is_fine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_too_fast_is_blocked_for_a_while() {
        let limits = Limits::new(10, 0, 5 * SECOND_NS);
        let mut source = SourceState::default();
        source.trust_until(100 * SECOND_NS);
        let mut check = |opens, tenths: u64| source.check(&limits, opens, tenths * SECOND_NS / 10);
        for at in 0..20 {
            assert_eq!(check(true, at), Decision::Fine, "one each tenth of a second");
        }
        assert_eq!(check(false, 20), Decision::Fine);
        let burst: Vec<Decision> = (0..12).map(|_| check(true, 21)).collect();
        let fine = burst.iter().filter(|decision| **decision == Decision::Fine).count();
        assert!((9..=10).contains(&fine) && burst.contains(&Decision::TooFast), "{burst:?}");
        assert_eq!((check(false, 70), check(true, 72)), (Decision::Blocked, Decision::Fine));
        assert!(!source.is_trusted(80 * SECOND_NS));
    }
}
