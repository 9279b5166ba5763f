//! What a filter says of the packet as it arrived, and of where bits of it are.

use super::super::expr::{Atom, Bits, Id, Node, Pool, Root};
use super::super::filter::{Factor, Filter};
use ir::BinOp;
use ir::analysis::interval::IntervalSet;
use rustc_hash::FxHashMap;

/// Headers behind headers that are looked at.
pub(super) const DEPTH_OF_HEADERS: usize = 4;

/// Whether a smaller one of two numbers is a part of where bits are, or of where bits are that say that.
pub(super) fn is_behind_min(pool: &Pool, bits: Bits, depth: usize) -> bool {
    let (Some(depth), Root::At(root)) = (depth.checked_sub(1), bits.root) else { return false };
    let Node::Sum(_, terms) = pool.node(root) else { return false };
    terms.iter().any(|(term, _)| match pool.node(*term) {
        Node::Bin(BinOp::Min, ..) => true,
        Node::Atom(Atom::Bits(bits)) => is_behind_min(pool, *bits, depth),
        _ => false,
    })
}

/// Where a number must be larger than what is left of it without `n`, or without all of it: the conditions on it.
pub(super) fn lengths(pool: &Pool, filter: &Filter) -> Vec<Factor> {
    let condition = |factor: &Factor| {
        let Factor::Is(id, set) = factor else { return None };
        let Node::Sum(constant, terms) = pool.node(*id) else { return None };
        let (whole, less) = match **terms {
            [(whole, 1), (less, u64::MAX)] | [(less, u64::MAX), (whole, 1)] => (whole, less),
            _ => return None,
        };
        let Node::Bin(BinOp::Min, a, b) = *pool.node(less) else { return None };
        let most = if a == whole { b } else { (b == whole).then_some(a)? };
        let most = pool.constant(most)?;
        let more = IntervalSet::range(most.checked_add(1)?, u64::MAX);
        // If it is not larger, nothing is left.
        let is_larger = !set.contains(*constant);
        is_larger
            .then(|| Factor::Is(whole, set.shifted_down(constant.wrapping_sub(most)).intersection(&more)))
    };
    filter.0.iter().filter_map(condition).collect()
}

/// Whether a condition is on bits behind a smaller one of two numbers.
pub(super) fn is_on_such(pool: &Pool, factor: &Factor) -> bool {
    match factor {
        Factor::Is(id, _) => match pool.node(*id) {
            Node::Atom(Atom::Bits(bits)) => is_behind_min(pool, *bits, DEPTH_OF_HEADERS),
            _ => false,
        },
        Factor::Any(lists) => lists.iter().flatten().any(|factor| is_on_such(pool, factor)),
    }
}

/// Which expressions are a part of the packet as it arrived, at an offset that no table says.
#[derive(Default)]
pub(super) struct Arrived(FxHashMap<Id, bool>);

impl Arrived {
    pub(super) fn has(&mut self, pool: &Pool, id: Id) -> bool {
        match pool.node(id) {
            Node::Atom(Atom::Bits(Bits { root: Root::At(root), .. })) => self.is_of_lengths(pool, *root),
            Node::Atom(_) => true,
            _ => false,
        }
    }

    /// Whether an offset is made of parts of the packet and of its length alone.
    fn is_of_lengths(&mut self, pool: &Pool, id: Id) -> bool {
        if let Some(known) = self.0.get(&id) {
            return *known;
        }
        let is = match pool.node(id) {
            Node::Sum(_, terms) => terms.iter().all(|(term, _)| self.is_of_lengths(pool, *term)),
            Node::Cat(parts) => parts.iter().all(|(_, part)| self.is_of_lengths(pool, *part)),
            // As many bytes as there are to strip.
            Node::Bin(BinOp::Min, a, b) => [a, b].into_iter().all(|part| self.is_of_lengths(pool, *part)),
            Node::Const(_) => true,
            _ => self.has(pool, id),
        };
        self.0.insert(id, is);
        is
    }
}
