//! `MarkMACHeader`: sets the MAC header annotation.

use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, PortCodes, StateScope};
use packet::field::Base;

/// The class.
pub const CLASS: Class = Class {
    name: "MarkMACHeader",
    summary: "sets MAC header annotation",
    page: "\
# MarkMACHeader([OFFSET])

Marks the MAC header of each packet at OFFSET. Checks nothing.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `OFFSET` (default 0)
- **annotations**: sets the MAC header
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(make),
};

fn make(args: &mut Args<'_>) -> Option<Program> {
    let offset = u64::from(args.positional("OFFSET", parse::u16).unwrap_or(0));
    Some(Program::new("MarkMACHeader", &[], move |f| {
        f.set_base(Base::Mac, offset);
        f.emit(0);
    }))
}
