//! A packet and its surroundings in the middle of a path, as expressions over the packet as it arrived.

use super::expr::{Atom, Bits, Id, Node, Pool, RecWrite, Root, Write};
use super::simplify::Maker;
use super::writes::{by_word, read, write};
use ir::analysis::interval::IntervalSet;
use packet::anno::{self, ANNO_BYTES, Anno, EXTRA_LENGTH};
use packet::field::{Base, Field};
use std::collections::BTreeMap;

/// The location in a header annotation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StateLocation {
    /// Not set.
    Unset,
    /// Its location when the packet arrived, if it was set then.
    Entry(Base),
    /// At this offset.
    At(Id),
}

/// The effects of a path on a packet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PathState {
    /// The offset of the packet's first byte.
    pub data: Id,
    /// The end of its first segment.
    pub end: Id,
    /// Bytes of its other segments.
    pub rest: Id,
    /// The MAC, network and transport header.
    pub places: [StateLocation; 3],
    /// Writes to the packet, each of them visible at the end unless a later one covers it.
    pub bytes: Vec<Write>,
    /// Writes to annotations.
    pub annos: Vec<Write>,
    /// Writes to records.
    pub records: Vec<RecWrite>,
    /// Cells that were written, with their values.
    pub cells: BTreeMap<u16, Id>,
    /// Click's packet type.
    pub packet_type: Id,
    /// Lookups and creations of records so far.
    pub finds: Vec<Id>,
}

impl PathState {
    /// The same without annotations: 0 is written to all that are not set then.
    pub fn without_annotations(mut self, make: &mut Maker<'_>) -> PathState {
        let zero = make.number(0);
        let words = (0..ANNO_BYTES as u8).step_by(4).filter(|at| anno::bytes(*at, 4) & !anno::UNSET == 0);
        self.annos = words.rev().map(|at| Write { bits: Bits::anno(at, 4), value: zero }).collect();
        self
    }

    /// Removes what is written to annotations that are not set where packets enter, if it is what is there.
    pub fn remove_unset(&mut self, pool: &Pool) {
        let of_capture = Bits::anno(EXTRA_LENGTH.offset, EXTRA_LENGTH.len);
        let is_unset = |bits: Bits| bits.common(of_capture).is_none();
        self.annos.retain(|write| !is_unset(write.bits) || pool.constant(write.value) != Some(0));
    }

    /// A packet without any known properties; with `frame`, as a port delivers it.
    pub fn entry(make: &mut Maker<'_>, frame: bool) -> PathState {
        let data = make.pool.atom(Atom::Room);
        let head = make.pool.atom(Atom::Head);
        let places = match frame {
            true => {
                make.pool.names.push((data, 0, Base::Mac));
                [StateLocation::At(data), StateLocation::Unset, StateLocation::Unset]
            }
            false => [
                StateLocation::Entry(Base::Mac),
                StateLocation::Entry(Base::Net),
                StateLocation::Entry(Base::Trans),
            ],
        };
        PathState {
            data,
            end: make.add(data, head, 1),
            rest: make.pool.atom(Atom::Rest),
            places,
            bytes: vec![],
            annos: vec![],
            records: vec![],
            cells: BTreeMap::new(),
            packet_type: make.pool.atom(Atom::PacketType),
            finds: vec![],
        }
    }

    /// The location of a base; meaningless where it is not set.
    pub fn place(&self, make: &mut Maker<'_>, base: Base) -> Id {
        match self.header(base) {
            None => self.data,
            Some(StateLocation::At(at)) => at,
            Some(StateLocation::Entry(base)) => make.pool.atom(Atom::Place(base)),
            Some(StateLocation::Unset) => make.number(u64::from(u16::MAX)),
        }
    }

    /// The header annotation of a base other than the packet's first byte.
    pub fn header(&self, base: Base) -> Option<StateLocation> {
        (base as usize).checked_sub(1).and_then(|at| self.places.get(at).copied())
    }

    /// Whether that many bytes from a base are in the first segment.
    pub fn there(&self, make: &mut Maker<'_>, base: Base, bytes: u64) -> Id {
        match self.header(base) {
            Some(StateLocation::Unset) => make.number(0),
            Some(StateLocation::Entry(base)) if self.end_as_came(make) => {
                let reach = make.pool.atom(Atom::Reach(base));
                let bytes = make.number(bytes);
                make.at_most(bytes, reach)
            }
            Some(StateLocation::Entry(base)) => {
                let (fits, set) = (self.fits(make, base, bytes), self.is_set(make, base));
                make.bin(ir::BinOp::And, set, fits)
            }
            Some(StateLocation::At(at)) => match self.behind_entry(make, at) {
                Some((base, from)) if from.checked_add(bytes as i64).is_some_and(|n| n > 0) => {
                    let reach = make.pool.atom(Atom::Reach(base));
                    let bytes = make.number((from + bytes as i64) as u64);
                    make.at_most(bytes, reach)
                }
                _ => self.fits(make, base, bytes),
            },
            None => self.fits(make, base, bytes),
        }
    }

    fn fits(&self, make: &mut Maker<'_>, base: Base, bytes: u64) -> Id {
        let place = self.place(make, base);
        let behind = make.offset(place, bytes as i64);
        make.at_most(behind, self.end)
    }

    /// Whether an annotation was set when the packet arrived.
    fn is_set(&self, make: &mut Maker<'_>, base: Base) -> Id {
        let place = make.pool.atom(Atom::Place(base));
        make.is_in(place, &IntervalSet::range(0, u64::from(u16::MAX) - 1))
    }

    fn end_as_came(&self, make: &mut Maker<'_>) -> bool {
        let (room, head) = (make.pool.atom(Atom::Room), make.pool.atom(Atom::Head));
        make.add(room, head, 1) == self.end
    }

    /// An offset relative to a header annotation as it arrived, if the segment's end has not changed
    /// since.
    fn behind_entry(&self, make: &mut Maker<'_>, at: Id) -> Option<(Base, i64)> {
        let (root, by) = make.root(at);
        match make.pool.node(root) {
            Node::Atom(Atom::Place(base)) => {
                let base = *base;
                self.end_as_came(make).then_some((base, by))
            }
            _ => None,
        }
    }

    /// Bytes from a base to the end of the first segment; 0 where there are none.
    pub fn avail(&self, make: &mut Maker<'_>, base: Base) -> Id {
        let zero = make.number(0);
        match self.header(base) {
            Some(StateLocation::Unset) => zero,
            Some(StateLocation::Entry(base)) if self.end_as_came(make) => make.pool.atom(Atom::Reach(base)),
            place => {
                let at = self.place(make, base);
                let bytes = make.add(self.end, at, u64::MAX);
                let there = make.at_most(at, self.end);
                let there = match place {
                    Some(StateLocation::Entry(base)) => {
                        let set = self.is_set(make, base);
                        make.bin(ir::BinOp::And, set, there)
                    }
                    _ => there,
                };
                make.select(there, bytes, zero)
            }
        }
    }

    /// Bytes of the whole packet.
    pub fn len(&self, make: &mut Maker<'_>) -> Id {
        let head = self.head(make);
        make.add(head, self.rest, 1)
    }

    /// Bytes of the first segment.
    pub fn head(&self, make: &mut Maker<'_>) -> Id {
        make.add(self.end, self.data, u64::MAX)
    }

    /// A base's offset from the packet's first byte.
    pub fn offset(&self, make: &mut Maker<'_>, base: Base) -> Id {
        let at = self.place(make, base);
        let offset = make.add(at, self.data, u64::MAX);
        match self.header(base) {
            Some(StateLocation::Unset) => make.number(u64::MAX),
            Some(StateLocation::Entry(base)) => {
                let (set, none) = (self.is_set(make, base), make.number(u64::MAX));
                make.select(set, offset, none)
            }
            _ => offset,
        }
    }

    /// The bits of a field.
    pub fn bits(&self, make: &mut Maker<'_>, field: Field) -> Bits {
        let place = self.place(make, field.base);
        let (root, by) = make.root(place);
        Bits { root: Root::At(root), bit: by as i32 * 8 + i32::from(field.bit), width: field.width }
    }

    /// Reads a field.
    pub fn load(&self, make: &mut Maker<'_>, field: Field) -> Id {
        let bits = self.bits(make, field);
        read(make, &self.bytes, bits)
    }

    /// Writes a field.
    pub fn store(&mut self, make: &mut Maker<'_>, field: Field, value: Id) {
        let bits = self.bits(make, field);
        let value = make.slice(value, 0, field.width);
        // A value that the field already has need not be written.
        if read(make, &self.bytes, bits) != value {
            write(make, &mut self.bytes, Write { bits, value });
        }
    }

    /// Reads an annotation.
    pub fn load_anno(&self, make: &mut Maker<'_>, anno: Anno) -> Id {
        read(make, &self.annos, Bits::anno(anno.offset, anno.len))
    }

    /// Writes an annotation.
    pub fn store_anno(&mut self, make: &mut Maker<'_>, anno: Anno, value: Id) {
        let bits = Bits::anno(anno.offset, anno.len);
        let value = make.slice(value, 0, bits.width);
        write(make, &mut self.annos, Write { bits, value });
    }

    /// The sum of the IPv4 header: 0xffff if that follows from an earlier test and the writes since.
    pub fn ip_sum(&self, make: &mut Maker<'_>) -> Id {
        if self.header(Base::Net) == Some(StateLocation::Unset) {
            return make.number(0);
        }
        let net = self.place(make, Base::Net);
        if super::sums::still_right(make, net, self.end, &self.bytes) {
            return make.number(0xffff);
        }
        if let Some(sum) = super::sums::as_update(make, net, self.end, &self.bytes) {
            return sum;
        }
        let writes = super::sums::in_header(make, net, &self.bytes);
        let log = by_word(make, &writes);
        make.pool.add(Node::IpSum(log, net, self.end))
    }

    /// The sum of the transport segment.
    pub fn transport_sum(&self, make: &mut Maker<'_>, proto: Id) -> Id {
        if [Base::Net, Base::Trans].map(|base| self.header(base)).contains(&Some(StateLocation::Unset)) {
            return make.number(0);
        }
        let (net, trans) = (self.place(make, Base::Net), self.place(make, Base::Trans));
        let proto = make.slice(proto, 0, 8);
        let sum = super::expr::TransportSum {
            log: by_word(make, &self.bytes),
            net,
            trans,
            end: self.end,
            rest: self.rest,
            proto,
        };
        make.pool.add(Node::TransportSum(Box::new(sum)))
    }

    /// Reads a number of a record.
    pub fn load_record(&self, make: &mut Maker<'_>, rec: Id, table: u16, offset: u16, bytes: u8) -> Id {
        read_record(make.pool, &self.records, RecWrite { rec, table, offset, bytes, value: rec })
    }

    /// Writes a number of a record.
    pub fn store_record(&mut self, make: &mut Maker<'_>, write: RecWrite) {
        let value = make.slice(write.value, 0, write.bytes * 8);
        let write = RecWrite { value, ..write };
        write_record(&mut self.records, write);
    }
}

/// Appends a write to a record, in the place of one of the same bytes. Order matters only where writes meet: the others
/// are sorted.
pub(super) fn write_record(writes: &mut Vec<RecWrite>, write: RecWrite) {
    writes.retain(|old| (old.rec, old.offset, old.bytes) != (write.rec, write.offset, write.bytes));
    let place = |write: &RecWrite| (write.table, write.offset, write.bytes, write.rec);
    let is_later = |old: &&RecWrite| are_apart(old, &write) && place(old) > place(&write);
    let at = writes.len() - writes.iter().rev().take_while(is_later).count();
    writes.insert(at, write);
}

/// What is in the place of a write after others: a part of the expression are those that may have changed it, and no
/// others.
pub(super) fn read_record(pool: &mut Pool, writes: &[RecWrite], at: RecWrite) -> Id {
    let RecWrite { rec, offset, bytes, .. } = at;
    let meeting: Vec<RecWrite> = writes.iter().filter(|write| !are_apart(write, &at)).copied().collect();
    match meeting.last() {
        Some(write) if (write.rec, write.offset, write.bytes) == (rec, offset, bytes) => write.value,
        Some(_) => {
            let log = pool.rec_log(&meeting);
            pool.add(Node::RecLoad(log, rec, offset, bytes))
        }
        None => pool.add(Node::RecLoad(super::expr::NO_WRITES, rec, offset, bytes)),
    }
}

/// Whether two writes are to different bytes, whichever records they are to.
fn are_apart(a: &RecWrite, b: &RecWrite) -> bool {
    let end = |write: &RecWrite| write.offset + u16::from(write.bytes);
    a.table != b.table || end(a) <= b.offset || end(b) <= a.offset
}
