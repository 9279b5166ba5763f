//! `SetAnnoByte`: sets a byte of the annotations.

use super::argument::annotation;
use click::config::parse;
use element::value::{cell_text, set_cell, written};
use element::{BoxElement, Class, Configure, Element, Handlers, PortCodes, Row, StateScope, Transparent};
use ir::Builder;
use ir::expr::cell;
use packet::anno::Anno;

/// The class.
pub const CLASS: Class = Class {
    name: "SetAnnoByte",
    summary: "sets packet user annotations",
    page: "\
# SetAnnoByte(ANNO, VALUE)

Sets the annotation byte ANNO to VALUE. Obsolete: Paint(VALUE, ANNO) does the same.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `ANNO`: an annotation of one byte, by name or offset; `VALUE`, 0 to 255
- **annotations**: sets `ANNO`
- **handlers**: `anno` (read); `value` (read/write)
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make,
};

struct SetAnnoByte {
    anno: Anno,
    value: u8,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let span = cx.span;
    cx.diags.warning(span, "SetAnnoByte(ANNO, VALUE) is obsolete").help("use Paint(VALUE, ANNO) instead");
    cx.transparent(|args| {
        let anno = args.mandatory_positional("ANNO", annotation(1));
        let value = args.mandatory_positional("VALUE", parse::u8);
        let (anno, value) = (anno?, value?);
        Some(SetAnnoByte { anno, value })
    })
}

impl Transparent for SetAnnoByte {
    fn build(&self, f: &mut Builder) {
        f.name("SetAnnoByte");
        let value = f.cell("value", u64::from(self.value));
        f.store_anno(self.anno, cell(value));
        f.emit(0);
    }
}

impl Element for SetAnnoByte {
    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, HANDLERS)
    }
}

const HANDLERS: &[Row<SetAnnoByte>] = &[
    Row::read("anno", |set, _| Some(set.anno.offset.to_string())),
    Row::read_write(
        "value",
        |_, cells| cell_text(cells, 0),
        |_, value, cells| set_cell(cells, 0, written(value, parse::u8)?),
    ),
];
