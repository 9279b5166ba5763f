//! Classes applied to one packet: whether it is in a class, and the result of the class for it.
//!
//! Conditions are evaluated in the filter's order, each expression once: a condition that creates a record
//! creates it as the program would. Values are those before any write of the class.

use super::expr::{Atom, Bits, Find, Id, Log, Node, Pool, Root, Write};
use super::filter::{Factor, Filter};
use super::path_state::StateLocation;
use super::{Class, Exit, Step};
use ir::analysis::interval::ones;
use ir::eval::{Buffer, checksum_update, header_sum, transport_sum};
use ir::{Created, Tables};
use shm::descriptor::{NO_HEADER, Packet};
use std::collections::HashMap;

/// A packet as it arrived, and its surroundings.
pub struct Concrete<'a, B: Buffer + ?Sized> {
    pool: &'a Pool,
    packet: Packet,
    buffer: &'a B,
    cells: &'a [u64],
    tables: &'a mut dyn Tables,
    now_ns: u64,
    values: HashMap<Id, Option<u64>>,
    /// Records of lookups that were done; 0 if there is no record.
    found: HashMap<Id, Option<u64>>,
}

/// The result of a class for a packet.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The packet's exit.
    pub exit: ir::eval::Exit,
    /// Its descriptor.
    pub packet: Packet,
    /// Bits written to its buffer, counted from its start, in order: the first bit, their number, the value.
    pub bytes: Vec<(i64, u8, u64)>,
    /// Cells written.
    pub cells: Vec<(u16, u64)>,
    /// Numbers of records written: table, record, offset, bytes, value.
    pub records: Vec<(u16, u64, u16, u8, u64)>,
}

impl Outcome {
    /// Carries out the writes.
    pub fn apply<B: Buffer + ?Sized>(&self, buffer: &mut B, cells: &mut [u64], tables: &mut dyn Tables) {
        for &(bit, width, value) in &self.bytes {
            write_bits(bit, width, value, |at, mask, bits| {
                if let Some(byte) = byte_of(&*buffer, at) {
                    buffer.write(at, &[byte & !mask | bits]);
                }
            });
        }
        for &(cell, value) in &self.cells {
            if let Some(cell) = cells.get_mut(usize::from(cell)) {
                *cell = value;
            }
        }
        for &(table, record, offset, bytes, value) in &self.records {
            if let Some(table) = tables.table(usize::from(table)) {
                table.record_store(record, offset, bytes, value);
            }
        }
    }
}

/// Calls `byte` for each byte that the bits touch: its offset, a mask of its bits, and their values.
pub(super) fn write_bits(bit: i64, width: u8, value: u64, mut byte: impl FnMut(usize, u8, u8)) {
    let end = bit + i64::from(width);
    for at in bit.div_euclid(8)..=(end - 1).div_euclid(8) {
        // The distance from the byte's last bit to the end of the bits.
        let behind = end - (at + 1) * 8;
        let moved =
            |n: u64| if behind >= 0 { n.checked_shr(behind as u32).unwrap_or(0) } else { n << -behind };
        let (mask, bits) = (moved(ones(width)) as u8, moved(value & ones(width)) as u8);
        if let Ok(at) = usize::try_from(at) {
            byte(at, mask, bits);
        }
    }
}

/// The first bit at an offset, which may be before the start of a buffer. Packets that are tried may have
/// numbers that are not offsets.
pub(super) fn first_bit(place: u64) -> Option<i64> {
    i32::try_from(place as i64).ok().map(|place| i64::from(place) * 8)
}

/// Reads bits; `byte` returns each byte.
fn read_bits(bit: i64, width: u8, mut byte: impl FnMut(usize) -> Option<u8>) -> Option<u64> {
    let end = bit + i64::from(width);
    let mut all = 0u128;
    for at in bit.div_euclid(8)..=(end - 1).div_euclid(8) {
        all = all << 8 | u128::from(byte(usize::try_from(at).ok()?)?);
    }
    let behind = (end - 1).div_euclid(8) * 8 + 8 - end;
    Some((all >> behind) as u64 & ones(width))
}

fn byte_of<B: Buffer + ?Sized>(buffer: &B, at: usize) -> Option<u8> {
    let mut byte = [0];
    buffer.read(at, &mut byte).then_some(byte[0])
}

/// A buffer with writes on top.
struct Overlay<'a, B: Buffer + ?Sized> {
    under: &'a B,
    bytes: HashMap<usize, u8>,
}

impl<B: Buffer + ?Sized> Overlay<'_, B> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(&at).copied().or_else(|| byte_of(self.under, at))
    }
}

impl<B: Buffer + ?Sized> Buffer for Overlay<'_, B> {
    fn read(&self, at: usize, out: &mut [u8]) -> bool {
        (at..).zip(out).all(|(at, byte)| self.byte(at).map(|own| *byte = own).is_some())
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> bool {
        self.bytes.extend((at..).zip(bytes.iter().copied()));
        true
    }

    fn read_packet(&self, packet: &Packet, at: usize, out: &mut [u8]) -> bool {
        if !self.under.read_packet(packet, at, out) {
            return false;
        }
        let first = usize::from(packet.data());
        for (at, byte) in (at..packet.len() as usize).zip(out) {
            *byte = self.bytes.get(&(first + at)).copied().unwrap_or(*byte);
        }
        true
    }
}

impl<'a, B: Buffer + ?Sized> Concrete<'a, B> {
    /// A packet that arrives.
    pub fn new(
        pool: &'a Pool,
        packet: &Packet,
        buffer: &'a B,
        cells: &'a [u64],
        tables: &'a mut dyn Tables,
        now_ns: u64,
    ) -> Concrete<'a, B> {
        Concrete {
            pool,
            packet: *packet,
            buffer,
            cells,
            tables,
            now_ns,
            values: HashMap::new(),
            found: HashMap::new(),
        }
    }

    /// Whether it passes a filter.
    pub fn passes(&mut self, filter: &Filter) -> bool {
        self.all_hold(&filter.0)
    }

    fn all_hold(&mut self, factors: &[Factor]) -> bool {
        factors.iter().all(|factor| match factor {
            Factor::Is(id, set) => self.value(*id).is_some_and(|value| set.contains(value)),
            Factor::Any(lists) => lists.iter().any(|list| self.all_hold(list)),
        })
    }

    /// The decisions of its class for this packet. If the class was merged from several paths, decisions of
    /// other paths that do not hold for the packet are left out.
    pub fn decided<'c>(&mut self, class: &'c Class) -> Vec<&'c Step> {
        let holds = |step: &&Step| self.value(step.of).is_some_and(|value| step.set.contains(value));
        class.steps.iter().filter(holds).collect()
    }

    /// The result of a class; `None` if the class's values cannot be computed, since the packet is not in it.
    pub fn outcome(&mut self, class: &Class) -> Option<Outcome> {
        let end = &class.end;
        let exit = match class.exit {
            Exit::Emit(port) => ir::eval::Exit::Emit(port),
            Exit::EmitTo(port) => ir::eval::Exit::Emit(self.value(port)? as u16),
            Exit::Drop(reason) => ir::eval::Exit::Drop(reason),
            Exit::Slow(slow) => ir::eval::Exit::Slow(slow),
        };
        let mut packet = self.packet;
        let data = self.value(end.data)? as u16;
        let len = self.value(end.end)?.wrapping_sub(u64::from(data)) as u32;
        // A class that moves a packet's end beyond its buffer contains no such packets.
        (packet.set_ends(data, len) && packet.set_rest(self.value(end.rest)? as u32)).then_some(())?;
        packet.packet_type = self.value(end.packet_type)? as u8;
        for (place, at) in end.places.iter().zip([&mut packet.mac, &mut packet.net, &mut packet.trans]) {
            match place {
                StateLocation::Unset => *at = NO_HEADER,
                StateLocation::Entry(_) => {}
                StateLocation::At(place) => *at = self.value(*place)? as u16,
            }
        }
        for write in &end.annos {
            let value = self.value(write.value)?;
            write_bits(write.bits.bit.into(), write.bits.width, value, |at, mask, bits| {
                // In this numbering the last byte of the annotations is first.
                let last = packet.anno.len() - 1;
                if let Some(byte) = last.checked_sub(at).and_then(|at| packet.anno.get_mut(at)) {
                    *byte = *byte & !mask | bits;
                }
            });
        }
        let bytes = end.bytes.iter().map(|write| self.placed(write)).collect::<Option<Vec<_>>>()?;
        let cells = end.cells.iter().map(|(cell, value)| Some((*cell, self.value(*value)?)));
        let cells = cells.collect::<Option<Vec<_>>>()?;
        let records = end.records.iter().map(|write| {
            let (rec, value) = (self.value(write.rec)?, self.value(write.value)?);
            Some((write.table, rec, write.offset, write.bytes, value))
        });
        let records = records.collect::<Option<Vec<_>>>()?;
        Some(Outcome { exit, packet, bytes, cells, records })
    }

    fn placed(&mut self, write: &Write) -> Option<(i64, u8, u64)> {
        let bit = self.bit(write.bits)?;
        Some((bit, write.bits.width, self.value(write.value)?))
    }

    fn bit(&mut self, bits: Bits) -> Option<i64> {
        match bits.root {
            Root::At(root) => Some(first_bit(self.value(root)?)? + i64::from(bits.bit)),
            Root::Anno => Some(bits.bit.into()),
        }
    }

    /// The value of an expression; `None` if it depends on something that the packet does not have.
    pub fn value(&mut self, id: Id) -> Option<u64> {
        if let Some(known) = self.values.get(&id) {
            return *known;
        }
        let value = self.compute(id);
        self.values.insert(id, value);
        value
    }

    fn compute(&mut self, id: Id) -> Option<u64> {
        Some(match self.pool.node(id) {
            Node::Const(number) => *number,
            Node::Atom(atom) => self.atom(*atom)?,
            Node::Cat(parts) => {
                let mut sum = 0u64;
                for (low, part) in parts {
                    sum |= self.value(*part)? << low;
                }
                sum
            }
            Node::Slice(of, low, width) => self.value(*of)? >> low & ones(*width),
            Node::Sum(constant, terms) => {
                let mut sum = *constant;
                for (term, by) in terms {
                    sum = sum.wrapping_add(self.value(*term)?.wrapping_mul(*by));
                }
                sum
            }
            Node::Fold(sum) => {
                let sum = self.value(*sum)?;
                (sum & 0xffff) + (sum >> 16)
            }
            Node::Bin(op, a, b) => op.apply(self.value(*a)?, self.value(*b)?),
            Node::In(of, set) => u64::from(set.contains(self.value(*of)?)),
            Node::Select(c, a, b) => match self.value(*c)? {
                0 => self.value(*b)?,
                _ => self.value(*a)?,
            },
            Node::Csum(sum, old, new, bits) => {
                checksum_update(self.value(*sum)?, self.value(*old)?, self.value(*new)?, *bits)
            }
            Node::IpSum(log, net, end) => self.ip_sum(*log, *net, *end)?,
            Node::TransportSum(sum) => self.transport_sum(sum)?,
            Node::Read(log, bits) => {
                let bit = self.bit(*bits)?;
                let over = self.overlay(*log)?;
                read_bits(bit, bits.width, |at| over.byte(at))?
            }
            Node::Found(_) => u64::from(self.record(id)? != 0),
            Node::Record(found) => self.record(*found).filter(|record| *record != 0)?,
            Node::RecLoad(log, rec, offset, bytes) => self.rec_load(*log, *rec, *offset, *bytes)?,
        })
    }

    fn atom(&mut self, atom: Atom) -> Option<u64> {
        let packet = self.packet;
        Some(match atom {
            Atom::Bits(bits @ Bits { root: Root::Anno, .. }) => {
                let last = packet.anno.len() - 1;
                let byte = |at: usize| last.checked_sub(at).and_then(|at| packet.anno.get(at).copied());
                read_bits(bits.bit.into(), bits.width, byte)?
            }
            Atom::Bits(bits) => {
                let (bit, buffer) = (self.bit(bits)?, self.buffer);
                read_bits(bit, bits.width, |at| byte_of(buffer, at))?
            }
            Atom::Room => packet.data().into(),
            Atom::Head => packet.len().into(),
            Atom::Rest => (packet.total() - packet.len()).into(),
            Atom::Place(base) => packet.header(base).into(),
            Atom::Reach(base) => match packet.header(base) {
                NO_HEADER => 0,
                at => (u64::from(packet.data()) + u64::from(packet.len())).saturating_sub(at.into()),
            },
            Atom::Cell(cell) => *self.cells.get(usize::from(cell))?,
            Atom::Now => self.now_ns,
            Atom::Timestamp => packet.timestamp_ns,
            Atom::PacketType => packet.packet_type.into(),
            Atom::FlowHash => packet.flow_hash.into(),
            Atom::Origin => packet.origin.into(),
        })
    }

    /// The record that a lookup returns; 0 if there is none.
    fn record(&mut self, found: Id) -> Option<u64> {
        let pool = self.pool;
        let Node::Found(find) = pool.node(found) else { return None };
        // The truth value and the record are two expressions of one lookup, which is done once.
        if let Some(known) = self.found.get(&found) {
            return *known;
        }
        let record = self.look_up(find);
        self.found.insert(found, record);
        record
    }

    fn look_up(&mut self, find: &Find) -> Option<u64> {
        let key = find.key.iter().map(|word| self.value(*word)).collect::<Option<Vec<u64>>>()?;
        let args = find.args.iter().flatten().map(|arg| self.value(*arg)).collect::<Option<Vec<u64>>>()?;
        let table = self.tables.table(usize::from(find.table))?;
        Some(match find.args {
            None => table.lookup(&key).unwrap_or(0),
            Some(_) => match table.create(&key, &args, self.now_ns) {
                Created::Record(record) => record,
                Created::Refused | Created::Wait => 0,
            },
        })
    }

    fn rec_load(&mut self, log: Log, rec: Id, offset: u16, bytes: u8) -> Option<u64> {
        let pool = self.pool;
        let (record, number) = (self.value(rec)?, pool.lookup_of(rec)?.table);
        let table = self.tables.table(usize::from(number))?;
        let mut all: Vec<u8> =
            (0..u16::from(bytes)).map(|at| table.record_load(record, offset + at, 1) as u8).collect();
        for write in pool.rec_writes(log) {
            let (other, value) = (self.value(write.rec)?, self.value(write.value)?);
            if other != record {
                continue;
            }
            for at in 0..u16::from(write.bytes) {
                let place = (write.offset + at).checked_sub(offset);
                if let Some(byte) = place.and_then(|place| all.get_mut(usize::from(place))) {
                    *byte = (value >> (8 * at)) as u8;
                }
            }
        }
        Some(all.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn overlay(&mut self, log: Log) -> Option<Overlay<'a, B>> {
        let mut over = Overlay { under: self.buffer, bytes: HashMap::new() };
        for write in self.pool.writes(log) {
            let (bit, width, value) = self.placed(write)?;
            write_bits(bit, width, value, |at, mask, bits| {
                let old = over.byte(at).unwrap_or(0);
                over.bytes.insert(at, old & !mask | bits);
            });
        }
        Some(over)
    }

    fn ip_sum(&mut self, log: Log, net: Id, end: Id) -> Option<u64> {
        let (net, end) = (self.value(net)?, self.value(end)?);
        let over = self.overlay(log)?;
        let is_set = net < u64::from(NO_HEADER);
        Some(if is_set { header_sum(&over, net as usize, end as usize) } else { 0 })
    }

    fn transport_sum(&mut self, sum: &super::expr::TransportSum) -> Option<u64> {
        let (net, trans) = (self.value(sum.net)?, self.value(sum.trans)?);
        let (end, rest, proto) = (self.value(sum.end)?, self.value(sum.rest)?, self.value(sum.proto)?);
        let over = self.overlay(sum.log)?;
        let mut packet = self.packet;
        // Any offset in the segment can serve as the first byte of the sum from the network header on.
        (packet.set_ends(0, u32::try_from(end).ok()?) && packet.set_rest(rest as u32)).then_some(())?;
        let none = u64::from(NO_HEADER);
        if net >= none || trans >= none {
            return Some(0);
        }
        let headers = (net as usize, trans as usize);
        Some(transport_sum(&over, &packet, headers, end as usize, proto))
    }
}
