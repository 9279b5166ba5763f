//! `DropBroadcasts`: drops link-level broadcasts.

use crate::program::{DROPS, Program, counted_block};
use element::{Class, PortCodes, StateScope};
use ir::{Builder, Expr, Inst};
use shm::descriptor::PacketType;

/// The class.
pub const CLASS: Class = Class {
    name: "DropBroadcasts",
    summary: "drops link-level broadcasts and multicasts",
    page: "\
# DropBroadcasts()

Drops packets that came in as link-level broadcasts or multicasts, by their packet type annotation.

- **ports**: 1 input, 1 output, agnostic
- **annotations**: reads the packet type, which ports and HostEtherFilter set
- **handlers**: `drops` (read)
- **drop reasons**: `link-broadcast`
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(|_| Some(Program::new("DropBroadcasts", DROPS, build))),
};

fn build(f: &mut Builder) {
    let drops = f.cell("drops", 0);
    let bad = counted_block(f, drops, |f| f.drop("link-broadcast"));
    let kind = Expr::from(Inst::PacketType);
    f.leave_if(kind.within(PacketType::Broadcast as u64, PacketType::Multicast as u64), bad);
    f.emit(0);
}
