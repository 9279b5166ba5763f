//! `SetIPChecksum` and `ResetIPChecksum`: compute the IP header's checksum.

use crate::program::{DROPS, Program, counted_block};
use click::config::parse;
use element::{Class, PortCodes, StateScope};
use ir::expr::{avail, ip_sum, load, offset, packet_len, select, transport_sum};
use ir::{BlockId, Builder};
use packet::field::{Base, IP_HL, IP_LEN, IP_OFF, IP_PROTO, IP_SUM, TCP_SUM, UDP_LEN, UDP_SUM};
use packet::view::protocol::{TCP, UDP};

macro_rules! page {
    ($name:literal, $text:literal) => {
        concat!(
            "# ",
            $name,
            "()\n\n",
            $text,
            "\n\n- **ports**: 1 input, 1 output, agnostic\n",
            "- **annotations**: uses the network header if it is set, else the packet's start\n",
            "- **handlers**: `drops` (read)\n",
            "- **drop reasons**: `bad-ip-header`: the header is cut off or its length field wrong\n"
        )
    };
}

/// `SetIPChecksum`.
pub const SET: Class = Class {
    name: "SetIPChecksum",
    summary: "sets IP packets' checksums",
    page: page!("SetIPChecksum", "Computes the IP header's checksum and writes it into the header."),
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(|_| Some(Program::new("SetIPChecksum", DROPS, |f| build(f, false)))),
};

/// `ResetIPChecksum`, FastClick's.
pub const RESET: Class = Class {
    name: "ResetIPChecksum",
    summary: "sets IP packets' checksums",
    page: concat!(
        page!("ResetIPChecksum", "Computes the IP header's checksum and writes it into the header."),
        "- **arguments**: `L4` (bool, default false): whether the checksum of TCP and UDP packets is computed, too,\n",
        "  of packets whose network and transport header annotations are set, which are no fragments, and whose\n",
        "  lengths agree with each other\n",
        "- **difference**: FastClick leaves the sum to the network card; it is computed here, because not\n",
        "  every port can\n"
    ),
    make: |cx| {
        cx.transparent(|args| {
            let l4 = args.keyword("L4", parse::bool).unwrap_or(false);
            Some(Program::new("ResetIPChecksum", DROPS, move |f| build(f, l4)))
        })
    },
    ..SET
};

/// Continues at `bad` if the header is cut off. Its first 20 bytes must be there.
pub(super) fn check_length(f: &mut Builder, bad: BlockId) {
    let words = f.eval(load(IP_HL));
    f.check((words << 2).at_most(avail(Base::Net)), bad);
    f.check(words.at_least(5), bad);
}

/// Computes and writes the checksum of a header that is there.
pub(super) fn compute(f: &mut Builder) {
    f.store(IP_SUM, 0);
    f.store(IP_SUM, ip_sum() ^ 0xffff);
}

fn build(f: &mut Builder, l4: bool) {
    let drops = f.cell("drops", 0);
    let bad = counted_block(f, drops, |f| f.drop("bad-ip-header"));
    let bad_unmarked = f.aside(|f| {
        f.clear_base(Base::Net);
        f.jump(bad);
    });
    let unmarked = f.block();
    f.leave_if(offset(Base::Net).equals(u64::MAX), unmarked);
    f.need(Base::Net, 20, bad);
    check_length(f, bad);
    compute(f);
    if l4 {
        transport_checksum(f);
    }
    f.emit(0);
    f.at(unmarked);
    f.set_base(Base::Net, 0);
    f.need(Base::Net, 20, bad_unmarked);
    check_length(f, bad_unmarked);
    compute(f);
    f.clear_base(Base::Net);
    f.emit(0);
}

/// Computes and writes the checksum of a whole TCP segment or UDP datagram; leaves other packets.
fn transport_checksum(f: &mut Builder) {
    let other = f.aside(|f| f.emit(0));
    f.need(Base::Trans, 8, other);
    // More fragments, or an offset.
    f.leave_if(load(IP_OFF) & 0x3fff, other);
    let net = f.eval(offset(Base::Net));
    let trans = f.eval(offset(Base::Trans) - net);
    let length = f.eval(load(IP_LEN));
    f.check(length.at_most(packet_len() - net), other);
    let (tcp, udp) = (f.block(), f.block());
    f.switch(load(IP_PROTO), vec![(TCP.into(), tcp), (UDP.into(), udp)], other);

    f.at(udp);
    f.check((trans + load(UDP_LEN)).equals(length), other);
    f.store(UDP_SUM, 0);
    let sum = f.eval(transport_sum(u64::from(UDP)) ^ 0xffff);
    // 0 would mean that there is no checksum (RFC 768).
    f.store(UDP_SUM, select(sum, sum, 0xffff));
    f.emit(0);

    f.at(tcp);
    f.need(Base::Trans, 20, other);
    f.check((trans + 20).at_most(length), other);
    f.store(TCP_SUM, 0);
    f.store(TCP_SUM, transport_sum(u64::from(TCP)) ^ 0xffff);
}
