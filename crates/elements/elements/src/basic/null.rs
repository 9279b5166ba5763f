//! `Null` and `Align`: let packets pass.

use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, PortCodes, StateScope};

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
    make: |cx| cx.transparent(|_| Some(null("Null"))),
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
    make: |cx| cx.transparent(make_align),
    ..NULL
};

fn null(class: &'static str) -> Program {
    Program::new(class, &[], |f| f.emit(0))
}

fn make_align(args: &mut Args<'_>) -> Option<Program> {
    let modulus = args.mandatory_positional("MODULUS", parse::u32);
    let offset = args.mandatory_positional("OFFSET", parse::u32);
    let (modulus, offset, span) = (modulus?, offset?, args.span());
    if !matches!(modulus, 2 | 4 | 8) {
        args.error(span, format!("MODULUS is {modulus}: it must be 2, 4 or 8"));
    } else if offset >= modulus {
        args.error(span, format!("OFFSET {offset} must be smaller than MODULUS {modulus}"));
    }
    Some(null("Null"))
}
