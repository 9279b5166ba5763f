//! Bits of a packet where the packets of a filter have them.

use super::super::expr::{Atom, Bits, Id, Node, Root};
use super::super::filter::Factor;
use super::Settler;
use super::arrived::{DEPTH_OF_HEADERS, is_behind_min};
use ir::BinOp;

impl Settler<'_> {
    /// Conditions on bits where this class has them.
    pub(super) fn moved_factors(&mut self, factors: &[Factor]) -> Vec<Factor> {
        let moved = factors.iter().map(|factor| match factor {
            Factor::Is(id, set) => Factor::Is(self.moved(*id), set.clone()),
            Factor::Any(lists) => Factor::Any(lists.iter().map(|list| self.moved_factors(list)).collect()),
        });
        moved.collect()
    }

    /// Bits of the packet as it arrived, where this class has them.
    pub(super) fn moved(&mut self, id: Id) -> Id {
        match *self.pool.node(id) {
            Node::Atom(Atom::Bits(bits)) => {
                if let Some(known) = self.places.get(&id) {
                    return *known;
                }
                let bits = self.moved_bits(bits);
                let moved = self.pool.atom(Atom::Bits(bits));
                self.places.insert(id, moved);
                moved
            }
            _ => id,
        }
    }

    /// Bits where the packets of the filter have them.
    pub(super) fn moved_bits(&mut self, bits: Bits) -> Bits {
        let bits = self.behind_smaller(bits);
        if self.has_choices { self.behind_known(bits) } else { bits }
    }

    /// The same bits, counted from where numbers that are known put them: one program may have written a port behind a
    /// header of some length before a test showed which.
    fn behind_known(&mut self, bits: Bits) -> Bits {
        let Root::At(root) = bits.root else { return bits };
        let place = self.make().settled(root);
        if place == root { bits } else { self.counted_from(place, bits) }
    }

    /// Of a packet that has as many bytes as are stripped, so many are stripped.
    fn behind_smaller(&mut self, bits: Bits) -> Bits {
        if !is_behind_min(self.pool, bits, DEPTH_OF_HEADERS) {
            return bits;
        }
        let Root::At(root) = bits.root else { return bits };
        let Node::Sum(constant, terms) = self.pool.node(root).clone() else { return bits };
        let mut place = self.pool.number(constant);
        for (term, by) in terms {
            let term = match *self.pool.node(term) {
                Node::Bin(BinOp::Min, a, b) => {
                    let smaller = self.id(term);
                    if smaller != term {
                        self.lengths.extend([a, b].into_iter().filter(|id| self.arrived.has(self.pool, *id)));
                    }
                    smaller
                }
                _ => self.moved(term),
            };
            place = self.make().add(place, term, by);
        }
        self.counted_from(place, bits)
    }

    /// Bits as far behind an offset as they are behind their root.
    fn counted_from(&mut self, place: Id, bits: Bits) -> Bits {
        let (root, by) = self.make().root(place);
        Bits { root: Root::At(root), bit: bits.bit + by as i32 * 8, width: bits.width }
    }
}
