//! The validity of a header checksum after writes to the header.
//!
//! A one's complement sum is a number modulo 65535. The writes since the sum was last known to be correct
//! change it by a sum of expressions; if that sum is 0, it is still correct. A sum is known to be correct
//! where a test has shown it, and where the checksum was computed anew: it is the complement of the header's
//! sum with a checksum of 0. Of a header that was correct before, such a sum is an update of the old checksum.

use super::expr::{Atom, Bits, Id, Node, Pool, Root, Write, signed};
use super::simplify::Maker;
use super::writes::{read, write};
use ir::analysis::ones_complement::{MODULUS, Residue, times, weight};

/// Bytes of a header without options.
const PLAIN_BYTES: i64 = 20;
/// The first bit of the checksum in a header.
const CHECKSUM: i64 = 80;
/// The first word of the addresses, counted in words.
const ADDRESSES: i64 = 6;
/// The most parts of a checksum's expression that are searched.
const MOST_PARTS: usize = 256;

/// An expression modulo 65535.
fn residue(make: &mut Maker<'_>, id: Id) -> Residue<Id> {
    let mut sum = Residue::default();
    if let Node::Atom(Atom::Bits(..)) | Node::Slice(..) | Node::RecLoad(..) | Node::Read(..) =
        make.pool.node(id)
        && let Some(number) = make.facts.known(make.pool, id).only()
    {
        sum.add_number(number);
        return sum;
    }
    match make.pool.node(id).clone() {
        Node::Const(number) => sum.add_number(number),
        // Bit by bit: the same bits may be part of several fields.
        Node::Atom(Atom::Bits(bits)) => {
            for low in 0..bits.width {
                let bit = make.pool.atom(Atom::Bits(bits.part(low, 1)));
                match make.facts.known(make.pool, bit).only() {
                    Some(number) => sum.add_number(number << low),
                    None => sum.add_term(bit, weight(low.into())),
                }
            }
        }
        Node::RecLoad(log, record, at, 2) if let Some((key, to)) = delta(make.pool, record, at) => {
            let words = make.pool.add(Node::RecLoad(log, record, to, 8));
            sum.add(&residue(make, words), 1);
            sum.sub(&residue(make, key));
        }
        // Word by word, as headers are summed.
        Node::RecLoad(..) | Node::Read(..) | Node::Slice(..) | Node::Select(..)
            if make.pool.width(id) > 16 =>
        {
            for low in (0..make.pool.width(id)).step_by(16) {
                let word = make.slice(id, low, 16);
                if word == id {
                    // All others are known to be 0.
                    return Residue::only(id);
                }
                sum.add(&residue(make, word), 1);
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

/// The word of the key and the place in the record whose difference a number in a record is.
pub(super) fn delta(pool: &Pool, record: Id, at: u16) -> Option<(Id, u16)> {
    let find = pool.lookup_of(record)?;
    let delta = pool.deltas_of(find.table).find(|delta| delta.at == at)?;
    Some((*find.key.get(usize::from(delta.key))?, delta.to))
}

/// Whether it is certain that one number is not above another one.
fn is_at_most(make: &mut Maker<'_>, a: Id, b: Id) -> bool {
    let order = make.at_most(a, b);
    make.pool.constant(order) == Some(1)
}

/// The number of 16 bits whose complement a value is.
fn complement(pool: &Pool, id: Id) -> Option<Id> {
    let Node::Sum(0xffff, terms) = pool.node(id) else { return None };
    let [(of, u64::MAX)] = **terms else { return None };
    Some(of)
}

/// A header's place: its offset, and the root and the byte that bits are counted from.
#[derive(Clone, Copy)]
struct Header {
    net: Id,
    root: Id,
    by: i64,
}

impl Header {
    /// Bits of the header.
    fn at(self, bit: i64, width: u8) -> Bits {
        Bits { root: Root::At(self.root), bit: (self.by * 8 + bit) as i32, width }
    }

    /// A word, or the address that it is half of.
    fn word(self, word: i64) -> Bits {
        if word >= ADDRESSES { self.at((word & !1) * 16, 32) } else { self.at(word * 16, 16) }
    }

    /// The first byte behind the header after some writes.
    fn behind(self, make: &mut Maker<'_>, bytes: &[Write]) -> Id {
        let words = read(make, bytes, self.at(4, 4));
        let four = make.number(4);
        let length = make.bin(ir::BinOp::Mul, words, four);
        make.add(self.net, length, 1)
    }

    /// Whether the header has its shortest length at least: a shorter one has no sum.
    fn is_long_enough(self, make: &mut Maker<'_>, bytes: &[Write]) -> bool {
        let (words, shortest) = (read(make, bytes, self.at(4, 4)), make.number(PLAIN_BYTES as u64 / 4));
        is_at_most(make, shortest, words)
    }

    /// The writes after which a test has shown the sum to be correct.
    fn shown(self, make: &Maker<'_>) -> Vec<Vec<Write>> {
        let shown = make.facts.conditions().filter_map(|(id, set)| match make.pool.node(id) {
            Node::IpSum(log, place, _) if *place == self.net && set.only() == Some(0xffff) => {
                Some(make.pool.writes(*log).to_vec())
            }
            _ => None,
        });
        shown.collect()
    }

    /// The writes after which the checksum was computed anew, as far as the checksum after `bytes` derives
    /// from one that was.
    fn renewed(self, make: &mut Maker<'_>, bytes: &[Write], shown: &[Vec<Write>]) -> Vec<Vec<Write>> {
        let mut open = vec![read(make, bytes, self.at(CHECKSUM, 16))];
        let (mut met, mut renewed) = (vec![], vec![]);
        while let Some(id) = open.pop() {
            if met.contains(&id) || met.len() >= MOST_PARTS {
                continue;
            }
            met.push(id);
            // An update adds to the complement of a checksum: what was computed anew is a part of it then.
            let sum = complement(make.pool, id).unwrap_or(id);
            let Node::IpSum(log, net, end) = *make.pool.node(sum) else {
                open.extend(make.pool.children(id));
                continue;
            };
            let largest = make.number(0xffff);
            let value = make.add(largest, sum, u64::MAX);
            let mut writes = make.pool.writes(log).to_vec();
            let checksum = read(make, &writes, self.at(CHECKSUM, 16));
            if net != self.net || make.pool.constant(checksum) != Some(0) {
                continue;
            }
            let first = read(make, &writes, self.at(0, 8));
            let is_shown = shown.iter().any(|shown| read(make, shown, self.at(0, 8)) == first);
            let behind = self.behind(make, &writes);
            if (is_shown || self.is_long_enough(make, &writes)) && is_at_most(make, behind, end) {
                write(make, &mut writes, Write { bits: self.at(CHECKSUM, 16), value });
                renewed.push(writes);
            }
        }
        renewed
    }
}

/// The writes of which any may be part of the IPv4 header at `net`: its sum is the same without the others.
/// The byte with the header's length is part of it, whatever the length is.
pub fn in_header(make: &mut Maker<'_>, net: Id, bytes: &[Write]) -> Vec<Write> {
    let (root, by) = make.root(net);
    let behind = Header { net, root, by }.behind(make, bytes);
    let is_elsewhere = |Write { bits, .. }: &Write| {
        let Root::At(own) = bits.root else { return true };
        let gap = |place: Id| make.gap(own, place);
        let (first, last) = match (own == root, gap(net)) {
            // Counted from the header.
            (true, _) => {
                (i128::from(bits.bit) - i128::from(by) * 8, i128::from(bits.end()) - i128::from(by) * 8)
            }
            (false, Some((low, high))) => (low * 8 + i128::from(bits.bit), high * 8 + i128::from(bits.end())),
            (false, None) => return false,
        };
        let is_behind = || gap(behind).is_some_and(|(low, _)| low * 8 + i128::from(bits.bit) >= 0);
        last <= 0 || first >= 8 && is_behind()
    };
    bytes.iter().filter(|write| !is_elsewhere(write)).copied().collect()
}

/// The words of a header that may have changed since it was correct.
struct Since {
    /// The writes after which it was.
    before: Vec<Write>,
    /// The words: an address is one number, of which all may be known where its halves are not.
    words: Vec<Bits>,
}

impl Header {
    /// Since when the header may have changed by which words, for each time that it was known to be correct, if all
    /// of it is there now as well, in a first segment that ends at `end`.
    fn since_right(self, make: &mut Maker<'_>, end: Id, bytes: &[Write]) -> Vec<Since> {
        let mut right = self.shown(make);
        let renewed = self.renewed(make, bytes, &right);
        right.extend(renewed);
        let behind = self.behind(make, bytes);
        if right.is_empty() || !is_at_most(make, behind, end) {
            return vec![];
        }
        let mut since = vec![];
        for before in right {
            let all = [self.touched(make, &before, behind), self.touched(make, bytes, behind)];
            let [Some(mut words), Some(more)] = all else { continue };
            words.extend(more);
            words.sort_unstable();
            words.dedup();
            // The length itself must not change.
            let first = self.at(0, 8);
            if words.first() != Some(&0) || read(make, &before, first) == read(make, bytes, first) {
                let mut words: Vec<Bits> = words.into_iter().map(|word| self.word(word)).collect();
                words.dedup();
                since.push(Since { before, words });
            }
        }
        since
    }

    /// The words that writes may be in, if these are in the header's first 20 bytes or certainly not in it.
    fn touched(self, make: &Maker<'_>, writes: &[Write], behind: Id) -> Option<Vec<i64>> {
        let mut words = vec![];
        for Write { bits, .. } in writes {
            let Root::At(own) = bits.root else { return None };
            let (first, last) = (i64::from(bits.bit) - self.by * 8, i64::from(bits.end()) - self.by * 8);
            if own == self.root && first >= 0 && last <= PLAIN_BYTES * 8 {
                words.extend(first / 16..=(last - 1) / 16);
                continue;
            }
            let gap = |place: Id| make.gap(own, place);
            let is_before = gap(self.net).is_some_and(|(_, high)| high * 8 + i128::from(bits.end()) <= 0);
            let is_behind = gap(behind).is_some_and(|(low, _)| low * 8 + i128::from(bits.bit) >= 0);
            if !(is_before || is_behind || own == self.root && last <= 0) {
                return None;
            }
        }
        Some(words)
    }
}

/// Whether the sum of the IPv4 header at `net` is correct after the writes `bytes`, in a first segment that
/// ends at `end`.
pub fn still_right(make: &mut Maker<'_>, net: Id, end: Id, bytes: &[Write]) -> bool {
    let (root, by) = make.root(net);
    let header = Header { net, root, by };
    header.since_right(make, end, bytes).into_iter().any(|Since { before, words }| {
        let mut change = Residue::default();
        for word in words {
            let (old, new) = (read(make, &before, word), read(make, bytes, word));
            change.add(&residue(make, new), 1);
            change.sub(&residue(make, old));
        }
        change.is_zero()
    })
}

/// The sum of the IPv4 header at `net` whose checksum is 0 now and was correct before: the complement of that
/// checksum's update by all other words. A header's sum is not 0, nor what the update adds: with one of a word of
/// ones by itself.
pub fn as_update(make: &mut Maker<'_>, net: Id, end: Id, bytes: &[Write]) -> Option<Id> {
    let (root, by) = make.root(net);
    let header = Header { net, root, by };
    let checksum = header.at(CHECKSUM, 16);
    let now = read(make, bytes, checksum);
    if make.pool.constant(now) != Some(0) {
        return None;
    }
    let Since { before, words } = header.since_right(make, end, bytes).into_iter().next()?;
    let mut updated = read(make, &before, checksum);
    let ones = make.number(MODULUS);
    updated = make.checksum_update(updated, ones, ones, 16);
    for word in words.into_iter().filter(|word| *word != checksum) {
        let (old, new) = (read(make, &before, word), read(make, bytes, word));
        updated = make.checksum_update(updated, old, new, word.width);
    }
    Some(make.add(ones, updated, u64::MAX))
}
