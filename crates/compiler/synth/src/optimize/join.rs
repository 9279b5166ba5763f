//! Contents of locations that every path to a join knows, each its own: a parameter of the join has them.
//!
//! What is read behind the join is then not read again (partial redundancy elimination in SSA form: Kennedy et al.,
//! TOPLAS 1999; only where no path has to read more for it), so a packet reads a field once wherever its path has joined
//! others. Parameters that nothing uses are removed with the other unused values.

use super::byte_range::ByteRange;
use super::forward::{Edge, Forward};
use super::optimizer_state::IsSet;
use super::value::{Expr, Vn};
use ir::analysis::interval::Interval;
use ir::{BinOp, Block, BlockId, Term, Value};
use packet::field::Field;

/// The number of instructions up to which a content is computed for a join, whether the path needs it or not.
const MOST_COST: u32 = 2;
/// Beyond this number of parameters a join gets no more.
const MOST_PARAMS: usize = 24;

/// A content that becomes a parameter: the location at the join, and its value on each edge.
struct Joined {
    place: ByteRange,
    contents: Vec<Vn>,
    range: Interval,
}

impl Forward<'_> {
    /// At the start of a join, whose facts are those that hold on all edges: gives it parameters.
    pub(super) fn join(&mut self, id: BlockId, edges: &mut [Edge]) {
        // Behind a lookup, they would be carried over the stage boundary.
        let fits = |walk: &Self, from: &Option<BlockId>| {
            from.is_some_and(|from| {
                !walk.program.is_barrier(&walk.program.block(from).term, walk.known.is_walked)
            })
        };
        if edges.len() < 2 || !edges.iter().all(|(from, _)| fits(self, from)) {
            return;
        }
        let mut joined: Vec<Joined> = vec![];
        for field in self.reads.behind(id) {
            if joined.len() == MOST_PARAMS {
                break;
            }
            joined.extend(self.joined(field, edges));
        }
        if !joined.is_empty() {
            self.add_params(id, edges, &joined);
        }
    }

    /// The content of a field at a join, where every edge has one and not all the same.
    fn joined(&mut self, field: Field, edges: &mut [Edge]) -> Option<Joined> {
        let place = self.place(field);
        if self.state.held(place, &mut self.values, &self.anchors).is_some() {
            return None;
        }
        let (mut contents, mut range): (Vec<Vn>, Option<Interval>) = (vec![], None);
        for (_, state) in edges.iter() {
            let at = state.at[field.base as usize];
            if state.set[field.base as usize] != IsSet::Yes {
                return None;
            }
            let place =
                ByteRange { anchor: at.anchor, bit: at.bytes * 8 + i64::from(field.bit), width: field.width };
            let content = state.held(place, &mut self.values, &self.anchors)?;
            let content = self.values.settled(content, &state.facts);
            let here = self.values.range(content, &state.facts);
            range = Some(range.map_or(here, |range| range.hull(here)));
            contents.push(content);
        }
        let of_block = |at: usize| (edges[at].0, contents[at]);
        let is_one = (0..edges.len())
            .all(|at| (0..at).all(|other| edges[other].0 != edges[at].0 || of_block(other) == of_block(at)));
        if !is_one {
            return None;
        }
        if contents.iter().all(|content| *content == contents[0]) {
            self.state.record_load(place, contents[0], &self.anchors);
            return None;
        }
        let here = self.here;
        let can_make = edges.iter_mut().zip(&contents).all(|((from, state), content)| {
            self.here = from.unwrap_or(here);
            std::mem::swap(&mut self.state, state);
            let cost = self.cost_here(*content);
            std::mem::swap(&mut self.state, state);
            cost.is_some_and(|cost| cost <= MOST_COST)
        });
        self.here = here;
        let joined = Joined { place, contents, range: range? };
        can_make.then(|| {
            // The ones behind it see that it is there.
            self.state.record_load(place, joined.contents[0], &self.anchors);
            joined
        })
    }

    fn add_params(&mut self, id: BlockId, edges: &mut [Edge], joined: &[Joined]) {
        let mut seen: Vec<BlockId> = vec![];
        for (at, (from, state)) in edges.iter_mut().enumerate() {
            let Some(from) = from.filter(|from| !seen.contains(from)) else { continue };
            seen.push(from);
            self.here = from;
            std::mem::swap(&mut self.state, state);
            let args: Vec<Value> = joined.iter().map(|joined| self.value(joined.contents[at])).collect();
            std::mem::swap(&mut self.state, state);
            if let Term::Jump(_, known) = &mut self.out[from.index()].term {
                known.extend(args);
                continue;
            }
            let split = BlockId(self.out.len() as u32);
            self.out.push(Block { params: vec![], insts: vec![], term: Term::Jump(id, args) });
            self.notes.push(vec![]);
            self.out[from.index()].term.map_successors(|old| if old == id { split } else { old });
        }
        self.here = id;
        for Joined { place, range, .. } in joined {
            let (number, value) = (self.values.own(*range), self.fresh());
            self.out[id.index()].params.push(value);
            self.settle_at(number, value, id);
            self.state.places.retain(|known| known.0 != *place);
            self.state.record_load(*place, number, &self.anchors);
        }
    }

    /// The number of instructions that compute a value here, on this side of the last stage boundary.
    fn cost_here(&self, number: Vn) -> Option<u32> {
        match self.values.expr(number) {
            Expr::Const(_) => Some(0),
            // Its parts are contents by themselves.
            Expr::Bin(BinOp::Or, ..) => self.holder(number, true).map(|_| 0),
            _ => self.cost(number, 3, true),
        }
    }
}
