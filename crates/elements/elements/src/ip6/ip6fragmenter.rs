//! `IP6Fragmenter`: lets short packets pass.

use crate::program::{DROPS, Program, counted_block};
use click::config::{Args, parse};
use element::{Class, PortCodes, Row, StateScope};
use ir::expr::packet_len;

/// The class.
pub const CLASS: Class = Class {
    name: "IP6Fragmenter",
    summary: "refuses IPv6 packets that are too long for a link",
    page: "\
# IP6Fragmenter(MTU)

Lets packets of up to MTU bytes pass. Longer ones leave by output 1, usually to an ICMP6Error for packets that are too
big (type 2): no router fragments IPv6 packets (RFC 8200, section 5).

- **ports**: 1 input, 1 or 2 push outputs, push
- **arguments**: `MTU`: bytes of the longest packet
- **handlers**: `drops` (read): packets that were too long; `fragments` (read): 0
- **drop reasons**: `too-big`
- **difference**: Click loses packets that are too long: they leave by no output, and are not counted
",
    codes: PortCodes::new("1/1-2", "h/h"),
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make),
};

fn make(args: &mut Args<'_>) -> Option<Program> {
    let mtu = u64::from(args.mandatory_positional("MTU", parse::u32)?);
    Some(Program::new("IP6Fragmenter", HANDLERS, move |f| {
        let drops = f.cell("drops", 0);
        let long = counted_block(f, drops, |f| f.emit_or_drop(1, "too-big"));
        f.check(packet_len().at_most(mtu), long);
        f.emit(0);
    }))
}

const HANDLERS: &[Row<()>] = &[DROPS[0], Row::sum("fragments", |(), _| Some("0".to_string()))];
