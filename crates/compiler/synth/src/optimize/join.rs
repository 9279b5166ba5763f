//! Contents of locations that every path to a join knows, each its own: a parameter of the join has them.
//!
//! What is read behind the join is then not read again (partial redundancy elimination in SSA form: Kennedy et al.,
//! TOPLAS 1999; only where no path has to read more for it), so a packet reads a field once wherever its path has joined
//! others. Parameters that nothing uses are removed with the other unused values.

use super::byte_range::{Point, Position};
use super::forward::{Edge, Forward};
use super::optimizer_state::{IsSet, OptimizerState};
use super::sink::end_of_edge;
use super::value::Vn;
use ir::analysis::interval::Interval;
use ir::{BlockId, Term, Value};
use packet::field::{Base, Field};

/// The number of instructions up to which a content is computed for a join, whether the path needs it or not.
const MOST_COST: u32 = 2;
/// The depth of its expression.
const MOST_DEPTH: u32 = 3;
/// Beyond this number of parameters a join gets no more.
const MOST_PARAMS: usize = 24;

/// A content that becomes a parameter: its value on each edge, and at the join.
pub(super) struct Joined {
    contents: Vec<Vn>,
    number: Vn,
}

impl Forward<'_> {
    /// At the start of a join, whose facts are those that hold on all edges: gives it parameters.
    pub(super) fn join(&mut self, id: BlockId, edges: &mut [Edge], params: Vec<Joined>) {
        // Behind a lookup, they would be carried over the stage boundary.
        let fits = |from: &Option<BlockId>| {
            from.is_some_and(|from| {
                !self.program.is_barrier(&self.program.block(from).term, self.known.is_walked)
            })
        };
        if edges.len() < 2 || !edges.iter().all(|edge| fits(&edge.from)) {
            return;
        }
        let mut joined = params;
        let recognised = joined.len();
        let (transport, others): (Vec<Field>, Vec<Field>) =
            self.reads.behind(id).into_iter().partition(|field| field.base == Base::Trans);
        self.join_fields(others, edges, &mut joined);
        self.join_transport_header(edges, &joined);
        self.join_fields(transport, edges, &mut joined);
        self.join_length(edges, &joined);
        if joined.len() > recognised {
            self.add_params(id, edges, &joined[recognised..]);
        }
    }

    /// Where each edge's argument for a parameter is what the packet has in a field, the parameter is what it has there at
    /// the join: it is not read again, and the sum of a header that it is written to is known.
    ///
    /// Returns those parameters.
    pub(super) fn recognise_params(&mut self, params: &[Vn], edges: &[Edge]) -> Vec<Joined> {
        let mut found = vec![];
        if edges.len() < 2 {
            return found;
        }
        for (at, number) in params.iter().enumerate() {
            let is_same = edges.iter().all(|edge| edge.args[at] == edges[0].args[at]);
            let field = (!is_same).then(|| self.field_of_param(at, edges)).flatten();
            let Some(place) = field.map(|field| self.place(field)) else { continue };
            if self.state.held(place, &mut self.values, &self.anchors).is_none() {
                self.state.record_load(place, *number, &self.anchors);
            }
            found
                .push(Joined { contents: edges.iter().map(|edge| edge.args[at]).collect(), number: *number });
        }
        found
    }

    /// The field in which the packet has each edge's argument for a parameter.
    fn field_of_param(&mut self, at: usize, edges: &[Edge]) -> Option<Field> {
        let mut has_it = |Edge { state, args, .. }: &Edge, field: Field| {
            let held = state.held(state.place(field), &mut self.values, &self.anchors);
            let arg = self.values.settled(args[at], &state.facts);
            state.set[field.base as usize] == IsSet::Yes
                && held.is_some_and(|held| self.values.settled(held, &state.facts) == arg)
        };
        let Edge { state, args, .. } = &edges[0];
        let held = state.places.iter().rev().filter(|(_, value)| *value == args[at]);
        let mut fields = held.flat_map(|(place, _)| state.fields_at(*place));
        fields.find(|field| edges.iter().all(|edge| has_it(edge, *field)))
    }

    fn join_fields(&mut self, fields: Vec<Field>, edges: &mut [Edge], joined: &mut Vec<Joined>) {
        for field in fields {
            if joined.len() == MOST_PARAMS {
                break;
            }
            joined.extend(self.joined(field, edges));
        }
    }

    /// The content of a field at a join, where every edge has one and not all the same.
    fn joined(&mut self, field: Field, edges: &mut [Edge]) -> Option<Joined> {
        let place = self.place(field);
        if let Some(content) = self.state.held(place, &mut self.values, &self.anchors) {
            // Each edge may have read it for itself.
            let contents = vec![content; edges.len()];
            let is_joined = !self.is_cheap(content) && self.is_cheap_on_all(edges, &contents);
            return is_joined.then_some(Joined { contents, number: content });
        }
        let (mut contents, mut range): (Vec<Vn>, Option<Interval>) = (vec![], None);
        for Edge { state, .. } in edges.iter() {
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
        let is_one = |at: usize| {
            (0..at).all(|other| edges[other].from != edges[at].from || contents[other] == contents[at])
        };
        if !(0..edges.len()).all(is_one) {
            return None;
        }
        let same = Some(contents[0]).filter(|first| contents.iter().all(|content| content == first));
        if let Some(same) = same
            && self.is_cheap(same)
        {
            self.state.record_load(place, same, &self.anchors);
            return None;
        }
        if !self.is_cheap_on_all(edges, &contents) {
            return None;
        }
        let number = same.or_else(|| Some(self.values.own(range?)))?;
        self.state.record_load(place, number, &self.anchors);
        Some(Joined { contents, number })
    }

    /// Whether contents are there at the ends of all edges, or take few instructions.
    fn is_cheap_on_all(&mut self, edges: &mut [Edge], contents: &[Vn]) -> bool {
        edges
            .iter_mut()
            .zip(contents)
            .all(|(edge, content)| self.on_edge(edge, |walk| walk.is_cheap(*content)))
    }

    /// Where the transport header is behind a length that each edge has read for itself from the header in front of it,
    /// it is behind the length that the parameter has.
    fn join_transport_header(&mut self, edges: &[Edge], joined: &[Joined]) {
        let which = Base::Trans as usize;
        let here = self.state.at[which];
        if self.state.set[which] != IsSet::Yes || edges.iter().all(|edge| edge.state.at[which] == here) {
            return;
        }
        // Behind which header it is, how far, and by how many bytes more.
        let behind = |state: &OptimizerState| {
            let at = state.at[which];
            let Point::Behind(from, by) = self.anchors.point(at.anchor) else { return None };
            let header = [Base::Net, Base::Data, Base::Mac].map(|base| base as usize);
            let header = header.into_iter().find(|header| state.at[*header].anchor == from)?;
            Some((header, by, at.bytes - state.at[header].bytes))
        };
        let Some(all) = edges.iter().map(|edge| behind(&edge.state)).collect::<Option<Vec<_>>>() else {
            return;
        };
        let (header, _, bytes) = all[0];
        if all.iter().any(|(other, _, more)| (*other, *more) != (header, bytes)) {
            return;
        }
        let lengths: Vec<Vn> = all.iter().map(|(_, by, _)| *by).collect();
        let Some(by) = self.of_params(&lengths, joined) else { return };
        let header = self.state.at[header];
        let anchor = self.anchors.of(Point::Behind(header.anchor, by));
        self.state.at[which] = Position { anchor, bytes: header.bytes + bytes };
    }

    /// The length of a header whose checksum is correct, likewise.
    fn join_length(&mut self, edges: &[Edge], joined: &[Joined]) {
        let is_open = self.state.has_right_sum()
            && self.state.right.as_ref().is_some_and(|right| right.length.is_none());
        if !is_open {
            return;
        }
        let lengths = edges.iter().map(|edge| edge.state.right.as_ref()?.length).collect::<Option<Vec<Vn>>>();
        let length = lengths.and_then(|lengths| self.of_params(&lengths, joined));
        self.state.right.iter_mut().for_each(|right| right.length = length);
    }

    /// The value at the join of one on each edge: the same, or computed from a parameter as these are from its values.
    fn of_params(&mut self, on_edges: &[Vn], joined: &[Joined]) -> Option<Vn> {
        let first = on_edges[0];
        if on_edges.iter().all(|value| *value == first) {
            return Some(first);
        }
        joined.iter().find_map(|joined| {
            let mut with = |content: Vn| self.values.with(first, joined.contents[0], content, MOST_DEPTH + 2);
            let is_it = joined.contents.iter().zip(on_edges).all(|(content, value)| with(*content) == *value);
            is_it.then(|| with(joined.number))
        })
    }

    fn add_params(&mut self, id: BlockId, edges: &mut [Edge], joined: &[Joined]) {
        let mut seen: Vec<BlockId> = vec![];
        for (at, edge) in edges.iter_mut().enumerate() {
            let Some(from) = edge.from.filter(|from| !seen.contains(from)) else { continue };
            seen.push(from);
            let args: Vec<Value> = self
                .on_edge(edge, |walk| joined.iter().map(|joined| walk.value(joined.contents[at])).collect());
            let jump = end_of_edge(&mut self.out, &mut self.notes, (from, id));
            if let Term::Jump(_, known) = &mut self.out[jump.index()].term {
                known.extend(args);
            }
        }
        for Joined { number, .. } in joined {
            let value = self.fresh();
            self.out[id.index()].params.push(value);
            self.settle_at(*number, value, id);
        }
    }

    /// Does something at the end of the block that an edge leaves.
    pub(super) fn on_edge<T>(
        &mut self,
        Edge { from, state, .. }: &mut Edge,
        what: impl FnOnce(&mut Self) -> T,
    ) -> T {
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
