//! `Paint`: sets a paint annotation.

use click::config::{Args, parse};
use element::value::{byte_anno, cell_text, set_cell, written};
use element::{Class, Element, Handlers, PortCodes, Row, StateScope, Transparent};
use ir::Builder;
use ir::expr::cell;
use packet::anno::{self, Anno};

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

struct Paint {
    color: u8,
    anno: Anno,
}

fn make(args: &mut Args<'_>) -> Option<Paint> {
    let color = args.mandatory_positional("COLOR", parse::u8);
    let anno = args.positional("ANNO", byte_anno).unwrap_or(anno::PAINT);
    Some(Paint { color: color?, anno })
}

impl Transparent for Paint {
    fn build(&self, f: &mut Builder) {
        f.name("Paint");
        // The colour is a state cell, since the handler changes it while packets flow.
        let color = f.cell("color", u64::from(self.color));
        f.store_anno(self.anno, cell(color));
        f.emit(0);
    }
}

impl Element for Paint {
    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, HANDLERS)
    }
}

const HANDLERS: &[Row<Paint>] = &[Row::read_write(
    "color",
    |_, cells| cell_text(cells, 0),
    |_, value, cells| set_cell(cells, 0, written(value, parse::u8)?),
)];
