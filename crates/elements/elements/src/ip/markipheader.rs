//! `MarkIPHeader`, `StripIPHeader` and `UnstripIPHeader`: set the IP header annotation, remove the header, and put
//! it back.

use super::argument::offset;
use crate::program::Program;
use click::config::Args;
use element::{Class, PortCodes, StateScope};
use ir::Builder;
use ir::expr::{self, avail, load};
use packet::field::{Base, IP_HL};
use shm::descriptor::NO_HEADER;

/// `MarkIPHeader`.
pub const MARK: Class = Class {
    name: "MarkIPHeader",
    summary: "sets IP header annotation",
    page: "\
# MarkIPHeader([OFFSET])

Marks packets as IP packets: sets the network header annotation to OFFSET bytes from the packet's
start and the transport header annotation to where the IP header ends. Checks nothing.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `OFFSET` (default 0)
- **annotations**: sets the network and the transport header
- **difference**: if the packet ends before the IP header, no transport header is marked, because its offset
  is unknown
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(make_mark),
};

/// `StripIPHeader`.
pub const STRIP: Class = Class {
    name: "StripIPHeader",
    summary: "strips outermost IP header",
    page: "\
# StripIPHeader()

Removes everything before the transport header: the IP header with its options, and the bytes before it.

- **ports**: 1 input, 1 output, agnostic
- **annotations**: needs the transport header, which CheckIPHeader and MarkIPHeader set
- **drop reasons**: `no-ip-header`: the annotation is not set, or points outside of the packet
",
    make: |cx| cx.transparent(|_| Some(Program::new("StripIPHeader", &[], strip))),
    ..MARK
};

/// `UnstripIPHeader`.
pub const UNSTRIP: Class = Class {
    name: "UnstripIPHeader",
    summary: "restores outermost IP header",
    page: "\
# UnstripIPHeader()

Restores the IP header that StripIPHeader removed: the packet begins at its network header again. A packet that
begins there or before it stays as it is.

- **ports**: 1 input, 1 output, agnostic
- **annotations**: needs the network header
- **drop reasons**: `no-ip-header`: the annotation is not set
",
    make: |cx| cx.transparent(|_| Some(unstrip())),
    ..MARK
};

fn make_mark(args: &mut Args<'_>) -> Option<Program> {
    let offset = u64::from(args.positional("OFFSET", offset).unwrap_or(0));
    Some(Program::new("MarkIPHeader", &[], move |f| {
        let short = f.aside(|f| {
            f.clear_base(Base::Trans);
            f.emit(0);
        });
        let offset = f.eval(offset);
        f.set_base(Base::Net, offset);
        f.need(Base::Net, 1, short);
        f.set_base(Base::Trans, (load(IP_HL) << 2) + offset);
        f.emit(0);
    }))
}

fn strip(f: &mut Builder) {
    let bad = f.drop_block("no-ip-header");
    // An unset header and one before the packet's start are huge numbers.
    let header = f.eval(expr::offset(Base::Trans));
    f.check(header.at_most(avail(Base::Data)), bad);
    f.pull(header);
    f.emit(0);
}

fn unstrip() -> Program {
    let program = Program::new("UnstripIPHeader", &[], |f| {
        let stripped = f.slow_block("stripped");
        // Headers before the front, and those that are not set, are large numbers.
        f.check(expr::offset(Base::Net).less_than(1 << 32), stripped);
        f.emit(0);
    });
    program.with_slow_path(&["no-ip-header"], false, |(), batch, _| {
        batch.emit_if(0, |packet| {
            let length = packet.data().checked_sub(packet.net).filter(|_| packet.net != NO_HEADER);
            length.is_some_and(|length| packet.push(usize::from(length)))
        });
    })
}
