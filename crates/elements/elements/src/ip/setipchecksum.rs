//! `SetIPChecksum` and `ResetIPChecksum`: compute the IP header's checksum.

use element::class::{Class, StateScope};
use element::configure::{Configure, Shape};
use element::element::Element;
use element::handler::{Handlers, Row};
use element::value::cell_text;
use ir::program::{BinOp, BlockId};
use ir::verify::VerifyError;
use ir::{Builder, Inst, Verified};
use packet::field::{Base, IP_HL, IP_SUM};

macro_rules! page {
    ($name:literal, $text:literal) => {
        concat!(
            "# ",
            $name,
            "()\n\n",
            $text,
            "\n\n- **ports**: 1 input, 1 output, agnostic\n",
            "- **annotations**: uses the network header where it is set, else the packet's start\n",
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
    ports: "1/1",
    processing: "a/a",
    flow: "x/x",
    state: StateScope::PerWorker,
    make: |cx| make(cx, "SetIPChecksum"),
};

/// `ResetIPChecksum`, FastClick's.
pub const RESET: Class = Class {
    name: "ResetIPChecksum",
    summary: "sets IP packets' checksums",
    page: concat!(
        page!("ResetIPChecksum", "Computes the IP header's checksum and writes it into the header."),
        "- **difference**: FastClick leaves the sum to the network card; it is computed here, because not\n",
        "  every port can\n"
    ),
    make: |cx| make(cx, "ResetIPChecksum"),
    ..SET
};

struct SetIpChecksum(&'static str);

fn make(cx: &mut Configure<'_>, class: &'static str) -> Option<Box<dyn Element>> {
    cx.args().finish().then(|| Box::new(SetIpChecksum(class)) as Box<dyn Element>)
}

/// Computes the header checksum and writes it; `bad` where the header is cut off. The first 20 bytes
/// must be there.
pub(super) fn compute(f: &mut Builder, bad: BlockId) {
    let words = f.load(IP_HL);
    let header = f.bin_const(BinOp::Shl, words, 2);
    let there = f.value(Inst::Avail(Base::Net));
    let whole = f.bin(BinOp::Le, header, there);
    f.check(whole, bad);
    let five = f.constant(5);
    let long = f.bin(BinOp::Le, five, words);
    f.check(long, bad);
    f.store_const(IP_SUM, 0);
    let sum = f.value(Inst::IpSum);
    let sum = f.bin_const(BinOp::Xor, sum, 0xffff);
    f.store(IP_SUM, sum);
}

impl Element for SetIpChecksum {
    fn lower(&self, shape: Shape) -> Option<Result<Verified, VerifyError>> {
        let mut f = Builder::new(self.0, shape.outputs);
        let drops = f.cell("drops", 0);
        let (bad, unmarked, bad_unmarked) = (f.block(), f.block(), f.block());
        let at = f.value(Inst::Offset(Base::Net));
        let unset = f.bin_const(BinOp::Eq, at, u64::MAX);
        f.leave_if(unset, unmarked);
        f.need(Base::Net, 20, bad);
        compute(&mut f, bad);
        f.emit(0);
        f.at(unmarked);
        let start = f.constant(0);
        f.act(Inst::SetBase(Base::Net, start));
        f.need(Base::Net, 20, bad_unmarked);
        compute(&mut f, bad_unmarked);
        f.act(Inst::ClearBase(Base::Net));
        f.emit(0);
        f.at(bad_unmarked);
        f.act(Inst::ClearBase(Base::Net));
        f.jump(bad);
        f.at(bad);
        let one = f.constant(1);
        f.act(Inst::CellAdd(drops, one));
        f.drop("bad-ip-header");
        Some(f.finish())
    }

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, HANDLERS)
    }
}

const HANDLERS: &[Row<SetIpChecksum>] = &[Row::sum("drops", |_, cells| cell_text(cells, 0))];
