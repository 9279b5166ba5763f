//! `EtherMirror`: swaps source and destination.

use crate::program::Program;
use element::{Class, PortCodes, StateScope};
use ir::Builder;
use ir::expr::{Expr, load};
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
    let (short, bare) = (f.drop_block("short-frame"), f.block());
    f.need(Base::Data, 12, short);
    f.need(Base::Data, 14, bare);
    swap(f, 48);
    f.emit(0);
    // No type behind the addresses.
    f.at(bare);
    swap(f, 32);
    f.emit(0);
}

/// In words of the packet, as other elements write both addresses: the second one has so many bits.
fn swap(f: &mut Builder, bits: u8) {
    let (first, last) = (Field::new(Base::Data, 0, 64), Field::new(Base::Data, 64, bits));
    let [old_first, old_last] = [first, last].map(|field| f.eval(load(field)));
    let (word, behind) = (Expr::from, u64::from(bits) - 32);
    // Of the source, the first half is in the first word.
    let src = f.eval((word(old_first) << 32u64 | word(old_last) >> behind) & 0xffff_ffff_ffff_u64);
    let dst = f.eval(word(old_first) >> 16u64);
    f.store(first, word(src) << 16u64 | word(dst) >> 32u64);
    let kind = word(old_last) & ((1u64 << behind) - 1);
    f.store(last, (word(dst) & 0xffff_ffff_u64) << behind | kind);
}
