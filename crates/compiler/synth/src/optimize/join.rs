//! Contents of locations that every path to a join knows, each its own: a parameter of the join has them.
//!
//! What is read behind the join is then not read again (partial redundancy elimination in SSA form: Kennedy et al.,
//! TOPLAS 1999; only where no path has to read more for it), so a packet reads a field once wherever its path has joined
//! others. Parameters that nothing uses are removed with the other unused values.

use super::byte_range::ByteRange;
use super::forward::{Edge, Forward};
use super::optimizer_state::IsSet;
use super::sink::split_edge;
use super::value::Vn;
use ir::analysis::interval::Interval;
use ir::{BlockId, Term, Value};
use packet::field::Field;

/// The number of instructions up to which a content is computed for a join, whether the path needs it or not.
const MOST_COST: u32 = 2;
/// The depth of its expression.
const MOST_DEPTH: u32 = 3;
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
        let fits = |from: &Option<BlockId>| {
            from.is_some_and(|from| {
                !self.program.is_barrier(&self.program.block(from).term, self.known.is_walked)
            })
        };
        if edges.len() < 2 || !edges.iter().all(|(from, _)| fits(from)) {
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
            if state.set[field.base as usize] != IsSet::Yes {
                return None;
            }
            let content = state.held(state.place(field), &mut self.values, &self.anchors)?;
            let content = self.values.settled(content, &state.facts);
            let here = self.values.range(content, &state.facts);
            range = Some(range.map_or(here, |range| range.hull(here)));
            contents.push(content);
        }
        // Edges out of one block become one, with one content.
        let is_one =
            |at: usize| (0..at).all(|other| edges[other].0 != edges[at].0 || contents[other] == contents[at]);
        if !(0..edges.len()).all(is_one) {
            return None;
        }
        if contents.iter().all(|content| *content == contents[0]) {
            self.state.record_load(place, contents[0], &self.anchors);
            return None;
        }
        let can_make = edges
            .iter_mut()
            .zip(&contents)
            .all(|(edge, content)| self.on_edge(edge, |walk| walk.is_cheap(*content)));
        let joined = Joined { place, contents, range: range? };
        can_make.then(|| {
            // The ones behind it see that it is there.
            self.state.record_load(place, joined.contents[0], &self.anchors);
            joined
        })
    }

    fn add_params(&mut self, id: BlockId, edges: &mut [Edge], joined: &[Joined]) {
        let mut seen: Vec<BlockId> = vec![];
        for (at, edge) in edges.iter_mut().enumerate() {
            let Some(from) = edge.0.filter(|from| !seen.contains(from)) else { continue };
            seen.push(from);
            let args: Vec<Value> = self
                .on_edge(edge, |walk| joined.iter().map(|joined| walk.value(joined.contents[at])).collect());
            let jump = match self.out[from.index()].term {
                Term::Jump(..) => from,
                _ => split_edge(&mut self.out, &mut self.notes, (from, id)),
            };
            if let Term::Jump(_, known) = &mut self.out[jump.index()].term {
                known.extend(args);
            }
        }
        for Joined { place, range, .. } in joined {
            let (number, value) = (self.values.own(*range), self.fresh());
            self.out[id.index()].params.push(value);
            self.settle_at(number, value, id);
            self.state.places.retain(|known| known.0 != *place);
            self.state.record_load(*place, number, &self.anchors);
        }
    }

    /// Does something at the end of the block that an edge leaves.
    fn on_edge<T>(&mut self, (from, state): &mut Edge, what: impl FnOnce(&mut Self) -> T) -> T {
        let here = self.here;
        self.here = from.unwrap_or(here);
        std::mem::swap(&mut self.state, state);
        let done = what(self);
        std::mem::swap(&mut self.state, state);
        self.here = here;
        done
    }

    /// Whether a value is there, perhaps from before a stage boundary, or takes few instructions.
    fn is_cheap(&self, number: Vn) -> bool {
        self.cost(number, MOST_DEPTH, true).is_some_and(|cost| cost <= MOST_COST)
    }
}
