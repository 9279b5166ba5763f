//! `EtherEncap`: adds an Ethernet header to packets.

use super::header::{EtherHeader, HEADER_BYTES, push_header};
use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, PortCodes, StateScope};
use ir::expr::cell;

/// The class.
pub const CLASS: Class = Class {
    name: "EtherEncap",
    summary: "encapsulates packets in Ethernet header",
    page: "\
# EtherEncap(ETHERTYPE, SRC, DST)

Adds an Ethernet header to each packet.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `ETHERTYPE` (in host order, such as 0x0800); `SRC`, `DST`: Ethernet addresses
- **annotations**: sets the MAC header, and the network header behind it
- **handlers**: `src`, `dst`, `ethertype` (read/write); `etht`: the same as `ethertype`
- **drop reasons**: `no-headroom`: the packet fills its buffer
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make),
};

fn make(args: &mut Args<'_>) -> Option<Program<EtherHeader>> {
    let ethertype = args.mandatory_positional("ETHERTYPE", parse::u16);
    let src = args.mandatory_positional("SRC", parse::ether);
    let dst = args.mandatory_positional("DST", parse::ether);
    Some(encap(EtherHeader { dst: dst?, src: src?, ethertype: ethertype? }))
}

fn encap(header: EtherHeader) -> Program<EtherHeader> {
    let program = Program::with_state("EtherEncap", EtherHeader::HANDLERS, header, |header, f| {
        // The header is in cells, since handlers change it while packets pass.
        let (front, back) = (f.cell("front", header.first_bytes()), f.cell("back", header.back()));
        let cramped = f.slow_block("headroom");
        f.room(HEADER_BYTES, cramped);
        push_header(f, cell(front), cell(back));
        f.emit(0);
    });
    program.with_slow_path(&["no-headroom"], true, |header, batch, _| {
        batch.emit_if(0, |packet| header.push_onto(packet));
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basic::tests::cramped::{all_but, through_slow_path};

    #[test]
    fn a_packet_without_headroom_is_moved_or_dropped() {
        let header = EtherHeader { dst: [1; 6], src: [2; 6], ethertype: 0x0800 };
        let mut encap = encap(header);
        let (packet, bytes) = through_slow_path(&mut encap, &all_but(14)).unwrap();
        assert_eq!((&bytes[..14], &bytes[14..]), (&header.bytes()[..], &all_but(14)[..]));
        assert_eq!((packet.data(), packet.mac, packet.net), (0, 0, 14));
        assert!(through_slow_path(&mut encap, &all_but(13)).is_none());
    }
}
