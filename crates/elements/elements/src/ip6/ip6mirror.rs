//! `IP6Mirror`: swaps source and destination.

use crate::program::Program;
use element::{Class, PortCodes, StateScope};
use ir::Builder;
use ir::expr::load;
use packet::field::{Base, Field, IP6_DST_HI, IP6_DST_LO, IP6_NXT, IP6_SRC_HI, IP6_SRC_LO, L4_PORTS};

/// The class.
pub const CLASS: Class = Class {
    name: "IP6Mirror",
    summary: "swaps IPv6 source and destination",
    page: "\
# IP6Mirror()

Swaps source and destination address of IPv6 packets; of TCP and UDP packets the ports, too. Checksums stay correct.

- **ports**: 1 input, 1 output, agnostic
- **annotations**: needs the network header, and the transport header for the ports
- **drop reasons**: `no-ip6-header`: the network header is not set or cut off
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(|_| Some(Program::new("IP6Mirror", &[], build))),
};

fn swap(f: &mut Builder, one: Field, other: Field) {
    let (left, right) = (f.eval(load(one)), f.eval(load(other)));
    f.store(one, right);
    f.store(other, left);
}

fn build(f: &mut Builder) {
    let bad = f.drop_block("no-ip6-header");
    let done = f.aside(|f| f.emit(0));
    f.need(Base::Net, 40, bad);
    swap(f, IP6_SRC_HI, IP6_DST_HI);
    swap(f, IP6_SRC_LO, IP6_DST_LO);
    let ports = f.block();
    f.switch(load(IP6_NXT), vec![(6, ports), (17, ports)], done);
    f.at(ports);
    f.need(Base::Trans, 8, done);
    let both = f.eval(load(L4_PORTS));
    f.store(L4_PORTS, both << 16 | both >> 16);
    f.jump(done);
}
