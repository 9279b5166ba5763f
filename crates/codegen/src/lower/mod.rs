//! A region as a native function: the loop over the batch, the blocks and their ends.
//!
//! The function is `for i in list { packet = packets[i]; … }`. The addresses of the headers that the
//! region touches and of the end of the first segment live in variables that the compiler keeps in
//! registers; instructions that move them ([`super::lower::access`]) update both the variable and the
//! descriptor. An unset header has offset 0xffff, which lies behind the end of every buffer, so the
//! bounds check of `need` refuses it without a check of its own.

mod access;
mod arith;

use crate::abi::Context;
use crate::region::{Plan, Region};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, MemFlagsData, types};
use cranelift_frontend::{FunctionBuilder, Switch, Variable};
use ir::LIST_CAPACITY;
use ir::program::{BlockId, Inst, Program, Term, Value};
use packet::field::Base;
use shm::descriptor::{META_BYTES, offset};
use std::collections::BTreeMap;
use std::mem::offset_of;

/// Accesses that cannot fault (the verifier and the plan uphold it) and need not be aligned.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// Emits one region.
pub(crate) struct Lowering<'a, 'b> {
    program: &'a Program,
    plan: &'a Plan,
    region: &'a Region,
    f: &'a mut FunctionBuilder<'b>,
    /// Pointers of [`Context`], read once before the loop.
    context: Pointers,
    blocks: BTreeMap<BlockId, clif::Block>,
    /// The header of the loop and its counter.
    next_packet: clif::Block,
    packet: clif::Value,
    index: clif::Value,
    bases: [Variable; 4],
    end: Variable,
    touched: Touched,
    values: BTreeMap<Value, clif::Value>,
    /// Entries in the lists that this region alone appends to while it runs: in registers, since a
    /// counter in memory would make each packet wait for the one before.
    counts: BTreeMap<usize, Variable>,
}

/// Lists whose counts are kept in registers, at the most: more would push hotter values out of them.
const REGISTER_COUNTS: usize = 2;

#[derive(Clone, Copy)]
struct Pointers {
    packets: clif::Value,
    cells: clif::Value,
    lists: clif::Value,
    counts: clif::Value,
    keys: clif::Value,
    records: clif::Value,
    carry: clif::Value,
    now_ns: clif::Value,
}

/// Which addresses a region needs: the others are not read from the descriptor.
#[derive(Clone, Copy, Default)]
struct Touched {
    bases: [bool; 4],
    end: bool,
}

impl Touched {
    fn of(program: &Program, region: &Region) -> Touched {
        let mut touched = Touched::default();
        for block in region.blocks.iter().map(|block| program.block(*block)) {
            for (_, inst) in &block.insts {
                match *inst {
                    Inst::Load(field) | Inst::Store(field, _) => touched.base(field.base),
                    Inst::Avail(base) => {
                        touched.base(base);
                        touched.end = true;
                    }
                    Inst::Offset(base) => touched.base(base),
                    Inst::Take(_) => touched.end = true,
                    Inst::IpSum => {
                        touched.base(Base::Net);
                        touched.end = true;
                    }
                    _ => {}
                }
            }
            if let Term::Need { base, .. } = block.term {
                touched.base(base);
                touched.end = true;
            }
        }
        // The end is counted from the packet's first byte, and so is where headers are set.
        touched.base(Base::Data);
        touched
    }

    fn base(&mut self, base: Base) {
        self.bases[base as usize] = true;
    }
}

/// Emits the function of a region into `f`, which has the signature of [`crate::abi::RegionFn`].
pub(crate) fn region(program: &Program, plan: &Plan, region: &Region, f: &mut FunctionBuilder<'_>) {
    let entry = f.create_block();
    f.append_block_params_for_function_params(entry);
    f.switch_to_block(entry);
    let params = f.block_params(entry).to_vec();
    let (context, list, count) = (params[0], params[1], params[2]);
    let mut pointer = |at: usize| {
        f.ins().load(types::I64, MemFlagsData::trusted(), context, i32::try_from(at).unwrap_or(0))
    };
    let context = Pointers {
        packets: pointer(offset_of!(Context, packets)),
        cells: pointer(offset_of!(Context, cells)),
        lists: pointer(offset_of!(Context, lists)),
        counts: pointer(offset_of!(Context, counts)),
        keys: pointer(offset_of!(Context, keys)),
        records: pointer(offset_of!(Context, records)),
        carry: pointer(offset_of!(Context, carry)),
        now_ns: pointer(offset_of!(Context, now_ns)),
    };
    let position = f.declare_var(types::I64);
    let end_of_list = f.declare_var(types::I64);
    f.def_var(position, list);
    let list_bytes = f.ins().ishl_imm_s(count, 1);
    let list_end = f.ins().iadd(list, list_bytes);
    f.def_var(end_of_list, list_end);
    let mut counts = BTreeMap::new();
    if region.sole_list.is_none() {
        // Drops and slow paths are rare: their counts stay in memory.
        let layout = &plan.lists;
        let often = |list: &&usize| **list < layout.outputs || **list >= layout.site(0);
        for &list in region.lists.iter().filter(often).take(REGISTER_COUNTS) {
            let count = f.declare_var(types::I64);
            let entries = f.ins().uload32(flags(), context.counts, 4 * list as i32);
            f.def_var(count, entries);
            counts.insert(list, count);
        }
    }
    let (head, body, done) = (f.create_block(), f.create_block(), f.create_block());
    f.ins().jump(head, &[]);

    f.switch_to_block(head);
    let (at, end) = (f.use_var(position), f.use_var(end_of_list));
    let more = f.ins().icmp(IntCC::UnsignedLessThan, at, end);
    f.ins().brif(more, body, &[], done, &[]);
    f.switch_to_block(done);
    for (&list, &count) in &counts {
        let entries = f.use_var(count);
        f.ins().istore32(flags(), entries, context.counts, 4 * list as i32);
    }
    f.ins().return_(&[]);

    f.switch_to_block(body);
    let index = f.ins().uload16(types::I64, flags(), at, 0);
    let next = f.ins().iadd_imm_s(at, 2);
    f.def_var(position, next);
    let at = f.ins().imul_imm_s(index, META_BYTES as i64);
    let packet = f.ins().iadd(context.packets, at);
    let bases = [(); 4].map(|()| f.declare_var(types::I64));
    let end = f.declare_var(types::I64);
    let blocks: BTreeMap<BlockId, clif::Block> =
        region.blocks.iter().map(|block| (*block, f.create_block())).collect();
    for (block, native) in &blocks {
        // Moved out of the way of the packets that go through.
        if matches!(program.block(*block).term, Term::Drop(_) | Term::Slow(_)) {
            f.set_cold_block(*native);
        }
    }
    let mut lowering = Lowering {
        program,
        plan,
        region,
        f,
        context,
        blocks,
        next_packet: head,
        packet,
        index,
        bases,
        end,
        touched: Touched::of(program, region),
        values: BTreeMap::new(),
        counts,
    };
    lowering.load_bases();
    lowering.load_lanes();
    let first = lowering.blocks[&region.head];
    lowering.f.ins().jump(first, &[]);
    for &block in &region.blocks {
        lowering.block(block);
    }
    f.seal_all_blocks();
}

impl Lowering<'_, '_> {
    /// Reads the record and the carried values that the region starts with.
    fn load_lanes(&mut self) {
        if let Some(record) = self.region.record {
            let at = self.f.ins().ishl_imm_s(self.index, 3);
            let at = self.f.ins().iadd(self.context.records, at);
            let address = self.f.ins().load(types::I64, flags(), at, 0);
            self.values.insert(record, address);
        }
        for &value in &self.region.carried {
            let (lane, slot) = (self.carry_lane(), self.carry_offset(value));
            let loaded = self.f.ins().load(types::I64, flags(), lane, slot);
            self.values.insert(value, loaded);
        }
    }

    fn carry_lane(&mut self) -> clif::Value {
        let bytes = 8 * self.plan.carry_slots.len().max(1) as i64;
        let at = self.f.ins().imul_imm_s(self.index, bytes);
        self.f.ins().iadd(self.context.carry, at)
    }

    fn carry_offset(&self, value: Value) -> i32 {
        8 * self.plan.carry_slots.get(&value).copied().unwrap_or(0) as i32
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
        for &(result, inst) in &block.insts {
            let value = self.inst(inst);
            if let (Some(result), Some(value)) = (result, value) {
                self.values.insert(result, value);
            }
        }
        self.term(id, &block.term);
    }

    fn inst(&mut self, inst: Inst) -> Option<clif::Value> {
        match inst {
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
                let (value, yes, no) = (self.value(*value), self.blocks[yes], self.blocks[no]);
                self.f.ins().brif(value, yes, &[], no, &[]);
            }
            Term::Need { base, bytes, then, els } => {
                let (start, end) = (self.base(*base), self.f.use_var(self.end));
                let needed = self.f.ins().iadd_imm_s(start, i64::from(*bytes));
                let there = self.f.ins().icmp(IntCC::UnsignedLessThanOrEqual, needed, end);
                let (then, els) = (self.blocks[then], self.blocks[els]);
                self.f.ins().brif(there, then, &[], els, &[]);
            }
            Term::Room { bytes, then, els } => {
                let data = self.f.ins().uload16(types::I64, flags(), self.packet, offset::DATA);
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
                self.append(port);
            }
            Term::Lookup { key, .. } => self.border(id, key, &[]),
            Term::Create { key, args, .. } => self.border(id, key, args),
        }
    }

    /// Puts the packet on an exit list and goes on with the next one.
    fn exit(&mut self, list: usize) {
        let next = self.next_packet;
        if self.region.sole_list.is_some() {
            self.f.ins().jump(next, &[]);
            return;
        }
        let register = self.counts.get(&list).copied();
        let count = match register {
            Some(variable) => self.f.use_var(variable),
            None => self.f.ins().uload32(flags(), self.context.counts, 4 * list as i32),
        };
        let entry = self.f.ins().ishl_imm_s(count, 1);
        let entry = self.f.ins().iadd(self.context.lists, entry);
        let list_at = (list * LIST_CAPACITY * 2) as i32;
        self.f.ins().istore16(flags(), self.index, entry, list_at);
        let count = self.f.ins().iadd_imm_s(count, 1);
        match register {
            Some(variable) => self.f.def_var(variable, count),
            None => {
                self.f.ins().istore32(flags(), count, self.context.counts, 4 * list as i32);
            }
        }
        self.f.ins().jump(next, &[]);
    }

    /// The same for a list whose number is known only now.
    fn append(&mut self, list: clif::Value) {
        let count_at = self.f.ins().ishl_imm_s(list, 2);
        let count_at = self.f.ins().iadd(self.context.counts, count_at);
        let count = self.f.ins().uload32(flags(), count_at, 0);
        let list_at = self.f.ins().imul_imm_s(list, (LIST_CAPACITY * 2) as i64);
        let entry = self.f.ins().ishl_imm_s(count, 1);
        let entry = self.f.ins().iadd(list_at, entry);
        let entry = self.f.ins().iadd(self.context.lists, entry);
        self.f.ins().istore16(flags(), self.index, entry, 0);
        let count = self.f.ins().iadd_imm_s(count, 1);
        self.f.ins().istore32(flags(), count, count_at, 0);
        let next = self.next_packet;
        self.f.ins().jump(next, &[]);
    }

    /// Leaves the region for a lookup: key and carried values go to their lanes.
    fn border(&mut self, id: BlockId, key: &[Value], args: &[Value]) {
        let Some(number) = self.plan.sites.iter().position(|site| site.block == id) else { return };
        let site = &self.plan.sites[number];
        let at = self.f.ins().imul_imm_s(self.index, 8 * self.plan.key_stride as i64);
        let lane = self.f.ins().iadd(self.context.keys, at);
        for (word, value) in key.iter().chain(args).enumerate() {
            let value = self.value(*value);
            self.f.ins().store(flags(), value, lane, 8 * word as i32);
        }
        let (hit, miss) = (&self.plan.regions[site.hit], &self.plan.regions[site.miss]);
        let needed = hit.carried.union(&miss.carried);
        let needed: Vec<Value> =
            needed.filter(|value| !self.region.carried.contains(value)).copied().collect();
        if !needed.is_empty() {
            let lane = self.carry_lane();
            for value in needed {
                // The record of a lookup is defined behind it and never carried over it.
                if let Some(&native) = self.values.get(&value) {
                    let slot = self.carry_offset(value);
                    self.f.ins().store(flags(), native, lane, slot);
                }
            }
        }
        self.exit(self.plan.lists.site(number));
    }

    fn base(&mut self, base: Base) -> clif::Value {
        self.f.use_var(self.bases[base as usize])
    }
}
