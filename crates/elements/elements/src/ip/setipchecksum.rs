//! `SetIPChecksum` and `ResetIPChecksum`: compute the IP header's checksum.

use crate::program::{DROPS, Program, counted_block};
use element::{Class, PortCodes, StateScope};
use ir::expr::{avail, ip_sum, load, offset};
use ir::{BlockId, Builder};
use packet::field::{Base, IP_HL, IP_SUM};

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
    make: |cx| cx.transparent(|_| Some(Program::new("SetIPChecksum", DROPS, build))),
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
    make: |cx| cx.transparent(|_| Some(Program::new("ResetIPChecksum", DROPS, build))),
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

fn build(f: &mut Builder) {
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
    f.emit(0);
    f.at(unmarked);
    f.set_base(Base::Net, 0);
    f.need(Base::Net, 20, bad_unmarked);
    check_length(f, bad_unmarked);
    compute(f);
    f.clear_base(Base::Net);
    f.emit(0);
}
