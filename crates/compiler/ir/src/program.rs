//! The data structure of the packet IR.
//!
//! All values are unsigned 64-bit integers; arithmetic wraps. A value is either a number or the handle of a
//! table's record; the verifier keeps the two apart. This module has only the data: [`crate::verify`] lists
//! the invariants of a program, and [`crate::eval`] defines its meaning.

use packet::anno::Anno;
use packet::checksum::Delta;
use packet::field::{Base, Field};
use std::collections::BTreeSet;

/// A value: defined once, by an instruction, a block parameter or a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value(pub u32);

/// A block of a program, by its index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct BlockId(pub u32);

impl BlockId {
    /// The block's index in [`Program::blocks`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Two-operand arithmetic. Comparisons are unsigned and yield 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinOp {
    /// Wrapping sum.
    Add,
    /// Wrapping difference.
    Sub,
    /// Wrapping product.
    Mul,
    /// Remainder; by 0 it is 0.
    Rem,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Left shift; 0 when the count is 64 or more.
    Shl,
    /// Logical right shift; 0 when the count is 64 or more.
    Shr,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less than.
    Lt,
    /// Less than or equal.
    Le,
    /// The smaller one.
    Min,
}

impl BinOp {
    /// Every operation with its name in the text form, and its sign in a formula.
    pub const ALL: [(BinOp, &'static str, &'static str); 14] = [
        (BinOp::Add, "add", "+"),
        (BinOp::Sub, "sub", "-"),
        (BinOp::Mul, "mul", "*"),
        (BinOp::Rem, "rem", "%"),
        (BinOp::And, "and", "&"),
        (BinOp::Or, "or", "|"),
        (BinOp::Xor, "xor", "^"),
        (BinOp::Shl, "shl", "<<"),
        (BinOp::Shr, "shr", ">>"),
        (BinOp::Eq, "eq", "="),
        (BinOp::Ne, "ne", "!="),
        (BinOp::Lt, "lt", "<"),
        (BinOp::Le, "le", "<="),
        (BinOp::Min, "min", "min"),
    ];

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(op, ..)| *op == self).map_or("?", |(_, name, _)| name)
    }

    /// The sign in a formula.
    pub fn sign(self) -> &'static str {
        Self::ALL.iter().find(|(op, ..)| *op == self).map_or("?", |(.., sign)| sign)
    }

    /// The result on two numbers.
    pub fn apply(self, a: u64, b: u64) -> u64 {
        match self {
            BinOp::Add => a.wrapping_add(b),
            BinOp::Sub => a.wrapping_sub(b),
            BinOp::Mul => a.wrapping_mul(b),
            BinOp::Rem => a.checked_rem(b).unwrap_or(0),
            BinOp::And => a & b,
            BinOp::Or => a | b,
            BinOp::Xor => a ^ b,
            BinOp::Shl if b < 64 => a << b,
            BinOp::Shr if b < 64 => a >> b,
            BinOp::Shl | BinOp::Shr => 0,
            BinOp::Eq => u64::from(a == b),
            BinOp::Ne => u64::from(a != b),
            BinOp::Lt => u64::from(a < b),
            BinOp::Le => u64::from(a <= b),
            BinOp::Min => a.min(b),
        }
    }
}

/// One instruction. [`Block::insts`] pairs an instruction that yields a value with that value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Inst {
    /// A constant.
    Const(u64),
    /// Arithmetic.
    Bin(BinOp, Value, Value),
    /// The second operand where the first is not 0, else the third.
    Select(Value, Value, Value),
    /// Reads a header field.
    Load(Field),
    /// Writes the low bits of a value to a header field.
    Store(Field, Value),
    /// Reads an annotation of 1, 2, 4 or 8 bytes.
    LoadAnno(Anno),
    /// Writes an annotation.
    StoreAnno(Anno, Value),
    /// Bytes in the packet, all segments, from its current first byte.
    Len,
    /// Bytes from a base to the end of the packet's first segment; 0 when the base is not set.
    Avail(Base),
    /// Offset of a base from the packet's first byte, wrapping; `u64::MAX` when the base is not set.
    Offset(Base),
    /// Sets a header annotation to the packet's first byte plus a value; to "not set" where that is not
    /// below 0xffff, counted from the buffer's start.
    SetBase(Base, Value),
    /// Marks a header annotation as not set.
    ClearBase(Base),
    /// Removes bytes from the front, at most those of the first segment (Click's `pull`).
    Pull(Value),
    /// Adds bytes before the front, with undefined content (Click's `push`); needs [`Term::Room`].
    Push(u16),
    /// Cuts the packet's tail so that at most this many bytes remain. Only on packets of one segment.
    Take(Value),
    /// Reads a state cell.
    CellLoad(u16),
    /// Writes a state cell.
    CellStore(u16, Value),
    /// Adds to a state cell.
    CellAdd(u16, Value),
    /// Reads a little-endian number of 1, 2, 4 or 8 bytes from a record: record, offset, bytes.
    RecLoad(Value, u16, u8),
    /// Writes such a number: record, offset, bytes, value.
    RecStore(Value, u16, u8, Value),
    /// One's complement sum of the IPv4 header, whose own length field gives the length, folded to 16 bits:
    /// 0xffff for a correct header. 0 when the header is not wholly in the first segment.
    IpSum,
    /// One's complement sum of the transport segment with its pseudo header (RFC 9293, 768), from the IP
    /// header's lengths, folded: 0xffff when correct. The sum includes the checksum field. The operand is the
    /// protocol number. 0 when lengths contradict the packet.
    TransportSum(Value),
    /// RFC 1624 equation 3: checksum, old word, new word, of 16 or 32 bits.
    CsumUpdate(Value, Value, Value, u8),
    /// Nanoseconds of the burst's clock.
    Now,
    /// Receive timestamp, nanoseconds.
    Timestamp,
    /// Click packet type, see `shm::descriptor::PacketType`.
    PacketType,
    /// Sets the packet type.
    SetPacketType(Value),
    /// The flow hash that the port computed, 0 if there is none.
    FlowHash,
    /// The port that received the packet, as the host numbers ports; `shm::descriptor::NO_PORT` when the host
    /// made it.
    Origin,
}

/// How a block ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Term {
    /// Continues at a block with arguments for its parameters.
    Jump(BlockId, Vec<Value>),
    /// Continues at the first block where the value is not 0, else at the second.
    Branch(Value, BlockId, BlockId),
    /// Continues at `then` when the base is set and that many bytes from it are in the first segment.
    Need {
        /// The header.
        base: Base,
        /// Bytes from the base, at least 1.
        bytes: u16,
        /// Next block if they are there.
        then: BlockId,
        /// Next block if not.
        els: BlockId,
    },
    /// Continues at `then` when that many bytes of headroom are free.
    Room {
        /// Bytes before the packet's first byte.
        bytes: u16,
        /// Next block if they are free.
        then: BlockId,
        /// Next block if not.
        els: BlockId,
    },
    /// Continues at the block paired with the value, or at the default.
    Switch(Value, Vec<(u64, BlockId)>, BlockId),
    /// Exit: emitted to a port.
    Emit(u16),
    /// Exit to the port of that number; where there is none, continues at the block.
    EmitTo(Value, BlockId),
    /// Exit: dropped for a reason.
    Drop(u16),
    /// Exit: the element's Rust code processes the packet (an index into [`Program::slow`]).
    Slow(u16),
    /// Looks a key up: `hit` with the record in `rec`, else `miss`. A boundary between stages.
    Lookup {
        /// The table.
        table: u16,
        /// The key's words.
        key: Vec<Value>,
        /// The arguments that the table needs to create the record where there is none; `None` for a lookup
        /// that creates nothing. A program that creates records of a table should find them this way only: a
        /// plain lookup for a later packet of the same burst would not find the record that this one created.
        args: Option<Vec<Value>>,
        /// The record, defined in the blocks that `hit` dominates.
        rec: Value,
        /// Next block if the record exists or was created.
        hit: BlockId,
        /// Next block if not: the table has none, or refused to create it (full, no port left, not allowed).
        miss: BlockId,
        /// Lookups with the same number are one stage boundary: their packets are looked up in the order in which
        /// they came, and go on in that order, each behind its own lookup. They are copies of one lookup, for
        /// packets of which different things are known; no way leads from one to another. `None` for one that is
        /// a boundary by itself.
        stage: Option<u16>,
    },
}

impl Term {
    /// The blocks that may come next.
    pub fn successors(&self) -> Vec<BlockId> {
        match self {
            Term::Jump(to, _) | Term::EmitTo(_, to) => vec![*to],
            Term::Branch(_, a, b) => vec![*a, *b],
            Term::Need { then, els, .. } | Term::Room { then, els, .. } => vec![*then, *els],
            Term::Switch(_, cases, default) => {
                cases.iter().map(|(_, block)| *block).chain([*default]).collect()
            }
            Term::Lookup { hit, miss, .. } => vec![*hit, *miss],
            Term::Emit(_) | Term::Drop(_) | Term::Slow(_) => vec![],
        }
    }

    /// Calls `change` on every block that may come next.
    pub fn map_successors(&mut self, mut change: impl FnMut(BlockId) -> BlockId) {
        match self {
            Term::Jump(to, _) | Term::EmitTo(_, to) => *to = change(*to),
            Term::Branch(_, a, b) => (*a, *b) = (change(*a), change(*b)),
            Term::Need { then, els, .. } | Term::Room { then, els, .. } => {
                (*then, *els) = (change(*then), change(*els));
            }
            Term::Switch(_, cases, default) => {
                cases.iter_mut().for_each(|(_, block)| *block = change(*block));
                *default = change(*default);
            }
            Term::Lookup { hit, miss, .. } => (*hit, *miss) = (change(*hit), change(*miss)),
            Term::Emit(_) | Term::Drop(_) | Term::Slow(_) => {}
        }
    }

    /// Calls `change` on every value that it reads.
    pub fn map_operands(&mut self, mut change: impl FnMut(&mut Value)) {
        match self {
            Term::Jump(_, args) => args.iter_mut().for_each(change),
            Term::Branch(value, ..) | Term::Switch(value, ..) | Term::EmitTo(value, _) => change(value),
            Term::Lookup { key, args, .. } => {
                key.iter_mut().chain(args.iter_mut().flatten()).for_each(change);
            }
            _ => {}
        }
    }

    /// The values that it reads.
    pub fn operands(&self) -> Vec<Value> {
        let (mut term, mut operands) = (self.clone(), vec![]);
        term.map_operands(|value| operands.push(*value));
        operands
    }

    /// The record that it defines for the first of its successors.
    pub fn defines(&self) -> Option<Value> {
        match self {
            Term::Lookup { rec, .. } => Some(*rec),
            _ => None,
        }
    }

    /// Whether machine code is cut here: the following code runs as another stage.
    pub fn is_barrier(&self) -> bool {
        matches!(self, Term::Lookup { .. })
    }
}

impl Inst {
    /// Calls `change` on every value that it reads.
    pub fn map_operands(&mut self, mut change: impl FnMut(&mut Value)) {
        match self {
            Inst::Bin(_, a, b) | Inst::RecStore(a, _, _, b) => {
                change(a);
                change(b);
            }
            Inst::Select(a, b, c) | Inst::CsumUpdate(a, b, c, _) => {
                change(a);
                change(b);
                change(c);
            }
            Inst::Store(_, v)
            | Inst::StoreAnno(_, v)
            | Inst::SetBase(_, v)
            | Inst::Pull(v)
            | Inst::Take(v)
            | Inst::CellStore(_, v)
            | Inst::CellAdd(_, v)
            | Inst::RecLoad(v, ..)
            | Inst::TransportSum(v)
            | Inst::SetPacketType(v) => change(v),
            _ => {}
        }
    }

    /// The values that it reads.
    pub fn operands(mut self) -> Vec<Value> {
        let mut operands = vec![];
        self.map_operands(|value| operands.push(*value));
        operands
    }

    /// Whether it yields a value.
    pub fn has_result(&self) -> bool {
        !matches!(
            self,
            Inst::Store(..)
                | Inst::StoreAnno(..)
                | Inst::SetBase(..)
                | Inst::ClearBase(_)
                | Inst::Pull(_)
                | Inst::Push(_)
                | Inst::Take(_)
                | Inst::CellStore(..)
                | Inst::CellAdd(..)
                | Inst::RecStore(..)
                | Inst::SetPacketType(_)
        )
    }
}

/// Straight-line instructions and a terminator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Values that a [`Term::Jump`] passes.
    pub params: Vec<Value>,
    /// Instructions, each with the value it yields, if it yields one.
    pub insts: Vec<(Option<Value>, Inst)>,
    /// The terminator.
    pub term: Term,
}

/// A named 64-bit word of state that a program reads and writes, one for each worker. Machine code runs stage
/// by stage over a batch. A cell that is read before a lookup and written after it would expose the order of
/// the stages: a program uses a cell on one side only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Its name in handlers.
    pub name: String,
    /// Its initial value.
    pub init: u64,
}

/// A lookup table that a program uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableDecl {
    /// Its name.
    pub name: String,
    /// Number of 64-bit words of a key, 1 to [`MAX_KEY_WORDS`].
    pub key_words: u8,
    /// Bytes of a record.
    pub record_bytes: u16,
    /// How its keys are matched.
    pub matching: Matching,
    /// What its records have of checksums.
    pub deltas: Vec<RecordDelta>,
}

/// A number in the records of a table that follows from the key and the record: the change of a checksum
/// from the words of the key to those of the record (RFC 1624), as `packet::checksum::Delta::to_word` has it,
/// and 0 where both are the same. It holds for every key that leads to the record. Programs write neither
/// the number nor the words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RecordDelta {
    /// Where the number is (2 bytes).
    pub at: u16,
    /// The word of the key.
    pub key: u8,
    /// Where the record's words are (8 bytes).
    pub to: u16,
}

impl RecordDelta {
    /// The bytes of a record that are concerned, as offset and number of bytes.
    pub fn places(self) -> [(u16, u16); 2] {
        [(self.at, 2), (self.to, 8)]
    }

    /// The number for a word of the key and the record's words.
    pub fn number(self, key: u64, to: u64) -> u16 {
        let words = |of: u64| [(of >> 32) as u32, of as u32];
        let ([a, b], [c, d]) = (words(key), words(to));
        if key == to { 0 } else { Delta::NONE.change32(a, c).change32(b, d).to_word() }
    }
}

/// How a table matches keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Matching {
    /// The program makes no assumption.
    #[default]
    Unknown,
    /// By the longest prefix of one 32-bit number: a table of IPv4 routes. While it is small, machine code
    /// walks it itself; see [`crate::table::Table::walk`].
    Prefixes4,
}

/// The longest key, in words: an IPv6 five-tuple.
pub const MAX_KEY_WORDS: usize = 5;

/// The operations of an element on a packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// The element class, or the origin of a generated program.
    pub name: String,
    /// Number of output ports.
    pub outputs: u16,
    /// The first block of each input port.
    pub entries: Vec<BlockId>,
    /// The input ports whose packets are as a port delivers them: the MAC header is the packet's first byte, no other header
    /// is set, and no annotation ([`packet::anno::UNSET`]).
    pub from_ports: BTreeSet<u16>,
    /// Names of the drop reasons.
    pub reasons: Vec<String>,
    /// State cells.
    pub cells: Vec<Cell>,
    /// Lookup tables.
    pub tables: Vec<TableDecl>,
    /// Names of the slow paths.
    pub slow: Vec<String>,
    /// The blocks.
    pub blocks: Vec<Block>,
}

impl Program {
    /// Keeps only these blocks, in this order, and renumbers them. They must not lead to other blocks.
    pub fn keep(&mut self, blocks: &[BlockId]) {
        let mut place = vec![BlockId(u32::MAX); self.blocks.len()];
        for (new, old) in (0..).map(BlockId).zip(blocks) {
            place[old.index()] = new;
        }
        self.blocks = blocks.iter().map(|block| self.block(*block).clone()).collect();
        self.blocks.iter_mut().for_each(|block| block.term.map_successors(|to| place[to.index()]));
        self.entries.iter_mut().for_each(|entry| *entry = place[entry.index()]);
    }

    /// The block with that id.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// Whether a block's end is a stage boundary. With `walked`, lookups by prefix are none: machine code
    /// does them where they are.
    pub fn is_barrier(&self, term: &Term, walked: bool) -> bool {
        let is_prefixes = |table: u16| {
            self.tables.get(usize::from(table)).is_some_and(|decl| decl.matching == Matching::Prefixes4)
        };
        match term {
            Term::Lookup { table, args: None, .. } if walked && is_prefixes(*table) => false,
            _ => term.is_barrier(),
        }
    }

    /// Which state cells it writes.
    pub fn written_cells(&self) -> Vec<bool> {
        let mut written = vec![false; self.cells.len()];
        for (_, inst) in self.blocks.iter().flat_map(|block| &block.insts) {
            if let Inst::CellStore(cell, _) | Inst::CellAdd(cell, _) = inst {
                written[usize::from(*cell)] = true;
            }
        }
        written
    }

    /// Whether it reads any of these state cells.
    pub fn reads_cells(&self, cells: &[bool]) -> bool {
        let mut insts = self.blocks.iter().flat_map(|block| &block.insts);
        insts.any(|(_, inst)| matches!(inst, Inst::CellLoad(cell) if cells[usize::from(*cell)]))
    }

    /// Whether it may change bytes of a packet. Slow paths are not considered.
    pub fn writes(&self) -> bool {
        self.blocks.iter().flat_map(|block| &block.insts).any(|(_, inst)| matches!(inst, Inst::Store(..)))
    }

    /// Number of values: one more than the highest that occurs in the program.
    pub fn value_count(&self) -> usize {
        let defined = self.blocks.iter().flat_map(|block| {
            let insts = block.insts.iter().filter_map(|(value, _)| *value);
            block.params.iter().copied().chain(insts).chain(block.term.defines())
        });
        defined.map(|value| value.0 as usize + 1).max().unwrap_or(0)
    }

    /// The outputs by which packets of an input can leave; of one whose number a value has, each.
    pub fn outputs_of(&self, input: usize) -> BTreeSet<usize> {
        let Some(entry) = self.entries.get(input) else { return BTreeSet::new() };
        let mut outputs = BTreeSet::new();
        for block in self.order_from(&[*entry]) {
            match self.block(block).term {
                Term::Emit(port) => drop(outputs.insert(usize::from(port))),
                Term::EmitTo(..) => outputs.extend(0..usize::from(self.outputs)),
                _ => {}
            }
        }
        outputs
    }

    /// The number of instructions of some blocks, each with its end.
    pub fn instructions(&self, blocks: impl IntoIterator<Item = BlockId>) -> usize {
        blocks.into_iter().map(|block| self.block(block).insts.len() + 1).sum()
    }

    /// Blocks in an order where each precedes its successors, without the blocks that no entry reaches. In a
    /// program with a cycle the order is arbitrary.
    pub fn topological_order(&self) -> Vec<BlockId> {
        self.order_from(&self.entries)
    }

    /// The same for the blocks that some entries reach.
    pub fn order_from(&self, entries: &[BlockId]) -> Vec<BlockId> {
        let mut seen = vec![false; self.blocks.len()];
        let mut postorder = Vec::with_capacity(self.blocks.len());
        for &entry in entries.iter().rev() {
            if seen[entry.index()] {
                continue;
            }
            seen[entry.index()] = true;
            let mut stack = vec![(entry, self.block(entry).term.successors(), 0)];
            while let Some((block, successors, next)) = stack.last_mut() {
                if let Some(&to) = successors.get(*next) {
                    *next += 1;
                    if !std::mem::replace(&mut seen[to.index()], true) {
                        stack.push((to, self.block(to).term.successors(), 0));
                    }
                } else {
                    postorder.push(*block);
                    stack.pop();
                }
            }
        }
        postorder.reverse();
        postorder
    }
}
