//! `EtherMirror`: swaps source and destination.

use crate::program::Program;
use element::{Class, PortCodes, StateScope};
use ir::Builder;
use ir::expr::load;
use packet::field::{Base, Field};

/// The class.
pub const CLASS: Class = Class {
    name: "EtherMirror",
    summary: "swaps Ethernet source and destination",
    page: "\
# EtherMirror()

Swaps the Ethernet source and destination address at the front of each packet.

- **ports**: 1 input, 1 output, agnostic
- **drop reasons**: `short-frame`: no two addresses in it
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(|_| Some(Program::new("EtherMirror", &[], build))),
};

fn build(f: &mut Builder) {
    let short = f.drop_block("short-frame");
    f.need(Base::Data, 12, short);
    // In pieces that machine code moves in one instruction.
    let pieces = |at: u16| [(at, 32), (at + 32, 16)].map(|(bit, bits)| Field::new(Base::Data, bit, bits));
    let (dst, src) = (pieces(0), pieces(48));
    let [old_dst, old_src] = [dst, src].map(|address| address.map(|piece| f.eval(load(piece))));
    for (piece, value) in dst.into_iter().zip(old_src).chain(src.into_iter().zip(old_dst)) {
        f.store(piece, value);
    }
    f.emit(0);
}
