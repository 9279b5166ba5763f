//! Reads of neighbouring fields, done by one read of 2, 4 or 8 bytes.
//!
//! Of an IPv4 header a router reads the version and the length, and the place of a fragment, the TTL, the protocol and the
//! checksum: that is one read of four bytes and one of eight. It comes last, behind [`super::join_writes`]: before that a
//! field is known by itself.

use super::byte_range::ByteRange;
use super::forward::Forward;
use packet::field::Field;

/// Widths of one machine instruction, in bits.
const WIDTHS: [u8; 3] = [16, 32, 64];
/// The most bits of one read.
const MOST: i64 = 64;
/// The most further instructions for each read that is saved.
const COST: u32 = 2;

/// Whole bytes that are read: the first bit, and the one behind the last.
type Span = (i64, i64);

impl Forward<'_> {
    /// The bytes that are read at once where a field is read, if others that are read behind it are among them.
    pub(super) fn with_neighbours(&self, field: Field) -> Option<Field> {
        let place = self.place(field);
        if !self.known.joins_reads || self.is_known(place) {
            return None;
        }
        let start = place.bit - i64::from(field.bit);
        let all = (start, start + i64::from(self.state.extent.accessible(field.base)) * 8);
        let group = group_of(bytes_of(place), self.read_behind(field, all))?;
        // What the field contains is read with it.
        if group.1 - group.0 <= i64::from(field.width) {
            return None;
        }
        for width in WIDTHS.into_iter().filter(|width| i64::from(*width) >= group.1 - group.0) {
            // From the one that ends with the group.
            for first in (group.1 - i64::from(width)..=group.0).step_by(8) {
                let wide = ByteRange { bit: first, width, ..place };
                if all.0 <= first && wide.end() <= all.1 && !self.is_known(wide) {
                    return Some(Field::new(field.base, (first - start) as u16, width));
                }
            }
        }
        None
    }

    /// What is read behind here of the same header, inside some bytes and not far away, and is not known yet. A header that
    /// is moved meanwhile is taken for where it is here: what is read then serves nobody.
    fn read_behind(&self, field: Field, all: Span) -> Vec<Span> {
        let near = (self.place(field).bit - 2 * MOST, self.place(field).end() + 2 * MOST);
        let of_base = self.read_fields.iter().filter(|(other, _)| other.base == field.base);
        let places = of_base.map(|(other, block)| (self.place(*other), block)).filter(|(place, block)| {
            let (first, end) = bytes_of(*place);
            all.0.max(near.0) <= first && end <= all.1.min(near.1) && self.order.dominates(self.here, **block)
        });
        let mut places: Vec<ByteRange> = places.map(|(place, _)| place).collect();
        places.sort_unstable_by_key(|place| (place.bit, place.width));
        places.dedup();
        places.into_iter().filter(|place| !self.is_known(*place)).map(bytes_of).collect()
    }
}

fn bytes_of(place: ByteRange) -> Span {
    (place.bit.div_euclid(8) * 8, (place.end() + 7).div_euclid(8) * 8)
}

/// The bytes of those spans that one read serves together with one of them, where that is worth it: all are read in as few
/// reads as there may be, and of those in the narrowest.
fn group_of(wanted: Span, mut spans: Vec<Span>) -> Option<Span> {
    spans.push(wanted);
    spans.sort_unstable();
    spans.dedup();
    // For the spans from each one on: reads, their bits, and the first span behind the first read.
    let mut best = vec![(0, 0, 0); spans.len() + 1];
    for from in (0..spans.len()).rev() {
        let mut end = 0;
        let reads = (from..spans.len()).map_while(|to| {
            end = spans[to].1.max(end);
            let width = end - spans[from].0;
            (width <= MOST).then(|| (best[to + 1].0 + 1, best[to + 1].1 + width, to + 1))
        });
        best[from] = reads.min()?;
    }
    let mut from = 0;
    while from < spans.len() {
        let group = &spans[from..best[from].2];
        if group.contains(&wanted) {
            let all = (group[0].0, group.iter().map(|span| span.1).max()?);
            let saved = group.len() as u32 - 1;
            let apart: u32 = group.iter().map(|span| cost_of_read(*span)).sum();
            let parts: u32 = group.iter().map(|span| cost_of_part(*span, all)).sum();
            return (saved > 0 && cost_of_read(all) + parts <= apart + COST * saved).then_some(all);
        }
        from = best[from].2;
    }
    None
}

/// Instructions of a read: one byte needs no exchange of bytes, and what is narrower than a register is extended.
fn cost_of_read((first, end): Span) -> u32 {
    match end - first {
        8 => 1,
        33.. => 2,
        _ => 3,
    }
}

/// Instructions that take bytes out of those that were read: a shift for what is in front, a mask for what is behind.
fn cost_of_part((first, end): Span, all: Span) -> u32 {
    match (first == all.0, end == all.1) {
        (true, true) => 0,
        (false, true) => 1,
        (true, false) => 2,
        (false, false) => 3,
    }
}
