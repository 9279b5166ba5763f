//! Splits writes into fields: elements write wide, reports are by field.

use super::expr::{Bits, Root, Write};
use super::names;
use super::simplify::Maker;

/// The same writes, split at the boundaries of named fields, and joined where a field was written in
/// pieces.
pub(super) fn by_field(make: &mut Maker<'_>, writes: &[Write]) -> Vec<Write> {
    let mut cut = vec![];
    let mut rest = writes;
    while let Some(first) = rest.first() {
        // Adjacent writes, with no other write between them in time.
        let mut count = 1;
        while let (Some(a), Some(b)) = (rest.get(count - 1), rest.get(count)) {
            if a.bits.root != b.bits.root || a.bits.end() != b.bits.bit {
                break;
            }
            count += 1;
        }
        let (run, behind) = rest.split_at(count);
        rest = behind;
        let end = run.last().map_or(0, |last| last.bits.end());
        let mut at = first.bits.bit;
        while at < end {
            let left = Bits { bit: at, width: (end - at).min(64) as u8, ..first.bits };
            let width = width(make, left);
            let bits = Bits { width, ..left };
            cut.push(Write { bits, value: value(make, run, bits) });
            at = bits.end();
        }
    }
    cut
}

/// The number of bits that are written as one: a field, or the rest of one, or all bits up to the next
/// field.
fn width(make: &Maker<'_>, bits: Bits) -> u8 {
    if bits.root == Root::Anno {
        return bits.width;
    }
    let starts = |bits: Bits| names::first_field(make.pool, bits);
    match (starts(bits), names::rest_of_field(make.pool, bits)) {
        (0, 0) => {
            let next = (1..bits.width).find(|skip| {
                starts(Bits { bit: bits.bit + i32::from(*skip), width: bits.width - skip, ..bits }) > 0
            });
            next.unwrap_or(bits.width)
        }
        (0, rest) => rest,
        (field, _) => field,
    }
}

fn value(make: &mut Maker<'_>, run: &[Write], bits: Bits) -> super::expr::Id {
    let mut parts = vec![];
    for write in run {
        if let Some(common) = bits.common(write.bits) {
            let part = make.slice(write.value, write.bits.low_of(common), common.width);
            parts.push((bits.low_of(common), part));
        }
    }
    make.cat(&parts)
}
