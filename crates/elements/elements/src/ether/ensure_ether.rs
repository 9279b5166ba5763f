//! `EnsureEther`: adds an Ethernet header to IP packets that have none.

use super::header::{BACK, EtherHeader, FIRST_BYTES, HEADER_BYTES, TYPE_IP, TYPE_IP6};
use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, PortCodes, StateScope};
use ir::Builder;
use ir::expr::{load, offset};
use packet::field::{Base, Field};

/// The class.
pub const CLASS: Class = Class {
    name: "EnsureEther",
    summary: "ensures that IP packets are Ethernet-encapsulated",
    page: "\
# EnsureEther([ETHERTYPE, SRC, DST])

Makes sure that IP packets have an Ethernet header. Packets with one before their network header stay as they
are, and a stripped one is restored, if the MAC header annotation still tells where it was. Otherwise everything
before the network header is replaced by a new one.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `ETHERTYPE` (default 0x0800), `SRC` (default 1:1:1:1:1:1), `DST` (default 2:2:2:2:2:2) of
  the new header
- **annotations**: reads the network header, and the MAC header; packets without the former stay as they are
- **drop reasons**: `no-headroom`: the packet fills its buffer
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(make),
};

/// Continues at `is_ip` if the EtherType at the front of the packet is that of IPv4 or IPv6.
fn leave_if_ip(f: &mut Builder, is_ip: ir::BlockId) {
    let ethertype = f.eval(load(Field::bytes(Base::Data, 12, 2)));
    for known in [TYPE_IP, TYPE_IP6] {
        f.leave_if(ethertype.equals(u64::from(known)), is_ip);
    }
}

fn make(args: &mut Args<'_>) -> Option<Program> {
    let ethertype = args.positional("ETHERTYPE", parse::u16).unwrap_or(TYPE_IP);
    let src = args.positional("SRC", parse::ether).unwrap_or([1; 6]);
    let dst = args.positional("DST", parse::ether).unwrap_or([2; 6]);
    Some(ensure(EtherHeader { dst, src, ethertype }))
}

fn ensure(header: EtherHeader) -> Program {
    let program = Program::new("EnsureEther", &[], move |f| {
        let unchanged = f.aside(|f| f.emit(0));
        let (behind, stripped, replace) = (f.block(), f.block(), f.block());
        let cramped = f.slow_block("headroom");
        let bytes = HEADER_BYTES as u64;
        let net = f.eval(offset(Base::Net));
        // A header before the front, and none at all, are large numbers.
        f.check(net.less_than(1 << 32), unchanged);
        f.switch(net, vec![(bytes, behind), (0, stripped)], replace);
        f.at(behind);
        f.need(Base::Data, HEADER_BYTES, replace);
        leave_if_ip(f, unchanged);
        f.jump(replace);
        f.at(stripped);
        // What is in front of other packets is what an earlier one left in the buffer.
        let mac = f.eval(offset(Base::Mac));
        f.check(mac.equals(0_u64.wrapping_sub(bytes)), replace);
        f.room(HEADER_BYTES, cramped);
        f.push(HEADER_BYTES);
        let taken_back = f.aside(|f| f.emit(0));
        leave_if_ip(f, taken_back);
        f.pull(bytes);
        f.jump(replace);
        f.at(replace);
        f.pull(net);
        f.room(HEADER_BYTES, cramped);
        f.push(HEADER_BYTES);
        f.store(FIRST_BYTES, header.first_bytes());
        f.store(BACK, header.back());
        f.emit(0);
    });
    program.with_slow_path(&["no-headroom"], true, move |(), batch, _| {
        batch.emit_if(0, |packet| {
            let (mac, net, before) = (packet.mac, packet.net, packet.data());
            if !header.push_onto(packet) {
                return false;
            }
            // Only the bytes are new: header annotations stay where the bytes moved to.
            let moved = packet.data() + HEADER_BYTES as u16 - before;
            (packet.mac, packet.net) = (mac.saturating_add(moved), net.saturating_add(moved));
            true
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basic::tests::cramped::{all_but, through_slow_path};

    #[test]
    fn a_packet_without_headroom_is_moved_or_dropped() {
        let header = EtherHeader { dst: [1; 6], src: [2; 6], ethertype: 0x0800 };
        let mut ensure = ensure(header);
        let (packet, bytes) = through_slow_path(&mut ensure, &all_but(14)).unwrap();
        assert_eq!((&bytes[..14], &bytes[14..]), (&header.bytes()[..], &all_but(14)[..]));
        // The MAC header that was there is still that, and there is no network header.
        assert_eq!((packet.data(), packet.mac, packet.net), (0, 14, shm::descriptor::NO_HEADER));
        assert!(through_slow_path(&mut ensure, &all_but(13)).is_none());
    }
}
