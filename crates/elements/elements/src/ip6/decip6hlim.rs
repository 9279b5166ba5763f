//! `DecIP6HLIM`: decrements the hop limit.

use crate::program::{DROPS, Program, counted_block};
use element::{Class, PortCodes, StateScope};
use ir::Builder;
use ir::expr::load;
use packet::field::{Base, IP6_HLIM};

/// The class.
pub const CLASS: Class = Class {
    name: "DecIP6HLIM",
    summary: "decrements IPv6 hop limit, drops dead packets",
    page: "\
# DecIP6HLIM()

Decrements the hop limit of IPv6 packets. Packets whose hop limit is 0 or 1 are not changed and leave by
output 1, usually to an ICMP6Error.

- **ports**: 1 input, 1 or 2 outputs, agnostic; expired packets are pushed out of output 1
- **annotations**: needs the network header
- **handlers**: `drops` (read): expired packets
- **drop reasons**: `hop-limit-expired`; `no-ip6-header`: the network header is not set or cut off
",
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(|_| Some(Program::new("DecIP6HLIM", DROPS, build))),
};

fn build(f: &mut Builder) {
    let drops = f.cell("drops", 0);
    let headless = f.drop_block("no-ip6-header");
    let expired = counted_block(f, drops, |f| f.emit_or_drop(1, "hop-limit-expired"));
    f.need(Base::Net, 40, headless);
    let (limit, one) = (f.eval(load(IP6_HLIM)), f.eval(1));
    f.check(limit.greater_than(one), expired);
    f.store(IP6_HLIM, limit - one);
    f.emit(0);
}
