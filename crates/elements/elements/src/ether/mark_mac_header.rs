//! `MarkMACHeader`: says where the MAC header is.

use click::config::{Args, parse};
use element::{Class, Element, PortCodes, StateScope, Transparent};
use ir::Builder;
use packet::field::Base;

/// The class.
pub const CLASS: Class = Class {
    name: "MarkMACHeader",
    summary: "sets MAC header annotation",
    page: "\
# MarkMACHeader([OFFSET])

Says that each packet's MAC header begins OFFSET bytes into it. Looks at no byte.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `OFFSET` (default 0)
- **annotations**: sets the MAC header
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(make),
};

struct MarkMacHeader {
    offset: u16,
}

fn make(args: &mut Args<'_>) -> Option<MarkMacHeader> {
    let offset = args.positional("OFFSET", parse::u16).unwrap_or(0);
    Some(MarkMacHeader { offset })
}

impl Transparent for MarkMacHeader {
    fn build(&self, f: &mut Builder) {
        f.name("MarkMACHeader");
        f.set_base(Base::Mac, u64::from(self.offset));
        f.emit(0);
    }
}

impl Element for MarkMacHeader {}
