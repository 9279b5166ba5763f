//! `EtherRewrite`: sets source and destination.

use super::header::EtherHeader;
use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, PortCodes, StateScope};
use ir::expr::cell;
use packet::field::{Base, Field};

/// The class.
pub const CLASS: Class = Class {
    name: "EtherRewrite",
    summary: "rewrites source and destination Ethernet address",
    page: "\
# EtherRewrite(SRC, DST)

Sets the source and destination address in the Ethernet header, and keeps the type.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `SRC`, `DST`: Ethernet addresses
- **annotations**: the header is the one that the MAC header annotation names, or the front of the packet
  where that is not set
- **handlers**: `src`, `dst` (read/write)
- **drop reasons**: `short-frame`: no two addresses in it
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make),
};

fn make(args: &mut Args<'_>) -> Option<Program<EtherHeader>> {
    let src = args.mandatory_positional("SRC", parse::ether);
    let dst = args.mandatory_positional("DST", parse::ether);
    let header = EtherHeader { dst: dst?, src: src?, ethertype: 0 };
    Some(Program::with_state("EtherRewrite", EtherHeader::ADDRESSES, header, |header, f| {
        let (front, back) = (f.cell("front", header.first_bytes()), f.cell("back", header.back()));
        let (headless, short) = (f.block(), f.drop_block("short-frame"));
        for base in [Base::Mac, Base::Data] {
            f.need(base, 12, if base == Base::Mac { headless } else { short });
            f.store(Field::bytes(base, 0, 8), cell(front));
            f.store(Field::bytes(base, 8, 4), cell(back) >> 16);
            f.emit(0);
            f.at(headless);
        }
    }))
}
