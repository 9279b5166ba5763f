//! `SetAnnoByte`: sets a byte of the annotations.

use crate::program::Program;
use click::config::parse;
use element::value::annotation;
use element::{BoxElement, Class, Configure, PortCodes, Row, StateScope};
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

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let span = cx.span;
    cx.diags.warning(span, "SetAnnoByte(ANNO, VALUE) is obsolete").help("use Paint(VALUE, ANNO) instead");
    cx.transparent(|args| {
        let anno = args.mandatory_positional("ANNO", annotation(1));
        let value = u64::from(args.mandatory_positional("VALUE", parse::u8)?);
        Some(Program::with_state("SetAnnoByte", HANDLERS, anno?, move |anno, f| {
            let value = f.cell("value", value);
            f.store_anno(*anno, cell(value));
            f.emit(0);
        }))
    })
}

const HANDLERS: &[Row<Anno>] =
    &[Row::read("anno", |anno, _| Some(anno.offset.to_string())), Row::cell::<0, 0xff>("value")];
