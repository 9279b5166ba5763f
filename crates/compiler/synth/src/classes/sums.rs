//! The validity of a header checksum after writes to the header.
//!
//! A one's complement sum is a number modulo 65535. The writes since the sum was last known to be correct change it by
//! a sum of expressions; if that sum is 0, it is still correct.

use super::expr::{Atom, Bits, Id, Node, Root, Write, signed};
use super::simplify::Maker;
use super::writes::read;
use ir::analysis::ones_complement::{Residue, times, weight};

/// Bytes of a header without options.
const PLAIN_BYTES: i64 = 20;

/// An expression modulo 65535.
fn residue(make: &mut Maker<'_>, id: Id) -> Residue<Id> {
    let mut sum = Residue::default();
    match make.pool.node(id).clone() {
        Node::Const(number) => sum.add_number(number),
        // Bit by bit: the same bits may be part of several fields.
        Node::Atom(Atom::Bits(bits)) => {
            for low in 0..bits.width {
                let bit = make.pool.atom(Atom::Bits(bits.part(low, 1)));
                sum.add_term(bit, weight(low.into()));
            }
        }
        // Word by word, as headers are summed.
        Node::RecLoad(..) | Node::Read(..) if make.pool.width(id) > 16 => {
            for low in (0..make.pool.width(id)).step_by(16) {
                let word = make.slice(id, low, 16);
                sum.add_term(word, 1);
            }
        }
        Node::Cat(parts) => {
            for (low, part) in &parts {
                let (low, part) = (*low, *part);
                sum.add(&residue(make, part), weight(low.into()));
            }
        }
        Node::Sum(constant, terms) => {
            let known = make.facts.small_sum(make.pool, constant, &terms);
            if known.is_none_or(|(low, _)| low < 0) {
                return Residue::only(id);
            }
            sum.add_number(times(signed(constant)));
            for (term, by) in &terms {
                sum.add(&residue(make, *term), times(signed(*by)));
            }
        }
        Node::Fold(folded) => return residue(make, folded),
        Node::Csum(checksum, old, new, _) => {
            sum.add(&residue(make, checksum), 1);
            sum.add(&residue(make, old), 1);
            sum.sub(&residue(make, new));
        }
        _ => return Residue::only(id),
    }
    sum
}

/// Whether the sum of the IPv4 header at `net` is still correct after the writes `bytes` since it was, in a first
/// segment that ends at `end`.
pub fn still_right(make: &mut Maker<'_>, net: Id, end: Id, bytes: &[Write]) -> bool {
    let (root, by) = make.root(net);
    let at = |bit: i64, width: u8| Bits { root: Root::At(root), bit: (by * 8 + bit) as i32, width };
    let right: Vec<Vec<Write>> = make
        .facts
        .conditions()
        .filter_map(|(id, set)| match make.pool.node(id) {
            Node::IpSum(log, place, _) if *place == net && set.only() == Some(0xffff) => {
                Some(make.pool.writes(*log).to_vec())
            }
            _ => None,
        })
        .collect();
    if right.is_empty() {
        return false;
    }
    // The whole header must be there now as well.
    let words = read(make, bytes, at(4, 4));
    let four = make.number(4);
    let length = make.bin(ir::BinOp::Mul, words, four);
    let behind = make.add(net, length, 1);
    let there = make.at_most(behind, end);
    if make.pool.constant(there) != Some(1) {
        return false;
    }
    right.into_iter().any(|before| {
        let touched = |writes: &[Write]| -> Option<Vec<i64>> {
            let mut words = vec![];
            for Write { bits, .. } in writes {
                let Root::At(own) = bits.root else { return None };
                let (first, last) = (i64::from(bits.bit) - by * 8, i64::from(bits.end()) - by * 8);
                // In the first 20 bytes of the header.
                if own == root && first >= 0 && last <= PLAIN_BYTES * 8 {
                    words.extend(first / 16..=(last - 1) / 16);
                    continue;
                }
                let gap = |place: Id| make.gap(own, place);
                let is_before = gap(net).is_some_and(|(_, high)| high * 8 + i128::from(bits.end()) <= 0);
                let is_behind = gap(behind).is_some_and(|(low, _)| low * 8 + i128::from(bits.bit) >= 0);
                if !(is_before || is_behind || own == root && last <= 0) {
                    return None;
                }
            }
            Some(words)
        };
        let (Some(mut words), Some(more)) = (touched(&before), touched(bytes)) else { return false };
        words.extend(more);
        words.sort_unstable();
        words.dedup();
        let mut change = Residue::default();
        for word in words {
            // The length itself must not change.
            if word == 0 && read(make, &before, at(0, 8)) != read(make, bytes, at(0, 8)) {
                return false;
            }
            let (old, new) = (read(make, &before, at(word * 16, 16)), read(make, bytes, at(word * 16, 16)));
            change.add(&residue(make, new), 1);
            change.sub(&residue(make, old));
        }
        change.is_zero()
    })
}
