//! `EtherMirror`: swaps source and destination.

use super::header::{BACK_ADDRESS, FRONT};
use crate::class::{Class, StateScope};
use crate::configure::Shape;
use crate::element::Element;
use ir::program::BinOp;
use ir::verify::VerifyError;
use ir::{Builder, Program};
use packet::field::Base;

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
    ports: "1/1",
    processing: "a/a",
    flow: "x/x",
    state: StateScope::None,
    make: |cx| cx.args().finish().then(|| Box::new(EtherMirror) as Box<dyn Element>),
};

struct EtherMirror;

impl Element for EtherMirror {
    fn lower(&self, shape: Shape) -> Option<Result<Program, VerifyError>> {
        let mut f = Builder::new("EtherMirror", shape.outputs);
        let short = f.drop_block("short-frame");
        f.need(Base::Data, 12, short);
        let (front, back) = (f.load(FRONT), f.load(BACK_ADDRESS));
        // The source: the low 16 bits of the front, then the back.
        let src_high = f.bin_const(BinOp::Shl, front, 48);
        let src_low = f.bin_const(BinOp::Shl, back, 16);
        let src = f.bin(BinOp::Or, src_high, src_low);
        let dst_high = f.bin_const(BinOp::Shr, front, 48);
        let front_now = f.bin(BinOp::Or, src, dst_high);
        let back_now = f.bin_const(BinOp::Shr, front, 16);
        f.store(FRONT, front_now);
        f.store(BACK_ADDRESS, back_now);
        f.emit(0);
        Some(f.finish())
    }
}
