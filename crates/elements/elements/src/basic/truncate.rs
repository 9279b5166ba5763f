//! `Truncate`: cuts packets that are too long.

use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, PortCodes, StateScope};
use ir::expr::{anno, packet_len};
use packet::anno::EXTRA_LENGTH;

/// The class.
pub const CLASS: Class = Class {
    name: "Truncate",
    summary: "limits packet length",
    page: "\
# Truncate(LENGTH [, keyword EXTRA_LENGTH])

Cuts packets that are longer than LENGTH bytes.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `LENGTH` (0 to 65535); `EXTRA_LENGTH` (default true): whether the annotation is set
- **annotations**: adds the bytes that are cut off to `EXTRA_LENGTH`
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(make),
};

fn make(args: &mut Args<'_>) -> Option<Program> {
    let length = args.mandatory_positional("LENGTH", parse::u16);
    let extra_length = args.keyword("EXTRA_LENGTH", parse::bool).unwrap_or(true);
    let limit = length?;
    let program = Program::new("Truncate", &[], move |f| {
        let (short, chain) = (f.aside(|f| f.emit(0)), f.slow_block("chain"));
        let most = f.eval(u64::from(limit));
        let length = f.eval(packet_len());
        f.leave_if(length.at_most(most), short);
        if extra_length {
            f.store_anno(EXTRA_LENGTH, anno(EXTRA_LENGTH) + (length - most));
        }
        f.take(most);
        f.check(packet_len().equals(most), chain);
        f.emit(0);
    });
    Some(program.with_slow_path(&["impossible-length"], false, move |(), batch, _| {
        batch.emit_if(0, |packet| packet.take((packet.total() as usize).saturating_sub(limit.into())));
    }))
}
