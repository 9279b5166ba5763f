//! `DecIPTTL`: decrements the time to live.

use crate::program::{Program, counted_block};
use click::config::{Args, parse};
use element::value::{cell_text, set_cell, written};
use element::{Class, PortCodes, Row, StateScope};
use ir::expr::{cell, csum_update, load};
use packet::field::{Base, IP_DST, IP_SUM, IP_TTL};

/// The class.
pub const CLASS: Class = Class {
    name: "DecIPTTL",
    summary: "decrements IP time-to-live, drops dead packets",
    page: "\
# DecIPTTL([keywords ACTIVE, MULTICAST])

Decrements the time to live of IP packets and updates the checksum (RFC 1624). Packets whose time to
live is 0 or 1 are not changed and leave by output 1, usually to an ICMPError.

- **ports**: 1 input, 1 or 2 outputs, agnostic; expired packets are pushed out of output 1
- **arguments**: `ACTIVE` (default true): false lets all packets pass unchanged; `MULTICAST` (default
  true): false lets packets to multicast addresses pass unchanged
- **annotations**: needs the network header
- **handlers**: `drops` (read): expired packets; `active` (read/write)
- **drop reasons**: `ttl-expired`; `no-ip-header`: the network header is not set or cut off
",
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make),
};

const DROPS: u16 = 0;
const ACTIVE: u16 = 1;

fn make(args: &mut Args<'_>) -> Option<Program> {
    let active = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    let multicast = args.keyword("MULTICAST", parse::bool).unwrap_or(true);
    Some(Program::new("DecIPTTL", HANDLERS, move |f| {
        let drops = f.cell("drops", 0);
        // In a cell, since the handler changes it while packets flow.
        let active = f.cell("active", u64::from(active));
        let headless = f.drop_block("no-ip-header");
        let untouched = f.aside(|f| f.emit(0));
        let expired = counted_block(f, drops, |f| f.emit_or_drop(1, "ttl-expired"));
        f.check(cell(active), untouched);
        f.need(Base::Net, 20, headless);
        if !multicast {
            f.leave_if((load(IP_DST) >> 28).equals(0xe), untouched);
        }
        let (ttl, one) = (f.eval(load(IP_TTL)), f.eval(1));
        f.check(ttl.greater_than(one), expired);
        // The header's word falls by 0x0100, whatever the protocol in its other half: the checksum changes as
        // if a word of 0x0100 became 0.
        f.store(IP_SUM, csum_update(load(IP_SUM), 0x0100, 0, 16));
        f.store(IP_TTL, ttl - one);
        f.emit(0);
    }))
}

const HANDLERS: &[Row<()>] = &[
    Row::sum("drops", |_, cells| cell_text(cells, DROPS)),
    Row::read_write(
        "active",
        |_, cells| cells.get(usize::from(ACTIVE)).map(|active| (*active != 0).to_string()),
        |_, value, cells| set_cell(cells, ACTIVE, written(value, parse::bool)?),
    ),
];
