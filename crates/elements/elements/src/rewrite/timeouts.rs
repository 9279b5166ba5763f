//! The timeouts of a rewriter.

use packet::view::protocol;

const SECOND_NS: u64 = 1_000_000_000;

/// The timeouts of a rewriter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// Whether TCP flows are watched for payload and their end.
    pub tcp: bool,
    /// TCP with payload in both directions.
    pub tcp_data_ns: u64,
    /// TCP after its end.
    pub tcp_done_ns: u64,
    /// Other TCP.
    pub tcp_nodata_ns: u64,
    /// How long a TCP mapping is guaranteed.
    pub tcp_guarantee_ns: u64,
    /// Everything else.
    pub other_ns: u64,
    /// Everything else, after 3 packets with one reply among them.
    pub streaming_ns: u64,
    /// How long other mappings are guaranteed.
    pub guarantee_ns: u64,
}

impl Timeouts {
    /// Click's, with everything but TCP at `other_s` seconds.
    pub fn new(tcp: bool, other_s: u64) -> Timeouts {
        Timeouts {
            tcp,
            tcp_data_ns: 86_400 * SECOND_NS,
            tcp_done_ns: 240 * SECOND_NS,
            tcp_nodata_ns: 300 * SECOND_NS,
            tcp_guarantee_ns: 5 * SECOND_NS,
            other_ns: other_s * SECOND_NS,
            streaming_ns: other_s * SECOND_NS,
            guarantee_ns: 5 * SECOND_NS,
        }
    }

    /// Whether flows of a protocol are watched as TCP.
    pub(super) fn watches(&self, protocol: u8) -> bool {
        self.tcp && protocol == protocol::TCP
    }

    /// The timeout and the guarantee of a new flow.
    pub(super) fn of_new_ns(&self, protocol: u8) -> (u64, u64) {
        match self.watches(protocol) {
            true => (self.tcp_nodata_ns, self.tcp_guarantee_ns),
            false => (self.other_ns, self.guarantee_ns),
        }
    }

    pub(super) fn shortest_ns(&self) -> u64 {
        let other = self.other_ns.min(self.streaming_ns).max(self.guarantee_ns);
        let tcp = self.tcp_data_ns.min(self.tcp_done_ns).min(self.tcp_nodata_ns).max(self.tcp_guarantee_ns);
        if self.tcp { tcp.min(other) } else { other }
    }
}
