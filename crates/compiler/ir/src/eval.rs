//! The reference evaluator: it defines the meaning of a program, one packet at a time.
//!
//! It is written for readability, not for speed, and shares only the table of fields with the machine code:
//! tests compare the two packet by packet. The evaluator checks every access, too. A program that the
//! verifier should have refused ends with [`EvalError`], not with a wrong packet.

use crate::program::{BlockId, Inst, Program, Term, Value};
use crate::table::{Created, Tables};
use packet::anno::Anno;
use packet::field::{Base, Field};
use shm::descriptor::{NO_HEADER, Packet};

/// The bytes that a descriptor refers to.
pub trait Buffer {
    /// Copies bytes of the first segment's buffer, from `at` counted from its start; false when they are not
    /// all in it.
    fn read(&self, at: usize, out: &mut [u8]) -> bool;
    /// Writes bytes at the same position; false when they are not all in the buffer.
    fn write(&mut self, at: usize, bytes: &[u8]) -> bool;
    /// Copies bytes of the whole packet, across segments, from `at` counted from its first byte.
    fn read_packet(&self, packet: &Packet, at: usize, out: &mut [u8]) -> bool;
}

/// A packet of one segment whose buffer is an ordinary array: for tests and the equivalence checker.
impl Buffer for [u8] {
    fn read(&self, at: usize, out: &mut [u8]) -> bool {
        let bytes = at.checked_add(out.len()).and_then(|end| self.get(at..end));
        bytes.is_some_and(|bytes| {
            out.copy_from_slice(bytes);
            true
        })
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> bool {
        let target = at.checked_add(bytes.len()).and_then(|end| self.get_mut(at..end));
        target.is_some_and(|target| {
            target.copy_from_slice(bytes);
            true
        })
    }

    fn read_packet(&self, packet: &Packet, at: usize, out: &mut [u8]) -> bool {
        at + out.len() <= packet.len() as usize && self.read(usize::from(packet.data()) + at, out)
    }
}

/// How a packet leaves a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Exit {
    /// Out of a port.
    Emit(u16),
    /// Dropped for a reason.
    Drop(u16),
    /// To the element's slow path.
    Slow(u16),
}

/// A program did what the verifier should have refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("b{} of {program}: {what}", .block.0)]
pub struct EvalError {
    /// The program's name.
    pub program: String,
    /// The block.
    pub block: BlockId,
    /// The violation.
    pub what: String,
}

/// The state that a program uses besides the packet.
pub struct EvalState<'a> {
    /// The state cells.
    pub cells: &'a mut [u64],
    /// The tables, in the order of their declarations.
    pub tables: &'a mut dyn Tables,
    /// The burst's clock, nanoseconds.
    pub now_ns: u64,
}

struct Run<'a, 's, B: Buffer + ?Sized> {
    packet: &'a mut Packet,
    buffer: &'a mut B,
    state: &'a mut EvalState<'s>,
    values: Vec<u64>,
    record_table: Vec<u16>,
}

/// Runs a program on one packet that entered by input port `input`.
///
/// # Errors
/// When the program breaks an invariant that [`crate::verify`] checks, or `input` does not exist.
pub fn run<B: Buffer + ?Sized>(
    program: &Program,
    input: usize,
    packet: &mut Packet,
    buffer: &mut B,
    state: &mut EvalState<'_>,
) -> Result<Exit, EvalError> {
    let wrong = |block: BlockId, what: String| EvalError { program: program.name.clone(), block, what };
    let Some(&entry) = program.entries.get(input) else {
        return Err(wrong(BlockId(0), format!("no input {input}")));
    };
    let count = program.value_count();
    let mut run = Run { packet, buffer, state, values: vec![0; count], record_table: vec![u16::MAX; count] };
    let mut at = entry;
    loop {
        let block = program.block(at);
        for &(value, inst) in &block.insts {
            let result = run.inst(inst).map_err(|what| wrong(at, what))?;
            if let Some(value) = value {
                run.values[value.0 as usize] = result;
            }
        }
        match run.term(program, &block.term).map_err(|what| wrong(at, what))? {
            Step::Goto(to) => at = to,
            Step::Exit(exit) => return Ok(exit),
        }
    }
}

/// The result of an instruction that yields no value.
fn nothing((): ()) -> u64 {
    0
}

/// Where a packet continues after a block.
pub enum Step {
    /// At another block.
    Goto(BlockId),
    /// Outside the program.
    Exit(Exit),
}

impl<B: Buffer + ?Sized> Run<'_, '_, B> {
    fn get(&self, value: Value) -> u64 {
        self.values[value.0 as usize]
    }

    /// Offset of a base from the buffer's start, if it is set.
    fn base(&self, base: Base) -> Option<usize> {
        let at = self.packet.header(base);
        (at != NO_HEADER).then_some(usize::from(at))
    }

    /// End of the packet's first segment, from the buffer's start.
    fn end(&self) -> usize {
        usize::from(self.packet.data()) + self.packet.len() as usize
    }

    fn avail(&self, base: Base) -> u64 {
        self.base(base).map_or(0, |at| self.end().saturating_sub(at) as u64)
    }

    fn field_bytes(&self, field: Field) -> Result<(usize, [u8; 8]), String> {
        let at = self.base(field.base).ok_or_else(|| format!("{field:?}: base not set"))?;
        let (at, len) = (at + usize::from(field.first_byte()), usize::from(field.byte_len()));
        let mut bytes = [0; 8];
        if len > 8 || !self.buffer.read(at, &mut bytes[..len]) {
            return Err(format!("{field:?}: beyond the buffer"));
        }
        Ok((at, bytes))
    }

    fn load(&self, field: Field) -> Result<u64, String> {
        let (_, bytes) = self.field_bytes(field)?;
        let local = Field { bit: field.bit % 8, ..field };
        local.read(&bytes).ok_or_else(|| format!("{field:?}: not a field"))
    }

    fn store(&mut self, field: Field, value: u64) -> Result<(), String> {
        let (at, mut bytes) = self.field_bytes(field)?;
        let local = Field { bit: field.bit % 8, ..field };
        local.write(&mut bytes, value);
        self.buffer.write(at, &bytes[..usize::from(field.byte_len())]);
        Ok(())
    }

    fn anno_range(anno: Anno) -> std::ops::Range<usize> {
        usize::from(anno.offset)..usize::from(anno.offset) + usize::from(anno.len)
    }

    fn load_anno(&self, anno: Anno) -> Result<u64, String> {
        let bytes = self.packet.anno.get(Self::anno_range(anno)).ok_or("annotation outside its area")?;
        Ok(bytes.iter().rev().fold(0, |acc, &byte| acc << 8 | u64::from(byte)))
    }

    fn store_anno(&mut self, anno: Anno, value: u64) -> Result<(), String> {
        let area = self.packet.anno.get_mut(Self::anno_range(anno)).ok_or("annotation outside its area")?;
        let bytes = value.to_le_bytes();
        area.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        Ok(())
    }

    fn set_base(&mut self, base: Base, at: u16) {
        if let Some(header) = self.packet.header_mut(base) {
            *header = at;
        }
    }

    fn pull(&mut self, bytes: u64) {
        let bytes = bytes.min(u64::from(self.packet.len())) as usize;
        let pulled = self.packet.pull(bytes);
        debug_assert!(pulled, "no more than there are");
    }

    fn inst(&mut self, inst: Inst) -> Result<u64, String> {
        Ok(match inst {
            Inst::Const(number) => number,
            Inst::Bin(op, a, b) => op.apply(self.get(a), self.get(b)),
            Inst::Select(c, a, b) => self.get(if self.get(c) != 0 { a } else { b }),
            Inst::Load(field) => self.load(field)?,
            Inst::Store(field, value) => self.store(field, self.get(value)).map(nothing)?,
            Inst::LoadAnno(anno) => self.load_anno(anno)?,
            Inst::StoreAnno(anno, value) => self.store_anno(anno, self.get(value)).map(nothing)?,
            Inst::Len => u64::from(self.packet.total()),
            Inst::Avail(base) => self.avail(base),
            Inst::Offset(base) => match self.base(base) {
                Some(at) => (at as u64).wrapping_sub(u64::from(self.packet.data())),
                None => u64::MAX,
            },
            Inst::SetBase(base, value) => {
                let at = u64::from(self.packet.data()).wrapping_add(self.get(value));
                self.set_base(base, at.min(u64::from(NO_HEADER)) as u16);
                0
            }
            Inst::ClearBase(base) => {
                self.set_base(base, NO_HEADER);
                0
            }
            Inst::Pull(value) => {
                self.pull(self.get(value));
                0
            }
            Inst::Push(bytes) if self.packet.push(usize::from(bytes)) => 0,
            Inst::Push(_) => return Err("push beyond the headroom".into()),
            Inst::Take(value) => {
                if self.packet.segments() == 1 {
                    self.packet.truncate(usize::try_from(self.get(value)).unwrap_or(usize::MAX));
                }
                0
            }
            Inst::CellLoad(cell) => *self.state.cells.get(usize::from(cell)).ok_or("no such cell")?,
            Inst::CellStore(cell, value) => {
                let value = self.get(value);
                *self.state.cells.get_mut(usize::from(cell)).ok_or("no such cell")? = value;
                0
            }
            Inst::CellAdd(cell, value) => {
                let value = self.get(value);
                let cell = self.state.cells.get_mut(usize::from(cell)).ok_or("no such cell")?;
                *cell = cell.wrapping_add(value);
                0
            }
            Inst::RecLoad(rec, offset, bytes) => {
                let record = self.get(rec);
                let table = usize::from(self.record_table[rec.0 as usize]);
                self.state.tables.table(table).ok_or("not a record")?.record_load(record, offset, bytes)
            }
            Inst::RecStore(rec, offset, bytes, value) => {
                let (record, value) = (self.get(rec), self.get(value));
                let table = usize::from(self.record_table[rec.0 as usize]);
                let table = self.state.tables.table(table).ok_or("not a record")?;
                table.record_store(record, offset, bytes, value);
                0
            }
            Inst::IpSum => self.base(Base::Net).map_or(0, |net| header_sum(self.buffer, net, self.end())),
            Inst::TransportSum(proto) => {
                let (proto, end) = (self.get(proto), self.end());
                let headers = self.base(Base::Net).zip(self.base(Base::Trans));
                headers.map_or(0, |headers| transport_sum(self.buffer, self.packet, headers, end, proto))
            }
            Inst::CsumUpdate(sum, old, new, bits) => {
                checksum_update(self.get(sum), self.get(old), self.get(new), bits)
            }
            Inst::Now => self.state.now_ns,
            Inst::Timestamp => self.packet.timestamp_ns,
            Inst::PacketType => u64::from(self.packet.packet_type),
            Inst::SetPacketType(value) => {
                self.packet.packet_type = self.get(value) as u8;
                0
            }
            Inst::FlowHash => u64::from(self.packet.flow_hash),
            Inst::Origin => u64::from(self.packet.origin),
        })
    }

    fn term(&mut self, program: &Program, term: &Term) -> Result<Step, String> {
        Ok(match term {
            Term::Jump(to, args) => {
                let args: Vec<u64> = args.iter().map(|arg| self.get(*arg)).collect();
                for (param, arg) in program.block(*to).params.iter().zip(args) {
                    self.values[param.0 as usize] = arg;
                }
                Step::Goto(*to)
            }
            Term::Branch(value, yes, no) => Step::Goto(if self.get(*value) != 0 { *yes } else { *no }),
            Term::Need { base, bytes, then, els } => {
                Step::Goto(if self.avail(*base) >= u64::from(*bytes) { *then } else { *els })
            }
            Term::Room { bytes, then, els } => {
                Step::Goto(if self.packet.data() >= *bytes { *then } else { *els })
            }
            Term::Switch(value, cases, default) => {
                let value = self.get(*value);
                let case = cases.iter().find(|(case, _)| *case == value);
                Step::Goto(case.map_or(*default, |(_, block)| *block))
            }
            Term::Emit(port) => Step::Exit(Exit::Emit(*port)),
            Term::EmitTo(value, els) => match u16::try_from(self.get(*value)) {
                Ok(port) if port < program.outputs => Step::Exit(Exit::Emit(port)),
                _ => Step::Goto(*els),
            },
            Term::Drop(reason) => Step::Exit(Exit::Drop(*reason)),
            Term::Slow(slow) => Step::Exit(Exit::Slow(*slow)),
            Term::Lookup { table, key, args, rec, hit, miss, .. } => {
                let numbers = |of: &[Value]| of.iter().map(|value| self.get(*value)).collect::<Vec<u64>>();
                let (key, args) = (numbers(key), args.as_deref().map(numbers));
                let now_ns = self.state.now_ns;
                let owner = self.state.tables.table(usize::from(*table)).ok_or("no such table")?;
                let found = match args.map(|args| owner.create(&key, &args, now_ns)) {
                    None => owner.lookup(&key),
                    Some(Created::Record(record)) => Some(record),
                    Some(Created::Refused | Created::Wait) => None,
                };
                let Some(record) = found else { return Ok(Step::Goto(*miss)) };
                self.values[rec.0 as usize] = record;
                self.record_table[rec.0 as usize] = *table;
                Step::Goto(*hit)
            }
        })
    }
}

/// RFC 1071 sum of bytes, not yet folded.
fn words(bytes: &[u8]) -> u64 {
    bytes.iter().enumerate().map(|(at, byte)| u64::from(*byte) << (8 * (1 - at % 2))).sum()
}

/// See [`Inst::IpSum`]: of the header at `net`, where the packet's first segment ends at `end`.
pub fn header_sum<B: Buffer + ?Sized>(buffer: &B, net: usize, end: usize) -> u64 {
    let room = end.saturating_sub(net);
    let mut first = [0];
    if room < 20 || !buffer.read(net, &mut first) {
        return 0;
    }
    let mut bytes = vec![0; usize::from(first[0] & 15) * 4];
    if !(20..=room).contains(&bytes.len()) || !buffer.read(net, &mut bytes) {
        return 0;
    }
    fold(words(&bytes))
}

/// See [`Inst::TransportSum`]: of a packet with these network and transport headers, whose first segment ends
/// at `end`.
pub fn transport_sum<B: Buffer + ?Sized>(
    buffer: &B,
    packet: &Packet,
    (net, trans): (usize, usize),
    end: usize,
    proto: u64,
) -> u64 {
    let inner = || -> Option<u64> {
        let mut header = [0; 20];
        if end.saturating_sub(net) < 20 || !buffer.read(net, &mut header) {
            return None;
        }
        let behind = net + usize::from(u16::from_be_bytes([header[2], header[3]]));
        let mut segment = vec![0; behind.checked_sub(trans)?];
        let (at, from_net) = (trans.checked_sub(net)?, packet.starting_at(net as u16)?);
        let pseudo = words(&header[12..20]) + (proto & 0xff) + segment.len() as u64;
        buffer.read_packet(&from_net, at, &mut segment).then(|| fold(pseudo + words(&segment)))
    };
    inner().unwrap_or(0)
}

/// Folds a one's complement sum to 16 bits.
pub fn fold(mut sum: u64) -> u64 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

/// RFC 1624 equation 3, for a word of 16 or 32 bits.
pub fn checksum_update(sum: u64, old: u64, new: u64, bits: u8) -> u64 {
    let mask = if bits == 16 { 0xffff } else { 0xffff_ffff };
    !fold((!sum & 0xffff) + (!old & mask) + (new & mask)) & 0xffff
}
