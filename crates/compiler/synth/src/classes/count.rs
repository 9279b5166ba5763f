//! The minimum number of operations that a class needs: SNF's figures 5 and 6.

use super::expr::{Atom, Bits, Id, Node, Pool, Root, Write};
use super::filter::each_condition;
use super::names::{self, Context};
use super::{Class, Counts, Exit};
use std::collections::BTreeSet;

/// Counts the accesses of at most 64 bits that adjacent bits need: to the packet's bytes, and to annotations.
fn accesses(bits: impl IntoIterator<Item = Bits>) -> [usize; 2] {
    let (annos, bytes): (BTreeSet<Bits>, BTreeSet<Bits>) =
        bits.into_iter().partition(|bits| bits.root == Root::Anno);
    [bytes, annos].map(of_kind)
}

fn of_kind(all: BTreeSet<Bits>) -> usize {
    let mut count = 0;
    let mut open: Option<Bits> = None;
    for bits in all {
        match &mut open {
            Some(open) if open.root == bits.root && bits.bit <= open.end() && bits.end() - open.bit <= 64 => {
                open.width = (bits.end().max(open.end()) - open.bit) as u8;
            }
            _ => {
                count += 1;
                open = Some(bits);
            }
        }
    }
    count
}

fn collect(pool: &Pool, id: Id, seen: &mut BTreeSet<Id>) {
    if seen.insert(id) {
        pool.children(id).into_iter().for_each(|child| collect(pool, child, seen));
    }
}

impl Class {
    /// Operations of the class if each field is read once and written once, and dropped packets are not
    /// written.
    pub fn after(&self, pool: &Pool) -> Counts {
        let mut seen = BTreeSet::new();
        each_condition(&self.filter.0, &mut |id, _| collect(pool, id, &mut seen));
        let dropped = matches!(self.exit, Exit::Drop(_));
        let writes: &[Write] = if dropped { &[] } else { &self.end.bytes };
        let annos: &[Write] = if dropped { &[] } else { &self.end.annos };
        for write in writes.iter().chain(annos) {
            collect(pool, write.value, &mut seen);
        }
        self.end.cells.values().for_each(|value| collect(pool, *value, &mut seen));
        self.end.records.iter().for_each(|write| collect(pool, write.value, &mut seen));
        let bits = |id: &Id| match pool.node(*id) {
            Node::Atom(Atom::Bits(bits)) => Some(*bits),
            _ => None,
        };
        let sums =
            seen.iter().filter(|id| matches!(pool.node(**id), Node::IpSum(..) | Node::TransportSum(_)));
        let [reads, read_annos] = accesses(seen.iter().filter_map(bits));
        let [writes_of, written_annos] = accesses(writes.iter().chain(annos).map(|write| write.bits));
        let type_read = seen.iter().any(|id| matches!(pool.node(*id), Node::Atom(Atom::PacketType)));
        let type_written =
            !dropped && !matches!(pool.node(self.end.packet_type), Node::Atom(Atom::PacketType));
        let context = Context::of(pool, &self.filter);
        let mended = writes.iter().filter(|write| names::bits(pool, write.bits, &context).ends_with(".sum"));
        Counts {
            reads,
            writes: writes_of,
            annotations: read_annos + written_annos + usize::from(type_read) + usize::from(type_written),
            checksums: sums.count() + mended.count(),
        }
    }
}
