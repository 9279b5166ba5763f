//! The walk: SNF's algorithms 1 and 2 over the blocks of a program.
//!
//! Blocks are processed in an order where each precedes its successors. Paths that reach a block in the
//! same state become one: by the union of a set if their filters differ in one expression, else by
//! alternatives. The cost of a chain is therefore the sum of the costs of its elements, not the product.

use super::expr::{Atom, Find, Id, Node, RecWrite};
use super::facts::Facts;
use super::filter::Filter;
use super::path::{Counts, Done, Exit, Left, Options, Path, Step, Wasted};
use super::path_state::{PathState, StateLocation};
use super::simplify::Maker;
use crate::optimize;
use ir::BinOp;
use ir::analysis::interval::{IntervalSet, ones};
use ir::analysis::live::live_in;
use ir::program::{BlockId, Inst, Program, Term, Value};
use packet::field::{self, Base};
use std::collections::{BTreeMap, BTreeSet, HashSet};

pub(super) struct Walker<'a> {
    pub program: &'a Program,
    pub options: &'a Options<'a>,
    pub pool: super::expr::Pool,
    /// The first blocks of the entries that are walked.
    pub entries: Vec<BlockId>,
    order: Vec<BlockId>,
    pub done: Vec<Done>,
    /// Classes of the entries before.
    pub found: usize,
    pub left: Vec<Left>,
    /// Whether paths were left because the deadline was over.
    pub is_late: bool,
    /// The number of conditions that each element added to paths.
    pub asked: BTreeMap<usize, usize>,
    /// Whether a cell is written by the program.
    written: Vec<bool>,
    /// Values that each block needs from its predecessors.
    live: Vec<BTreeSet<Value>>,
    pending: BTreeMap<usize, Vec<Path>>,
    position: Vec<usize>,
    at: usize,
}

impl<'a> Walker<'a> {
    pub fn new(program: &'a Program, options: &'a Options<'a>) -> Walker<'a> {
        let entries: Vec<BlockId> = match options.entries {
            Some(some) => some.iter().filter_map(|entry| program.entries.get(*entry).copied()).collect(),
            None => program.entries.clone(),
        };
        let order = program.order_from(&entries);
        let mut position = vec![0; program.blocks.len()];
        order.iter().enumerate().for_each(|(at, block)| position[block.index()] = at);
        Walker {
            program,
            options,
            pool: super::expr::Pool::default(),
            done: vec![],
            found: 0,
            left: vec![],
            is_late: false,
            asked: BTreeMap::new(),
            written: program.written_cells(),
            live: live_in(program, &order),
            pending: BTreeMap::new(),
            position,
            at: 0,
            entries,
            order,
        }
    }

    /// Walks all paths from an entry.
    pub fn walk(&mut self, entry: usize) {
        let Some(&start) = self.entries.get(entry) else { return };
        let facts = Facts::default();
        let is_from_port = self.is_from_port(entry);
        let mut make = Maker { pool: &mut self.pool, facts: &facts };
        let mut state = PathState::entry(&mut make, self.options.frames || is_from_port);
        if is_from_port {
            state = state.without_annotations(&mut make);
        }
        let path = Path {
            facts,
            filter: Filter::default(),
            state,
            values: BTreeMap::new(),
            steps: vec![],
            counts: Counts::default(),
            met: optimize::Counts::default(),
            wasted: vec![],
            merged_paths: 1,
        };
        self.pending.insert(self.position[start.index()], vec![path]);
        while let Some((at, paths)) = self.pending.pop_first() {
            let Some(&block) = self.order.get(at) else { continue };
            self.at = block.index();
            if self.options.is_over() {
                self.is_late = true;
                paths.into_iter().for_each(|path| self.leave_open(path, entry, block));
                continue;
            }
            let mut paths = super::merge::arriving(&mut self.pool, paths, self.options);
            let room = self.room();
            if paths.len() > room {
                paths.drain(room..).for_each(|path| self.leave_open(path, entry, block));
            }
            for path in paths {
                if self.options.is_over() {
                    self.is_late = true;
                    self.leave_open(path, entry, block);
                } else if self.room() == 0 {
                    self.leave_open(path, entry, block);
                } else {
                    self.block(path, block);
                }
            }
        }
    }

    /// Whether packets of an entry are as a port delivers them.
    pub fn is_from_port(&self, entry: usize) -> bool {
        let number = self.options.entries.map_or(Some(entry), |some| some.get(entry).copied());
        number.is_some_and(|number| self.program.from_ports.contains(&(number as u16)))
    }

    /// How many more paths may be followed.
    fn room(&self) -> usize {
        if self.pool.len() > self.options.max_expressions {
            return 0;
        }
        self.options.max_paths.saturating_sub(self.found + self.done.len())
    }

    fn leave_open(&mut self, path: Path, entry: usize, block: BlockId) {
        let Path { filter, merged_paths, .. } = path;
        self.left.push(Left { entry, block, filter, merged_paths });
    }

    fn origin(&self) -> usize {
        self.options.origins.get(self.at).copied().unwrap_or(0)
    }

    fn make<'b>(pool: &'b mut super::expr::Pool, path: &'b Path) -> Maker<'b> {
        Maker { pool, facts: &path.facts }
    }

    fn block(&mut self, mut path: Path, id: BlockId) {
        let program = self.program;
        let block = program.block(id);
        path.met = path.met.plus(&optimize::Counts::of_block(block));
        let mut paths = vec![path];
        for (value, inst) in &block.insts {
            let mut next = Vec::with_capacity(paths.len());
            for path in paths {
                for (mut path, result) in self.inst(path, *inst) {
                    if let (Some(value), Some(result)) = (value, result) {
                        path.values.insert(*value, result);
                    }
                    next.push(path);
                }
            }
            paths = next;
        }
        for path in paths {
            self.term(path, &block.term);
        }
    }

    fn get(path: &Path, value: Value) -> Id {
        path.values[&value]
    }

    /// The paths on which a truth value is not 0, and on which it is 0.
    fn split(&mut self, path: Path, truth: Id) -> Vec<(Path, bool)> {
        let truth = {
            let mut make = Self::make(&mut self.pool, &path);
            let truth = make.truth(truth);
            make.again(truth)
        };
        if let Some((op, a, b)) = self.pool.connective(truth) {
            let decided = op == BinOp::Or;
            let first = self.split(path, a);
            let mut all = vec![];
            for (path, holds) in first {
                match holds == decided {
                    true => all.push((path, decided)),
                    false => all.extend(self.split(path, b)),
                }
            }
            return all;
        }
        if let Some(number) = self.pool.constant(truth) {
            return vec![(path, number != 0)];
        }
        let (of, set) = match self.pool.node(truth) {
            Node::In(of, set) => (*of, set.clone()),
            _ => (truth, IntervalSet::range(1, u64::MAX)),
        };
        if let Node::Select(c, a, b) = *self.pool.node(of) {
            let mut all = vec![];
            for (path, holds) in self.split(path, c) {
                let arm = if holds { a } else { b };
                let truth = Self::make(&mut self.pool, &path).is_in(arm, &set);
                all.extend(self.split(path, truth));
            }
            return all;
        }
        let others = set.complement(self.pool.max(of));
        let mut both = vec![];
        for (set, holds) in [(set, true), (others, false)] {
            let mut path = path.clone();
            if self.take(&mut path, of, &set) {
                both.push((path, holds));
            }
        }
        both
    }

    /// Adds a condition; false if it cannot hold.
    fn take(&mut self, path: &mut Path, of: Id, set: &IntervalSet) -> bool {
        if !path.facts.take(&self.pool, of, set) {
            return false;
        }
        match self.fields(path, of, set) {
            Some(parts) => {
                for (part, set) in parts {
                    if !path.facts.take(&self.pool, part, &set) {
                        return false;
                    }
                    path.filter.add(part, &set);
                }
            }
            None => path.filter.add(of, set),
        }
        let step = Step {
            origin: self.origin(),
            block: BlockId(self.at as u32),
            of,
            set: path.facts.known(&self.pool, of),
        };
        *self.asked.entry(step.origin).or_default() += 1;
        let is_one = step.set.only().is_some();
        path.steps.push(step);
        if is_one {
            self.settle_transport(path);
        }
        true
    }

    /// Gives the transport header the offset that the facts know: behind a header whose length was asked for,
    /// it is where it is for whoever reads the length again.
    fn settle_transport(&mut self, path: &mut Path) {
        let which = Base::Trans as usize - 1;
        let StateLocation::At(place) = path.state.places[which] else { return };
        let mut make = Self::make(&mut self.pool, path);
        let settled = make.settled(place);
        if settled == place {
            return;
        }
        let (root, offset) = make.root(settled);
        self.name(root, offset, Base::Trans);
        path.state.places[which] = StateLocation::At(settled);
    }

    /// Names an offset after the header that is there.
    fn name(&mut self, root: Id, offset: i64, base: Base) {
        let name = (root, offset as i32, base);
        if !self.pool.names.contains(&name) {
            self.pool.names.push(name);
        }
    }

    /// A condition on two adjacent fields as one condition on each of them, if that is possible.
    fn fields(&mut self, path: &Path, of: Id, set: &IntervalSet) -> Option<[(Id, IntervalSet); 2]> {
        let (Node::Atom(Atom::Bits(bits)) | Node::Read(_, bits)) = *self.pool.node(of) else { return None };
        let [(first, last)] = *set.intervals() else { return None };
        let low =
            bits.width - Some(super::names::first_field(&self.pool, bits)).filter(|width| *width > 0)?;
        if low == 0 || first >> low != last >> low {
            return None;
        }
        let mut make = Self::make(&mut self.pool, path);
        let high = make.slice(of, low, bits.width - low);
        let rest = make.slice(of, 0, low);
        if [high, rest].iter().any(|part| make.pool.constant(*part).is_some()) {
            return None;
        }
        let mask = ones(low);
        Some([(high, IntervalSet::one(first >> low)), (rest, IntervalSet::range(first & mask, last & mask))])
    }

    fn inst(&mut self, mut path: Path, inst: Inst) -> Vec<(Path, Option<Id>)> {
        self.count(&mut path, inst);
        let mut state = path.state.clone();
        let operands: Vec<Id> = inst.operands().iter().map(|value| Self::get(&path, *value)).collect();
        let operand = |at: usize| operands[at];
        let mut make = Self::make(&mut self.pool, &path);
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
            Inst::SetBase(base, _) => return self.set_base(path, base, operand(0)),
            Inst::ClearBase(base) => {
                if let Some(place) = (base as usize).checked_sub(1) {
                    state.places[place] = StateLocation::Unset;
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
            Inst::Take(_) => return self.cut(path, operand(0)),
            Inst::CellLoad(cell) => Some(self.cell(&state, cell)),
            Inst::CellStore(cell, _) => {
                state.cells.insert(cell, operand(0));
                None
            }
            Inst::CellAdd(cell, _) => {
                let before = self.cell(&state, cell);
                let sum = Self::make(&mut self.pool, &path).add(before, operand(0), 1);
                state.cells.insert(cell, sum);
                None
            }
            Inst::RecLoad(_, offset, bytes) => {
                let table = self.table_of(operand(0));
                let mut make = Self::make(&mut self.pool, &path);
                Some(state.load_record(&mut make, operand(0), table, offset, bytes))
            }
            Inst::RecStore(_, offset, bytes, _) => {
                let (rec, value) = (operand(0), operand(1));
                let write = RecWrite { rec, table: self.table_of(rec), offset, bytes, value };
                state.store_record(&mut Self::make(&mut self.pool, &path), write);
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
        path.state = state;
        vec![(path, result)]
    }

    fn cell(&mut self, state: &PathState, cell: u16) -> Id {
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
        self.pool.lookup_of(record).map_or(u16::MAX, |find| find.table)
    }

    /// Offsets past the largest value of a header annotation mean that it is not set.
    fn set_base(&mut self, path: Path, base: Base, by: Id) -> Vec<(Path, Option<Id>)> {
        let Some(which) = (base as usize).checked_sub(1) else { return vec![(path, None)] };
        let mut make = Self::make(&mut self.pool, &path);
        let place = make.add(path.state.data, by, 1);
        let set = make.is_in(place, &IntervalSet::range(0, u64::from(u16::MAX) - 1));
        let mut all = vec![];
        for (mut path, set) in self.split(path, set) {
            path.state.places[which] = if set { StateLocation::At(place) } else { StateLocation::Unset };
            if set {
                let mut make = Self::make(&mut self.pool, &path);
                // The length of an IP header may be known by now.
                let place = if base == Base::Trans { make.settled(place) } else { place };
                let (root, offset) = make.root(place);
                path.state.places[which] = StateLocation::At(place);
                self.name(root, offset, base);
            }
            all.push((path, None));
        }
        all
    }

    /// Only packets of one segment can be cut.
    fn cut(&mut self, path: Path, most: Id) -> Vec<(Path, Option<Id>)> {
        let rest = path.state.rest;
        let single = Self::make(&mut self.pool, &path).is_in(rest, &IntervalSet::one(0));
        let mut all = vec![];
        for (mut path, single) in self.split(path, single) {
            if single {
                let state = path.state.clone();
                let mut make = Self::make(&mut self.pool, &path);
                let head = state.head(&mut make);
                let bytes = make.bin(BinOp::Min, head, most);
                let end = make.add(state.data, bytes, 1);
                path.state.end = end;
            }
            all.push((path, None));
        }
        all
    }

    fn count(&self, path: &mut Path, inst: Inst) {
        let sums = [field::IP_SUM, field::TCP_SUM, field::UDP_SUM];
        let counts = &mut path.counts;
        match inst {
            Inst::Load(_) => counts.reads += 1,
            Inst::Store(field, _) => {
                counts.writes += 1;
                counts.checksums += usize::from(sums.contains(&field));
                path.wasted.push(Wasted { origin: self.origin(), field });
            }
            Inst::LoadAnno(_) | Inst::StoreAnno(..) => counts.annotations += 1,
            Inst::PacketType | Inst::SetPacketType(_) => counts.annotations += 1,
            Inst::IpSum | Inst::TransportSum(_) => counts.checksums += 1,
            _ => {}
        }
    }

    fn go(&mut self, mut path: Path, to: BlockId) {
        let live = &self.live[to.index()];
        let params = &self.program.block(to).params;
        path.values.retain(|value, _| live.contains(value) || params.contains(value));
        self.pending.entry(self.position[to.index()]).or_default().push(path);
    }

    fn leave(&mut self, path: Path, exit: Exit) {
        self.done.push(Done { path, exit });
    }

    fn term(&mut self, mut path: Path, term: &Term) {
        match term {
            Term::Jump(to, args) => {
                let args: Vec<Id> = args.iter().map(|arg| Self::get(&path, *arg)).collect();
                let params = &self.program.block(*to).params;
                path.values.extend(params.iter().copied().zip(args));
                self.go(path, *to);
            }
            Term::Branch(value, yes, no) => {
                let value = Self::get(&path, *value);
                self.fork(path, value, *yes, *no);
            }
            Term::Need { base, bytes, then, els } => {
                let state = path.state.clone();
                let there = state.there(&mut Self::make(&mut self.pool, &path), *base, u64::from(*bytes));
                self.fork(path, there, *then, *els);
            }
            Term::Room { bytes, then, els } => {
                let data = path.state.data;
                let mut make = Self::make(&mut self.pool, &path);
                let free = make.is_in(data, &IntervalSet::range(u64::from(*bytes), u64::MAX));
                self.fork(path, free, *then, *els);
            }
            Term::Switch(value, cases, default) => self.switch(path, *value, cases, *default),
            Term::Emit(port) => self.leave(path, Exit::Emit(*port)),
            Term::Drop(reason) => self.leave(path, Exit::Drop(*reason)),
            Term::Slow(slow) => self.leave(path, Exit::Slow(*slow)),
            Term::EmitTo(value, els) => {
                let port = Self::get(&path, *value);
                let outputs = u64::from(self.program.outputs);
                let range = IntervalSet::range(1, outputs).shifted_down(1);
                let there = Self::make(&mut self.pool, &path).is_in(port, &range);
                for (path, there) in self.split(path, there) {
                    match there {
                        true => {
                            let known = path.facts.known(&self.pool, port).only();
                            let exit = known.map_or(Exit::EmitTo(port), |port| Exit::Emit(port as u16));
                            self.leave(path, exit);
                        }
                        false => self.go(path, *els),
                    }
                }
            }
            Term::Lookup { table, key, args, rec, hit, miss, .. } => {
                let found = self.found(&path, *table, key, args.as_deref());
                for (mut path, holds) in self.split(path, found) {
                    if !path.state.finds.contains(&found) {
                        path.state.finds.push(found);
                    }
                    if holds {
                        let record = self.pool.add(Node::Record(found));
                        path.values.insert(*rec, record);
                    }
                    self.go(path, if holds { *hit } else { *miss });
                }
            }
        }
    }

    fn fork(&mut self, path: Path, value: Id, yes: BlockId, no: BlockId) {
        for (path, holds) in self.split(path, value) {
            self.go(path, if holds { yes } else { no });
        }
    }

    fn switch(&mut self, path: Path, value: Value, cases: &[(u64, BlockId)], default: BlockId) {
        let value = Self::get(&path, value);
        let mut targets: BTreeMap<BlockId, Vec<(u64, u64)>> = BTreeMap::new();
        let mut seen = HashSet::new();
        // If a number occurs twice, the first case counts.
        for &(case, to) in cases.iter().filter(|(case, _)| seen.insert(*case)) {
            targets.entry(to).or_default().push((case, case));
        }
        targets.remove(&default);
        // The default gets the remaining packets: lazy subtraction. A condition that is split leaves several
        // paths.
        let mut remaining = vec![path];
        for (to, numbers) in targets {
            let set = IntervalSet::from_intervals(numbers);
            for path in std::mem::take(&mut remaining) {
                let inside = Self::make(&mut self.pool, &path).is_in(value, &set);
                for (path, holds) in self.split(path, inside) {
                    if holds { self.go(path, to) } else { remaining.push(path) }
                }
            }
        }
        remaining.into_iter().for_each(|path| self.go(path, default));
    }

    /// Whether a lookup, or a creation with arguments, returns a record.
    fn found(&mut self, path: &Path, table: u16, key: &[Value], args: Option<&[Value]>) -> Id {
        let ids = |values: &[Value]| values.iter().map(|value| Self::get(path, *value)).collect();
        let (key, args): (Box<[Id]>, Option<Box<[Id]>>) = (ids(key), args.map(ids));
        let finds = path.state.finds.iter().filter_map(|id| match self.pool.node(*id) {
            Node::Found(find) if find.table == table => Some((*id, find)),
            _ => None,
        });
        let mut nth = 0;
        let mut known = None;
        for (id, find) in finds {
            nth += u16::from(find.args.is_some());
            // The result of a lookup stays the same for this packet.
            if find.key == key && path.facts.condition(id) == Some(&IntervalSet::one(1)) {
                known = known.or(Some(id));
            }
        }
        known.unwrap_or_else(|| self.pool.add(Node::Found(Box::new(Find { table, key, args, nth }))))
    }
}
