//! The walk: SNF's algorithms 1 and 2 over the blocks of a program.
//!
//! Blocks are done in an order where each comes before those that may follow it. Ways that come to a
//! block in the same state become one: by the union of a set where their filters differ in one
//! expression, else by alternatives. So what a chain costs is the sum of what its elements cost, not
//! the product.

use super::expr::{Atom, Find, Id, Node, RecWrite};
use super::facts::Facts;
use super::filter::Filter;
use super::interval::IntervalSet;
use super::simplify::Maker;
use super::state::{Place, State};
use super::{Counts, Exit, Left, Options, Step, Wasted};
use ir::BinOp;
use ir::program::{BlockId, Inst, Program, Term, Value};
use packet::field::{self, Base, Field};
use std::collections::{BTreeMap, HashSet};

/// A way through a program, as far as it has come.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub facts: Facts,
    pub filter: Filter,
    pub state: State,
    /// Values that are still needed.
    pub values: BTreeMap<Value, Id>,
    pub steps: Vec<Step>,
    pub counts: Counts,
    pub wasted: Vec<Wasted>,
    /// Ways that were joined to this one, itself included.
    pub ways: usize,
}

/// A way that has come to its end.
pub(super) struct Done {
    pub way: Way,
    pub exit: Exit,
}

pub(super) struct Walker<'a> {
    pub program: &'a Program,
    pub options: &'a Options<'a>,
    pub pool: super::expr::Pool,
    pub done: Vec<Done>,
    pub left: Vec<Left>,
    /// Whether a cell is written by the program.
    written: Vec<bool>,
    live: Vec<Vec<Value>>,
    pending: BTreeMap<usize, Vec<Way>>,
    position: Vec<usize>,
    at: usize,
}

/// Values that each block needs from those before it.
fn live_in(program: &Program, order: &[BlockId]) -> Vec<Vec<Value>> {
    let mut live: Vec<Vec<Value>> = vec![vec![]; program.blocks.len()];
    for id in order.iter().rev() {
        let block = program.block(*id);
        let after = block.term.successors().into_iter().flat_map(|to| live[to.index()].clone());
        let mut needed: Vec<Value> = after.collect();
        needed.retain(|value| Some(*value) != block.term.defines());
        needed.extend(block.term.operands());
        for (value, inst) in block.insts.iter().rev() {
            needed.retain(|needed| Some(*needed) != *value);
            needed.extend(inst.operands());
        }
        needed.retain(|value| !block.params.contains(value));
        needed.sort_unstable();
        needed.dedup();
        live[id.index()] = needed;
    }
    live
}

impl<'a> Walker<'a> {
    pub fn new(program: &'a Program, options: &'a Options<'a>) -> Walker<'a> {
        let order = program.topological_order();
        let mut position = vec![0; program.blocks.len()];
        order.iter().enumerate().for_each(|(at, block)| position[block.index()] = at);
        let mut written = vec![false; program.cells.len()];
        for (_, inst) in program.blocks.iter().flat_map(|block| &block.insts) {
            if let Inst::CellStore(cell, _) | Inst::CellAdd(cell, _) = inst {
                written[usize::from(*cell)] = true;
            }
        }
        Walker {
            program,
            options,
            pool: super::expr::Pool::default(),
            done: vec![],
            left: vec![],
            written,
            live: live_in(program, &order),
            pending: BTreeMap::new(),
            position,
            at: 0,
        }
    }

    /// Walks all ways from an entry.
    pub fn walk(&mut self, entry: usize) {
        let Some(&start) = self.program.entries.get(entry) else { return };
        let facts = Facts::default();
        let mut make = Maker { pool: &mut self.pool, facts: &facts };
        let state = State::entry(&mut make, self.options.frames);
        let way = Way {
            facts,
            filter: Filter::default(),
            state,
            values: BTreeMap::new(),
            steps: vec![],
            counts: Counts::default(),
            wasted: vec![],
            ways: 1,
        };
        self.pending.insert(self.position[start.index()], vec![way]);
        let order = self.program.topological_order();
        while let Some((at, ways)) = self.pending.pop_first() {
            let Some(&block) = order.get(at) else { continue };
            self.at = block.index();
            let mut ways = super::merge::arriving(&self.pool, ways, self.options.max_ways_apart);
            let room = self.options.max_ways.saturating_sub(self.done.len());
            if ways.len() > room {
                for way in ways.drain(room..) {
                    self.left.push(Left { entry, block, filter: way.filter, ways: way.ways });
                }
            }
            for way in ways {
                self.block(way, block);
            }
        }
    }

    fn origin(&self) -> usize {
        self.options.origins.get(self.at).copied().unwrap_or(0)
    }

    fn make<'b>(pool: &'b mut super::expr::Pool, way: &'b Way) -> Maker<'b> {
        Maker { pool, facts: &way.facts }
    }

    fn block(&mut self, way: Way, id: BlockId) {
        let program = self.program;
        let block = program.block(id);
        let mut ways = vec![way];
        for (value, inst) in &block.insts {
            let mut next = Vec::with_capacity(ways.len());
            for way in ways {
                for (mut way, result) in self.inst(way, *inst) {
                    if let (Some(value), Some(result)) = (value, result) {
                        way.values.insert(*value, result);
                    }
                    next.push(way);
                }
            }
            ways = next;
        }
        for way in ways {
            self.term(way, &block.term);
        }
    }

    fn get(way: &Way, value: Value) -> Id {
        way.values[&value]
    }

    /// The ways on which a truth holds, and on which it does not.
    fn split(&mut self, way: Way, truth: Id) -> Vec<(Way, bool)> {
        let truth = {
            let mut make = Self::make(&mut self.pool, &way);
            let truth = make.truth(truth);
            make.again(truth)
        };
        if let Some((op, a, b)) = self.pool.connective(truth) {
            let decided = op == BinOp::Or;
            let first = self.split(way, a);
            let mut all = vec![];
            for (way, holds) in first {
                match holds == decided {
                    true => all.push((way, decided)),
                    false => all.extend(self.split(way, b)),
                }
            }
            return all;
        }
        if let Some(number) = self.pool.constant(truth) {
            return vec![(way, number != 0)];
        }
        let (of, set) = match self.pool.node(truth) {
            Node::In(of, set) => (*of, set.clone()),
            _ => (truth, IntervalSet::range(1, u64::MAX)),
        };
        if let Node::Select(c, a, b) = *self.pool.node(of) {
            let mut all = vec![];
            for (way, holds) in self.split(way, c) {
                let arm = if holds { a } else { b };
                let truth = Self::make(&mut self.pool, &way).is_in(arm, &set);
                all.extend(self.split(way, truth));
            }
            return all;
        }
        let others = set.complement(self.pool.max(of));
        let mut both = vec![];
        for (set, holds) in [(set, true), (others, false)] {
            let mut way = way.clone();
            if self.take(&mut way, of, &set) {
                both.push((way, holds));
            }
        }
        both
    }

    /// Takes a condition; false where it cannot hold.
    fn take(&mut self, way: &mut Way, of: Id, set: &IntervalSet) -> bool {
        if !way.facts.take(&self.pool, of, set) {
            return false;
        }
        match self.fields(of, set) {
            Some(parts) => {
                for (part, set) in parts {
                    if !way.facts.take(&self.pool, part, &set) {
                        return false;
                    }
                    way.filter.add(part, &set);
                }
            }
            None => way.filter.add(of, set),
        }
        let step = Step {
            origin: self.origin(),
            block: BlockId(self.at as u32),
            of,
            set: way.facts.known(&self.pool, of),
        };
        way.steps.push(step);
        true
    }

    /// A condition on two fields side by side as one on each of them, where it can be told so.
    fn fields(&mut self, of: Id, set: &IntervalSet) -> Option<[(Id, IntervalSet); 2]> {
        let Node::Atom(Atom::Bits(bits)) = *self.pool.node(of) else { return None };
        let [(first, last)] = *set.intervals() else { return None };
        let low =
            bits.width - Some(super::names::first_field(&self.pool, bits)).filter(|width| *width > 0)?;
        if low == 0 || first >> low != last >> low {
            return None;
        }
        let high = self.pool.atom(Atom::Bits(bits.part(low, bits.width - low)));
        let rest = self.pool.atom(Atom::Bits(bits.part(0, low)));
        let mask = super::interval::ones(low);
        Some([(high, IntervalSet::one(first >> low)), (rest, IntervalSet::range(first & mask, last & mask))])
    }

    fn bare(way: Way) -> Vec<(Way, Option<Id>)> {
        vec![(way, None)]
    }

    fn inst(&mut self, mut way: Way, inst: Inst) -> Vec<(Way, Option<Id>)> {
        self.count(&mut way, inst);
        let mut state = way.state.clone();
        let operands: Vec<Id> = inst.operands().iter().map(|value| Self::get(&way, *value)).collect();
        let operand = |at: usize| operands[at];
        let mut make = Self::make(&mut self.pool, &way);
        let result = match inst {
            Inst::Const(number) => Some(make.number(number)),
            Inst::Bin(op, ..) => Some(make.bin(op, operand(0), operand(1))),
            Inst::Select(..) => Some(make.select(operand(0), operand(1), operand(2))),
            Inst::Load(field) => Some(state.load(&mut make, field)),
            Inst::Store(field, _) => {
                state.store(&mut make, field, operand(0));
                None
            }
            Inst::LoadAnno(anno) => Some(state.load_anno(&mut make, anno)),
            Inst::StoreAnno(anno, _) => {
                state.store_anno(&mut make, anno, operand(0));
                None
            }
            Inst::Len => Some(state.len(&mut make)),
            Inst::Avail(base) => Some(state.avail(&mut make, base)),
            Inst::Offset(base) => Some(state.offset(&mut make, base)),
            Inst::SetBase(base, _) => return self.set_base(way, base, operand(0)),
            Inst::ClearBase(base) => {
                if let Some(place) = (base as usize).checked_sub(1) {
                    state.places[place] = Place::Unset;
                }
                None
            }
            Inst::Pull(_) => {
                let head = state.head(&mut make);
                let bytes = make.bin(BinOp::Min, operand(0), head);
                state.data = make.add(state.data, bytes, 1);
                None
            }
            Inst::Push(bytes) => {
                state.data = make.offset(state.data, -i64::from(bytes));
                None
            }
            Inst::Take(_) => return self.cut(way, operand(0)),
            Inst::CellLoad(cell) => Some(self.cell(&state, cell)),
            Inst::CellStore(cell, _) => {
                state.cells.insert(cell, operand(0));
                None
            }
            Inst::CellAdd(cell, _) => {
                let before = self.cell(&state, cell);
                let sum = Self::make(&mut self.pool, &way).add(before, operand(0), 1);
                state.cells.insert(cell, sum);
                None
            }
            Inst::RecLoad(_, offset, bytes) => {
                let table = self.table_of(operand(0));
                let mut make = Self::make(&mut self.pool, &way);
                Some(state.load_record(&mut make, operand(0), table, offset, bytes))
            }
            Inst::RecStore(_, offset, bytes, _) => {
                let (rec, value) = (operand(0), operand(1));
                let write = RecWrite { rec, table: self.table_of(rec), offset, bytes, value };
                state.store_record(&mut Self::make(&mut self.pool, &way), write);
                None
            }
            Inst::IpSum => Some(state.ip_sum(&mut make)),
            Inst::TransportSum(_) => Some(state.transport_sum(&mut make, operand(0))),
            Inst::CsumUpdate(.., bits) => {
                Some(make.checksum_update(operand(0), operand(1), operand(2), bits))
            }
            Inst::Now => Some(make.pool.atom(Atom::Now)),
            Inst::Timestamp => Some(make.pool.atom(Atom::Timestamp)),
            Inst::PacketType => Some(state.packet_type),
            Inst::SetPacketType(_) => {
                state.packet_type = make.slice(operand(0), 0, 8);
                None
            }
            Inst::FlowHash => Some(make.pool.atom(Atom::FlowHash)),
            Inst::Origin => Some(make.pool.atom(Atom::Origin)),
        };
        way.state = state;
        vec![(way, result)]
    }

    fn cell(&mut self, state: &State, cell: u16) -> Id {
        if let Some(&value) = state.cells.get(&cell) {
            return value;
        }
        let written = self.written.get(usize::from(cell)).copied().unwrap_or(true);
        match self.options.settled_cells.and_then(|cells| cells.get(usize::from(cell))) {
            Some(&value) if !written => self.pool.number(value),
            _ => self.pool.atom(Atom::Cell(cell)),
        }
    }

    fn table_of(&self, record: Id) -> u16 {
        match self.pool.node(record) {
            Node::Record(found) => match self.pool.node(*found) {
                Node::Found(find) => find.table,
                _ => u16::MAX,
            },
            _ => u16::MAX,
        }
    }

    /// Places past the end of what a header annotation can say are none.
    fn set_base(&mut self, way: Way, base: Base, by: Id) -> Vec<(Way, Option<Id>)> {
        let Some(which) = (base as usize).checked_sub(1) else { return Self::bare(way) };
        let mut make = Self::make(&mut self.pool, &way);
        let place = make.add(way.state.data, by, 1);
        let set = make.is_in(place, &IntervalSet::range(0, u64::from(u16::MAX) - 1));
        let mut all = vec![];
        for (mut way, set) in self.split(way, set) {
            way.state.places[which] = if set { Place::At(place) } else { Place::Unset };
            if set {
                let mut make = Self::make(&mut self.pool, &way);
                let (root, offset) = make.root(place);
                let name = (root, offset as i32, base);
                if !self.pool.names.contains(&name) {
                    self.pool.names.push(name);
                }
            }
            all.push((way, None));
        }
        all
    }

    /// Only packets of one segment are cut.
    fn cut(&mut self, way: Way, most: Id) -> Vec<(Way, Option<Id>)> {
        let rest = way.state.rest;
        let single = Self::make(&mut self.pool, &way).is_in(rest, &IntervalSet::one(0));
        let mut all = vec![];
        for (mut way, single) in self.split(way, single) {
            if single {
                let state = way.state.clone();
                let mut make = Self::make(&mut self.pool, &way);
                let head = state.head(&mut make);
                let bytes = make.bin(BinOp::Min, head, most);
                let end = make.add(state.data, bytes, 1);
                way.state.end = end;
            }
            all.push((way, None));
        }
        all
    }

    fn count(&self, way: &mut Way, inst: Inst) {
        let sums = [field::IP_SUM, field::TCP_SUM, field::UDP_SUM];
        let counts = &mut way.counts;
        match inst {
            Inst::Load(_) => counts.reads += 1,
            Inst::Store(field, _) => {
                counts.writes += 1;
                counts.checksums += usize::from(sums.contains(&field));
                way.wasted.push(Wasted { origin: self.origin(), field });
            }
            Inst::IpSum | Inst::TransportSum(_) => counts.checksums += 1,
            _ => {}
        }
        counts.instructions += 1;
    }

    fn go(&mut self, mut way: Way, to: BlockId) {
        let live = &self.live[to.index()];
        let params = &self.program.block(to).params;
        way.values.retain(|value, _| live.binary_search(value).is_ok() || params.contains(value));
        self.pending.entry(self.position[to.index()]).or_default().push(way);
    }

    fn leave(&mut self, way: Way, exit: Exit) {
        self.done.push(Done { way, exit });
    }

    fn term(&mut self, mut way: Way, term: &Term) {
        match term {
            Term::Jump(to, args) => {
                let args: Vec<Id> = args.iter().map(|arg| Self::get(&way, *arg)).collect();
                let params = &self.program.block(*to).params;
                way.values.extend(params.iter().copied().zip(args));
                self.go(way, *to);
            }
            Term::Branch(value, yes, no) => {
                let value = Self::get(&way, *value);
                self.fork(way, value, *yes, *no);
            }
            Term::Need { base, bytes, then, els } => {
                let state = way.state.clone();
                let there = state.there(&mut Self::make(&mut self.pool, &way), *base, u64::from(*bytes));
                self.fork(way, there, *then, *els);
            }
            Term::Room { bytes, then, els } => {
                let data = way.state.data;
                let mut make = Self::make(&mut self.pool, &way);
                let free = make.is_in(data, &IntervalSet::range(u64::from(*bytes), u64::MAX));
                self.fork(way, free, *then, *els);
            }
            Term::Switch(value, cases, default) => self.switch(way, *value, cases, *default),
            Term::Emit(port) => self.leave(way, Exit::Emit(*port)),
            Term::Drop(reason) => self.leave(way, Exit::Drop(*reason)),
            Term::Slow(slow) => self.leave(way, Exit::Slow(*slow)),
            Term::EmitTo(value, els) => {
                let port = Self::get(&way, *value);
                let outputs = u64::from(self.program.outputs);
                let range = match outputs.checked_sub(1) {
                    Some(last) => IntervalSet::range(0, last),
                    None => IntervalSet::empty(),
                };
                let there = Self::make(&mut self.pool, &way).is_in(port, &range);
                for (way, there) in self.split(way, there) {
                    match there {
                        true => {
                            let known = way.facts.known(&self.pool, port).only();
                            let exit = known.map_or(Exit::EmitTo(port), |port| Exit::Emit(port as u16));
                            self.leave(way, exit);
                        }
                        false => self.go(way, *els),
                    }
                }
            }
            Term::Lookup { table, key, rec, hit, miss } => {
                self.find(way, (*table, key, None), *rec, *hit, *miss)
            }
            Term::Create { table, key, args, rec, ok, fail } => {
                self.find(way, (*table, key, Some(args)), *rec, *ok, *fail);
            }
        }
    }

    fn fork(&mut self, way: Way, value: Id, yes: BlockId, no: BlockId) {
        for (way, holds) in self.split(way, value) {
            self.go(way, if holds { yes } else { no });
        }
    }

    fn switch(&mut self, mut way: Way, value: Value, cases: &[(u64, BlockId)], default: BlockId) {
        let value = Self::get(&way, value);
        // Of a number that stands there twice, the first place counts.
        let mut numbers: Vec<(u64, BlockId)> = vec![];
        let mut seen = HashSet::new();
        numbers.extend(cases.iter().filter(|(case, _)| seen.insert(*case)));
        let mut targets: Vec<BlockId> = numbers.iter().map(|(_, to)| *to).collect();
        targets.sort_unstable();
        targets.dedup();
        targets.retain(|to| *to != default);
        let by_target = targets.into_iter().map(|target| {
            let own = numbers.iter().filter(|(_, to)| *to == target).map(|(case, _)| (*case, *case));
            (target, IntervalSet::from_intervals(own))
        });
        let by_target: Vec<(BlockId, IntervalSet)> = by_target.collect();
        // What goes to the default is what is left over: lazy subtraction.
        for (to, set) in by_target {
            let inside = Self::make(&mut self.pool, &way).is_in(value, &set);
            let mut outside = vec![];
            for (way, holds) in self.split(way, inside) {
                if holds { self.go(way, to) } else { outside.push(way) }
            }
            let Some(next) = outside.pop() else { return };
            // A question that is taken apart leaves several ways: each goes through the rest alone.
            for other in outside {
                self.default_of(other, value, &numbers, default);
            }
            way = next;
        }
        self.go(way, default);
    }

    /// The rest of a switch, for one of several ways that are left.
    fn default_of(&mut self, way: Way, value: Id, numbers: &[(u64, BlockId)], default: BlockId) {
        let mut ways = vec![way];
        for (case, to) in numbers {
            let mut others = vec![];
            for way in ways {
                let is = Self::make(&mut self.pool, &way).is_in(value, &IntervalSet::one(*case));
                for (way, holds) in self.split(way, is) {
                    if holds { self.go(way, *to) } else { others.push(way) }
                }
            }
            ways = others;
        }
        ways.into_iter().for_each(|way| self.go(way, default));
    }

    fn find(
        &mut self,
        way: Way,
        (table, key, args): (u16, &[Value], Option<&Vec<Value>>),
        rec: Value,
        hit: BlockId,
        miss: BlockId,
    ) {
        let key: Box<[Id]> = key.iter().map(|value| Self::get(&way, *value)).collect();
        let args: Option<Box<[Id]>> = args.map(|args| args.iter().map(|arg| Self::get(&way, *arg)).collect());
        let finds = way.state.finds.iter().filter_map(|id| match self.pool.node(*id) {
            Node::Found(find) if find.table == table => Some((*id, find)),
            _ => None,
        });
        let mut nth = 0;
        let mut known = None;
        for (id, find) in finds {
            nth += u16::from(find.args.is_some());
            // What was found stays for this packet.
            if find.key == key && way.facts.condition(id) == Some(&IntervalSet::one(1)) {
                known = known.or(Some(id));
            }
        }
        let found = match known {
            Some(found) => found,
            None => self.pool.add(Node::Found(Box::new(Find { table, key, args, nth }))),
        };
        for (mut way, holds) in self.split(way, found) {
            if !way.state.finds.contains(&found) {
                way.state.finds.push(found);
            }
            if holds {
                let record = self.pool.add(Node::Record(found));
                way.values.insert(rec, record);
            }
            self.go(way, if holds { hit } else { miss });
        }
    }
}

/// A field by its bits, for reports.
pub fn field_name(field: Field) -> String {
    field
        .name()
        .map_or_else(|| format!("{}[{}:{}]", field.base.name(), field.bit, field.width), str::to_string)
}
