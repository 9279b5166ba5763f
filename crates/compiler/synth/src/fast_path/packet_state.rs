//! The packet on a path: where its headers are, and what was written, since the path's start.
//!
//! Offsets are in bits or bytes from the packet's first byte at the start.

use ir::analysis::order::Order;
use ir::{BlockId, Inst, Program, Value};
use packet::anno::Anno;
use packet::field::{Base, Field};

/// Headers at a greater distance are not followed.
const FAR_BYTES: i64 = 1024;

/// The position of a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HeaderPosition {
    /// As it was at the start, perhaps there.
    AsBefore(Option<i64>),
    /// Not set.
    Unset,
    /// At an offset.
    At(i64),
    /// A value behind an offset.
    Behind(Value, i64),
}

/// Bits that were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Written {
    pub bit: i64,
    pub width: u8,
    pub value: Value,
}

impl Written {
    pub fn end(&self) -> i64 {
        self.bit + i64::from(self.width)
    }

    /// Its field, counted from an offset in bytes; `None` where it begins in front of it.
    pub fn field_behind(&self, from: i64) -> Option<Field> {
        let bit = u16::try_from(self.bit - from * 8).ok()?;
        let field = Field::new(Base::Data, bit, self.width);
        field.is_valid().then_some(field)
    }
}

/// The packet's state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PacketState {
    /// The packet's first byte.
    pub data: i64,
    /// MAC, network and transport header, by [`Base`]; the first is not used.
    pub headers: [HeaderPosition; 4],
    /// Writes, the last one at the end. None is covered by a later one.
    pub written: Vec<Written>,
    /// Annotations that were written; none overlap.
    pub annos: Vec<(Anno, Value)>,
    pub packet_type: Option<Value>,
    /// The tail was cut so many bytes behind an offset.
    pub cut: Option<(Value, i64)>,
}

impl PacketState {
    fn with(header: HeaderPosition) -> PacketState {
        let headers = [header; 4];
        PacketState { data: 0, headers, written: vec![], annos: vec![], packet_type: None, cut: None }
    }

    /// Nothing is known of a header.
    pub fn unknown() -> PacketState {
        PacketState::with(HeaderPosition::AsBefore(None))
    }

    /// At an entry.
    pub fn at_entry() -> PacketState {
        PacketState::unknown()
    }

    /// A path that starts here: with where the headers probably are.
    pub fn start(&self) -> PacketState {
        let header = |at: &HeaderPosition| match at {
            HeaderPosition::At(at) => HeaderPosition::AsBefore(Some(at - self.data)),
            _ => HeaderPosition::AsBefore(None),
        };
        PacketState { headers: self.headers.each_ref().map(header), ..PacketState::unknown() }
    }

    /// The positions behind a block, where all moves are by constants.
    pub fn behind(mut self, program: &Program, order: &Order, id: BlockId) -> Option<PacketState> {
        let constant = |value: Value| {
            // Constants are defined in the block, or in one that every path here passes.
            let blocks = std::iter::once(&id).chain(&order.blocks);
            let mut insts = blocks.flat_map(|block| &program.block(*block).insts);
            match insts.find(|(other, _)| *other == Some(value)) {
                Some((_, Inst::Const(number))) => Some(*number),
                _ => None,
            }
        };
        for (_, inst) in &program.block(id).insts {
            match *inst {
                Inst::Pull(by) => self.pull(constant(by)?)?,
                Inst::Push(by) => self.push(by)?,
                Inst::SetBase(base, by) => {
                    self.headers[base as usize] = match constant(by) {
                        Some(by) => HeaderPosition::At(self.data + near(by)?),
                        None => HeaderPosition::AsBefore(None),
                    };
                }
                Inst::ClearBase(base) => self.headers[base as usize] = HeaderPosition::Unset,
                _ => {}
            }
        }
        Some(self)
    }

    /// Takes bytes off the front.
    pub fn pull(&mut self, by: u64) -> Option<()> {
        self.data += near(by)?;
        (self.data <= FAR_BYTES).then_some(())
    }

    /// Puts bytes in front.
    pub fn push(&mut self, by: u16) -> Option<()> {
        self.data -= i64::from(by);
        (self.data >= -FAR_BYTES).then_some(())
    }

    /// Writes bits.
    pub fn write(&mut self, new: Written) {
        self.written.retain(|old| old.bit < new.bit || new.end() < old.end());
        self.written.push(new);
    }

    /// Writes an annotation; `None` where it overlaps with another one.
    pub fn annotate(&mut self, anno: Anno, value: Value) -> Option<()> {
        self.annos.retain(|(other, _)| *other != anno);
        if self.annos.iter().any(|(other, _)| overlap(*other, anno)) {
            return None;
        }
        self.annos.push((anno, value));
        Some(())
    }

    /// An annotation that was written; the inner `None` says that it was not, the outer that only a part was.
    pub fn annotation(&self, anno: Anno) -> Option<Option<Value>> {
        match self.annos.iter().find(|(other, _)| overlap(*other, anno)) {
            Some((other, value)) if *other == anno => Some(Some(*value)),
            Some(_) => None,
            None => Some(None),
        }
    }
}

fn overlap(a: Anno, b: Anno) -> bool {
    a.offset < b.offset + b.len && b.offset < a.offset + a.len
}

/// A number of bytes that is not far.
pub(super) fn near(by: u64) -> Option<i64> {
    let by = by as i64;
    (-FAR_BYTES..=FAR_BYTES).contains(&by).then_some(by)
}
