//! The data structure of the packet IR.
//!
//! All values are unsigned 64-bit integers; arithmetic wraps. A value is either a number or the
//! handle of a table's record; the verifier keeps the two apart. The module only holds the data:
//! what a program must obey stands in [`crate::verify`], what it means in [`crate::eval`].

use packet::anno::Anno;
use packet::field::{Base, Field};

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
    /// Every operation with its name in the text form.
    pub const ALL: [(BinOp, &'static str); 14] = [
        (BinOp::Add, "add"),
        (BinOp::Sub, "sub"),
        (BinOp::Mul, "mul"),
        (BinOp::Rem, "rem"),
        (BinOp::And, "and"),
        (BinOp::Or, "or"),
        (BinOp::Xor, "xor"),
        (BinOp::Shl, "shl"),
        (BinOp::Shr, "shr"),
        (BinOp::Eq, "eq"),
        (BinOp::Ne, "ne"),
        (BinOp::Lt, "lt"),
        (BinOp::Le, "le"),
        (BinOp::Min, "min"),
    ];

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(op, _)| *op == self).map_or("?", |(_, name)| name)
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

/// What one instruction does. Those that yield a value are paired with it in [`Block::insts`].
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
    /// Bytes in the packet, all segments, from its first byte now.
    Len,
    /// Bytes from a base to the end of the packet's first segment; 0 when the base is not set.
    Avail(Base),
    /// Offset of a base from the packet's first byte, wrapping; `u64::MAX` when the base is not set.
    Offset(Base),
    /// Sets a header annotation to the packet's first byte plus a value; to "not set" where that is not
    /// below 0xffff, counted from the buffer's start.
    SetBase(Base, Value),
    /// Forgets a header annotation.
    ClearBase(Base),
    /// Takes bytes off the front, at most what the first segment holds (Click's `pull`).
    Pull(Value),
    /// Puts bytes before the front, with undefined content (Click's `push`); needs [`Term::Room`].
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
    /// One's complement sum of the IPv4 header (its own length field says how long), folded to 16
    /// bits: 0xffff for a right header. 0 when the header is not wholly in the first segment.
    IpSum,
    /// One's complement sum of the transport segment with its pseudo header (RFC 9293, 768), from
    /// the IP header's lengths, folded: 0xffff when right; over the checksum field as it stands.
    /// The operand is the protocol number. 0 when lengths contradict the packet.
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
    /// The flow hash that the port gave, 0 when none.
    FlowHash,
    /// The port that it came in by, as the host numbers ports; `shm::descriptor::NO_PORT` when it was made here.
    Origin,
}

/// How a block ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Term {
    /// Goes on at a block with arguments for its parameters.
    Jump(BlockId, Vec<Value>),
    /// Goes to the first block where the value is not 0, else to the second.
    Branch(Value, BlockId, BlockId),
    /// Goes to `then` when the base is set and that many bytes from it lie in the first segment.
    Need {
        /// The header.
        base: Base,
        /// Bytes from the base, at least 1.
        bytes: u16,
        /// Where they are there.
        then: BlockId,
        /// Where not.
        els: BlockId,
    },
    /// Goes to `then` when that many bytes of headroom are free.
    Room {
        /// Bytes before the packet's first byte.
        bytes: u16,
        /// Where they are free.
        then: BlockId,
        /// Where not.
        els: BlockId,
    },
    /// Goes to the block paired with the value, or to the default.
    Switch(Value, Vec<(u64, BlockId)>, BlockId),
    /// Exit: out of a port.
    Emit(u16),
    /// Exit out of the port of that number; where there is none, goes on at the block.
    EmitTo(Value, BlockId),
    /// Exit: dropped for a reason.
    Drop(u16),
    /// Exit: the element's own code decides (an index into [`Program::slow`]).
    Slow(u16),
    /// Looks a key up: `hit` with the record in `rec`, else `miss`. A border between stages.
    Lookup {
        /// The table.
        table: u16,
        /// The key's words.
        key: Vec<Value>,
        /// The record, defined in what `hit` leads to.
        rec: Value,
        /// Where found.
        hit: BlockId,
        /// Where not.
        miss: BlockId,
    },
    /// Finds the key or makes a record for it; `args` say how. A border between stages. A program
    /// that makes records of a table should find them this way only: a plain lookup of a later packet
    /// of the same burst would not see what this one made.
    Create {
        /// The table.
        table: u16,
        /// The key's words.
        key: Vec<Value>,
        /// What the table's owner needs to know to make the record.
        args: Vec<Value>,
        /// The record, defined in what `ok` leads to.
        rec: Value,
        /// Where found or made.
        ok: BlockId,
        /// Where the table refused (full, no port left, not wanted).
        fail: BlockId,
    },
}

impl Term {
    /// The blocks that may come next.
    pub fn successors(&self) -> Vec<BlockId> {
        match self {
            Term::Jump(to, _) => vec![*to],
            Term::Branch(_, a, b) => vec![*a, *b],
            Term::Need { then, els, .. } | Term::Room { then, els, .. } => vec![*then, *els],
            Term::Switch(_, cases, default) => {
                cases.iter().map(|(_, block)| *block).chain([*default]).collect()
            }
            Term::EmitTo(_, els) => vec![*els],
            Term::Lookup { hit, miss, .. } => vec![*hit, *miss],
            Term::Create { ok, fail, .. } => vec![*ok, *fail],
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
            Term::Create { ok, fail, .. } => (*ok, *fail) = (change(*ok), change(*fail)),
            Term::Emit(_) | Term::Drop(_) | Term::Slow(_) => {}
        }
    }

    /// Calls `change` on every value that it reads.
    pub fn map_operands(&mut self, mut change: impl FnMut(&mut Value)) {
        match self {
            Term::Jump(_, args) => args.iter_mut().for_each(change),
            Term::Branch(value, ..) | Term::Switch(value, ..) | Term::EmitTo(value, _) => change(value),
            Term::Lookup { key, .. } => key.iter_mut().for_each(change),
            Term::Create { key, args, .. } => key.iter_mut().chain(args).for_each(change),
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
            Term::Lookup { rec, .. } | Term::Create { rec, .. } => Some(*rec),
            _ => None,
        }
    }

    /// Whether machine code is cut here: what follows runs as another stage.
    pub fn is_border(&self) -> bool {
        matches!(self, Term::Lookup { .. } | Term::Create { .. })
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

/// Straight-line instructions and how they end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Values that a [`Term::Jump`] hands over.
    pub params: Vec<Value>,
    /// Instructions, each with the value it yields, if it yields one.
    pub insts: Vec<(Option<Value>, Inst)>,
    /// The end.
    pub term: Term,
}

/// A named 64-bit word of state that a program reads and writes, one for each worker. Machine code runs
/// stage by stage over a batch, so a cell that is read on one side of a lookup and written on the
/// other would show the order of the stages: programs keep to one side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Its name: handlers read it by this.
    pub name: String,
    /// What it starts with.
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
    /// What is known of how keys are matched.
    pub matching: Matching,
}

/// How a table matches keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Matching {
    /// As the table likes.
    #[default]
    Unknown,
    /// By the longest prefix of one 32-bit number: a table of IPv4 routes. While it is small, machine
    /// code walks it by itself; see [`crate::table::Table::walk`].
    Prefixes4,
}

/// The longest key, in words: an IPv6 five-tuple.
pub const MAX_KEY_WORDS: usize = 5;

/// What an element does to a packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// The element class, or what the program was made from.
    pub name: String,
    /// Number of output ports.
    pub outputs: u16,
    /// The first block of each input port.
    pub entries: Vec<BlockId>,
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
    /// Leaves these blocks only, in this order, and gives them new numbers. They must not lead to others.
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

    /// Whether it may change bytes of a packet. What its slow paths do is not said here.
    pub fn writes(&self) -> bool {
        self.blocks.iter().flat_map(|block| &block.insts).any(|(_, inst)| matches!(inst, Inst::Store(..)))
    }

    /// Number of values: one more than the highest that stands in the program.
    pub fn value_count(&self) -> usize {
        let defined = self.blocks.iter().flat_map(|block| {
            let insts = block.insts.iter().filter_map(|(value, _)| *value);
            block.params.iter().copied().chain(insts).chain(block.term.defines())
        });
        defined.map(|value| value.0 as usize + 1).max().unwrap_or(0)
    }

    /// Blocks in an order where each stands before those that may follow it; those that no entry
    /// reaches are left out. In a program with a cycle the order is arbitrary.
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
