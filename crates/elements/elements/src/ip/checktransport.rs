//! `CheckTCPHeader` and `CheckUDPHeader`: check transport headers.

use super::complaint::{BadBlocks, Check, Checker, Complaints, Faults};
use super::header::datagram;
use element::{BoxElement, Class, Configure, PortCodes, StateScope, Work};
use ir::Builder;
use ir::expr::{load, offset, packet_len, transport_sum};
use packet::checksum::{self, Validity};
use packet::field::{Base, IP_LEN, IP_PROTO, TCP_HL, UDP_LEN, UDP_SUM};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytes;

macro_rules! page {
    ($name:literal, $checks:literal, $reasons:literal) => {
        concat!(
            "# ",
            $name,
            "([keywords VERBOSE, DETAILS])\n\n",
            $checks,
            "\n\n- **ports**: 1 input, 1 or 2 outputs, agnostic; bad packets are pushed out of output 1\n",
            "- **arguments**: `VERBOSE` (default false): prints every bad packet; `DETAILS` (default false):\n",
            "  counts by reason\n",
            "- **annotations**: needs the network and the transport header\n",
            "- **handlers**: `drops` (read): bad packets; `drop_details` (read, with `DETAILS`)\n",
            "- **drop reasons**: ",
            $reasons,
            "\n- **difference**: without `VERBOSE` nothing is printed for the first bad packet, because bad\n",
            "  packets are counted by reason\n"
        )
    };
}

/// `CheckTCPHeader`.
pub const TCP: Class = Class {
    name: "CheckTCPHeader",
    summary: "drops TCP packets with bad header",
    page: page!(
        "CheckTCPHeader",
        "Checks that packets are TCP, that their lengths agree, and that the TCP checksum is right.",
        "`not-tcp`, `bad-packet-length`, `bad-tcp-checksum`"
    ),
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make: |cx| make(cx, &TCP_FAULTS, Tcp),
};

/// `CheckUDPHeader`.
pub const UDP: Class = Class {
    name: "CheckUDPHeader",
    summary: "drops UDP packets with bad header",
    page: page!(
        "CheckUDPHeader",
        "Checks that packets are UDP, that their lengths agree, and that the UDP checksum is right or 0.",
        "`not-udp`, `bad-packet-length`, `bad-udp-checksum`"
    ),
    make: |cx| make(cx, &UDP_FAULTS, Udp),
    ..TCP
};

const PROTOCOL: usize = 0;
const LENGTH: usize = 1;
const CHECKSUM: usize = 2;
const TCP_FAULTS: Faults = Faults {
    what: "TCP header check failed",
    names: &["not-tcp", "bad-packet-length", "bad-tcp-checksum"],
    texts: &["not TCP", "bad packet length", "bad TCP checksum"],
};
const UDP_FAULTS: Faults = Faults {
    what: "UDP header check failed",
    names: &["not-udp", "bad-packet-length", "bad-udp-checksum"],
    texts: &["not UDP", "bad packet length", "bad UDP checksum"],
};

fn make(cx: &mut Configure<'_>, faults: &'static Faults, check: impl Check + 'static) -> Option<BoxElement> {
    let element = cx.name.to_string();
    cx.transparent(|args| Some(Checker { complaints: Complaints::new(faults, element, args), check }))
}

struct Tcp;

impl Check for Tcp {
    fn build(&self, f: &mut Builder, bad: &BadBlocks) {
        f.name("CheckTCPHeader");
        f.need(Base::Net, 20, bad.of(PROTOCOL));
        let protocol = f.eval(load(IP_PROTO));
        f.check(protocol.equals(6), bad.of(PROTOCOL));
        f.need(Base::Trans, 20, bad.of(LENGTH));
        let words = f.eval(load(TCP_HL));
        f.check(words.greater_than(4), bad.of(LENGTH));
        // The header must lie within the IP packet, and that within the packet's bytes.
        let end = f.eval(offset(Base::Net) + load(IP_LEN));
        f.check((offset(Base::Trans) + (words << 2)).at_most(end), bad.of(LENGTH));
        f.check(end.at_most(packet_len()), bad.of(LENGTH));
        f.check(transport_sum(protocol).equals(0xffff), bad.of(CHECKSUM));
        f.emit(0);
    }
}

struct Udp;

/// Verifies the checksum of a datagram that ends before its IP packet does.
fn udp_is_right(packet: &Packet) -> Option<bool> {
    let (from_net, at, length, pseudo) = datagram(packet)?;
    Some(checksum::verify_udp(&PacketBytes::new(&from_net), at, length, pseudo) == Validity::Good)
}

impl Check for Udp {
    fn build(&self, f: &mut Builder, bad: &BadBlocks) {
        f.name("CheckUDPHeader");
        let shorter = f.slow_block("shorter-than-ip");
        let unchecked = f.aside(|f| f.emit(0));
        f.need(Base::Net, 20, bad.of(PROTOCOL));
        let protocol = f.eval(load(IP_PROTO));
        f.check(protocol.equals(17), bad.of(PROTOCOL));
        f.need(Base::Trans, 8, bad.of(LENGTH));
        let length = f.eval(load(UDP_LEN));
        f.check(length.greater_than(7), bad.of(LENGTH));
        let end = f.eval(offset(Base::Trans) + length);
        f.check(end.at_most(packet_len()), bad.of(LENGTH));
        f.check(load(UDP_SUM), unchecked);
        // The program's sum covers the IP length. If the datagram ends before that, Rust computes it.
        f.check(end.equals(offset(Base::Net) + load(IP_LEN)), shorter);
        f.check(transport_sum(protocol).equals(0xffff), bad.of(CHECKSUM));
        f.emit(0);
    }

    fn slow(&self, complaints: &mut Complaints, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            if udp_is_right(batch.packet(index)) == Some(true) {
                batch.emit(index, 0);
            } else {
                complaints.complain(index, CHECKSUM, batch, work);
            }
        }
    }
}
