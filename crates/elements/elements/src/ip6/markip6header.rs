//! `MarkIP6Header`: sets the IPv6 header annotation.

use crate::ip::argument::offset;
use element::{Class, Element, PortCodes, StateScope, Transparent};
use ir::Builder;
use packet::field::Base;

/// The class.
pub const CLASS: Class = Class {
    name: "MarkIP6Header",
    summary: "sets IPv6 header annotation",
    page: "\
# MarkIP6Header([OFFSET])

Marks packets as IPv6 packets: sets the network header annotation to OFFSET bytes from the packet's
start and the transport header annotation to 40 bytes behind that. Checks nothing.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `OFFSET` (default 0)
- **annotations**: sets the network and the transport header
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(|args| Some(Mark(args.positional("OFFSET", offset).unwrap_or(0)))),
};

struct Mark(u16);

impl Transparent for Mark {
    fn build(&self, f: &mut Builder) {
        f.name("MarkIP6Header");
        f.set_base(Base::Net, u64::from(self.0));
        f.set_base(Base::Trans, u64::from(self.0) + 40);
        f.emit(0);
    }
}

impl Element for Mark {}
