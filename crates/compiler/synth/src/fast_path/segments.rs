//! Which segments of a path are copied.

use super::packet_state::PacketState;
use super::prefix_lookup::is_prefix_lookup;
use super::walk::{Defined, Walk};
use ir::analysis::order::Order;
use ir::{BlockId, Inst, Program, Term};

/// A part of a path that can be copied, with its lookups.
pub(super) struct Segment<'a> {
    pub start: BlockId,
    /// The block before which it ends; `None` at a port.
    pub end: Option<BlockId>,
    pub walk: Walk<'a>,
}

/// The segments of a path that have enough lookups, in their order. One ends where something cannot be copied, at
/// the tests of its last lookup: what the path does behind it is left to the program.
pub(super) fn segments<'a>(
    program: &'a Program,
    defined: &'a Defined,
    path: &[BlockId],
    order: &Order,
) -> Vec<Segment<'a>> {
    // The packet in front of each block, as far as it is known.
    let mut packets = vec![Some(PacketState::at_entry())];
    for id in path {
        let packet: Option<PacketState> = packets.last().cloned().flatten();
        packets.push(packet.and_then(|packet| packet.behind(program, order, *id)));
    }
    let walk = |from: usize| {
        let start = packets[from].as_ref().map_or_else(PacketState::unknown, PacketState::start);
        Walk::new(program, defined, start)
    };
    let next = |at: usize| path.get(at + 1).copied();
    let joins: Vec<Option<usize>> = (0..path.len()).map(|at| meets_again(program, path, at)).collect();
    let (mut found, mut from) = (vec![], 0);
    while from < path.len() {
        // A packet that fails a test goes on at the block: that must be without arguments.
        if !program.block(path[from]).params.is_empty() {
            from = joins[from].unwrap_or(from + 1);
            continue;
        }
        let mut first = walk(from);
        // The block behind which the last lookup's record was tested, if there are enough lookups.
        let (mut end, mut is_tested) = (None, true);
        let failed = (from..path.len()).find(|at| {
            let before = first.lookups.len();
            if joins[*at].is_some() || first.pass(path[*at], next(*at)).is_none() {
                return true;
            }
            if first.lookups.len() > before && first.in_rows() > 0 {
                is_tested = false;
            } else if !is_tested && program.block(path[*at]).term.successors().len() > 1 {
                is_tested = true;
                end = Some(*at + 1);
            }
            false
        });
        let start = path[from];
        match (failed, end) {
            (None, _) if first.in_rows() > 0 => {
                found.push(Segment { start, end: None, walk: first });
                return found;
            }
            (None, _) => return found,
            (Some(_), Some(end)) => {
                let mut walk = walk(from);
                if (from..end).all(|at| walk.pass(path[at], next(at)).is_some()) {
                    found.push(Segment { start, end: Some(path[end]), walk });
                }
                from = end;
            }
            // What begins between would be for one of the outcomes.
            (Some(at), None) if let Some(join) = joins[at] => from = join,
            // No walk passes a sum or a record that is created.
            (Some(at), None) if is_barrier(program, path[at]) => from = at + 1,
            (Some(_), None) => from += 1,
        }
    }
    found
}

/// Blocks that are looked at between a test and where its outcomes meet.
const MOST_BETWEEN: usize = 16;

/// Where on the path all outcomes of a test at the end of a block meet again, without an exit or something that no walk
/// passes in between: none of them is more usual than the others. A mirror asks for the protocol, and all protocols go on
/// in the same way. An annotation is another matter: what comes from a port has none, and errors are few.
fn meets_again(program: &Program, path: &[BlockId], at: usize) -> Option<usize> {
    let block = program.block(path[at]);
    let (Term::Branch(asked, ..) | Term::Switch(asked, ..)) = block.term else { return None };
    if block.insts.iter().any(|(value, inst)| *value == Some(asked) && matches!(inst, Inst::LoadAnno(_))) {
        return None;
    }
    let is_join = |join: &usize| {
        let (mut seen, mut open) = (vec![], program.block(path[at]).term.successors());
        while let Some(id) = open.pop() {
            if id == path[*join] || seen.contains(&id) {
                continue;
            }
            let next = program.block(id).term.successors();
            if next.is_empty() || seen.len() == MOST_BETWEEN || is_barrier(program, id) {
                return false;
            }
            seen.push(id);
            open.extend(next);
        }
        true
    };
    (at + 1..path.len().min(at + MOST_BETWEEN)).find(is_join)
}

/// Whether no walk passes a block.
fn is_barrier(program: &Program, id: BlockId) -> bool {
    let block = program.block(id);
    let is_sum = |(_, inst): &(_, Inst)| matches!(inst, Inst::IpSum | Inst::TransportSum(_));
    let is_other = matches!(block.term, Term::Lookup { .. }) && !is_prefix_lookup(program, &block.term);
    block.insts.iter().any(is_sum) || is_other
}
