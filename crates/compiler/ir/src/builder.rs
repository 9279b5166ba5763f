//! How elements write programs.
//!
//! A [`Builder`] appends instructions to its current block. Ending a block makes a new one current where the
//! path continues, so that straight code reads from top to bottom. Elements write computations as expressions
//! ([`crate::expr`]). Nothing is checked here: [`Builder::finish`] passes the program to the verifier.

use crate::expr::{Expr, Node, csum_update, load};
use crate::program::{Block, BlockId, Cell, Inst, Matching, Program, RecordDelta, TableDecl, Term, Value};
use crate::verified::Verified;
use crate::verify::VerifyError;
use packet::anno::Anno;
use packet::field::{Base, Field};

/// A program under construction.
pub struct Builder {
    program: Program,
    ended: Vec<bool>,
    current: BlockId,
    values: u32,
}

impl Builder {
    /// A program with one input, whose entry is the current block.
    pub fn new(name: &str, outputs: usize) -> Builder {
        let program = Program { name: name.to_string(), outputs: outputs as u16, ..Program::default() };
        let mut builder = Builder::of(program);
        builder.next_entry();
        builder
    }

    /// A program with these declarations and without blocks; [`Builder::next_entry`] starts its inputs.
    pub fn of(program: Program) -> Builder {
        Builder { program, ended: vec![], current: BlockId(0), values: 0 }
    }

    /// Gives the program a name.
    pub fn name(&mut self, name: &str) {
        self.program.name = name.to_string();
    }

    /// Number of output ports.
    pub fn outputs(&self) -> usize {
        usize::from(self.program.outputs)
    }

    /// A new block, not yet the current one.
    pub fn block(&mut self) -> BlockId {
        self.program.blocks.push(Block { params: vec![], insts: vec![], term: Term::Emit(0) });
        self.ended.push(false);
        BlockId(self.program.blocks.len() as u32 - 1)
    }

    /// Makes a block the current one.
    pub fn at(&mut self, block: BlockId) {
        self.current = block;
    }

    /// The current block.
    pub fn here(&self) -> BlockId {
        self.current
    }

    /// Starts the next input port's entry and makes it the current block.
    pub fn next_entry(&mut self) -> BlockId {
        let block = self.block();
        self.program.entries.push(block);
        self.current = block;
        block
    }

    /// Makes an existing block the entry of the next input port too.
    pub fn same_entry(&mut self, block: BlockId) {
        self.program.entries.push(block);
    }

    /// The drop reason of that name, added if it is new.
    pub fn reason(&mut self, name: &str) -> u16 {
        number_of(&mut self.program.reasons, name)
    }

    /// A state cell.
    pub fn cell(&mut self, name: &str, init: u64) -> u16 {
        self.program.cells.push(Cell { name: name.to_string(), init });
        self.program.cells.len() as u16 - 1
    }

    /// A lookup table.
    pub fn table(&mut self, name: &str, key_words: usize, record_bytes: usize) -> u16 {
        self.declare(name, key_words, record_bytes, Matching::Unknown)
    }

    /// A table of IPv4 prefixes.
    pub fn prefix_table(&mut self, name: &str, record_bytes: usize) -> u16 {
        self.declare(name, 1, record_bytes, Matching::Prefixes4)
    }

    /// A number that the table's records have of a checksum.
    pub fn record_delta(&mut self, table: u16, delta: RecordDelta) {
        self.program.tables[usize::from(table)].deltas.push(delta);
    }

    fn declare(&mut self, name: &str, key_words: usize, record_bytes: usize, matching: Matching) -> u16 {
        let decl = TableDecl {
            name: name.to_string(),
            key_words: key_words as u8,
            record_bytes: record_bytes as u16,
            matching,
            deltas: vec![],
        };
        self.program.tables.push(decl);
        self.program.tables.len() as u16 - 1
    }

    /// A value that nothing defines yet: a block parameter or a record.
    pub fn fresh(&mut self) -> Value {
        self.values += 1;
        Value(self.values - 1)
    }

    /// Adds a parameter to a block.
    pub fn param(&mut self, block: BlockId) -> Value {
        let value = self.fresh();
        self.program.blocks[block.index()].params.push(value);
        value
    }

    /// Appends an instruction that yields a value.
    pub fn value(&mut self, inst: Inst) -> Value {
        debug_assert!(inst.has_result());
        let value = self.fresh();
        self.program.blocks[self.current.index()].insts.push((Some(value), inst));
        value
    }

    /// Appends the instructions that compute an expression to the current block, and returns its value.
    pub fn eval(&mut self, expr: impl Into<Expr>) -> Value {
        match expr.into().0 {
            Node::Value(value) => value,
            Node::Leaf(inst) => self.value(inst),
            Node::Record(record, at, bytes) => self.value(Inst::RecLoad(record, at, bytes)),
            Node::Bin(op, operands) => {
                let (left, right) = *operands;
                let (left, right) = (self.eval(left), self.eval(right));
                self.value(Inst::Bin(op, left, right))
            }
            Node::Select(operands) => {
                let (condition, yes, no) = self.eval3(*operands);
                self.value(Inst::Select(condition, yes, no))
            }
            Node::TransportSum(protocol) => {
                let protocol = self.eval(*protocol);
                self.value(Inst::TransportSum(protocol))
            }
            Node::CsumUpdate(operands, bits) => {
                let (sum, old, new) = self.eval3(*operands);
                self.value(Inst::CsumUpdate(sum, old, new, bits))
            }
        }
    }

    fn eval3(&mut self, (first, second, third): (Expr, Expr, Expr)) -> (Value, Value, Value) {
        (self.eval(first), self.eval(second), self.eval(third))
    }

    /// Appends an instruction that yields nothing.
    pub fn act(&mut self, inst: Inst) {
        debug_assert!(!inst.has_result());
        self.program.blocks[self.current.index()].insts.push((None, inst));
    }

    /// Appends an instruction on the value of an expression, which yields nothing.
    fn act_on(&mut self, value: impl Into<Expr>, inst: impl FnOnce(Value) -> Inst) {
        let value = self.eval(value);
        self.act(inst(value));
    }

    /// Ends the current block.
    pub fn end(&mut self, term: Term) {
        self.program.blocks[self.current.index()].term = term;
        self.ended[self.current.index()] = true;
    }

    /// Ends with a jump without arguments.
    pub fn jump(&mut self, to: BlockId) {
        self.end(Term::Jump(to, vec![]));
    }

    /// Ends with a jump that passes arguments for the block's parameters.
    pub fn jump_with<A: Into<Expr>>(&mut self, to: BlockId, args: impl IntoIterator<Item = A>) {
        let args = args.into_iter().map(|arg| self.eval(arg)).collect();
        self.end(Term::Jump(to, args));
    }

    /// Ends with an emit.
    pub fn emit(&mut self, port: usize) {
        self.end(Term::Emit(port as u16));
    }

    /// Ends with a drop.
    pub fn drop(&mut self, reason: &str) {
        let reason = self.reason(reason);
        self.end(Term::Drop(reason));
    }

    /// Ends with an emit where the element has that output, else with a drop: Click's optional
    /// second outputs for bad packets.
    pub fn emit_or_drop(&mut self, port: usize, reason: &str) {
        if port < self.outputs() { self.emit(port) } else { self.drop(reason) }
    }

    /// Ends with an emit to the port of that number; where there is none, the packet continues at `els`.
    pub fn emit_to(&mut self, port: impl Into<Expr>, els: BlockId) {
        let port = self.eval(port);
        self.end(Term::EmitTo(port, els));
    }

    /// Ends with the slow path of that name: the element's Rust code processes the packet.
    pub fn slow(&mut self, name: &str) {
        let path = number_of(&mut self.program.slow, name);
        self.end(Term::Slow(path));
    }

    /// A new block, written by `write`; the current block stays current.
    pub fn aside(&mut self, write: impl FnOnce(&mut Builder)) -> BlockId {
        let (block, here) = (self.block(), self.current);
        self.at(block);
        write(self);
        self.at(here);
        block
    }

    /// A new block that drops for that reason; the current block stays current.
    pub fn drop_block(&mut self, reason: &str) -> BlockId {
        self.aside(|f| f.drop(reason))
    }

    /// A new block with [`Builder::emit_or_drop`]; the current block stays current.
    pub fn bad_block(&mut self, port: usize, reason: &str) -> BlockId {
        self.aside(|f| f.emit_or_drop(port, reason))
    }

    /// A new block with [`Builder::slow`]; the current block stays current.
    pub fn slow_block(&mut self, name: &str) -> BlockId {
        self.aside(|f| f.slow(name))
    }

    /// Ends the current block with a terminator that leads to a new block, which becomes the current one.
    fn go_on(&mut self, term: impl FnOnce(BlockId) -> Term) {
        let then = self.block();
        self.end(term(then));
        self.at(then);
    }

    /// Continues if that many bytes from a base are in the first segment, else branches to `els`.
    pub fn need(&mut self, base: Base, bytes: usize, els: BlockId) {
        self.go_on(|then| Term::Need { base, bytes: bytes as u16, then, els });
    }

    /// Continues if that many bytes of headroom are free, else branches to `els`.
    pub fn room(&mut self, bytes: usize, els: BlockId) {
        self.go_on(|then| Term::Room { bytes: bytes as u16, then, els });
    }

    /// Continues if the value is not 0, else branches to `els`.
    pub fn check(&mut self, condition: impl Into<Expr>, els: BlockId) {
        let condition = self.eval(condition);
        self.go_on(|then| Term::Branch(condition, then, els));
    }

    /// Continues if the value is 0, else branches to `to`.
    pub fn leave_if(&mut self, condition: impl Into<Expr>, to: BlockId) {
        let condition = self.eval(condition);
        self.go_on(|then| Term::Branch(condition, to, then));
    }

    /// Branches to two new blocks and returns them; neither is current.
    pub fn branch(&mut self, condition: impl Into<Expr>) -> (BlockId, BlockId) {
        let condition = self.eval(condition);
        let (yes, no) = (self.block(), self.block());
        self.end(Term::Branch(condition, yes, no));
        (yes, no)
    }

    /// Ends with a branch to `yes` where the value is not 0, else to `no`.
    pub fn branch_to(&mut self, condition: impl Into<Expr>, yes: BlockId, no: BlockId) {
        let condition = self.eval(condition);
        self.end(Term::Branch(condition, yes, no));
    }

    /// Ends with a branch to the block paired with the value, or to `default`.
    pub fn switch(&mut self, value: impl Into<Expr>, cases: Vec<(u64, BlockId)>, default: BlockId) {
        let value = self.eval(value);
        self.end(Term::Switch(value, cases, default));
    }

    /// Looks a key up; continues with the record if there is one, else branches to `miss`.
    pub fn lookup(&mut self, table: u16, key: &[Value], miss: BlockId) -> Value {
        self.find(table, key, None, miss)
    }

    /// Finds or creates a record; continues with it, or branches to `fail`.
    pub fn create(&mut self, table: u16, key: &[Value], args: &[Value], fail: BlockId) -> Value {
        self.find(table, key, Some(args.to_vec()), fail)
    }

    fn find(&mut self, table: u16, key: &[Value], args: Option<Vec<Value>>, miss: BlockId) -> Value {
        let (rec, key) = (self.fresh(), key.to_vec());
        self.go_on(|hit| Term::Lookup { table, key, args, rec, hit, miss, stage: None });
        rec
    }

    /// Writes a field.
    pub fn store(&mut self, field: Field, value: impl Into<Expr>) {
        self.act_on(value, |value| Inst::Store(field, value));
    }

    /// Writes an annotation.
    pub fn store_anno(&mut self, anno: Anno, value: impl Into<Expr>) {
        self.act_on(value, |value| Inst::StoreAnno(anno, value));
    }

    /// Writes a state cell.
    pub fn set_cell(&mut self, cell: u16, value: impl Into<Expr>) {
        self.act_on(value, |value| Inst::CellStore(cell, value));
    }

    /// Adds to a state cell.
    pub fn add_to_cell(&mut self, cell: u16, value: impl Into<Expr>) {
        self.act_on(value, |value| Inst::CellAdd(cell, value));
    }

    /// Sets a header annotation to the packet's first byte plus a value.
    pub fn set_base(&mut self, base: Base, offset: impl Into<Expr>) {
        self.act_on(offset, |offset| Inst::SetBase(base, offset));
    }

    /// Marks a header annotation as not set.
    pub fn clear_base(&mut self, base: Base) {
        self.act(Inst::ClearBase(base));
    }

    /// Removes bytes from the front.
    pub fn pull(&mut self, bytes: impl Into<Expr>) {
        self.act_on(bytes, Inst::Pull);
    }

    /// Adds bytes before the front, with undefined content; needs [`Builder::room`].
    pub fn push(&mut self, bytes: usize) {
        self.act(Inst::Push(bytes as u16));
    }

    /// Cuts the tail so that at most this many bytes remain; only of packets of one segment.
    pub fn take(&mut self, bytes: impl Into<Expr>) {
        self.act_on(bytes, Inst::Take);
    }

    /// Writes a little-endian number of `bytes` bytes at `at` of a record.
    pub fn store_record(&mut self, record: Value, at: u16, bytes: u8, value: impl Into<Expr>) {
        self.act_on(value, |value| Inst::RecStore(record, at, bytes, value));
    }

    /// Replaces a field of 16 or 32 bits and updates a checksum field for the change (RFC 1624).
    pub fn replace(&mut self, field: Field, value: impl Into<Expr>, checksum: Field) {
        let value = self.eval(value);
        let old = self.eval(load(field));
        let sum = self.eval(csum_update(load(checksum), old, value, field.width));
        self.store(field, value);
        self.store(checksum, sum);
    }

    /// The program, verified; blocks that no entry reaches are removed.
    ///
    /// # Errors
    /// The violation that the verifier found: a mistake of the element's author, not of a user.
    pub fn finish(self) -> Result<Verified, VerifyError> {
        let mut program = self.program;
        let mut reached = program.topological_order();
        if let Some(open) = reached.iter().find(|block| !self.ended[block.index()]) {
            return Err(VerifyError::Unended(*open));
        }
        reached.sort_unstable();
        program.keep(&reached);
        Verified::new(program)
    }
}

/// The number of a name in a list, to which it is added if it is new.
fn number_of(names: &mut Vec<String>, name: &str) -> u16 {
    let at = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_string());
        names.len() - 1
    });
    at as u16
}
