//! The invariants of a program. [`verify`] checks all of them:
//!
//! 1. every block, value, port, reason, cell, table and slow path that is named exists;
//! 2. a value is defined once, and a definition is on every path to each use;
//! 3. the blocks form no cycle, and every block is reached from an entry;
//! 4. a jump passes as many arguments as the block has parameters, and only jumps lead to blocks with
//!    parameters; entries have none;
//! 5. a field is read or written only where a [`Term::Need`] on every path has shown its bytes to be there,
//!    considering the bytes that were pulled, pushed and moved since;
//! 6. bytes are pushed only where a [`Term::Room`] has shown the headroom to be free, or where at least as
//!    many bytes that were known to be in the packet were pulled;
//! 7. only records are used as records, and their tables' records contain the bytes that are read;
//! 8. keys have as many words as their table declares, widths are 1, 2, 4 or 8 bytes, checksum words 16 or 32
//!    bits, annotations are inside the annotation area;
//! 9. what a table's records have of checksums is inside the record and the key, and is not written;
//! 10. lookups of one stage are of one table, with as many arguments, and no way leads from a stage to itself.
//!
//! Memory safety of machine code rests on 5, 6 and 7.

use crate::analysis::extent::{self, Extent};
use crate::analysis::order::Order;
use crate::analysis::stages::stages;
use crate::program::{BlockId, Inst, MAX_KEY_WORDS, Matching, Program, RecordDelta, Term, Value};
use packet::anno::{ANNO_BYTES, Anno};
use packet::field::{Base, Field};

/// Why a program is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum VerifyError {
    #[error("block b{} has no end", .0.0)]
    Unended(BlockId),
    #[error("the program has no entry")]
    NoEntry,
    #[error("block b{} does not exist", .0.0)]
    NoBlock(BlockId),
    #[error("block b{} is reached from no entry", .0.0)]
    Unreachable(BlockId),
    #[error("the blocks form a cycle through b{}", .0.0)]
    Cycle(BlockId),
    #[error("value v{} is defined twice", .0.0)]
    Redefined(Value),
    #[error("b{}: value v{} is used where it is not defined", .0.0, .1.0)]
    Undefined(BlockId, Value),
    #[error("b{}: {} {} does not exist", .0.0, .1, .2)]
    NoSuch(BlockId, &'static str, u64),
    #[error("b{}: wrong number of arguments or parameters", .0.0)]
    Arguments(BlockId),
    #[error("b{}: field {:?} is used where its bytes are not known to be there", .0.0, .1)]
    Bounds(BlockId, Field),
    #[error("b{}: {} bytes are pushed where the headroom is not known to be free", .0.0, .1)]
    Headroom(BlockId, u16),
    #[error("b{}: v{} is used as a record and is none, or as a number and is a record", .0.0, .1.0)]
    Kind(BlockId, Value),
    #[error("b{}: the access does not fit: {}", .0.0, .1)]
    Width(BlockId, String),
    #[error("b{}: table {} takes keys of another length", .0.0, .1)]
    Key(BlockId, u16),
    #[error("b{}: the lookup cannot be one of its stage: of another table or kind, or behind it", .0.0)]
    Stage(BlockId),
}

/// A statement of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Statement {
    /// The block's name and its parameters.
    Head,
    /// One of its instructions.
    Inst(usize),
    /// Its end.
    End,
}

/// A violation, and the statement that contains it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{error}")]
pub struct Violation {
    /// The violated invariant.
    pub error: VerifyError,
    /// The block and the statement; `None` for the list of entries.
    pub at: Option<(BlockId, Statement)>,
}

/// The kind of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Number,
    Record(u16),
}

struct Verifier<'a> {
    program: &'a Program,
    kinds: Vec<Option<Kind>>,
    constants: Vec<Option<u64>>,
    /// The definition of each value: its block, and the number of instructions before it.
    defined: Vec<Option<(BlockId, usize)>>,
    order: Order,
    /// The statement that is being checked.
    at: (BlockId, Statement),
}

/// Checks the invariants of this module.
///
/// # Errors
/// The first violation found.
pub fn verify(program: &Program) -> Result<(), VerifyError> {
    examine(program).map_err(|violation| violation.error)
}

/// [`verify`], with the position of the violation.
///
/// # Errors
/// The first violation found.
pub fn examine(program: &Program) -> Result<(), Violation> {
    let entry = *program.entries.first().ok_or(Violation { error: VerifyError::NoEntry, at: None })?;
    check_names(program)?;
    let order = check_order(program)?;
    stages(program, &order)
        .map_err(|block| Violation { error: VerifyError::Stage(block), at: Some((block, Statement::End)) })?;
    let mut verifier = Verifier {
        program,
        kinds: vec![None; program.value_count()],
        constants: vec![None; program.value_count()],
        defined: vec![None; program.value_count()],
        order: Order::new(program, order),
        at: (entry, Statement::Head),
    };
    verifier.all().map_err(|error| Violation { error, at: Some(verifier.at) })
}

/// Invariant 1 for blocks: every block that is named exists.
fn check_names(program: &Program) -> Result<(), Violation> {
    let named = (0..).map(BlockId).zip(&program.blocks).flat_map(|(id, block)| {
        let at = Some((id, Statement::End));
        block.term.successors().into_iter().map(move |to| (to, at))
    });
    let entries = program.entries.iter().map(|entry| (*entry, None));
    match named.chain(entries).find(|(to, _)| to.index() >= program.blocks.len()) {
        Some((to, at)) => Err(Violation { error: VerifyError::NoBlock(to), at }),
        None => Ok(()),
    }
}

/// Invariant 3: the order of the blocks.
fn check_order(program: &Program) -> Result<Vec<BlockId>, Violation> {
    let order = program.topological_order();
    let mut position = vec![None; program.blocks.len()];
    for (at, block) in order.iter().enumerate() {
        position[block.index()] = Some(at);
    }
    if let Some(lost) = position.iter().position(Option::is_none) {
        let lost = BlockId(lost as u32);
        return Err(Violation { error: VerifyError::Unreachable(lost), at: Some((lost, Statement::Head)) });
    }
    for &block in &order {
        let backward = |to: &BlockId| position[to.index()] <= position[block.index()];
        if let Some(to) = program.block(block).term.successors().iter().find(|to| backward(to)) {
            return Err(Violation { error: VerifyError::Cycle(*to), at: Some((block, Statement::End)) });
        }
    }
    Ok(order)
}

impl Verifier<'_> {
    fn all(&mut self) -> Result<(), VerifyError> {
        self.collect_definitions()?;
        for &entry in &self.program.entries {
            self.at = (entry, Statement::Head);
            if !self.program.block(entry).params.is_empty() {
                return Err(VerifyError::Arguments(entry));
            }
        }
        let number = |value: Value| self.constants.get(value.0 as usize).copied().flatten();
        let extents = extent::at_blocks(self.program, &self.order.blocks, number);
        (0..self.order.blocks.len()).try_for_each(|at| {
            let id = self.order.blocks[at];
            self.block(id, extents[id.index()])
        })
    }

    fn collect_definitions(&mut self) -> Result<(), VerifyError> {
        for (id, block) in (0..).map(BlockId).zip(&self.program.blocks) {
            self.at = (id, Statement::Head);
            for &param in &block.params {
                self.define(param, Kind::Number, Some((id, 0)))?;
            }
            for (at, &(value, inst)) in block.insts.iter().enumerate() {
                self.at = (id, Statement::Inst(at));
                if let Some(value) = value {
                    self.define(value, Kind::Number, Some((id, at + 1)))?;
                    if let Inst::Const(number) = inst {
                        self.constants[value.0 as usize] = Some(number);
                    }
                }
            }
            self.at = (id, Statement::End);
            if let Term::Lookup { table, rec, hit, .. } = block.term {
                // Where other edges lead to the block, too, the record is not defined on every path.
                let at = (self.order.preds[hit.index()] == 1).then_some((hit, 0));
                self.define(rec, Kind::Record(table), at)?;
            }
        }
        Ok(())
    }

    fn define(&mut self, value: Value, kind: Kind, at: Option<(BlockId, usize)>) -> Result<(), VerifyError> {
        self.defined[value.0 as usize] = at;
        match self.kinds[value.0 as usize].replace(kind) {
            None => Ok(()),
            Some(_) => Err(VerifyError::Redefined(value)),
        }
    }

    /// Checks a block with these facts about the packet at its start.
    fn block(&mut self, id: BlockId, mut extent: Extent) -> Result<(), VerifyError> {
        let block = self.program.block(id);
        for (at, &(value, inst)) in block.insts.iter().enumerate() {
            self.at = (id, Statement::Inst(at));
            for operand in inst.operands() {
                self.used(id, at, operand)?;
            }
            if inst.has_result() != value.is_some() {
                return Err(VerifyError::Arguments(id));
            }
            self.inst(id, inst, &extent)?;
            extent.pass(inst, |value| self.constants[value.0 as usize]);
        }
        self.at = (id, Statement::End);
        for operand in block.term.operands() {
            self.used(id, block.insts.len(), operand)?;
            self.number(id, operand)?;
        }
        self.term(id, &block.term)
    }

    /// Invariant 2, for a use in a block after that many of its instructions.
    fn used(&self, block: BlockId, at: usize, value: Value) -> Result<(), VerifyError> {
        match self.defined.get(value.0 as usize).copied().flatten() {
            Some((same, before)) if same == block && before <= at => Ok(()),
            Some((other, _)) if other != block && self.order.dominates(other, block) => Ok(()),
            _ => Err(VerifyError::Undefined(block, value)),
        }
    }

    fn number(&self, block: BlockId, value: Value) -> Result<(), VerifyError> {
        match self.kinds[value.0 as usize] {
            Some(Kind::Number) => Ok(()),
            _ => Err(VerifyError::Kind(block, value)),
        }
    }

    fn record(&self, block: BlockId, rec: Value, offset: u16, bytes: u8) -> Result<(), VerifyError> {
        let Some(Kind::Record(table)) = self.kinds[rec.0 as usize] else {
            return Err(VerifyError::Kind(block, rec));
        };
        let room = self.program.tables.get(usize::from(table)).map_or(0, |decl| decl.record_bytes);
        if !matches!(bytes, 1 | 2 | 4 | 8) || u32::from(offset) + u32::from(bytes) > u32::from(room) {
            return Err(VerifyError::Width(
                block,
                format!("{bytes} bytes at {offset} of a record of {room}"),
            ));
        }
        Ok(())
    }

    /// Whether bytes of a record are part of a [`crate::program::RecordDelta`].
    fn is_delta(&self, rec: Value, offset: u16, bytes: u8) -> bool {
        let Some(Kind::Record(table)) = self.kinds[rec.0 as usize] else { return false };
        let deltas = self.program.tables.get(usize::from(table)).map_or(&[][..], |decl| &decl.deltas);
        let mut places = deltas.iter().flat_map(|delta| delta.places());
        places.any(|(at, count)| offset < at.saturating_add(count) && at < offset + u16::from(bytes))
    }

    fn field(&self, block: BlockId, field: Field, extent: &Extent) -> Result<(), VerifyError> {
        if !field.is_valid() || u32::from(field.end_byte()) > extent.accessible(field.base) {
            return Err(VerifyError::Bounds(block, field));
        }
        Ok(())
    }

    fn anno(&self, block: BlockId, anno: Anno) -> Result<(), VerifyError> {
        let end = usize::from(anno.offset) + usize::from(anno.len);
        if !matches!(anno.len, 1 | 2 | 4 | 8) || end > ANNO_BYTES {
            return Err(VerifyError::Width(block, format!("annotation {anno:?}")));
        }
        Ok(())
    }

    fn inst(&self, id: BlockId, inst: Inst, extent: &Extent) -> Result<(), VerifyError> {
        let record_operand = matches!(inst, Inst::RecLoad(..) | Inst::RecStore(..));
        for operand in inst.operands().into_iter().skip(usize::from(record_operand)) {
            self.number(id, operand)?;
        }
        match inst {
            Inst::Load(field) | Inst::Store(field, _) => self.field(id, field, extent)?,
            Inst::LoadAnno(anno) | Inst::StoreAnno(anno, _) => self.anno(id, anno)?,
            Inst::CellLoad(cell) | Inst::CellStore(cell, _) | Inst::CellAdd(cell, _)
                if usize::from(cell) >= self.program.cells.len() =>
            {
                return Err(VerifyError::NoSuch(id, "cell", cell.into()));
            }
            Inst::RecLoad(rec, offset, bytes) => self.record(id, rec, offset, bytes)?,
            Inst::RecStore(rec, offset, bytes, _) => {
                self.record(id, rec, offset, bytes)?;
                if self.is_delta(rec, offset, bytes) {
                    return Err(VerifyError::Width(
                        id,
                        format!("a write to a checksum's change at {offset}"),
                    ));
                }
            }
            Inst::CsumUpdate(.., bits) if !matches!(bits, 16 | 32) => {
                return Err(VerifyError::Width(id, format!("checksum word of {bits} bits")));
            }
            Inst::SetBase(Base::Data, _) => {
                return Err(VerifyError::Width(id, "the data base is moved by pull and push".into()));
            }
            Inst::Push(bytes) if extent.room() < u32::from(bytes) => {
                return Err(VerifyError::Headroom(id, bytes));
            }
            _ => {}
        }
        Ok(())
    }

    fn term(&self, id: BlockId, term: &Term) -> Result<(), VerifyError> {
        let program = self.program;
        let no_such = |what, index: u16, count: usize| {
            if usize::from(index) < count { Ok(()) } else { Err(VerifyError::NoSuch(id, what, index.into())) }
        };
        match term {
            Term::Emit(port) => no_such("port", *port, usize::from(program.outputs))?,
            Term::Drop(reason) => no_such("reason", *reason, program.reasons.len())?,
            Term::Slow(slow) => no_such("slow path", *slow, program.slow.len())?,
            Term::Lookup { table, key, .. } => {
                no_such("table", *table, program.tables.len())?;
                let decl = &program.tables[usize::from(*table)];
                let words = usize::from(decl.key_words);
                let most = match decl.matching {
                    Matching::Unknown => MAX_KEY_WORDS,
                    Matching::Prefixes4 => 1,
                };
                if key.len() != words || !(1..=most).contains(&words) {
                    return Err(VerifyError::Key(id, *table));
                }
                let is_inside = |delta: &RecordDelta| {
                    let mut places = delta.places().into_iter();
                    let is_there = |(at, count): (u16, u16)| {
                        u32::from(at) + u32::from(count) <= u32::from(decl.record_bytes)
                    };
                    let [(at, count), (to, others)] = delta.places();
                    let is_apart = at.saturating_add(count) <= to || to.saturating_add(others) <= at;
                    is_apart && usize::from(delta.key) < words && places.all(is_there)
                };
                if !decl.deltas.iter().all(is_inside) {
                    return Err(VerifyError::Width(
                        id,
                        "a checksum's change outside of record or key".into(),
                    ));
                }
            }
            _ => {}
        }
        let jump_args = if let Term::Jump(_, args) = term { args.len() } else { 0 };
        let fits = |to: &BlockId| program.block(*to).params.len() == jump_args;
        if let Some(to) = term.successors().into_iter().find(|to| !fits(to)) {
            return Err(VerifyError::Arguments(to));
        }
        Ok(())
    }
}
