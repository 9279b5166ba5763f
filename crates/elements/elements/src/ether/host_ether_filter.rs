//! `HostEtherFilter`: drops frames for others.

use super::header::{self, to_number};
use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, PortCodes, Row, StateScope};
use ir::Inst;
use ir::expr::{cell, load, select};
use packet::field::{Base, Field};
use shm::descriptor::PacketType;

/// The class.
pub const CLASS: Class = Class {
    name: "HostEtherFilter",
    summary: "drops Ethernet packets sent to other machines",
    page: "\
# HostEtherFilter(ETHER [, DROP_OWN, DROP_OTHER, keyword OFFSET])

Filters received frames as Ethernet hardware with address ETHER does: sets the packet type by the destination
address, and drops frames for other hosts.

- **ports**: 1 input, 1 or 2 outputs, agnostic; filtered frames are pushed out of output 1
- **arguments**: `ETHER`: Ethernet address; `DROP_OWN` (default false): whether frames from ETHER are
  filtered out; `DROP_OTHER` (default true): whether frames to other hosts are; `OFFSET` (default 0): bytes
  before the Ethernet header
- **annotations**: sets the packet type
- **handlers**: `ether` (read/write)
- **drop reasons**: `other-host`; `own-frame`; `short-frame`: no two addresses in it
",
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make),
};

fn make(args: &mut Args<'_>) -> Option<Program> {
    let address = args.mandatory_positional("ETHER", parse::ether);
    let drop_own = args.positional("DROP_OWN", parse::bool).unwrap_or(false);
    let drop_other = args.positional("DROP_OTHER", parse::bool).unwrap_or(true);
    let offset = args.keyword("OFFSET", parse::int_in(0..=2048)).unwrap_or(0) as u16;
    let address = to_number(address?);
    Some(Program::new("HostEtherFilter", HANDLERS, move |f| {
        let ours = f.cell("ether", address);
        let short = f.bad_block(1, "short-frame");
        f.need(Base::Data, usize::from(offset) + 12, short);
        let front = f.eval(load(Field::bytes(Base::Data, offset, 8)));
        let ours = f.eval(cell(ours));
        if drop_own {
            let own = f.bad_block(1, "own-frame");
            let back = load(Field::bytes(Base::Data, offset + 8, 4));
            let src = ((front & 0xffff) << 32) | back;
            f.leave_if(src.equals(ours), own);
        }
        let dst = f.eval(front >> 16);
        let (group, everybody) = ((dst >> 40) & 1, dst.equals(to_number([0xff; 6])));
        let kind = select(group, PacketType::Multicast as u64, PacketType::OtherHost as u64);
        let kind = select(everybody, PacketType::Broadcast as u64, kind);
        let kind = f.eval(select(dst.equals(ours), PacketType::Host as u64, kind));
        f.act(Inst::SetPacketType(kind));
        if drop_other {
            let other = f.bad_block(1, "other-host");
            f.leave_if(kind.equals(PacketType::OtherHost as u64), other);
        }
        f.emit(0);
    }))
}

const HANDLERS: &[Row<()>] = &[header::address("ether")];
