//! `CheckIP6Header`: checks the IPv6 header.

use super::address::halves;
use crate::ip::argument::offset;
use crate::ip::complaint::{BadBlocks, Check, Checker, Complaints, Faults};
use click::config::parse;
use element::{BoxElement, Class, Configure, PortCodes, StateScope, Work};
use ir::expr::{load, packet_len};
use ir::{BlockId, Builder};
use packet::field::{Base, IP6_NXT, IP6_PLEN, IP6_SRC_HI, IP6_SRC_LO, IP6_VERSION};
use packet::view::ipv6::extension::{is_extension, walk};
use packet::view::ipv6::{Ipv6, Ipv6Facts};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytes;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// The class.
pub const CLASS: Class = Class {
    name: "CheckIP6Header",
    summary: "checks IPv6 header",
    page: "\
# CheckIP6Header([BADADDRS, OFFSET, keyword PROCESS_EH])

Checks that packets have a valid IPv6 header: length, version, payload length and source address. Sets the header
annotations and cuts off bytes behind the payload length.

- **ports**: 1 input, 1 or 2 outputs, agnostic; bad packets are pushed out of output 1
- **arguments**: `BADADDRS`: addresses that are bad sources, beside the one of all ones; `OFFSET`
  (default 0): bytes before the IPv6 header; `PROCESS_EH` (default false): follows extension headers
- **annotations**: sets the network and the transport header; the latter is what follows the fixed
  header, an extension header if there is one, or with `PROCESS_EH` what follows these
- **handlers**: `drops` (read): bad packets
- **drop reasons**: `tiny-packet`, `bad-ip6-version`, `bad-payload-length`, `bad-source-address`
- **difference**: nothing is printed for the first bad packet, because bad packets are counted by
  reason; a packet that is long enough but bad has its network header annotation set, because the
  checks read the header by it
",
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make,
};

const TINY: usize = 0;
const VERSION: usize = 1;
const LENGTH: usize = 2;
const SOURCE: usize = 3;
const FAULTS: Faults = Faults {
    what: "",
    names: &[
        "tiny-packet",
        "bad-ip6-version",
        "bad-payload-length",
        "bad-source-address",
        "impossible-length",
    ],
    texts: &["tiny packet", "bad IPv6 version", "bad payload length", "bad source address"],
};

/// Bytes of the fixed header.
const HEADER: u16 = packet::view::ipv6::HEADER_BYTES as u16;

struct CheckIp6Header {
    offset: u16,
    /// Whether the transport header is behind extension headers.
    skips_extensions: bool,
    bad_sources: BTreeSet<(u64, u64)>,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let element = cx.name.to_string();
    cx.transparent(|args| {
        let bad = args.positional("BADADDRS", parse::list(parse::ip6)).unwrap_or_default();
        let offset = args.positional("OFFSET", offset).unwrap_or(0);
        let skips_extensions = args.keyword("PROCESS_EH", parse::bool).unwrap_or(false);
        let all_ones = Ipv6Addr::from(u128::MAX);
        let bad_sources = bad.into_iter().chain([all_ones]).map(halves).collect();
        let check = CheckIp6Header { offset, skips_extensions, bad_sources };
        Some(Checker { complaints: Complaints::silent(&FAULTS, element), check })
    })
}

impl CheckIp6Header {
    /// Packets from bad sources continue at `bad`.
    fn check_source(&self, f: &mut Builder, bad: BlockId) {
        let (high, low) = (f.eval(load(IP6_SRC_HI)), f.eval(load(IP6_SRC_LO)));
        for (bad_high, bad_low) in &self.bad_sources {
            f.check((high ^ *bad_high) | (low ^ *bad_low), bad);
        }
    }
}

/// Sets the transport header to what is behind the extension headers of a checked packet; leaves it where one of
/// these is not valid.
fn mark_transport(packet: &mut Packet, offset: usize) {
    let bytes = PacketBytes::new(packet);
    let Ok(Ipv6Facts { payload, end, next_header, .. }) = Ipv6::at(offset).check(&bytes) else { return };
    let Ok(headers) = walk(&bytes, payload, end, next_header) else { return };
    if let Some(place) = u16::try_from(headers.payload).ok().and_then(|at| packet.data().checked_add(at)) {
        packet.trans = place;
    }
}

impl Check for CheckIp6Header {
    fn build(&self, f: &mut Builder, bad: &BadBlocks) {
        f.name("CheckIP6Header");
        let chain = f.slow_block("trim-chain");
        let front = self.offset + HEADER;
        f.need(Base::Data, usize::from(front), bad.of(TINY));
        f.set_base(Base::Net, u64::from(self.offset));
        f.check(load(IP6_VERSION).equals(6), bad.of(VERSION));
        let end = f.eval(load(IP6_PLEN) + u64::from(front));
        f.check(end.at_most(packet_len()), bad.of(LENGTH));
        self.check_source(f, bad.of(SOURCE));
        f.set_base(Base::Trans, u64::from(front));
        if self.skips_extensions {
            let (extended, plain) = (f.slow_block("extension-header"), f.block());
            let kinds = (0..=u8::MAX).filter(|kind| is_extension(*kind));
            f.switch(load(IP6_NXT), kinds.map(|kind| (u64::from(kind), extended)).collect(), plain);
            f.at(plain);
        }
        f.take(end);
        f.check(packet_len().equals(end), chain);
        f.emit(0);
    }

    fn slow(&self, complaints: &mut Complaints, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        let (offset, front) = (usize::from(self.offset), usize::from(self.offset + HEADER));
        if self.skips_extensions {
            batch.list().iter().for_each(|&index| mark_transport(batch.packet_mut(index), offset));
        }
        complaints.trim(batch, |bytes| front + IP6_PLEN.load(bytes, offset).unwrap_or(0) as usize);
    }
}
