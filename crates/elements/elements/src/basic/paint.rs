//! `Paint`: sets a paint annotation.

use crate::program::Program;
use click::config::{Args, parse};
use element::value::annotation;
use element::{Class, PortCodes, Row, StateScope};
use ir::expr::cell;
use packet::anno;

/// The class.
pub const CLASS: Class = Class {
    name: "Paint",
    summary: "sets packet paint annotations",
    page: "\
# Paint(COLOR [, ANNO])

Sets each packet's paint annotation to COLOR, an integer 0..255.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `COLOR`; `ANNO`: which one-byte annotation, by name or offset, default `PAINT`
- **handlers**: `color` (read/write)
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make),
};

fn make(args: &mut Args<'_>) -> Option<Program> {
    let color = args.mandatory_positional("COLOR", parse::u8);
    let anno = args.positional("ANNO", annotation(1)).unwrap_or(anno::PAINT);
    let color = color?;
    Some(Program::new("Paint", HANDLERS, move |f| {
        // The colour is in a cell, since the handler changes it while packets flow.
        let color = f.cell("color", u64::from(color));
        f.store_anno(anno, cell(color));
        f.emit(0);
    }))
}

const HANDLERS: &[Row<()>] = &[Row::cell::<0, 0xff>("color")];
