//! `MarkIP6Header`: sets the IPv6 header annotation.

use crate::ip::argument::offset;
use crate::program::Program;
use click::config::Args;
use element::{Class, PortCodes, StateScope};
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
    make: |cx| cx.transparent(make),
};

fn make(args: &mut Args<'_>) -> Option<Program> {
    let offset = u64::from(args.positional("OFFSET", offset).unwrap_or(0));
    Some(Program::new("MarkIP6Header", &[], move |f| {
        f.set_base(Base::Net, offset);
        f.set_base(Base::Trans, offset + 40);
        f.emit(0);
    }))
}
