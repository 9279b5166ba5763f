//! `Strip`, `Unstrip` and `StripToNetworkHeader`: move the packet's front.

use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, PortCodes, StateScope};
use ir::expr::offset;
use packet::field::Base;
use shm::descriptor::{BUF_BYTES, NO_HEADER};

/// The class.
pub const STRIP: Class = Class {
    name: "Strip",
    summary: "strips bytes from front of packets",
    page: "\
# Strip(LENGTH)

Removes LENGTH bytes from the front of each packet, or all bytes of a shorter one.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `LENGTH` (0 to 65535)
- **difference**: of a packet in several segments no more than the first segment is removed
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(make_strip),
};

/// The class.
pub const UNSTRIP: Class = Class {
    name: "Unstrip",
    summary: "unstrips bytes from front of packets",
    page: "\
# Unstrip(LENGTH)

Adds LENGTH bytes to the front of each packet: those that Strip removed, if it did.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `LENGTH` (0 to 2240, what a buffer holds)
- **drop reasons**: `no-headroom`: the packet fills its buffer
",
    make: |cx| cx.transparent(make_unstrip),
    ..STRIP
};

/// The class.
pub const STRIP_TO_NETWORK_HEADER: Class = Class {
    name: "StripToNetworkHeader",
    summary: "strips everything preceding network header",
    page: "\
# StripToNetworkHeader()

Moves each packet's front to its network header: removes the bytes before it, or restores those that were
stripped.

- **ports**: 1 input, 1 output, agnostic
- **annotations**: reads the network header
- **drop reasons**: `no-network-header`: it is not set
",
    make: |cx| cx.transparent(|_| Some(strip_to_network_header())),
    ..STRIP
};

fn make_strip(args: &mut Args<'_>) -> Option<Program> {
    let length = u64::from(args.mandatory_positional("LENGTH", parse::u16)?);
    Some(Program::new("Strip", &[], move |f| {
        f.pull(length);
        f.emit(0);
    }))
}

fn make_unstrip(args: &mut Args<'_>) -> Option<Program> {
    let length = args.mandatory_positional("LENGTH", parse::int_in(0..=BUF_BYTES as i64));
    Some(unstrip(length? as usize))
}

fn unstrip(length: usize) -> Program {
    let program = Program::new("Unstrip", &[], move |f| {
        let cramped = f.slow_block("headroom");
        f.room(length, cramped);
        f.push(length);
        f.emit(0);
    });
    // Bytes that have to move are copied first, if anybody else reads them.
    program.with_slow_path(&["no-headroom"], false, move |(), batch, work| {
        batch.emit_if(0, |packet| {
            shm::chain::unshare(work.pool(), packet) && packet.make_headroom(length) && packet.push(length)
        });
    })
}

fn strip_to_network_header() -> Program {
    let program = Program::new("StripToNetworkHeader", &[], |f| {
        let before = f.slow_block("stripped");
        let offset = f.eval(offset(Base::Net));
        // Headers before the front, and those that are not set, are large numbers.
        f.check(offset.less_than(1 << 32), before);
        f.pull(offset);
        f.emit(0);
    });
    program.with_slow_path(&["no-network-header"], false, |(), batch, _| {
        batch.emit_if(0, |packet| {
            let length = packet.data().checked_sub(packet.net).filter(|_| packet.net != NO_HEADER);
            length.is_some_and(|length| packet.push(usize::from(length)))
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basic::tests::cramped::{all_but, through_slow_path};

    #[test]
    fn a_packet_without_headroom_is_moved_or_dropped() {
        let mut unstrip = unstrip(20);
        let (packet, bytes) = through_slow_path(&mut unstrip, &all_but(20)).unwrap();
        assert_eq!((&bytes[20..], packet.data(), packet.mac), (&all_but(20)[..], 0, 20));
        assert!(through_slow_path(&mut unstrip, &all_but(19)).is_none());
    }
}
