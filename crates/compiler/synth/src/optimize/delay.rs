//! Writes moved as far as nothing reads or changes what they write, past joins of paths and lookups, where some later
//! path writes the same again (partial dead code elimination: Knoop, Ruething, Steffen, PLDI 1994). So of the writes of
//! several rewriters the last remains, and each packet that a slow path takes in between is written there.
//!
//! A write is delayed past a join if every path to it has one of the same location. Each may have a value of its own,
//! which becomes a parameter: a rewriter writes the ports of a reply and those of a request in code of their own, and
//! the next rewriter writes them again. No path writes more than before.
//!
//! A write to a part of the location is put into the delayed value: a rewriter writes both addresses, and the router
//! behind it the source of an error.

mod moves;

use super::optimization_note::{Kind, Notes, OptimizationNote, Touch};
use super::retain::retain;
use super::sink::{is_movable, may_swap, most_splits, next_blocks};
use super::unread::{Unread, at_end};
use ir::analysis::order::edges_in;
use ir::{Block, BlockId, Inst, Program, Term, Value};

/// How many more writes there may be after some were delayed.
const MOST_COPIES: usize = 200;

/// Where writes go: the instruction with some value, and its bits. These have several names, where paths that know different
/// things of the packet's headers meet; a base that moves in between is in the way of the write.
struct Location {
    inst: Inst,
    touches: Vec<Touch>,
    writes: usize,
    /// The last block with one, by its place in the order.
    last: usize,
}

/// The order of a program's blocks, and the edges that lead to each.
struct Graph {
    order: Vec<BlockId>,
    in_edges: Vec<u32>,
}

impl Graph {
    fn of(program: &Program) -> Graph {
        let order = program.topological_order();
        Graph { in_edges: edges_in(program, &order), order }
    }
}

/// Delays the writes of a program where that saves some packet one.
pub(super) fn writes(
    program: &mut Program,
    notes: &mut Notes,
    starts: &mut Vec<Option<Unread>>,
    bases: &[Option<[Touch; 4]>],
) {
    let mut splits = most_splits(program);
    // Of blocks that were added nothing is known: what is written there counts as read.
    starts.resize(program.blocks.len(), None);
    let (mut graph, mut next) = (Graph::of(program), program.value_count() as u32);
    // The last writes first: a later one to the same bits would be in the way.
    for location in locations(program, notes, &graph) {
        let delay = Delay::of(program, notes, starts, &graph, (&location, bases));
        let delay = delay.worth(&mut splits);
        if delay.is_empty() {
            continue;
        }
        let blocks = program.blocks.len();
        delay.apply(program, notes, starts, (&location, &mut next));
        if program.blocks.len() > blocks {
            graph = Graph::of(program);
        }
    }
}

/// The location that an instruction writes to, without its value.
fn without_value(mut inst: Inst) -> Inst {
    inst.map_operands(|value| *value = Value(0));
    inst
}

impl Location {
    fn has(&self, inst: Inst) -> bool {
        is_movable(&inst) && without_value(inst) == self.inst
    }

    /// Its bits at a join.
    fn touch(&self, bases: &[Touch; 4]) -> Option<Touch> {
        match self.inst {
            Inst::Store(field, _) => {
                Some(bases[field.base as usize].behind(field.bit.into(), field.width.into()))
            }
            _ => None,
        }
    }
}

/// Locations that are written more than once, those of the last writes first.
fn locations(program: &Program, notes: &Notes, graph: &Graph) -> Vec<Location> {
    let mut all: Vec<Location> = vec![];
    for (last, id) in graph.order.iter().enumerate() {
        for ((_, inst), note) in program.block(*id).insts.iter().zip(&notes[id.index()]) {
            let Some(touch) = note
                .writes
                .filter(|touch| is_movable(inst) && matches!(touch.kind, Kind::Packet | Kind::Aside))
            else {
                continue;
            };
            match all.iter_mut().find(|location| location.has(*inst)) {
                Some(known) => {
                    (known.writes, known.last) = (known.writes + 1, last);
                    if !known.touches.iter().any(|known| known.is_same(&touch)) {
                        known.touches.push(touch);
                    }
                }
                None => {
                    all.push(Location { inst: without_value(*inst), touches: vec![touch], writes: 1, last });
                }
            }
        }
    }
    let is_again = |Location { touches, .. }: &Location| {
        let is_one = |a: &Touch| touches.iter().any(|b| a.anchor == b.anchor && a.may_meet(b));
        let is_other = |other: &Location| other.touches.iter().any(is_one);
        all.iter().filter(|other| is_other(other)).map(|other| other.writes).sum::<usize>() > 1
    };
    let keep: Vec<bool> = all.iter().map(is_again).collect();
    retain(&mut all, &keep);
    all.sort_by_key(|location| std::cmp::Reverse(location.last));
    all
}

/// Where a delayed write is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    /// Before an instruction of a block, or at its end.
    Before(BlockId, usize),
    /// On an edge from a block with other successors to one with other predecessors.
    Edge(BlockId, BlockId),
}

/// A write that is delayed at some point.
#[derive(Clone, Copy)]
struct Delayed {
    /// The group of writes that meet with it at joins.
    web: usize,
    touches: OptimizationNote,
    /// The instruction of this block that it is, else it comes from before.
    own: Option<usize>,
}

impl Delayed {
    /// Whether it can be done behind instructions, but for writes to a part of it, of which the first is one.
    fn passes_all(&self, insts: &[(Option<Value>, Inst)], notes: &[OptimizationNote]) -> bool {
        let is_part = |inst: &Inst, note: &OptimizationNote| {
            let (whole, part) = (self.touches.writes.as_ref(), note.writes.as_ref());
            matches!(inst, Inst::Store(..))
                && whole.zip(part).is_some_and(|(whole, part)| whole.contains(part))
        };
        let mut all = insts.iter().zip(notes);
        all.next().is_some_and(|((_, inst), note)| is_part(inst, note))
            && all.all(|((_, inst), note)| may_swap(&self.touches, note) || is_part(inst, note))
    }
}

/// How far writes to a location can be delayed.
struct Delay<'g> {
    order: &'g [BlockId],
    /// For each block the one that comes there, and the one that leaves it.
    comes: Vec<Option<Delayed>>,
    leaves: Vec<Option<Delayed>>,
    /// The blocks that it comes from.
    from: Vec<Vec<BlockId>>,
    /// For each web, one that it is part of; itself if none.
    part_of: Vec<usize>,
    /// For each block the writes to parts of the location that become part of the value that leaves it, and its web.
    parts: Vec<(usize, Vec<usize>)>,
    /// Webs with a write that some path does not do any more.
    saved: Vec<bool>,
    targets: Vec<(usize, Target)>,
}

impl<'g> Delay<'g> {
    fn of(
        program: &Program,
        notes: &Notes,
        starts: &[Option<Unread>],
        graph: &'g Graph,
        (location, bases): (&Location, &[Option<[Touch; 4]>]),
    ) -> Delay<'g> {
        let count = program.blocks.len();
        let mut delay = Delay {
            order: &graph.order,
            comes: vec![None; count],
            leaves: vec![None; count],
            from: vec![vec![]; count],
            part_of: vec![],
            parts: vec![(usize::MAX, vec![]); count],
            saved: vec![],
            targets: vec![],
        };
        for &id in &graph.order {
            delay.comes[id.index()] = delay.coming(program, graph, id, location, bases);
            delay.pass(program, notes, starts, id, location);
        }
        for &id in &graph.order {
            delay.stop(program, starts, id);
        }
        delay
    }

    /// The delayed write at the start of a block: all paths have one.
    fn coming(
        &mut self,
        program: &Program,
        graph: &Graph,
        id: BlockId,
        location: &Location,
        bases: &[Option<[Touch; 4]>],
    ) -> Option<Delayed> {
        let from = &mut self.from[id.index()];
        let is_all = !from.is_empty() && from.len() == graph.in_edges[id.index()] as usize;
        from.dedup();
        // A parameter needs a block of its own in front, which a stage does not have.
        let fits =
            is_all && (from.len() == 1 || from.iter().all(|from| !program.block(*from).term.is_barrier()));
        if !fits {
            return None;
        }
        let from = from.clone();
        let mut all = from.iter().filter_map(|from| self.leaves[from.index()]);
        let first = all.next()?;
        let mut touches = first.touches;
        let mut webs = vec![];
        for other in all {
            let (Some(mine), Some(theirs)) = (touches.writes, other.touches.writes) else { return None };
            touches.writes = Some(match mine.is_same(&theirs) {
                true => mine.by_either(&theirs),
                false => location.touch(bases.get(id.index())?.as_ref()?)?,
            });
            webs.push(other.web);
        }
        let web = self.root(first.web);
        for other in webs {
            let other = self.root(other);
            self.part_of[other] = web;
            self.saved[web] |= self.saved[other];
        }
        Some(Delayed { web, touches, own: None })
    }

    fn root(&self, mut web: usize) -> usize {
        while self.part_of[web] != web {
            web = self.part_of[web];
        }
        web
    }

    fn save(&mut self, web: usize) {
        let web = self.root(web);
        self.saved[web] = true;
    }

    /// Passes the instructions of a block.
    fn pass(
        &mut self,
        program: &Program,
        notes: &Notes,
        starts: &[Option<Unread>],
        id: BlockId,
        location: &Location,
    ) {
        let (block, notes) = (program.block(id), &notes[id.index()]);
        let mut now = self.comes[id.index()];
        let mut parts = vec![];
        for (at, ((_, inst), note)) in block.insts.iter().zip(notes).enumerate() {
            if location.has(*inst) {
                now.filter(|now| now.own.is_none()).into_iter().for_each(|now| self.save(now.web));
                now = Some(Delayed { web: usize::MAX, touches: *note, own: Some(at) });
                parts.clear();
                continue;
            }
            let Some(delayed) = now.filter(|now| !may_swap(&now.touches, note)) else { continue };
            if delayed.passes_all(&block.insts[at..], &notes[at..]) {
                parts.push(at);
                continue;
            }
            if let (None, Some(touch)) = (delayed.own, delayed.touches.writes) {
                let unread = before(block, notes, starts, at);
                if unread.is_written_again(&touch) {
                    self.save(delayed.web);
                }
                if !unread.holds(&touch) {
                    self.targets.push((delayed.web, Target::Before(id, at)));
                }
            }
            now = None;
        }
        let Some(mut delayed) = now else { return };
        match block.term {
            Term::Drop(_) => {}
            Term::Emit(_) | Term::Slow(_) | Term::EmitTo(..) => {
                if delayed.own.is_none() {
                    self.targets.push((delayed.web, Target::Before(id, block.insts.len())));
                    self.put_in(delayed.web, id, parts);
                }
            }
            _ => {
                if delayed.own.is_some() {
                    delayed.web = self.part_of.len();
                    self.part_of.push(delayed.web);
                    self.saved.push(false);
                }
                self.put_in(delayed.web, id, parts);
                self.leaves[id.index()] = Some(delayed);
                block.term.successors().into_iter().for_each(|to| self.from[to.index()].push(id));
            }
        }
    }

    /// Writes to parts of the location become part of the value that leaves a block.
    fn put_in(&mut self, web: usize, id: BlockId, parts: Vec<usize>) {
        if !parts.is_empty() {
            self.save(web);
            self.parts[id.index()] = (web, parts);
        }
    }

    /// Ends the way of a write at blocks that other paths lead to as well.
    fn stop(&mut self, program: &Program, starts: &[Option<Unread>], id: BlockId) {
        let Some(Delayed { web, touches: OptimizationNote { writes: Some(touch), .. }, .. }) =
            self.leaves[id.index()]
        else {
            return;
        };
        let block = program.block(id);
        let mut next = next_blocks(&block.term);
        let all = next.len();
        next.retain(|to| self.comes[to.index()].is_none());
        let is_again =
            |to: &BlockId| starts[to.index()].as_ref().is_some_and(|start| start.is_written_again(&touch));
        if next.iter().any(is_again) {
            self.save(web);
        }
        next.retain(|to| starts[to.index()].as_ref().is_none_or(|start| !start.holds(&touch)));
        if next.len() == all {
            return self.targets.push((web, Target::Before(id, block.insts.len())));
        }
        self.targets.extend(next.into_iter().map(|to| (web, Target::Edge(id, to))));
    }

    /// What of it saves packets a write.
    fn worth(mut self, splits: &mut usize) -> Self {
        let webs = 0..self.part_of.len();
        let is_worth: Vec<bool> =
            webs.map(|web| self.root(web) == web && self.saved[web] && self.fits(web, splits)).collect();
        let is_moved: Vec<bool> = (0..is_worth.len()).map(|web| is_worth[self.root(web)]).collect();
        self.targets.retain(|(web, _)| is_moved[*web]);
        let keep = |delayed: &mut Option<Delayed>| *delayed = delayed.filter(|delayed| is_moved[delayed.web]);
        self.comes.iter_mut().for_each(keep);
        self.leaves.iter_mut().for_each(keep);
        // A block's own write may stay where one that comes there is moved.
        self.parts
            .iter_mut()
            .filter(|(web, _)| is_moved.get(*web) != Some(&true))
            .for_each(|(_, at)| at.clear());
        self
    }

    fn is_empty(&self) -> bool {
        self.leaves.iter().all(Option::is_none)
    }

    /// Whether the writes of a web do not become many more.
    fn fits(&self, web: usize, splits: &mut usize) -> bool {
        let is_own = |one: &&Delayed| one.own.is_some() && self.root(one.web) == web;
        let own = self.leaves.iter().flatten().filter(is_own).count();
        let targets = self.targets.iter().filter(|(other, _)| self.root(*other) == web);
        let edges = targets.clone().filter(|(_, target)| matches!(target, Target::Edge(..))).count();
        let fits = targets.count() <= own + MOST_COPIES && edges <= *splits;
        *splits -= if fits { edges } else { 0 };
        fits
    }
}

/// The unread bits before an instruction of a block.
fn before(block: &Block, notes: &[OptimizationNote], starts: &[Option<Unread>], at: usize) -> Unread {
    let mut unread = at_end(&block.term, starts);
    for note in notes[at..].iter().rev() {
        note.writes.into_iter().for_each(|touch| unread.write(touch));
        unread.read(note);
    }
    unread
}
