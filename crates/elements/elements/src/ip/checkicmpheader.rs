//! `CheckICMPHeader`: checks ICMP headers.

use super::complaint::{Checker, Complaints, Faults};
use super::header::{from_network, transport_offset};
use element::{Class, Opaque, PortCodes, StateScope, Work};
use packet::Access;
use packet::checksum::{Validity, verify_icmp};
use packet::field::{ICMP_TYPE, IP_PROTO};
use packet::view::icmp::{HEADER_BYTES as HEADER, is_error};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytes;

/// The class.
pub const CLASS: Class = Class {
    name: "CheckICMPHeader",
    summary: "drops ICMP packets with bad header",
    page: "\
# CheckICMPHeader([keywords VERBOSE, DETAILS])

Checks that packets are ICMP, that they are as long as their type needs, and that the ICMP checksum is
right.

- **ports**: 1 input, 1 or 2 outputs, agnostic; bad packets are pushed out of output 1
- **arguments**: `VERBOSE` (default false): prints every bad packet; `DETAILS` (default false): counts
  by reason
- **annotations**: needs the network and the transport header
- **handlers**: `drops` (read): bad packets; `drop_details` (read, with `DETAILS`)
- **drop reasons**: `not-icmp`, `bad-packet-length`, `bad-icmp-checksum`
- **difference**: without `VERBOSE` nothing is printed for the first bad packet, because bad packets
  are counted by reason
",
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make: |cx| {
        let element = cx.name.to_string();
        cx.opaque(|args| {
            let complaints = Complaints::new(&FAULTS, element, args);
            Some(Checker { complaints, check: Icmp })
        })
    },
};

const PROTOCOL: usize = 0;
const LENGTH: usize = 1;
const CHECKSUM: usize = 2;
const FAULTS: Faults = Faults {
    what: "ICMP header check failed",
    names: &["not-icmp", "bad-packet-length", "bad-icmp-checksum"],
    texts: &["not ICMP", "bad packet length", "bad ICMP checksum"],
};

struct Icmp;

/// The reason why a packet is bad.
fn fault(packet: &Packet) -> Result<(), usize> {
    let from_net = from_network(packet).ok_or(PROTOCOL)?;
    let bytes = PacketBytes::new(&from_net);
    if IP_PROTO.load(&bytes, 0) != Some(1) {
        return Err(PROTOCOL);
    }
    let at = transport_offset(packet).ok_or(LENGTH)?;
    let length = bytes.len().checked_sub(at).ok_or(LENGTH)?;
    let fits = match ICMP_TYPE.load(&bytes, at).ok_or(LENGTH)? {
        // Errors bring the IP header and 8 bytes of the packet that they are about (RFC 792).
        kind if is_error(kind as u8) => length >= HEADER + 28,
        // Timestamps are three words.
        13 | 14 => length == HEADER + 12,
        15 | 16 => length == HEADER,
        _ => length >= HEADER,
    };
    match verify_icmp(&bytes, at, length) {
        _ if !fits => Err(LENGTH),
        Validity::Good => Ok(()),
        _ => Err(CHECKSUM),
    }
}

impl Opaque for Checker<Icmp> {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            match fault(batch.packet(index)) {
                Ok(()) => batch.emit(index, 0),
                Err(reason) => self.complaints.complain(index, reason, batch, work),
            }
        }
    }
}
