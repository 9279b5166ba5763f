//! `CheckLength`: sorts out long packets.

use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, PortCodes, Row, StateScope};
use ir::expr::{anno, cell, packet_len};
use packet::anno;

/// The class.
pub const CLASS: Class = Class {
    name: "CheckLength",
    summary: "drops large packets",
    page: "\
# CheckLength(LENGTH [, keyword EXTRA_LENGTH])

Packets of up to LENGTH bytes leave by output 0, longer ones by output 1.

- **ports**: 1 input, 1 or 2 outputs, agnostic; long packets are pushed out of output 1
- **arguments**: `LENGTH`; `EXTRA_LENGTH` (default false): the extra length annotation counts too
- **annotations**: with `EXTRA_LENGTH` reads `EXTRA_LENGTH`
- **handlers**: `length` (read/write)
- **drop reasons**: `too-long`
",
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make),
};

fn make(args: &mut Args<'_>) -> Option<Program> {
    let most = args.mandatory_positional("LENGTH", parse::u32);
    let extra = args.keyword("EXTRA_LENGTH", parse::bool).unwrap_or(false);
    let most = u64::from(most?);
    Some(Program::new("CheckLength", HANDLERS, move |f| {
        let most = f.cell("length", most);
        let long = f.bad_block(1, "too-long");
        let length = if extra { packet_len() + anno(anno::EXTRA_LENGTH) } else { packet_len() };
        f.check(length.at_most(cell(most)), long);
        f.emit(0);
    }))
}

const HANDLERS: &[Row<()>] = &[Row::cell::<0, 0xffff_ffff>("length")];
