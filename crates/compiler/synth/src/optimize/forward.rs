//! One walk over a program from its entries to its exits, which rewrites it.
//!
//! At each instruction the walk knows bases, contents of locations and values ([`OptimizerState`]). It writes
//! no instruction for a value that is available already, and computes a value from others if that takes fewer
//! instructions. A test with a known outcome becomes a jump, and blocks that no path reaches any more are not
//! walked. Blocks keep their numbers; [`super::shape`] simplifies the graph.

use super::Known;
use super::byte_range::{Anchors, ByteRange, Point, Position};
use super::linear::ZeroSum;
use super::optimization_note::{Notes, OptimizationNote, Reads, Touch};
use super::optimizer_state::{IsSet, OptimizerState};
use super::read_fields::ReadFields;
use super::value::{Expr, Values, Vn};
use ir::analysis::interval::{Interval, ones, yields};
use ir::analysis::order::Order;
use ir::{BinOp, Block, BlockId, Inst, Program, Term, Value};
use packet::anno;
use packet::field::{Base, Field};
use rustc_hash::FxHashSet;
use std::collections::HashMap;

/// A rewritten program.
pub struct Rewritten {
    /// By the number of the old blocks; blocks that no path reaches are empty.
    pub program: Program,
    /// What each instruction reads and writes.
    pub notes: Notes,
    /// For each block where paths meet, the first bit behind each base.
    pub bases: Vec<Option<[Touch; 4]>>,
}

/// The arguments for a block's parameter.
#[derive(Clone, Copy)]
struct Param {
    /// The value, if all paths pass the same.
    same: Option<Vn>,
    range: Interval,
}

/// An edge to a join.
#[derive(Clone)]
pub(super) struct Edge {
    /// The block that it leaves; none for an entry.
    pub(super) from: Option<BlockId>,
    /// The facts on it.
    pub(super) state: OptimizerState,
    /// The arguments for the block's parameters.
    pub(super) args: Vec<Vn>,
    /// What facts say of sums there, once that is looked for.
    pub(super) zeros: Vec<ZeroSum>,
}

pub(super) struct Forward<'a> {
    pub(super) program: &'a Program,
    pub(super) known: &'a Known,
    pub(super) order: Order,
    /// The fields that the program reads, each with the block.
    pub(super) read_fields: Vec<(Field, BlockId)>,
    /// The bytes of which it reads bits in several ways: they are read whole, once.
    in_parts: FxHashSet<Field>,
    /// Whether bytes are pushed without a test of the headroom.
    pub(super) relies_on_pulls: bool,
    pub(super) values: Values,
    pub(super) anchors: Anchors,
    states: Vec<Option<OptimizerState>>,
    /// The edges to each join that were walked.
    edges: Vec<Vec<Edge>>,
    /// What is read behind each block.
    pub(super) reads: ReadFields,
    params: Vec<Option<Vec<Param>>>,
    reached: Vec<bool>,
    /// The numbers of the old program's values.
    pub(super) numbers: Vec<Vn>,
    /// Where the new program defines a value.
    pub(super) locations: HashMap<Vn, Vec<(BlockId, Value)>>,
    next_value: u32,
    pub(super) out: Vec<Block>,
    pub(super) notes: Notes,
    bases: Vec<Option<[Touch; 4]>>,
    /// The table and the key that each record is from.
    pub(super) records: HashMap<Vn, (u16, Vec<Vn>)>,
    pub(super) here: BlockId,
    /// How many sums over the IPv4 header the rest of the block asks for.
    pub(super) sums_left: usize,
    pub(super) state: OptimizerState,
}

/// Whether a block can be rewritten without any facts.
pub(crate) fn is_bare_exit(block: &Block) -> bool {
    block.insts.is_empty() && matches!(block.term, Term::Emit(_) | Term::Drop(_) | Term::Slow(_))
}

/// The fields that a program reads, each with the block.
fn read_fields(program: &Program, order: &Order) -> Vec<(Field, BlockId)> {
    let (mut fields, mut seen) = (vec![], FxHashSet::default());
    for id in &order.blocks {
        for (_, inst) in &program.block(*id).insts {
            if let Inst::Load(field) = inst
                && seen.insert((*field, *id))
            {
                fields.push((*field, *id));
            }
        }
    }
    fields
}

/// The byte that a field of some bits is in.
fn byte_of(field: Field) -> Option<Field> {
    let byte = Field { bit: field.bit / 8 * 8, width: 8, ..field };
    (field.width < 8 && field.end_byte() == byte.end_byte()).then_some(byte)
}

/// The bytes of which a program reads bits in several ways.
fn bytes_in_parts(program: &Program, order: &Order) -> FxHashSet<Field> {
    let insts = order.blocks.iter().flat_map(|id| &program.block(*id).insts);
    let parts: FxHashSet<Field> = insts
        .filter_map(|(_, inst)| match inst {
            Inst::Load(field) => Some(*field).filter(|field| byte_of(*field).is_some()),
            _ => None,
        })
        .collect();
    let mut bytes = FxHashSet::default();
    parts.into_iter().filter_map(byte_of).filter(|byte| !bytes.insert(*byte)).collect()
}

/// Rewrites a verified program.
pub fn rewrite(program: &Program, known: &Known) -> Rewritten {
    let count = program.blocks.len();
    let (mut values, mut anchors) = (Values::default(), Anchors::default());
    let state = OptimizerState::at_entry(&mut values, &mut anchors, known.mac_at_data);
    let unset = values.own(Interval::ALL);
    let order = if known.is_walked { Order::walked(program) } else { Order::of(program) };
    let empty = Block { params: vec![], insts: vec![], term: Term::Emit(0) };
    let mut walk = Forward {
        program,
        known,
        relies_on_pulls: super::pulls::relies_on_pulls(program, &order),
        read_fields: read_fields(program, &order),
        in_parts: bytes_in_parts(program, &order),
        reads: ReadFields::of(program, &order.blocks),
        order,
        values,
        anchors,
        states: vec![None; count],
        edges: vec![vec![]; count],
        params: vec![None; count],
        reached: vec![false; count],
        numbers: vec![unset; program.value_count()],
        locations: HashMap::new(),
        next_value: 0,
        out: vec![empty; count],
        notes: vec![vec![]; count],
        bases: vec![None; count],
        records: HashMap::new(),
        here: program.entries[0],
        sums_left: 0,
        state: state.clone(),
    };
    for (number, entry) in (0..).zip(&program.entries) {
        let unset_annos = if program.from_ports.contains(&number) { anno::UNSET } else { 0 };
        walk.send_from(None, *entry, OptimizerState { unset_annos, ..state.clone() }, &[]);
    }
    for at in 0..walk.order.blocks.len() {
        walk.block(walk.order.blocks[at]);
    }
    let program = Program { blocks: walk.out, ..program.clone() };
    Rewritten { program, notes: walk.notes, bases: walk.bases }
}

impl Forward<'_> {
    /// Passes the state on to a successor.
    pub(super) fn send(&mut self, to: BlockId, state: OptimizerState, args: &[Vn]) {
        self.send_from(Some(self.here), to, state, args);
    }

    fn send_from(&mut self, from: Option<BlockId>, to: BlockId, state: OptimizerState, args: &[Vn]) {
        let at = to.index();
        self.reached[at] = true;
        let handed =
            args.iter().map(|arg| Param { same: Some(*arg), range: self.values.range(*arg, &state.facts) });
        let handed: Vec<Param> = handed.collect();
        match &mut self.params[at] {
            None => self.params[at] = Some(handed),
            Some(params) => params.iter_mut().zip(handed).for_each(|(param, new)| {
                param.same = param.same.filter(|same| Some(*same) == new.same);
                param.range = param.range.hull(new.range);
            }),
        }
        if is_bare_exit(&self.program.blocks[at]) {
            return;
        }
        if self.order.preds[at] > 1 {
            self.edges[at].push(Edge { from, state: state.clone(), args: args.to_vec(), zeros: vec![] });
        }
        match &mut self.states[at] {
            None => self.states[at] = Some(state),
            Some(known) => known.meet(&state, &mut self.values, &mut self.anchors),
        }
    }

    fn block(&mut self, id: BlockId) {
        if !self.reached[id.index()] {
            return;
        }
        let old: &Block = self.program.block(id);
        self.here = id;
        if is_bare_exit(old) && old.params.is_empty() {
            self.out[id.index()] = old.clone();
            return;
        }
        if let Some(state) = self.states[id.index()].take() {
            self.state = state;
        }
        let handed = self.params[id.index()].take().unwrap_or_default();
        let start = self.values.fresh();
        let mut params = vec![];
        for (param, handed) in old.params.iter().zip(handed) {
            let value = self.fresh();
            self.out[id.index()].params.push(value);
            // One value may be defined on each edge for itself: the parameter is the only one that is here, and the packet
            // is not read again for it.
            let number = handed.same.unwrap_or_else(|| self.values.own(handed.range));
            if handed.same.is_none_or(|same| !self.is_at_hand(same)) {
                self.settle_at(number, value, id);
            }
            self.numbers[param.0 as usize] = number;
            params.push(number);
        }
        let mut edges = std::mem::take(&mut self.edges[id.index()]);
        let recognised = self.recognise_params(&params, &edges);
        self.join(id, &mut edges, recognised);
        self.relate_params(start, &params, &mut edges);
        if self.order.preds[id.index()] > 1 {
            let first = |base| self.touch(self.place(Field::new(base, 0, 1)));
            self.bases[id.index()] = Some(Base::ALL.map(first));
        }
        self.sums_left = old.insts.iter().filter(|(_, inst)| *inst == Inst::IpSum).count();
        for &(value, inst) in &old.insts {
            self.sums_left -= usize::from(inst == Inst::IpSum);
            let number = self.inst(inst);
            if let (Some(value), Some(number)) = (value, number) {
                self.numbers[value.0 as usize] = number;
            }
        }
        let term = self.term(&old.term);
        self.out[id.index()].term = term;
    }

    pub(super) fn fresh(&mut self) -> Value {
        self.next_value += 1;
        Value(self.next_value - 1)
    }

    /// The number of one of the old program's values.
    pub(super) fn number(&self, value: Value) -> Vn {
        self.numbers[value.0 as usize]
    }

    pub(super) fn place(&self, field: Field) -> ByteRange {
        self.state.place(field)
    }

    /// The location that an instruction reads or writes, except in a record.
    fn location(&mut self, inst: Inst) -> ByteRange {
        let (point, bit, width) = match inst {
            Inst::Load(field) | Inst::Store(field, _) => return self.place(field),
            Inst::LoadAnno(anno) | Inst::StoreAnno(anno, _) => {
                (Point::Anno, i64::from(anno.offset) * 8, anno.len * 8)
            }
            Inst::CellLoad(cell) | Inst::CellStore(cell, _) | Inst::CellAdd(cell, _) => {
                (Point::Cell(cell), 0, 64)
            }
            other => {
                debug_assert!(matches!(other, Inst::PacketType | Inst::SetPacketType(_)), "{other:?}");
                (Point::Type, 0, 8)
            }
        };
        ByteRange { anchor: self.anchors.of(point), bit, width }
    }

    /// A write to the packet, counted from the MAC header if that is where the packet starts: unlike the packet's
    /// start it stays where it is when the next NF strips it, so that the write can be done later.
    fn at_mac(&self, inst: Inst) -> Inst {
        let Inst::Store(field, value) = inst else { return inst };
        let [data, mac] = [Base::Data, Base::Mac].map(|base| self.state.at[base as usize]);
        let is_there = self.state.set[Base::Mac as usize] == IsSet::Yes
            && self.state.extent.accessible(Base::Mac) >= u32::from(field.end_byte());
        if field.base == Base::Data && data == mac && is_there {
            Inst::Store(Field { base: Base::Mac, ..field }, value)
        } else {
            inst
        }
    }

    fn record(&mut self, record: Value, offset: u16, bytes: u8) -> ByteRange {
        let anchor = self.anchors.of(Point::Record(self.number(record)));
        ByteRange { anchor, bit: i64::from(offset) * 8, width: bytes * 8 }
    }

    pub(super) fn touch(&self, place: ByteRange) -> Touch {
        Touch::of(place, &self.anchors, &self.values, &self.state.facts)
    }

    /// The content of a location: its known value, else a new value that stands for it. A number, where that
    /// is known here.
    pub(super) fn content(&mut self, place: ByteRange) -> Vn {
        let number = self.content_anywhere(place);
        self.values.settled(number, &self.state.facts)
    }

    /// The same, but a value that stands for the content on all paths.
    pub(super) fn content_anywhere(&mut self, place: ByteRange) -> Vn {
        if let Some(number) = self.state.held(place, &mut self.values, &self.anchors) {
            return number;
        }
        let packet = self.anchors.is_packet(place.anchor);
        let version = self.state.versions[usize::from(!packet)];
        let most = ones(place.width);
        let number = self.values.leaf(Expr::Load(version, place.anchor, place.bit, place.width), most);
        self.state.record_load(place, number, &self.anchors);
        number
    }

    /// A wider field that is read behind this point and contains a field, where it may be read here already: one
    /// read serves both.
    fn wider(&self, field: Field) -> Option<Field> {
        let place = self.place(field);
        // What is known of a part of a wider field is not read again.
        if self.is_known(place) {
            return None;
        }
        let there = i64::from(self.state.extent.accessible(field.base));
        let fits = |(wide, block): &&(Field, BlockId)| {
            wide.base == field.base
                && wide.width > field.width.max(8)
                && self.place(*wide).holds(place)
                && i64::from(wide.end_byte()) <= there
                && self.order.dominates(self.here, *block)
                && !self.is_known(self.place(*wide))
        };
        self.read_fields.iter().filter(fits).map(|(wide, _)| *wide).max_by_key(|wide| wide.width)
    }

    /// Whether something is known of what a location contains.
    pub(super) fn is_known(&self, place: ByteRange) -> bool {
        self.state.places.iter().any(|(known, _)| {
            known.anchor == place.anchor && known.bit < place.end() && place.bit < known.end()
        })
    }

    fn load(&mut self, place: ByteRange, inst: Inst) -> Vn {
        if let Inst::Load(field) = inst
            && let Some(wide) = self.wider(field).or_else(|| self.with_neighbours(field))
        {
            self.load(self.place(wide), Inst::Load(wide));
        }
        if let Inst::Load(field) = inst
            && let Some(byte) = byte_of(field).filter(|byte| self.in_parts.contains(byte))
        {
            self.load(self.place(byte), Inst::Load(byte));
        }
        let number = self.content(place);
        let note = OptimizationNote { reads: Reads::Bits(self.touch(place)), ..OptimizationNote::of(inst) };
        self.read(number, inst, note)
    }

    /// Writes to a location, unless it has that content already.
    fn store(&mut self, place: ByteRange, value: Vn, inst: impl FnOnce(Value) -> Inst) {
        let mask = ones(place.width);
        let kept = self.values.bin_const(BinOp::And, value, mask, &self.state.facts);
        let held = self.state.held(place, &mut self.values, &self.anchors);
        if held.is_some_and(|held| self.values.settled(held, &self.state.facts) == kept) {
            return;
        }
        if self.anchors.is_packet(place.anchor) {
            self.track_sum(place, kept);
        }
        // A masked value costs an instruction that the store does not need.
        let wide = self.values.with_const(BinOp::And, kept).filter(|wide| wide.1 == mask);
        let operand = self.holder(kept, false).or_else(|| wide.and_then(|wide| self.operand(wide.0)));
        let operand = operand.unwrap_or_else(|| self.value(value));
        let inst = inst(operand);
        self.act_write(place, inst);
        self.state.write(place, kept, &mut self.values, &self.anchors);
    }

    /// Rewrites one instruction of the old program; returns the number of its result.
    fn inst(&mut self, inst: Inst) -> Option<Vn> {
        let number = match inst {
            Inst::Const(number) => self.values.constant(number),
            Inst::Bin(op, a, b) => {
                let (left, right) = (self.number(a), self.number(b));
                let number = self.values.bin(op, left, right, &self.state.facts);
                let as_is = match self.values.expr(number) {
                    Expr::Bin(same, x, y) => same == op && [(x, y), (y, x)].contains(&(left, right)),
                    _ => false,
                };
                self.computed(number, |walk| Inst::Bin(op, walk.value(left), walk.value(right)), as_is)
            }
            Inst::Select(a, b, c) => {
                let [a, b, c] = [a, b, c].map(|value| self.number(value));
                let number = self.values.select(a, b, c, &self.state.facts);
                let inst = |walk: &mut Self| Inst::Select(walk.value(a), walk.value(b), walk.value(c));
                self.computed(number, inst, false)
            }
            Inst::CsumUpdate(a, b, c, width) => {
                let [a, b, c] = [a, b, c].map(|value| self.number(value));
                let number = self.values.csum(a, b, c, width, &self.state.facts);
                let inst =
                    |walk: &mut Self| Inst::CsumUpdate(walk.value(a), walk.value(b), walk.value(c), width);
                self.computed(number, inst, false)
            }
            Inst::CellLoad(cell) if let Some(number) = self.known.cells.get(&cell) => {
                self.values.constant(*number)
            }
            Inst::Load(_) | Inst::LoadAnno(_) | Inst::CellLoad(_) | Inst::PacketType => {
                let place = self.location(inst);
                self.load(place, inst)
            }
            Inst::RecLoad(record, offset, bytes) => {
                let place = self.record(record, offset, bytes);
                let number = self.number(record);
                let operand = self.value(number);
                let content = self.load(place, Inst::RecLoad(operand, offset, bytes));
                if bytes == 2 {
                    self.learn_delta(number, offset, content);
                }
                content
            }
            Inst::Len | Inst::Avail(_) | Inst::Offset(_) => self.extent(inst),
            Inst::IpSum => self.ip_sum(),
            Inst::TransportSum(proto) => {
                let proto = self.number(proto);
                let proto = self.value(proto);
                let number = self.values.own(Interval::up_to(0xffff));
                let uses = 1 << Base::Net as u8 | 1 << Base::Trans as u8;
                let note = OptimizationNote { reads: Reads::Packet, uses, ..OptimizationNote::PURE };
                self.read(number, Inst::TransportSum(proto), note)
            }
            Inst::Now | Inst::Timestamp | Inst::FlowHash | Inst::Origin => {
                let which = GIVEN.iter().position(|given| *given == inst).unwrap_or(0);
                let most = yields(inst, |_| Interval::ALL).hi;
                self.values.leaf(Expr::Given(which as u8), most)
            }
            _ => {
                self.effect(inst);
                return None;
            }
        };
        Some(number)
    }

    /// An instruction with an effect.
    fn effect(&mut self, inst: Inst) {
        match inst {
            Inst::Store(_, value)
            | Inst::StoreAnno(_, value)
            | Inst::SetPacketType(value)
            | Inst::CellStore(_, value) => {
                let inst = self.at_mac(inst);
                let (place, value) = (self.location(inst), self.number(value));
                let of = |value| {
                    let mut inst = inst;
                    inst.map_operands(|operand| *operand = value);
                    inst
                };
                self.store(place, value, of);
                if self.known.joins_writes && matches!(inst, Inst::Store(..)) {
                    self.join_writes();
                }
            }
            Inst::CellAdd(cell, value) => {
                let (place, value) = (self.location(inst), self.number(value));
                if self.values.number(value) == Some(0) {
                    return;
                }
                let held = self.state.held(place, &mut self.values, &self.anchors);
                let operand = self.value(value);
                let note =
                    OptimizationNote { reads: Reads::Bits(self.touch(place)), ..OptimizationNote::PURE };
                self.act(Inst::CellAdd(cell, operand), note);
                match held {
                    Some(held) => {
                        let sum = self.values.bin(BinOp::Add, held, value, &self.state.facts);
                        self.state.write(place, sum, &mut self.values, &self.anchors);
                    }
                    None => self.state.spoil(place, &mut self.values, &self.anchors),
                }
            }
            Inst::RecStore(record, offset, bytes, value) => {
                let (place, value) = (self.record(record, offset, bytes), self.number(value));
                let number = self.number(record);
                let record = self.value(number);
                self.store(place, value, |value| Inst::RecStore(record, offset, bytes, value));
            }
            Inst::SetBase(base, value) => self.set_base(base, self.number(value)),
            Inst::ClearBase(base) => self.clear_base(base),
            Inst::Pull(value) => self.pull(self.number(value)),
            Inst::Push(bytes) => self.push(bytes),
            Inst::Take(value) => self.take(self.number(value)),
            _ => {}
        }
    }

    /// Writes an instruction that reads the packet's extent; one in this block is not repeated. Machine code
    /// can use the outcome of a test on it only if both are in one block.
    pub(super) fn read_here(&mut self, number: Vn, inst: Inst, note: OptimizationNote) -> Vn {
        let here = self.here;
        let locations = self.locations.get(&number);
        let found = locations.is_some_and(|locations| locations.iter().any(|location| location.0 == here));
        if !found && self.values.number(number).is_none() {
            self.write(number, inst, note);
        }
        number
    }
}

/// Inputs that are constant during the run.
pub(super) const GIVEN: [Inst; 4] = [Inst::Now, Inst::Timestamp, Inst::FlowHash, Inst::Origin];
/// Headers at a greater distance are not compared with others.
const FARTHEST: u64 = 1 << 20;

impl Forward<'_> {
    /// The position of a base that is a value's bytes after the packet's first byte.
    pub(super) fn behind_data(&mut self, value: Vn) -> Position {
        let data = self.state.at[Base::Data as usize];
        let near = |by: u64| (by as i64).unsigned_abs() <= FARTHEST;
        if let Some(by) = self.values.number(value).filter(|by| near(*by)) {
            return Position { bytes: data.bytes + by as i64, ..data };
        }
        let split = self.values.with_const(BinOp::Add, value).filter(|(_, extra)| near(*extra));
        let (by, extra) = split.unwrap_or((value, 0));
        let anchor = self.anchors.of(Point::Behind(data.anchor, by));
        Position { anchor, bytes: data.bytes + extra as i64 }
    }
}
