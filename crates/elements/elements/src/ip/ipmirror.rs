//! `IPMirror`: swaps source and destination.

use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, PortCodes, StateScope};
use ir::expr::load;
use ir::{Builder, Value};
use packet::anno;
use packet::field::{Base, Field, IP_FRAG, IP_PAIR, IP_PROTO, L4_PORTS};

/// The class.
pub const CLASS: Class = Class {
    name: "IPMirror",
    summary: "swaps IP source and destination",
    page: "\
# IPMirror([DST_ANNO])

Swaps source and destination address of IP packets. In first fragments of TCP and UDP it swaps the ports, too,
and in TCP also sequence and acknowledgment number. Checksums stay correct.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `DST_ANNO` (default true): sets the annotation to the new destination
- **annotations**: sets `DST_IP`; needs the network header, and the transport header for the ports
- **drop reasons**: `no-ip-header`: the network header is not set or cut off
- **difference**: the numbers of a TCP header that ends before them are left alone, because Click swaps the
  bytes behind the packet
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(make),
};

/// Sequence and acknowledgment number together.
const TCP_NUMBERS: Field = Field::bytes(Base::Trans, 4, 8);

/// Swaps the halves of a field; returns its old value.
fn swap(f: &mut Builder, field: Field) -> Value {
    let (both, half) = (f.eval(load(field)), u64::from(field.width / 2));
    f.store(field, both << half | both >> half);
    both
}

fn make(args: &mut Args<'_>) -> Option<Program> {
    let dst_anno = args.positional("DST_ANNO", parse::bool).unwrap_or(true);
    Some(Program::new("IPMirror", &[], move |f| {
        let bad = f.drop_block("no-ip-header");
        let done = f.aside(|f| f.emit(0));
        f.need(Base::Net, 20, bad);
        let pair = swap(f, IP_PAIR);
        if dst_anno {
            f.store_anno(anno::DST_IP, pair >> 32);
        }
        f.leave_if(load(IP_FRAG), done);
        let (tcp, udp) = (f.block(), f.block());
        f.switch(load(IP_PROTO), vec![(6, tcp), (17, udp)], done);
        f.at(udp);
        f.need(Base::Trans, 8, done);
        swap(f, L4_PORTS);
        f.jump(done);
        f.at(tcp);
        f.need(Base::Trans, 8, done);
        swap(f, L4_PORTS);
        f.need(Base::Trans, 12, done);
        swap(f, TCP_NUMBERS);
        f.jump(done);
    }))
}
