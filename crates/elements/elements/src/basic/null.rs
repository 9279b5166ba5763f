//! `Null` and `Align`: let packets pass.

use click::config::parse;
use element::{BoxElement, Class, Configure, Element, PortCodes, StateScope, Transparent};
use ir::Builder;

/// The class.
pub const NULL: Class = Class {
    name: "Null",
    summary: "passes packets unchanged",
    page: "\
# Null()

Passes packets unchanged.

- **ports**: 1 input, 1 output, agnostic
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(|_| Some(Null)),
};

/// The class.
pub const ALIGN: Class = Class {
    name: "Align",
    summary: "aligns packet data",
    page: "\
# Align(MODULUS, OFFSET)

Passes packets unchanged.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `MODULUS` (2, 4 or 8) and `OFFSET` (below it) are checked and have no effect
- **difference**: packets are not moved, because nothing here needs aligned packets
",
    make: make_align,
    ..NULL
};

struct Null;

fn make_align(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let modulus = args.mandatory_positional("MODULUS", parse::u32);
    let offset = args.mandatory_positional("OFFSET", parse::u32);
    let span = args.span();
    let fine = args.finish();
    let (modulus, offset) = (modulus?, offset?);
    if !matches!(modulus, 2 | 4 | 8) {
        cx.error(span, format!("MODULUS is {modulus}: it must be 2, 4 or 8"));
        return None;
    }
    if offset >= modulus {
        cx.error(span, format!("OFFSET {offset} must be smaller than MODULUS {modulus}"));
        return None;
    }
    fine.then(|| BoxElement::transparent(Null))
}

impl Transparent for Null {
    fn build(&self, f: &mut Builder) {
        f.name("Null");
        f.emit(0);
    }
}

impl Element for Null {}
