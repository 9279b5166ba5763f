//! The packet during the walk: the offsets of its headers, and its writes.
//!
//! Offsets are in bits or bytes from the packet's first byte at the entry.

use super::code::Code;
use super::key::{Layout, number};
use super::term::{Recorded, Refusal, TermSource, TermUse};
use ir::analysis::interval::ones;
use ir::eval::Buffer;
use ir::{BinOp, Inst};
use packet::anno::Anno;
use packet::field::{Base, Field};
use shm::descriptor::{NO_HEADER, Packet};

/// The offset of a header annotation, in bytes; `None` where it is not set.
type HeaderOffset = Option<i64>;

/// Headers at a greater distance from the packet's start are refused.
const FAR: i64 = 2048;

#[derive(Clone, Copy, Debug)]
struct Written {
    bit: i64,
    width: u8,
    value: TermUse,
}

impl Written {
    fn end(&self) -> i64 {
        self.bit + i64::from(self.width)
    }
}

/// The packet in its current state, with its changes since the entry.
pub(super) struct Frame<'a, B: ?Sized> {
    packet: &'a Packet,
    buffer: &'a B,
    layout: Layout,
    bases: [Option<HeaderOffset>; 4],
    moved: [bool; 4],
    written: Vec<Written>,
    annos: Vec<(Anno, TermUse)>,
    packet_type: Option<TermUse>,
    /// The offset at which its tail was cut, in bytes; only packets of one segment are cut.
    tail: Option<TermUse>,
    /// The offset of the packet's current first byte.
    pub data: i64,
    /// Bytes that all packets must have.
    pub need: u16,
    /// Headroom that all packets must have.
    pub room: u16,
}

impl<'a, B: Buffer + ?Sized> Frame<'a, B> {
    pub fn new(packet: &'a Packet, buffer: &'a B, layout: Layout) -> Frame<'a, B> {
        Frame {
            packet,
            buffer,
            layout,
            bases: [Some(Some(0)), None, None, None],
            moved: [false; 4],
            written: vec![],
            annos: vec![],
            packet_type: None,
            tail: None,
            data: 0,
            need: layout.bytes(),
            room: 0,
        }
    }

    /// The current offset of a base. If it was set before the entry, it is the same for all packets.
    pub fn base(&mut self, code: &mut Code, base: Base) -> Recorded<HeaderOffset> {
        if base == Base::Data {
            return Ok(Some(self.data));
        }
        if let Some(place) = self.bases[base as usize] {
            return Ok(place);
        }
        let at = self.packet.header(base);
        let place = (at != NO_HEADER).then(|| i64::from(at) - i64::from(self.packet.data()));
        // An offset of one byte in front of the packet cannot be distinguished from an annotation that is
        // not set.
        if place == Some(-1) {
            return Err(Refusal::Never("a header lies one byte in front of the packet"));
        }
        if place.is_none() {
            let avail = code.seen(Inst::Avail(base), 0, 32)?;
            code.pin(avail)?;
        }
        let number = place.map_or(u64::MAX, |place| place as u64);
        let offset = code.seen(Inst::Offset(base), number, 64)?;
        code.pin(offset)?;
        self.bases[base as usize] = Some(place);
        Ok(place)
    }

    pub fn set_base(&mut self, base: Base, place: HeaderOffset) -> Recorded<()> {
        if place.is_some_and(|place| !(-FAR..FAR).contains(&place)) {
            return Err(Refusal::Never("a header lies far away"));
        }
        // In front of the buffer the annotation would not be set: all packets must have that much
        // headroom.
        if let Some(place) = place.filter(|place| *place < 0) {
            if -place > i64::from(self.packet.data()) {
                return Err(Refusal::Never("a header lies in front of the buffer"));
            }
            self.room = self.room.max(place.unsigned_abs() as u16);
        }
        self.bases[base as usize] = Some(place);
        self.moved[base as usize] = true;
        Ok(())
    }

    /// Requires that many bytes from the packet's first byte at the entry; returns whether this packet
    /// has them.
    pub fn reach(&mut self, end: i64) -> Recorded<bool> {
        if end > i64::from(self.packet.len()) {
            return Ok(false);
        }
        let end = u16::try_from(end.max(0)).map_err(|_| Refusal::Never("it looks far into the packet"))?;
        self.need = self.need.max(end);
        Ok(true)
    }

    /// The same for a test in the program, if the packet's tail may have been cut.
    pub fn is_there(&mut self, code: &mut Code, end: i64) -> Recorded<bool> {
        if let Some(tail) = self.tail
            && end > 0
        {
            let fits = code.bin(BinOp::Le, TermUse::same(end as u64), tail)?;
            if fits.number == 0 {
                return Ok(false);
            }
            if let Some(value) = fits.on_packet() {
                code.guard(value, true);
            }
        }
        self.reach(end)
    }

    /// Cuts the tail: that many bytes from the current first byte remain.
    pub fn take(&mut self, code: &mut Code, bytes: TermUse) -> Recorded<()> {
        if self.data < 0 {
            return Err(Refusal::Never("it cuts the packet where it has put bytes in front"));
        }
        let mut bytes = code.steady(bytes)?;
        if bytes.bits > 32 {
            // No packet has more, and the sum does not wrap.
            bytes = code.bin(BinOp::Min, bytes, TermUse::same(u32::MAX.into()))?;
        }
        let end = code.bin(BinOp::Add, bytes, TermUse::same(self.data as u64))?;
        self.tail = Some(match self.tail {
            Some(tail) => code.bin(BinOp::Min, tail, end)?,
            None => end,
        });
        Ok(())
    }

    fn place(&mut self, code: &mut Code, field: Field) -> Recorded<i64> {
        match self.base(code, field.base)? {
            Some(at) => Ok(at * 8 + i64::from(field.bit)),
            None => Err(Refusal::Never("it reads a header that is not set")),
        }
    }

    pub fn load(&mut self, code: &mut Code, field: Field) -> Recorded<TermUse> {
        let bit = self.place(code, field)?;
        self.bits(code, bit, field.width)
    }

    /// Bits of the packet in its current state.
    fn bits(&mut self, code: &mut Code, bit: i64, width: u8) -> Recorded<TermUse> {
        let end = bit + i64::from(width);
        let mut now: Option<TermUse> = None;
        for at in 0..self.written.len() {
            let one = self.written[at];
            let (low, high) = (one.bit.max(bit), one.end().min(end));
            if low >= high {
                continue;
            }
            let part = code.bin(BinOp::Shr, one.value, TermUse::same((one.end() - high) as u64))?;
            let part = code.bin(BinOp::And, part, TermUse::same(ones((high - low) as u8)))?;
            if (low, high) == (bit, end) {
                now = Some(part);
                continue;
            }
            let before = match now {
                Some(now) => now,
                None => self.raw(code, bit, width)?,
            };
            let by = (end - high) as u64;
            let kept = ones(width) & !(ones((high - low) as u8) << by);
            let kept = code.bin(BinOp::And, before, TermUse::same(kept))?;
            let part = code.bin(BinOp::Shl, part, TermUse::same(by))?;
            now = Some(code.bin(BinOp::Or, kept, part)?);
        }
        match now {
            Some(now) => Ok(now),
            None => self.raw(code, bit, width),
        }
    }

    /// Bits of the packet as it arrived.
    fn raw(&mut self, code: &mut Code, bit: i64, width: u8) -> Recorded<TermUse> {
        let place = u16::try_from(bit).map_err(|_| Refusal::Never("it reads in front of the packet"))?;
        let field = Field::new(Base::Data, place, width);
        if !self.reach(i64::from(field.end_byte()))? {
            return Err(Refusal::Never("it reads behind the packet"));
        }
        let number = number(self.packet, self.buffer, field);
        let number = number.ok_or(Refusal::Never("it reads behind the packet"))?;
        let first = i64::from(self.layout.net) * 8;
        if first <= bit && bit + i64::from(width) <= first + 8 {
            return Ok(TermUse::same(number));
        }
        if self.layout.covers(bit, width) {
            return Ok(code.flow(TermSource::Key(field), number, width));
        }
        code.seen(Inst::Load(field), number, width)
    }

    /// Requires all packets to have the version and header length of this one.
    pub fn fix_header_length(&mut self, code: &mut Code) -> Recorded<()> {
        let field = Field::bytes(Base::Data, self.layout.net, 1);
        let number = self.raw(code, i64::from(field.bit), 8)?.number;
        let first = code.seen(Inst::Load(field), number, 8)?;
        code.pin(first)?;
        Ok(())
    }

    pub fn store(&mut self, code: &mut Code, field: Field, value: TermUse) -> Recorded<()> {
        let bit = self.place(code, field)?;
        let value = code.bin(BinOp::And, value, TermUse::same(ones(field.width)))?;
        let new = Written { bit, width: field.width, value };
        self.written.retain(|old| old.bit < new.bit || new.end() < old.end());
        self.written.push(new);
        Ok(())
    }

    /// The header that the network base points to, as words of 32 bits and of 16.
    pub fn header(&mut self, code: &mut Code) -> Recorded<(Vec<TermUse>, Vec<TermUse>)> {
        let Some(net) = self.base(code, Base::Net)? else {
            return Err(Refusal::Never("it sums a header that is not set"));
        };
        let length = self.bits(code, net * 8 + 4, 4)?;
        let length = code.pin(length)?;
        if length < 5 || !self.is_there(code, net + length as i64 * 4)? {
            return Err(Refusal::Never("it sums a header that is not there"));
        }
        let length = length as i64;
        let words =
            (0..length).map(|word| self.bits(code, (net + word * 4) * 8, 32)).collect::<Result<_, _>>()?;
        let halves = (0..length * 2).map(|half| self.bits(code, (net + half * 2) * 8, 16));
        Ok((words, halves.collect::<Result<_, _>>()?))
    }

    pub fn load_anno(&mut self, code: &mut Code, anno: Anno) -> Recorded<TermUse> {
        let meets =
            |other: Anno| other.offset < anno.offset + anno.len && anno.offset < other.offset + other.len;
        match self.annos.iter().rev().find(|(other, _)| meets(*other)) {
            Some((other, value)) if *other == anno => return Ok(*value),
            Some(_) => return Err(Refusal::Never("annotations overlap")),
            None => {}
        }
        let at = usize::from(anno.offset);
        let bytes = self.packet.anno.get(at..at + usize::from(anno.len)).unwrap_or(&[]);
        let number = bytes.iter().rev().fold(0, |acc, byte| acc << 8 | u64::from(*byte));
        code.seen(Inst::LoadAnno(anno), number, anno.len * 8)
    }

    pub fn store_anno(&mut self, code: &mut Code, anno: Anno, value: TermUse) -> Recorded<()> {
        let value = code.bin(BinOp::And, value, TermUse::same(ones(anno.len * 8)))?;
        self.annos.push((anno, value));
        Ok(())
    }

    pub fn packet_type(&mut self, code: &mut Code) -> Recorded<TermUse> {
        match self.packet_type {
            Some(value) => Ok(value),
            None => code.seen(Inst::PacketType, u64::from(self.packet.packet_type), 8),
        }
    }

    pub fn set_packet_type(&mut self, code: &mut Code, value: TermUse) -> Recorded<()> {
        self.packet_type = Some(code.bin(BinOp::And, value, TermUse::same(0xff))?);
        Ok(())
    }

    /// Bytes from an offset to the packet's end, or to the end of its first segment.
    pub fn length(&mut self, code: &mut Code, from: i64, of_all: bool) -> Recorded<TermUse> {
        if !of_all && !self.is_there(code, from)? {
            return Err(Refusal::Never("a header lies behind the packet"));
        }
        let seen = |code: &mut Code, of_all: bool| match of_all {
            true => code.seen(Inst::Len, u64::from(self.packet.total()), 32),
            false => code.seen(Inst::Avail(Base::Data), u64::from(self.packet.len()), 32),
        };
        let mut whole = seen(code, of_all)?;
        if let Some(tail) = self.tail {
            let (all, first) = (seen(code, true)?, seen(code, false)?);
            let is_one = code.bin(BinOp::Eq, all, first)?;
            match is_one.on_packet() {
                Some(value) if is_one.number != 0 => code.guard(value, true),
                _ => return Err(Refusal::Never("it has several segments")),
            }
            whole = code.bin(BinOp::Min, whole, tail)?;
        }
        match from {
            0.. => code.bin(BinOp::Sub, whole, TermUse::same(from as u64)),
            _ => code.bin(BinOp::Add, whole, TermUse::same(from.unsigned_abs())),
        }
    }

    /// Removes bytes from the front.
    pub fn pull(&mut self, code: &mut Code, bytes: u64) -> Recorded<()> {
        let end = i64::try_from(bytes).map_or(i64::MAX, |bytes| self.data.saturating_add(bytes));
        if !self.is_there(code, end)? {
            return Err(Refusal::Never("it takes off more than there is"));
        }
        self.data = end;
        Ok(())
    }

    /// Whether that many bytes are free in front.
    pub fn has_room(&mut self, bytes: u16) -> Recorded<bool> {
        let wanted = i64::from(bytes) - self.data;
        if wanted > i64::from(self.packet.data()) {
            return Ok(false);
        }
        let wanted = u16::try_from(wanted.max(0)).map_err(|_| Refusal::Never("it moves far"))?;
        self.room = self.room.max(wanted);
        Ok(true)
    }

    /// Adds bytes in front.
    pub fn push(&mut self, bytes: u16) -> Recorded<()> {
        if !self.has_room(bytes)? {
            return Err(Refusal::Never("it moves far"));
        }
        self.data -= i64::from(bytes);
        Ok(())
    }

    /// Appends the instructions that bring an arrived packet into the current state.
    pub fn effects(&self, code: &mut Code, effects: &mut Vec<Inst>) -> Recorded<()> {
        let shift = match self.data {
            ..0 => {
                effects.push(Inst::Push(self.data.unsigned_abs() as u16));
                -self.data
            }
            _ => 0,
        };
        for one in &self.written {
            let meets = |other: &Written| other.bit < one.end() && one.bit < other.end();
            let is_alone = self.written.iter().filter(|other| meets(other)).count() == 1;
            let value = code.value(one.value)?;
            let is_same = match code.inst(value) {
                Inst::Load(field) => i64::from(field.bit) == one.bit && field.width == one.width,
                _ => false,
            };
            if is_alone && is_same {
                continue;
            }
            let bit = u16::try_from(one.bit + shift * 8)
                .map_err(|_| Refusal::Never("it writes in front of the packet"))?;
            let field = Field::new(Base::Data, bit, one.width);
            self.within(field, shift)?;
            effects.push(Inst::Store(field, value));
        }
        if let Some(tail) = self.tail {
            let tail = code.bin(BinOp::Add, tail, TermUse::same(shift as u64))?;
            effects.push(Inst::Take(code.value(tail)?));
        }
        if self.data > 0 {
            effects.push(Inst::Pull(code.value(TermUse::same(self.data as u64))?));
        }
        for base in [Base::Mac, Base::Net, Base::Trans] {
            match self.bases[base as usize] {
                Some(Some(place)) if self.moved[base as usize] => {
                    let from = code.value(TermUse::same((place - self.data) as u64))?;
                    effects.push(Inst::SetBase(base, from));
                }
                Some(None) if self.moved[base as usize] => effects.push(Inst::ClearBase(base)),
                _ => {}
            }
        }
        for (at, (anno, value)) in self.annos.iter().enumerate() {
            if !self.annos[at + 1..].iter().any(|(later, _)| later == anno) {
                effects.push(Inst::StoreAnno(*anno, code.value(*value)?));
            }
        }
        if let Some(value) = self.packet_type {
            effects.push(Inst::SetPacketType(code.value(value)?));
        }
        Ok(())
    }

    /// Whether a written field is inside the bytes that are known to be there.
    fn within(&self, field: Field, shift: i64) -> Recorded<()> {
        let end = i64::from(field.end_byte()) - shift;
        if end <= i64::from(self.need) { Ok(()) } else { Err(Refusal::Never("it writes behind the packet")) }
    }
}
