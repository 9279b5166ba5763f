//! Makes packets of a class from other packets: from the middle and from the boundaries of its intervals.
//!
//! A packet is adjusted condition by condition, in the filter's order, a few times over: bits are
//! written, lengths set, checksums computed, keys of known records put together. A packet that is still
//! not in the class after that is given up.

use super::concrete::Concrete;
use super::expr::{Atom, Bits, Find, Id, Node, Root, signed};
use super::filter::Factor;
use super::{Class, Classes};
use ir::Tables;
use ir::analysis::interval::{IntervalSet, ones};
use ir::eval::Buffer;
use rand::Rng;
use shm::descriptor::{BUF_BYTES, NO_HEADER, Packet};

/// Rounds of adjustment before a packet is given up.
const ROUNDS: usize = 12;
/// Values that are tried for one term of a difference.
const TRIES: usize = 4;
/// The longest frame that is generated where no condition requires a longer one.
const USUAL_BYTES: u64 = 110;

/// A generated packet and its surroundings.
#[derive(Clone, Debug)]
pub struct CreatedPacket {
    /// Its descriptor. It counts bytes of further segments, but their content is not stored.
    pub packet: Packet,
    /// The slot's bytes.
    pub buffer: Vec<u8>,
    /// The program's cells.
    pub cells: Vec<u64>,
    /// The burst's clock.
    pub now_ns: u64,
}

/// The tables that packets are adjusted for.
pub struct World<'a> {
    /// Returns a fresh copy of the program's tables on each call: conditions create records.
    pub tables: &'a mut dyn FnMut() -> Box<dyn Tables>,
    /// Keys of records that a table has.
    pub keys: &'a dyn Fn(u16) -> Vec<Vec<u64>>,
}

struct Maker<'a, 'w, R> {
    classes: &'a Classes,
    world: &'a mut World<'w>,
    rng: &'a mut R,
    packet: CreatedPacket,
}

impl Class {
    /// A packet of the class derived from another packet; `None` if the adjustment fails.
    pub fn mended<R: Rng>(
        &self,
        classes: &Classes,
        made: CreatedPacket,
        world: &mut World<'_>,
        rng: &mut R,
    ) -> Option<CreatedPacket> {
        let mut maker = Maker { classes, world, rng, packet: made };
        maker.mend(self).then_some(maker.packet)
    }
}

impl<R: Rng> Maker<'_, '_, R> {
    fn with<T>(&mut self, ask: impl FnOnce(&mut Concrete<'_, [u8]>) -> T) -> T {
        let mut tables = (self.world.tables)();
        let CreatedPacket { packet, buffer, cells, now_ns } = &self.packet;
        let buffer: &[u8] = buffer;
        let mut concrete = Concrete::new(&self.classes.pool, packet, buffer, cells, tables.as_mut(), *now_ns);
        ask(&mut concrete)
    }

    fn value(&mut self, id: Id) -> Option<u64> {
        self.with(|concrete| concrete.value(id))
    }

    fn mend(&mut self, class: &Class) -> bool {
        // Alternatives are chosen once for each packet.
        let mut conditions = vec![];
        self.choose(&class.filter.0, &mut conditions);
        for _ in 0..ROUNDS {
            if self.with(|concrete| concrete.passes(&class.filter)) {
                return true;
            }
            for (of, set) in &conditions {
                if !self.value(*of).is_some_and(|value| set.contains(value)) {
                    self.fix(*of, set);
                }
            }
        }
        self.with(|concrete| concrete.passes(&class.filter))
    }

    fn choose(&mut self, factors: &[Factor], into: &mut Vec<(Id, IntervalSet)>) {
        for factor in factors {
            match factor {
                Factor::Is(of, set) => into.push((*of, set.clone())),
                Factor::Any(lists) if lists.is_empty() => {}
                Factor::Any(lists) => {
                    let at = self.rng.random_range(0..lists.len());
                    self.choose(&lists[at], into);
                }
            }
        }
    }

    /// A number of a set: often one at the boundary of an interval.
    fn pick(&mut self, set: &IntervalSet) -> Option<u64> {
        let count = set.intervals().len();
        if count == 0 {
            return None;
        }
        let (first, last) = set.intervals()[self.rng.random_range(0..count)];
        Some(match self.rng.random_range(0..4) {
            0 => first,
            1 => last,
            2 => first.saturating_add(self.rng.random_range(0..8)).min(last),
            _ => self.rng.random_range(first..=last),
        })
    }

    fn fix(&mut self, of: Id, set: &IntervalSet) {
        let classes = self.classes;
        match classes.pool.node(of) {
            Node::IpSum(log, net, _) if classes.pool.writes(*log).is_empty() => {
                if let Some(net) = self.value(*net) {
                    self.fix_checksum(of, net as usize + 10, set);
                }
            }
            Node::TransportSum(sum) if classes.pool.writes(sum.log).is_empty() => {
                let place = match self.value(sum.proto) {
                    Some(6) => 16,
                    Some(17) => 6,
                    Some(1) => 2,
                    _ => return,
                };
                if let Some(trans) = self.value(sum.trans) {
                    self.fix_checksum(of, trans as usize + place, set);
                }
            }
            Node::Sum(constant, terms) => self.fix_sum(*constant, terms, set),
            Node::Found(find) if set.contains(1) => self.fix_key(find),
            Node::Bin(ir::BinOp::Min, a, b) => {
                let number = self.pick(set);
                let which = [*a, *b][self.rng.random_range(0..2)];
                number.map(|number| self.assign(which, number));
            }
            _ => {
                for _ in 0..TRIES {
                    if self.pick(set).is_some_and(|number| self.assign(of, number)) {
                        return;
                    }
                }
            }
        }
    }

    /// Gives an expression a value, if that is possible by changing the packet.
    fn assign(&mut self, of: Id, number: u64) -> bool {
        let classes = self.classes;
        match classes.pool.node(of) {
            Node::Const(own) => *own == number,
            Node::Atom(atom) => self.set(*atom, number),
            Node::Cat(parts) => {
                let pool = &classes.pool;
                parts.iter().all(|(low, part)| match pool.constant(*part) {
                    Some(own) => number & own == own,
                    None => self.assign(*part, number >> low & ones(pool.width(*part))),
                })
            }
            Node::Sum(constant, terms) => match **terms {
                [(term, 1)] => self.assign(term, number.wrapping_sub(*constant)),
                _ => {
                    self.fix_sum(*constant, terms, &IntervalSet::one(number));
                    false
                }
            },
            Node::Slice(inside, low, width) => {
                let old = self.value(*inside).unwrap_or(0);
                let mask = ones(*width) << low;
                self.assign(*inside, old & !mask | number << low & mask)
            }
            _ => false,
        }
    }

    fn set(&mut self, atom: Atom, number: u64) -> bool {
        if number > Atom::max(atom) {
            return false;
        }
        let packet = &mut self.packet.packet;
        let end = packet.data() + packet.len() as u16;
        match atom {
            Atom::Bits(bits) => return self.set_bits(bits, number),
            Atom::Room => {
                // The whole packet moves along.
                let Ok(by) = i32::try_from(number as i64 - i64::from(packet.data())) else { return false };
                let most = BUF_BYTES as i32 - i32::from(end);
                if by > most {
                    return false;
                }
                let (from, to) = (usize::from(packet.data()), usize::from(end));
                self.packet.buffer.copy_within(from..to, number as usize);
                let moved = packet.set_ends(number as u16, packet.len());
                debug_assert!(moved, "it was asked for");
                for at in [&mut packet.mac, &mut packet.net, &mut packet.trans] {
                    if *at != NO_HEADER {
                        *at = (i32::from(*at) + by) as u16;
                    }
                }
            }
            Atom::Head => {
                return u32::try_from(number).is_ok_and(|len| packet.set_ends(packet.data(), len));
            }
            Atom::Rest => {
                let rest = number.min(4 * USUAL_BYTES + number % 7) as u32;
                return packet.set_rest(rest) && u64::from(rest) == number;
            }
            Atom::Place(base) | Atom::Reach(base) => {
                let place = match atom {
                    Atom::Place(_) => number as u16,
                    _ if number == 0 => NO_HEADER,
                    _ => end.saturating_sub(number as u16),
                };
                let Some(header) = packet.header_mut(base) else { return false };
                *header = place;
            }
            Atom::Cell(cell) => match self.packet.cells.get_mut(usize::from(cell)) {
                Some(cell) => *cell = number,
                None => return false,
            },
            Atom::Now => self.packet.now_ns = number,
            Atom::Timestamp => packet.timestamp_ns = number,
            Atom::PacketType => packet.packet_type = number as u8,
            Atom::FlowHash => packet.flow_hash = number as u32,
            Atom::Origin => packet.origin = number as u16,
        }
        true
    }

    fn set_bits(&mut self, bits: Bits, number: u64) -> bool {
        let from = match bits.root {
            Root::At(root) => self.value(root).and_then(super::concrete::first_bit),
            Root::Anno => Some(0),
        };
        let Some(from) = from else { return false };
        let anno = bits.root == Root::Anno;
        let CreatedPacket { packet, buffer, .. } = &mut self.packet;
        let mut fits = true;
        super::concrete::write_bits(from + i64::from(bits.bit), bits.width, number, |at, mask, value| {
            let last = packet.anno.len() - 1;
            let byte = match anno {
                true => last.checked_sub(at).and_then(|at| packet.anno.get_mut(at)),
                false => buffer.get_mut(at),
            };
            match byte {
                Some(byte) => *byte = *byte & !mask | value,
                None => fits = false,
            }
        });
        fits
    }

    /// Moves a sum into a set by changing one of its terms.
    fn fix_sum(&mut self, constant: u64, terms: &[(Id, u64)], set: &IntervalSet) {
        let Some(values) = terms.iter().map(|(term, _)| self.value(*term)).collect::<Option<Vec<u64>>>()
        else {
            return;
        };
        let total = values.iter().zip(terms).fold(signed(constant), |sum, (value, (_, by))| {
            sum.saturating_add(signed(*by).saturating_mul((*value).into()))
        });
        // The nearest numbers, and some others.
        let mut goals: Vec<i128> = set
            .intervals()
            .iter()
            .flat_map(|(first, last)| {
                let (first, last) = (i128::from(*first), i128::from(*last));
                let near = total.clamp(first, last);
                (0..8)
                    .flat_map(move |by| [near + by, near - by])
                    .filter(move |goal| (first..=last).contains(goal))
            })
            .collect();
        goals.sort_by_key(|goal| (goal - total).abs());
        goals.truncate(TRIES * 4);
        let first = self.rng.random_range(0..terms.len());
        for goal in goals {
            for at in 0..terms.len() {
                let at = (first + at) % terms.len();
                let (term, by) = terms[at];
                let (by, left) = (signed(by), goal - total);
                if by == 0 || left % by != 0 {
                    continue;
                }
                let wanted = i128::from(values[at]) + left / by;
                let Ok(wanted) = u64::try_from(wanted) else { continue };
                if wanted <= self.classes.pool.max(term) && self.assign(term, wanted) {
                    return;
                }
            }
        }
    }

    /// Changes the packet's key to that of an existing record.
    fn fix_key(&mut self, find: &Find) {
        let keys = (self.world.keys)(find.table);
        if keys.is_empty() {
            return;
        }
        let key = &keys[self.rng.random_range(0..keys.len())];
        for (word, number) in find.key.iter().zip(key) {
            self.assign(*word, *number);
        }
    }

    /// Makes the checksum at an offset right or wrong, as a condition on the sum over it requires.
    fn fix_checksum(&mut self, sum: Id, at: usize, set: &IntervalSet) {
        self.put_word(at, 0);
        let sum = self.value(sum).unwrap_or(0);
        let wrong = if set.contains(0xffff) { 0 } else { 1 << self.rng.random_range(0..16) };
        self.put_word(at, (!sum & 0xffff) ^ wrong);
    }

    fn put_word(&mut self, at: usize, word: u64) {
        self.packet.buffer.as_mut_slice().write(at, &(word as u16).to_be_bytes());
    }
}
