//! A fused region's elements, one after the other, as one program: the reference for the fused program.
//!
//! This is deliberately not the linker: it follows the wires from the entries, block by block, so that a
//! fault in the linker shows as a difference. It also renumbers the fused program: outputs, drop reasons,
//! slow paths and tables are numbered by element here, independent of the linker's numbers.

use crate::subgraph::FusedSubgraph;
use ir::Verified;
use ir::program::{BinOp, Block, BlockId, Inst, Program, Term, Value};
use ir::verify::VerifyError;
use packet::field::Base;
use std::collections::HashMap;
use synth::link::Part;

/// Numbers for what parts have: those of one part after those of another.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// The first number of each part.
    starts: Vec<usize>,
    count: usize,
}

impl Numbers {
    /// Numbers for what each part has that many of. Of what is `shared`, parts of one element have the same.
    fn of(parts: &[Part<'_>], shared: bool, count: impl Fn(&Program) -> usize) -> Numbers {
        let (mut starts, mut next): (Vec<usize>, usize) = (vec![], 0);
        for part in parts {
            let first = part.shares.filter(|_| shared);
            starts.push(first.map_or(next, |first| starts[first]));
            next += if first.is_some() { 0 } else { count(part.program) };
        }
        Numbers { starts, count: next }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of one that a part has.
    pub fn number(&self, (part, own): (usize, usize)) -> usize {
        self.starts[part] + own
    }
}

/// All numbers.
#[derive(Clone, Debug)]
pub struct Numbering {
    /// Output ports.
    pub outputs: Numbers,
    /// Drop reasons.
    pub reasons: Numbers,
    /// Slow paths.
    pub slow: Numbers,
    /// Cells; the cells that count wires follow them.
    pub cells: Numbers,
    /// Tables.
    pub tables: Numbers,
}

impl Numbering {
    /// The numbers for a fused region's elements.
    pub fn of(region: &FusedSubgraph<'_>) -> Numbering {
        let each = |count: &dyn Fn(&Program) -> usize| Numbers::of(&region.parts, false, count);
        let shared = |count: &dyn Fn(&Program) -> usize| Numbers::of(&region.parts, true, count);
        // Counters follow from the part by which a packet leaves, so another part of the same element
        // differs.
        Numbering {
            outputs: each(&|program| program.outputs.into()),
            reasons: each(&|program| program.reasons.len()),
            slow: each(&|program| program.slow.len()),
            cells: shared(&|program| program.cells.len()),
            tables: shared(&|program| program.tables.len()),
        }
    }
}

struct Composer<'a> {
    region: &'a FusedSubgraph<'a>,
    numbers: &'a Numbering,
    program: Program,
    /// Blocks of elements in the whole.
    placed: HashMap<(usize, BlockId), BlockId>,
    values: HashMap<(usize, Value), Value>,
    next_value: u32,
    open: Vec<(usize, BlockId, BlockId)>,
}

/// The elements of a fused region, one after the other.
///
/// # Errors
/// When that breaks the IR's invariants: a bug.
pub fn compose(region: &FusedSubgraph<'_>, numbers: &Numbering) -> Result<Verified, VerifyError> {
    let parts = &region.parts;
    let program = Program {
        name: "elements".into(),
        outputs: numbers.outputs.count() as u16,
        reasons: (0..numbers.reasons.count()).map(|at| format!("reason{at}")).collect(),
        cells: region.elements().flat_map(|part| part.program.cells.clone()).collect(),
        tables: region.elements().flat_map(|part| part.program.tables.clone()).collect(),
        slow: (0..numbers.slow.count()).map(|at| format!("slow{at}")).collect(),
        from_ports: region.from_ports.clone(),
        ..Program::default()
    };
    let mut composer = Composer {
        region,
        numbers,
        program,
        placed: HashMap::new(),
        values: HashMap::new(),
        next_value: 0,
        open: vec![],
    };
    for at in 0..region.counted.len() {
        composer.program.cells.push(ir::program::Cell { name: format!("wire{at}"), init: 0 });
    }
    let starts = region.entries.iter().map(|&(part, input)| (part, parts[part].program.entries[input]));
    for (part, block) in starts.clone() {
        let entry = composer.place(part, block);
        composer.program.entries.push(entry);
    }
    composer.place_all();
    // A fused program that asks first where the MAC header is has classes of its own for both answers: here it is
    // asked, too, and both answers lead to the same.
    let asks = |entry: &BlockId| {
        let asked = |(_, inst): &(_, Inst)| *inst == Inst::Offset(Base::Mac);
        region.fused.block(*entry).insts.iter().any(asked)
    };
    for (at, (part, block)) in starts.enumerate() {
        if region.fused.entries.get(at).is_some_and(asks) {
            composer.ask_for_frames(at, part, block);
        }
    }
    Verified::new(composer.program)
}

impl Composer<'_> {
    fn reserve(&mut self) -> BlockId {
        self.program.blocks.push(Block { params: vec![], insts: vec![], term: Term::Drop(0) });
        BlockId(self.program.blocks.len() as u32 - 1)
    }

    fn place(&mut self, part: usize, block: BlockId) -> BlockId {
        if let Some(placed) = self.placed.get(&(part, block)) {
            return *placed;
        }
        let placed = self.reserve();
        self.placed.insert((part, block), placed);
        self.open.push((part, block, placed));
        placed
    }

    /// Adds the blocks that were placed, and all that they lead to.
    fn place_all(&mut self) {
        while let Some((part, from, to)) = self.open.pop() {
            let region = self.region;
            let block = self.block(part, region.parts[part].program.block(from));
            self.program.blocks[to.index()] = block;
        }
    }

    /// Splits the packets of an entry by whether the MAC header is their first byte. Those that have it there go
    /// on in a copy of the elements, behind a block that sets it to where it is.
    fn ask_for_frames(&mut self, entry: usize, part: usize, block: BlockId) {
        self.placed.clear();
        self.values.clear();
        let copy = self.place(part, block);
        self.place_all();
        let [offset, zero, is_first, none] = [(); 4].map(|()| self.fresh());
        let (head, frames) = (self.reserve(), self.reserve());
        let insts = vec![(Some(none), Inst::Const(0)), (None, Inst::SetBase(Base::Mac, none))];
        self.program.blocks[frames.index()] = Block { params: vec![], insts, term: Term::Jump(copy, vec![]) };
        let insts = vec![
            (Some(offset), Inst::Offset(Base::Mac)),
            (Some(zero), Inst::Const(0)),
            (Some(is_first), Inst::Bin(BinOp::Eq, offset, zero)),
        ];
        let others = std::mem::replace(&mut self.program.entries[entry], head);
        let term = Term::Branch(is_first, frames, others);
        self.program.blocks[head.index()] = Block { params: vec![], insts, term };
    }

    fn fresh(&mut self) -> Value {
        self.next_value += 1;
        Value(self.next_value - 1)
    }

    fn value(&mut self, part: usize, value: Value) -> Value {
        if let Some(known) = self.values.get(&(part, value)) {
            return *known;
        }
        let fresh = self.fresh();
        self.values.insert((part, value), fresh);
        fresh
    }

    fn block(&mut self, part: usize, block: &Block) -> Block {
        let params = block.params.iter().map(|param| self.value(part, *param)).collect();
        let mut insts = Vec::with_capacity(block.insts.len());
        for (result, inst) in &block.insts {
            let mut inst = *inst;
            inst.map_operands(|value| *value = self.value(part, *value));
            if let Inst::CellLoad(cell) | Inst::CellStore(cell, _) | Inst::CellAdd(cell, _) = &mut inst {
                *cell = self.numbers.cells.number((part, usize::from(*cell))) as u16;
            }
            insts.push((result.map(|result| self.value(part, result)), inst));
        }
        let mut term = block.term.clone();
        term.map_operands(|value| *value = self.value(part, *value));
        term.map_successors(|to| self.place(part, to));
        let own = |numbers: &Numbers, at: u16| numbers.number((part, usize::from(at))) as u16;
        match &mut term {
            Term::Drop(reason) => *reason = own(&self.numbers.reasons, *reason),
            Term::Slow(slow) => *slow = own(&self.numbers.slow, *slow),
            Term::Lookup { table, rec, .. } => {
                *table = own(&self.numbers.tables, *table);
                *rec = self.value(part, *rec);
            }
            _ => {}
        }
        let term = match term {
            Term::Emit(port) => self.leave(part, usize::from(port), &mut insts),
            Term::EmitTo(value, els) => self.by_number(part, value, els),
            term => term,
        };
        Block { params, insts, term }
    }

    /// The terminator for packets that leave by a port.
    fn leave(&mut self, part: usize, port: usize, insts: &mut Vec<(Option<Value>, Inst)>) -> Term {
        let Some((to, input)) = self.region.next(part, port) else {
            return Term::Emit(self.numbers.outputs.number((part, port)) as u16);
        };
        if let Some(count) = self.region.counted.iter().position(|wire| *wire == (part, port)) {
            let one = self.fresh();
            let cell = self.numbers.cells.count() + count;
            insts.push((Some(one), Inst::Const(1)));
            insts.push((None, Inst::CellAdd(cell as u16, one)));
        }
        let entry = self.region.parts[to].program.entries[input];
        Term::Jump(self.place(to, entry), vec![])
    }

    fn by_number(&mut self, part: usize, value: Value, els: BlockId) -> Term {
        let outputs = self.region.parts[part].program.outputs;
        let cases = (0..outputs).map(|port| {
            let block = self.reserve();
            let mut insts = vec![];
            let term = self.leave(part, usize::from(port), &mut insts);
            self.program.blocks[block.index()] = Block { params: vec![], insts, term };
            (u64::from(port), block)
        });
        let cases = cases.collect();
        Term::Switch(value, cases, els)
    }
}

/// The fused program with outputs, reasons, slow paths and tables by their elements' numbers; `None` if they
/// are not in the linker's lists.
///
/// # Errors
/// When that breaks the IR's invariants: a bug.
pub fn renumber(region: &FusedSubgraph<'_>, numbers: &Numbering) -> Option<Result<Verified, VerifyError>> {
    let (linked, mut program) = (region.linked, region.fused.clone().into_program());
    let own = |list: &[(usize, usize)], numbers: &Numbers, at: u16| -> Option<u16> {
        list.get(usize::from(at)).map(|&of| numbers.number(of) as u16)
    };
    let outputs = program.outputs;
    let mut more: Vec<Block> = vec![];
    let blocks = program.blocks.len();
    for block in &mut program.blocks {
        if let Term::EmitTo(value, els) = block.term {
            // Numbers of ports change, so each port has a case here.
            let cases = (0..outputs).map(|port| {
                more.push(Block { params: vec![], insts: vec![], term: Term::Emit(port) });
                (u64::from(port), BlockId((blocks + more.len() - 1) as u32))
            });
            block.term = Term::Switch(value, cases.collect(), els);
        }
    }
    program.blocks.extend(more);
    for block in &mut program.blocks {
        match &mut block.term {
            Term::Emit(port) => *port = own(&linked.outputs, &numbers.outputs, *port)?,
            Term::Drop(reason) => *reason = own(&linked.reasons, &numbers.reasons, *reason)?,
            Term::Slow(slow) => *slow = own(&linked.slow, &numbers.slow, *slow)?,
            Term::Lookup { table, .. } => {
                *table = own(&linked.tables, &numbers.tables, *table)?;
            }
            _ => {}
        }
    }
    program.outputs = numbers.outputs.count() as u16;
    program.reasons = (0..numbers.reasons.count()).map(|at| format!("reason{at}")).collect();
    program.slow = (0..numbers.slow.count()).map(|at| format!("slow{at}")).collect();
    program.tables = region.elements().flat_map(|part| part.program.tables.clone()).collect();
    Some(Verified::new(program))
}
