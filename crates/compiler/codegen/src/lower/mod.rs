//! A region as a native function: the loop over the batch, the blocks and their terminators.
//!
//! The function is `for i in list { packet = packets[i]; … }`. The addresses and offsets of the headers that
//! the region touches and the first segment's length are variables that the compiler keeps in registers;
//! instructions that move them ([`super::lower::access`]) update both the variable and the descriptor. An
//! unset header has offset 0xffff, which is after the end of every buffer, so the bounds check of `need`
//! refuses it without a check of its own.

mod access;
mod arith;
mod bounds;
mod entry_point;
mod header_sum;
mod known;
mod memory;
mod table_place;
mod walk;

use crate::abi::Context;
use crate::lookup_region::{Head, LookupRegion, RegionPlan};
use bounds::Bounds;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, MemFlagsData, types};
use cranelift_frontend::{FunctionBuilder, Switch, Variable};
use entry_point::Touched;
use ir::program::{BinOp, BlockId, Inst, Program, Term, Value};
use known::Known;
use memory::{flags, load_pointer};
use packet::field::Base;
use shm::burst::LIST_CAPACITY;
use shm::descriptor::META_BYTES;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use table_place::TablePlace;

/// Bytes of an exit list.
const LIST_BYTES: usize = LIST_CAPACITY * size_of::<u16>();

/// Emits one region.
pub(crate) struct Lowering<'a, 'b> {
    program: &'a Program,
    plan: &'a RegionPlan,
    region: &'a LookupRegion,
    f: &'a mut FunctionBuilder<'b>,
    context: Pointers,
    blocks: BTreeMap<BlockId, clif::Block>,
    list: ListWalk,
    packet: clif::Value,
    /// The address of the packet's index in the list.
    index_at: clif::Value,
    index: clif::Value,
    bases: [Variable; 4],
    /// The same as offsets from the buffer's start, as in the descriptor.
    offsets: [Variable; 4],
    /// Bytes of the first segment.
    len: Variable,
    touched: Touched,
    values: BTreeMap<Value, clif::Value>,
    /// Upper bounds of values, where they are known.
    bounds: Bounds,
    /// The facts at each block's start, and at the point that is being emitted.
    known_at: BTreeMap<BlockId, Known>,
    known: Known,
    /// Sums of IP headers before they were folded.
    header_sums: BTreeMap<Value, clif::Value>,
    /// Ends of lists that only this region appends to while it runs. They are in registers, since a count in
    /// memory would make each packet wait for the one before.
    ends: BTreeMap<usize, Variable>,
    /// Cells that the program never writes, with their values at the function's start.
    cells: BTreeMap<u16, clif::Value>,
    /// The addresses of the tables that are walked here, in the order of the program's tables.
    walks: Vec<Option<TablePlace>>,
}

/// The maximum number of lists whose ends are kept in registers: more would displace hotter values.
const REGISTER_ENDS: usize = 2;

/// Regions of more blocks have more live values than there are registers: some values are then kept in
/// memory.
const CROWDED_BLOCKS: usize = 15;

/// Pointers of [`Context`]. Those that every packet needs are read once, before the loop; the others at each
/// use, since each would take a register from values that all packets need.
#[derive(Clone, Copy)]
struct Pointers {
    context: clif::Value,
    counts: Option<clif::Value>,
    keys: Option<clif::Value>,
    records: Option<clif::Value>,
    carry: Option<clif::Value>,
}

/// Emits the function of a region into `f`, which has the signature of [`crate::abi::RegionFn`].
pub(crate) fn region(
    program: &Program,
    plan: &RegionPlan,
    region: &LookupRegion,
    f: &mut FunctionBuilder<'_>,
) {
    let entry = f.create_block();
    f.append_block_params_for_function_params(entry);
    f.switch_to_block(entry);
    let params = f.block_params(entry).to_vec();
    let (context, list, count) = (params[0], params[1], params[2]);
    // Drops and slow paths are rare: their counts stay in memory. The main list is not written.
    let often = |list: &&usize| plan.lists.is_often(**list) && region.main_list != Some(**list);
    let is_site = |block: &BlockId| program.is_barrier(&program.block(*block).term, plan.walked);
    let sites = region.blocks.iter().any(is_site);
    let many_lists = region.lists.iter().filter(often).count() > REGISTER_ENDS;
    let to_port = program.outputs > 1
        && region.blocks.iter().any(|block| matches!(program.block(*block).term, Term::EmitTo(..)));
    let pointers = [
        (offset_of!(Context, counts), many_lists || to_port),
        (offset_of!(Context, keys), sites),
        (offset_of!(Context, records), region.heads.iter().any(|head| head.record.is_some())),
        (offset_of!(Context, carry), sites || region.carries()),
    ];
    let [counts, keys, records, carry] =
        pointers.map(|(at, often)| often.then(|| load_pointer(f, context, at)));
    let context = Pointers { context, counts, keys, records, carry };
    let position = f.declare_var(types::I64);
    f.def_var(position, list);
    let list_bytes = f.ins().ishl_imm_s(count, 1);
    let list_end = f.ins().iadd(list, list_bytes);
    let crowded = region.blocks.len() > CROWDED_BLOCKS;
    if crowded {
        let at = offset_of!(Context, list_end) as i32;
        f.ins().store(MemFlagsData::trusted(), list_end, context.context, at);
    }
    let list_end = (!crowded).then_some(list_end);
    let packets_at = offset_of!(Context, packets);
    let packets = (!crowded).then(|| load_pointer(f, context.context, packets_at));
    let walks = if plan.walked { TablePlace::read(f, program, region, context.context) } else { vec![] };
    let cells = if crowded { BTreeSet::new() } else { entry_point::constant_cells(program, plan, region) };
    let cells_at = (!cells.is_empty()).then(|| load_pointer(f, context.context, offset_of!(Context, cells)));
    let cells = cells.into_iter().flat_map(|cell| {
        let at = cells_at?;
        Some((cell, f.ins().load(types::I64, flags(), at, 8 * i32::from(cell))))
    });
    let cells = cells.collect();
    let mut ends = BTreeMap::new();
    for &list in region.lists.iter().filter(often).take(REGISTER_ENDS) {
        let counts = load_pointer(f, context.context, offset_of!(Context, counts));
        let lists = load_pointer(f, context.context, offset_of!(Context, lists));
        let end = f.declare_var(types::I64);
        let entries = f.ins().uload32(flags(), counts, 4 * list as i32);
        let bytes = f.ins().ishl_imm_s(entries, 1);
        let start = f.ins().iadd_imm_s(lists, (list * LIST_BYTES) as i64);
        let address = f.ins().iadd(start, bytes);
        f.def_var(end, address);
        ends.insert(list, end);
    }
    let (body, done) = (f.create_block(), f.create_block());
    let list = ListWalk { position, end: list_end, body, done };
    list.go_on(f, context.context);
    f.switch_to_block(done);
    if !ends.is_empty() {
        let counts = load_pointer(f, context.context, offset_of!(Context, counts));
        let lists = load_pointer(f, context.context, offset_of!(Context, lists));
        for (&list, &end) in &ends {
            let end = f.use_var(end);
            let start = f.ins().iadd_imm_s(lists, (list * LIST_BYTES) as i64);
            let bytes = f.ins().isub(end, start);
            let entries = f.ins().ushr_imm_s(bytes, 1);
            f.ins().istore32(flags(), entries, counts, 4 * list as i32);
        }
    }
    f.ins().return_(&[]);

    f.switch_to_block(body);
    let at = f.use_var(position);
    let index = f.ins().uload16(types::I64, flags(), at, 0);
    let next = f.ins().iadd_imm_s(at, 2);
    f.def_var(position, next);
    let from_first = f.ins().imul_imm_s(index, META_BYTES as i64);
    let packets = packets.unwrap_or_else(|| load_pointer(f, context.context, packets_at));
    let packet = match crowded {
        false => f.ins().iadd(packets, from_first),
        // The compiler does not split the sum of an instruction with two results into base and index at each
        // access to the descriptor, which would take two registers instead of one.
        true => f.ins().uadd_overflow(from_first, packets).0,
    };
    let bases = [(); 4].map(|()| f.declare_var(types::I64));
    let offsets = [(); 4].map(|()| f.declare_var(types::I64));
    let len = f.declare_var(types::I64);
    let blocks: BTreeMap<BlockId, clif::Block> =
        region.blocks.iter().map(|block| (*block, f.create_block())).collect();
    for (block, native) in &blocks {
        // Keeps the block out of the code of the common path.
        if matches!(program.block(*block).term, Term::Drop(_) | Term::Slow(_)) {
            f.set_cold_block(*native);
        }
    }
    let bounds = Bounds::of(program, region);
    let mut lowering = Lowering {
        program,
        plan,
        region,
        f,
        context,
        blocks,
        list,
        packet,
        index_at: at,
        index,
        bases,
        offsets,
        len,
        touched: Touched::of(program, plan, region),
        values: BTreeMap::new(),
        known_at: known::at_blocks(program, plan, region, &bounds),
        known: Known::default(),
        bounds,
        header_sums: BTreeMap::new(),
        ends,
        cells,
        walks,
    };
    lowering.load_bases();
    lowering.begin();
    for &block in &region.blocks {
        lowering.block(block);
    }
    f.seal_all_blocks();
}

/// The loop over the index list.
#[derive(Clone, Copy)]
struct ListWalk {
    /// The address of the next packet's index.
    position: Variable,
    /// The list's end, if it is kept in a register.
    end: Option<clif::Value>,
    /// The loop's body, and the block after it.
    body: clif::Block,
    done: clif::Block,
}

impl ListWalk {
    /// Ends a block with the test for another packet. Each exit has its own copy: one jump less for each
    /// packet.
    fn go_on(self, f: &mut FunctionBuilder<'_>, context: clif::Value) {
        let at = f.use_var(self.position);
        let end = self.end.unwrap_or_else(|| load_pointer(f, context, offset_of!(Context, list_end)));
        let more = f.ins().icmp(IntCC::UnsignedLessThan, at, end);
        f.ins().brif(more, self.body, &[], self.done, &[]);
    }
}

impl Lowering<'_, '_> {
    fn cells(&mut self) -> clif::Value {
        self.pointer(None, offset_of!(Context, cells))
    }

    /// A field of [`Context`]: the value read before the loop, or a read here.
    fn pointer(&mut self, known: Option<clif::Value>, at: usize) -> clif::Value {
        known.unwrap_or_else(|| load_pointer(self.f, self.context.context, at))
    }

    fn lists(&mut self) -> clif::Value {
        self.pointer(None, offset_of!(Context, lists))
    }

    fn counts(&mut self) -> clif::Value {
        self.pointer(self.context.counts, offset_of!(Context, counts))
    }

    /// Reads what the region starts with, and goes to the head behind which the packet goes on.
    fn begin(&mut self) {
        let region = self.region;
        let [first, others @ ..] = &region.heads[..] else { return };
        if others.is_empty() {
            return self.begin_at(first, &BTreeSet::new());
        }
        // What several heads carry is read before the ways part: blocks behind several of them use it.
        let mut shared = BTreeMap::new();
        for value in region.heads.iter().flat_map(|head| &head.carried) {
            *shared.entry(*value).or_insert(0) += 1;
        }
        let shared: BTreeSet<Value> =
            shared.into_iter().filter(|(_, heads)| *heads > 1).map(|(value, _)| value).collect();
        shared.iter().for_each(|value| self.load_carried(*value));
        let (lane, slot) = (self.carry_lane(), self.which_offset());
        let which = self.f.ins().load(types::I64, flags(), lane, slot);
        let starts: Vec<clif::Block> = region.heads.iter().map(|_| self.f.create_block()).collect();
        let mut switch = Switch::new();
        for (number, start) in (0..).zip(&starts) {
            switch.set_entry(number, *start);
        }
        switch.emit(self.f, which, starts[0]);
        for (head, start) in region.heads.iter().zip(starts) {
            self.f.switch_to_block(start);
            self.begin_at(head, &shared);
        }
    }

    /// Reads the record and the carried values that a head starts with, but those that are read, and goes there.
    fn begin_at(&mut self, head: &Head, read: &BTreeSet<Value>) {
        if let Some(record) = head.record {
            let at = self.f.ins().ishl_imm_s(self.index, 3);
            let records = self.pointer(self.context.records, offset_of!(Context, records));
            let at = self.f.ins().iadd(records, at);
            let address = self.f.ins().load(types::I64, flags(), at, 0);
            self.values.insert(record, address);
        }
        head.carried.difference(read).for_each(|value| self.load_carried(*value));
        let to = self.blocks[&head.block];
        self.f.ins().jump(to, &[]);
    }

    fn load_carried(&mut self, value: Value) {
        let (lane, slot) = (self.carry_lane(), self.carry_offset(value));
        let loaded = self.f.ins().load(types::I64, flags(), lane, slot);
        self.values.insert(value, loaded);
    }

    fn carry_lane(&mut self) -> clif::Value {
        let bytes = 8 * self.plan.carry_words().max(1) as i64;
        let at = self.f.ins().imul_imm_s(self.index, bytes);
        let carry = self.pointer(self.context.carry, offset_of!(Context, carry));
        self.f.ins().iadd(carry, at)
    }

    fn carry_offset(&self, value: Value) -> i32 {
        8 * self.plan.carry_slots.get(&value).copied().unwrap_or(0) as i32
    }

    /// Where the carry lane has the number of the lookup at which the packet waits, among those of one stage.
    fn which_offset(&self) -> i32 {
        8 * self.plan.carry_slots.len() as i32
    }

    fn value(&self, value: Value) -> clif::Value {
        self.values[&value]
    }

    fn block(&mut self, id: BlockId) {
        let block = self.program.block(id);
        let native = self.blocks[&id];
        self.f.switch_to_block(native);
        for &param in &block.params {
            let value = self.f.append_block_param(native, types::I64);
            self.values.insert(param, value);
        }
        self.known = self.known_at.get(&id).copied().unwrap_or_default();
        for &(result, inst) in &block.insts {
            let value = self.inst(result, inst);
            self.known.pass(inst, &self.bounds);
            if let (Some(result), Some(value)) = (result, value) {
                self.values.insert(result, value);
            }
        }
        self.term(id, &block.term);
    }

    fn inst(&mut self, result: Option<Value>, inst: Inst) -> Option<clif::Value> {
        match inst {
            Inst::IpSum => Some(self.ip_sum(result)),
            Inst::Bin(BinOp::Eq, sum, other) if self.is_right_sum_test(sum, other) => {
                Some(self.is_right_sum(sum))
            }
            Inst::Const(..) | Inst::Bin(..) | Inst::Select(..) | Inst::CsumUpdate(..) => {
                Some(self.arithmetic(inst))
            }
            _ => self.access(inst),
        }
    }

    fn term(&mut self, id: BlockId, term: &Term) {
        match term {
            Term::Jump(to, args) => {
                let args: Vec<clif::BlockArg> = args.iter().map(|arg| self.value(*arg).into()).collect();
                let to = self.blocks[to];
                self.f.ins().jump(to, &args);
            }
            Term::Branch(value, yes, no) => {
                let (value, yes, no) = (self.test(*value), self.blocks[yes], self.blocks[no]);
                self.f.ins().brif(value, yes, &[], no, &[]);
            }
            Term::Need { base, bytes, then, els } => {
                let (then, els) = (self.blocks[then], self.blocks[els]);
                if self.known.has(*base, u64::from(*bytes)) {
                    self.f.ins().jump(then, &[]);
                    return;
                }
                let bytes = self.f.ins().iconst(types::I64, i64::from(*bytes));
                let there = self.is_there(*base, bytes);
                self.f.ins().brif(there, then, &[], els, &[]);
            }
            Term::Room { bytes, then, els } => {
                let data = self.f.use_var(self.offsets[Base::Data as usize]);
                let bytes = i64::from(*bytes);
                let free = self.f.ins().icmp_imm_s(IntCC::UnsignedGreaterThanOrEqual, data, bytes);
                let (then, els) = (self.blocks[then], self.blocks[els]);
                self.f.ins().brif(free, then, &[], els, &[]);
            }
            Term::Switch(value, cases, default) => {
                let mut switch = Switch::new();
                let mut seen = std::collections::BTreeSet::new();
                for (case, block) in cases {
                    if seen.insert(*case) {
                        switch.set_entry(u128::from(*case), self.blocks[block]);
                    }
                }
                let (value, default) = (self.value(*value), self.blocks[default]);
                switch.emit(self.f, value, default);
            }
            Term::Emit(port) => self.exit(usize::from(*port)),
            Term::Drop(reason) => self.exit(self.plan.lists.reason(*reason)),
            Term::Slow(slow) => self.exit(self.plan.lists.slow(*slow)),
            Term::EmitTo(port, els) => {
                let port = self.value(*port);
                let outputs = i64::from(self.program.outputs);
                let known = self.f.ins().icmp_imm_s(IntCC::UnsignedLessThan, port, outputs);
                let (out, els) = (self.f.create_block(), self.blocks[els]);
                self.f.ins().brif(known, out, &[], els, &[]);
                self.f.switch_to_block(out);
                match self.program.outputs {
                    1 => self.exit(0),
                    _ => self.append(port),
                }
            }
            Term::Lookup { table, key, rec, hit, miss, .. }
                if !self.program.is_barrier(term, self.plan.walked) =>
            {
                self.walk(*table, key, *rec, *hit, *miss);
            }
            Term::Lookup { key, args, .. } => {
                self.lookup_boundary(id, key, args.as_deref().unwrap_or_default());
            }
        }
    }

    /// Appends the packet to an exit list and continues with the next one.
    fn exit(&mut self, list: usize) {
        if self.region.main_list == Some(list) {
            return self.go_on();
        }
        // Read again: kept from the start on, it would take a register for the whole body.
        let index = self.f.ins().uload16(types::I64, flags(), self.index_at, 0);
        if let Some(&variable) = self.ends.get(&list) {
            let end = self.f.use_var(variable);
            self.f.ins().istore16(flags(), index, end, 0);
            let end = self.f.ins().iadd_imm_s(end, 2);
            self.f.def_var(variable, end);
        } else {
            let (counts, lists) = (self.counts(), self.lists());
            let count = self.f.ins().uload32(flags(), counts, 4 * list as i32);
            let entry = self.f.ins().ishl_imm_s(count, 1);
            let entry = self.f.ins().iadd(lists, entry);
            self.f.ins().istore16(flags(), index, entry, (list * LIST_BYTES) as i32);
            let count = self.f.ins().iadd_imm_s(count, 1);
            self.f.ins().istore32(flags(), count, counts, 4 * list as i32);
        }
        self.go_on();
    }

    fn go_on(&mut self) {
        self.list.go_on(self.f, self.context.context);
    }

    /// The same for a list whose number is only known at run time.
    fn append(&mut self, list: clif::Value) {
        let count_at = self.f.ins().ishl_imm_s(list, 2);
        let counts = self.counts();
        let count_at = self.f.ins().iadd(counts, count_at);
        let count = self.f.ins().uload32(flags(), count_at, 0);
        let list_at = self.f.ins().imul_imm_s(list, LIST_BYTES as i64);
        let entry = self.f.ins().ishl_imm_s(count, 1);
        let entry = self.f.ins().iadd(list_at, entry);
        let lists = self.lists();
        let entry = self.f.ins().iadd(lists, entry);
        let index = self.f.ins().uload16(types::I64, flags(), self.index_at, 0);
        self.f.ins().istore16(flags(), index, entry, 0);
        let count = self.f.ins().iadd_imm_s(count, 1);
        self.f.ins().istore32(flags(), count, count_at, 0);
        self.go_on();
    }

    /// Leaves the region for a lookup: stores key and carried values in their lanes.
    fn lookup_boundary(&mut self, id: BlockId, key: &[Value], args: &[Value]) {
        let Some((number, member)) = self.plan.site_of(id) else { return };
        let site = &self.plan.sites[number];
        let at = self.f.ins().imul_imm_s(self.index, 8 * self.plan.key_stride as i64);
        let keys = self.pointer(self.context.keys, offset_of!(Context, keys));
        let lane = self.f.ins().iadd(keys, at);
        for (word, value) in key.iter().chain(args).enumerate() {
            let value = self.value(*value);
            self.f.ins().store(flags(), value, lane, 8 * word as i32);
        }
        let [hit, miss] = [site.hit, site.miss].map(|region| &self.plan.regions[region]);
        let parts = hit.heads.len().max(miss.heads.len()) > 1;
        let needed = hit.head(member).carried.union(&miss.head(member).carried);
        let is_there = |value: &Value| self.region.heads.iter().any(|head| head.carried.contains(value));
        let needed: Vec<Value> = needed.filter(|value| !is_there(value)).copied().collect();
        if parts || !needed.is_empty() {
            let lane = self.carry_lane();
            for value in needed {
                // The record of a lookup is defined after it and never carried over it.
                if let Some(&native) = self.values.get(&value) {
                    let slot = self.carry_offset(value);
                    self.f.ins().store(flags(), native, lane, slot);
                }
            }
            if parts {
                let slot = self.which_offset();
                let member = self.f.ins().iconst(types::I64, member as i64);
                self.f.ins().store(flags(), member, lane, slot);
            }
        }
        self.exit(self.plan.lists.site(number));
    }

    fn base(&mut self, base: Base) -> clif::Value {
        self.f.use_var(self.bases[base as usize])
    }
}
