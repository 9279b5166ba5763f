//! Bits after writes: the values that a read yields, and the writes that later ones cover.

use super::expr::{Atom, Bits, Id, Log, Node, Root, Write};
use super::simplify::Maker;

/// Whether two ranges of bits certainly do not overlap.
fn apart(make: &Maker<'_>, a: Bits, b: Bits) -> bool {
    let (Root::At(a_root), Root::At(b_root)) = (a.root, b.root) else { return false };
    make.gap(a_root, b_root).is_some_and(|(low, high)| {
        // `a` is `low` to `high` bytes after `b`, apart from the offsets.
        let (low, high) = (low * 8, high * 8);
        i128::from(a.end()) + high <= i128::from(b.bit) || i128::from(a.bit) + low >= i128::from(b.end())
    })
}

/// Reads bits after writes.
pub fn read(make: &mut Maker<'_>, writes: &[Write], bits: Bits) -> Id {
    // Bits for which no write was found yet, and the parts found, by their position in the number.
    let mut open = vec![bits];
    let mut parts: Vec<(u8, Id)> = vec![];
    for (at, write) in writes.iter().enumerate().rev() {
        if open.is_empty() {
            break;
        }
        if write.bits.root != bits.root {
            if open.iter().all(|open| apart(make, *open, write.bits)) {
                continue;
            }
            for piece in std::mem::take(&mut open) {
                let value = read_hidden(make, &writes[..=at], piece);
                parts.push((bits.low_of(piece), value));
            }
            break;
        }
        let mut still = vec![];
        for piece in open {
            let Some(common) = piece.common(write.bits) else {
                still.push(piece);
                continue;
            };
            let value = make.slice(write.value, write.bits.low_of(common), common.width);
            parts.push((bits.low_of(common), value));
            still.extend(without(piece, common));
        }
        open = still;
    }
    for piece in open {
        let atom = make.pool.atom(Atom::Bits(piece));
        parts.push((bits.low_of(piece), atom));
    }
    make.cat(&parts)
}

impl Maker<'_> {
    /// Reads bits after these writes.
    pub(super) fn read_after(&mut self, log: Log, bits: Bits) -> Id {
        let writes = self.pool.writes(log).to_vec();
        read(self, &writes, bits)
    }
}

/// Reads bits after writes of which the last may hide them. Only writes that may are part of the expression,
/// so that a read is the same wherever the others stand.
fn read_hidden(make: &mut Maker<'_>, writes: &[Write], bits: Bits) -> Id {
    let may_hide = |write: &&Write| match write.bits.root == bits.root {
        true => write.bits.common(bits).is_some(),
        false => !apart(make, bits, write.bits),
    };
    let left: Vec<Write> = writes.iter().filter(may_hide).copied().collect();
    if left.len() < writes.len() {
        return read(make, &left, bits);
    }
    let log = make.pool.log(writes);
    make.pool.add(Node::Read(log, bits))
}

/// The parts of a range of bits before and after another one.
fn without(bits: Bits, some: Bits) -> impl Iterator<Item = Bits> {
    let front = Bits { width: (some.bit - bits.bit) as u8, ..bits };
    let back = Bits { bit: some.end(), width: (bits.end() - some.end()) as u8, ..bits };
    [front, back].into_iter().filter(|bits| bits.width > 0)
}

/// Appends a write; the bits that it covers of earlier writes are removed. Order matters only between writes of
/// different roots that may overlap. Others are therefore sorted by their roots and offsets, unless one that may
/// overlap is between them.
pub fn write(make: &mut Maker<'_>, writes: &mut Vec<Write>, new: Write) {
    let mut kept = Vec::with_capacity(writes.len() + 1);
    for old in writes.drain(..) {
        match old.bits.common(new.bits) {
            None => kept.push(old),
            Some(common) => {
                for bits in without(old.bits, common) {
                    let value = make.slice(old.value, old.bits.low_of(bits), bits.width);
                    kept.push(Write { bits, value });
                }
            }
        }
    }
    let is_later = |write: &&Write| match write.bits.root == new.bits.root {
        true => write.bits.bit > new.bits.bit,
        false => write.bits.root > new.bits.root && apart(make, write.bits, new.bits),
    };
    let at = kept.len() - kept.iter().rev().take_while(is_later).count();
    kept.insert(at, new);
    *writes = kept;
}

/// The same writes word by word, as sums are made, however many bytes each of them was of.
pub fn by_word(make: &mut Maker<'_>, writes: &[Write]) -> Log {
    let mut cut: Vec<Write> = vec![];
    for Write { bits, value } in writes {
        // Writes that may be of the same bytes keep their order.
        let is_alone = cut.iter().all(|write| write.bits.root == bits.root);
        let mut at = bits.bit;
        while at < bits.end() {
            let word = Bits { bit: at - at.rem_euclid(16), width: 16, ..*bits };
            let part = Bits { bit: at, width: (bits.end().min(word.end()) - at) as u8, ..*bits };
            let value = make.slice(*value, bits.low_of(part), part.width);
            write(make, &mut cut, Write { bits: part, value });
            if is_alone && part != word {
                let value = read(make, &cut, word);
                write(make, &mut cut, Write { bits: word, value });
            }
            at = part.end();
        }
    }
    if cut.windows(2).all(|pair| pair[0].bits.root == pair[1].bits.root) {
        cut.retain(|write| *make.pool.node(write.value) != Node::Atom(Atom::Bits(write.bits)));
    }
    make.pool.log(&cut)
}
