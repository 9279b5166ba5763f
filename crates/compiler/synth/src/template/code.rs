//! The instructions for numbers that depend on the packet.

use super::cache_entry;
use super::model::Template;
use super::tally::Tally;
use super::term::{Is, Recorded, Refusal, TermSource, TermUse};
use ir::analysis::interval::ones;
use ir::eval::Exit;
use ir::program::Value;
use ir::{BinOp, Inst};
use rustc_hash::FxHashMap;

/// The entry, as a value in a template's instructions.
const ENTRY: Value = Value(0);

/// A number that depends on the flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fact {
    pub number: u64,
    pub bits: u8,
    source: TermSource,
}

/// A template under construction.
#[derive(Default)]
pub(super) struct Code {
    insts: Vec<Inst>,
    /// The result of each instruction for this packet, and its bits.
    yields: Vec<(u64, u8)>,
    known: FxHashMap<Inst, Value>,
    facts: Vec<Fact>,
    sources: FxHashMap<TermSource, u32>,
    guards: Vec<(Value, bool)>,
    /// Number of decisions that depend on the flow alone.
    pub decided: usize,
}

const MOST_INSTS: usize = 2000;

impl Code {
    /// The instruction that yields a value.
    pub fn inst(&self, value: Value) -> Inst {
        self.insts[value.0 as usize - 1]
    }

    /// A value that is the same for all packets.
    pub fn constant(&self, value: Value) -> Option<u64> {
        match self.inst(value) {
            Inst::Const(number) => Some(number),
            _ => None,
        }
    }

    pub fn fact(&self, fact: u32) -> &Fact {
        &self.facts[fact as usize]
    }

    /// A value that depends on the packet.
    pub fn at(&self, value: Value) -> TermUse {
        let (number, bits) = self.yields[value.0 as usize - 1];
        TermUse { number, is: Is::Packet(value), bits }
    }

    /// Records an upper bound of a value's bits.
    pub fn narrow(&mut self, value: Value, bits: u8) {
        self.yields[value.0 as usize - 1].1 = bits;
    }

    /// Bits of a value.
    pub fn bits(&self, value: Value) -> u8 {
        self.yields[value.0 as usize - 1].1
    }

    /// The number, the same for all packets, that is a value's lower bound in a condition.
    fn bound(&self, condition: Value) -> Option<(Value, u64)> {
        let Inst::Bin(op @ (BinOp::Lt | BinOp::Le), low, high) = self.inst(condition) else { return None };
        let low = self.constant(low)?;
        Some((high, if op == BinOp::Lt { low.checked_add(1)? } else { low }))
    }

    /// Whether a guard implies that a value is at least a number.
    fn is_above(&self, value: Value, number: u64) -> bool {
        let says = |guard: Value| self.bound(guard).is_some_and(|(of, least)| of == value && least >= number);
        self.guards.iter().any(|(guard, is_set)| *is_set && says(*guard))
    }

    /// `a < b` and `a <= b` where `b` is a value minus a number, as a condition on the value: the TTL tests
    /// of ten routers become one.
    fn of_whole(&self, op: BinOp, a: TermUse, b: TermUse) -> Option<(TermUse, TermUse)> {
        let (BinOp::Lt | BinOp::Le, Is::Same, Is::Packet(left)) = (op, a.is, b.is) else { return None };
        let Inst::Bin(BinOp::Sub, whole, taken) = self.inst(left) else { return None };
        let taken = self.constant(taken)?;
        let number = a.number.checked_add(taken)?;
        self.is_above(whole, taken).then(|| (TermUse::same(number), self.at(whole)))
    }

    /// An instruction's value; the same for the same instruction.
    pub fn emit(&mut self, inst: Inst, number: u64, bits: u8) -> Recorded<Value> {
        if let Some(value) = self.known.get(&inst) {
            return Ok(*value);
        }
        if self.insts.len() >= MOST_INSTS {
            return Err(Refusal::Never("it is too long"));
        }
        self.insts.push(inst);
        self.yields.push((number, bits));
        let value = Value(self.insts.len() as u32);
        self.known.insert(inst, value);
        Ok(value)
    }

    /// The same, as a number to compute with.
    pub fn seen(&mut self, inst: Inst, number: u64, bits: u8) -> Recorded<TermUse> {
        Ok(TermUse { number, is: Is::Packet(self.emit(inst, number, bits)?), bits })
    }

    /// A number of the flow.
    pub fn flow(&mut self, source: TermSource, number: u64, bits: u8) -> TermUse {
        let next = self.facts.len() as u32;
        let fact = match source {
            TermSource::Computed => next,
            _ => *self.sources.entry(source).or_insert(next),
        };
        if fact == next {
            self.facts.push(Fact { number, bits, source });
        }
        TermUse { number, is: Is::Flow(fact), bits }
    }

    /// Returns a number that decisions may use; refuses one that changes from packet to packet.
    pub fn steady(&self, seen: TermUse) -> Recorded<TermUse> {
        match seen.is {
            Is::Changing(_) => Err(Refusal::Never("it hangs on a number that packets change")),
            Is::Record(_) => Err(Refusal::Never("it computes with a record")),
            _ => Ok(seen),
        }
    }

    /// A value to compute with.
    pub fn value(&mut self, seen: TermUse) -> Recorded<Value> {
        match self.steady(seen)?.is {
            Is::Packet(value) => Ok(value),
            Is::Flow(fact) => match self.fact(fact).source {
                TermSource::Key(field) => self.emit(Inst::Load(field), seen.number, seen.bits),
                // Its offset in the entry is assigned at the end.
                _ => {
                    let load = Inst::RecLoad(ENTRY, fact as u16, width(seen.bits));
                    self.emit(load, seen.number, seen.bits)
                }
            },
            _ => self.emit(Inst::Const(seen.number), seen.number, seen.bits),
        }
    }

    /// The number behind a value that does not depend on the packet.
    pub fn origin(&self, value: Value) -> Option<TermUse> {
        match self.inst(value) {
            Inst::Const(number) => Some(TermUse::same(number)),
            Inst::RecLoad(ENTRY, fact, _) => {
                let Fact { number, bits, .. } = *self.fact(u32::from(fact));
                Some(TermUse { number, is: Is::Flow(u32::from(fact)), bits })
            }
            _ => None,
        }
    }

    /// Requires a value to be 0, or not 0, as for this packet.
    pub fn guard(&mut self, value: Value, is_set: bool) {
        if self.guards.contains(&(value, is_set)) {
            return;
        }
        // Of several lower bounds of a value, only the largest is kept.
        if let Some((of, least)) = self.bound(value).filter(|_| is_set) {
            if self.is_above(of, least) {
                return;
            }
            let lower = |(guard, is_set): &(Value, bool)| {
                *is_set && self.bound(*guard).is_some_and(|(other, _)| other == of)
            };
            if let Some(at) = self.guards.iter().position(lower) {
                self.guards[at].0 = value;
                return;
            }
        }
        self.guards.push((value, is_set));
    }

    /// Makes the number a part of the template.
    pub fn pin(&mut self, seen: TermUse) -> Recorded<u64> {
        if let Is::Packet(value) = self.steady(seen)?.is {
            let number = self.value(TermUse::same(seen.number))?;
            let is = self.emit(Inst::Bin(BinOp::Eq, value, number), 1, 1)?;
            self.guard(is, true);
        }
        Ok(seen.number)
    }

    /// Makes the number one of the flow's.
    pub fn pin_to_flow(&mut self, seen: TermUse) -> Recorded<TermUse> {
        let Is::Packet(value) = self.steady(seen)?.is else { return Ok(seen) };
        let fact = self.flow(TermSource::Pinned(value), seen.number, seen.bits);
        let wanted = self.value(fact)?;
        let is = self.emit(Inst::Bin(BinOp::Eq, value, wanted), 1, 1)?;
        self.guard(is, true);
        Ok(fact)
    }

    pub fn bin(&mut self, op: BinOp, a: TermUse, b: TermUse) -> Recorded<TermUse> {
        let (a, b) = self.of_whole(op, a, b).unwrap_or((a, b));
        let number = op.apply(a.number, b.number);
        if a.is == Is::Same && b.is == Is::Same {
            return Ok(TermUse::same(number));
        }
        if let Some(simple) = self.simpler(op, a, b) {
            return Ok(simple);
        }
        if let (Is::Same | Is::Flow(_), Is::Same | Is::Flow(_)) = (a.is, b.is) {
            return Ok(self.flow(TermSource::Computed, number, bits(op, a, b)));
        }
        let (x, y) = (self.value(a)?, self.value(b)?);
        let stays_above = op == BinOp::Sub && b.is == Is::Same && self.is_above(x, b.number);
        let bits = if stays_above { a.bits } else { bits(op, a, b) };
        self.seen(Inst::Bin(op, x, y), number, bits)
    }

    /// The result of arithmetic without effect.
    fn simpler(&self, op: BinOp, a: TermUse, b: TermUse) -> Option<TermUse> {
        let with = |x: TermUse, c: TermUse| {
            let constant = (c.is == Is::Same).then_some(c.number)?;
            match op {
                BinOp::Add | BinOp::Xor | BinOp::Or if constant == 0 => Some(x),
                BinOp::And if constant & ones(x.bits) == ones(x.bits) => Some(x),
                BinOp::And if constant & ones(x.bits) == 0 => Some(TermUse::same(0)),
                BinOp::Or if constant & ones(x.bits) == ones(x.bits) => Some(c),
                BinOp::Min if constant >= ones(x.bits) => Some(x),
                BinOp::Min if constant == 0 => Some(c),
                BinOp::Xor => match self.inst(x.on_packet()?) {
                    Inst::Bin(BinOp::Xor, inner, other) => {
                        (self.constant(other)? == constant).then_some(TermUse {
                            number: x.number ^ constant,
                            is: Is::Packet(inner),
                            bits: x.bits,
                        })
                    }
                    _ => None,
                },
                _ => None,
            }
        };
        match op {
            BinOp::Sub | BinOp::Shl | BinOp::Shr if b.is_same(0) => Some(a),
            BinOp::Sub | BinOp::Shl | BinOp::Shr => None,
            BinOp::Lt | BinOp::Le | BinOp::Eq | BinOp::Ne | BinOp::Mul | BinOp::Rem => None,
            _ => with(a, b).or_else(|| with(b, a)),
        }
    }

    pub fn select(&mut self, wanted: TermUse, a: TermUse, b: TermUse) -> Recorded<TermUse> {
        let taken = if wanted.number != 0 { a } else { b };
        let Some(condition) = self.steady(wanted)?.on_packet() else {
            self.decided += usize::from(wanted.is != Is::Same);
            return Ok(taken);
        };
        if a.is == b.is && a.number == b.number {
            return Ok(a);
        }
        // Whether there is a checksum at all: all packets of a flow are expected to agree.
        if matches!(self.inst(condition), Inst::Load(_)) {
            self.guard(condition, wanted.number != 0);
            return Ok(taken);
        }
        let (x, y) = (self.value(a)?, self.value(b)?);
        self.seen(Inst::Select(condition, x, y), taken.number, a.bits.max(b.bits))
    }

    /// Discards everything, but keeps the memory.
    pub fn clear(&mut self) {
        self.insts.clear();
        self.yields.clear();
        self.known.clear();
        self.facts.clear();
        self.sources.clear();
        self.guards.clear();
        self.decided = 0;
    }

    /// The template without unused instructions, and its numbers for the flow.
    pub fn finish(
        &self,
        need: u16,
        room: u16,
        effects: Vec<Inst>,
        tallies: &[Tally],
        exit: Exit,
    ) -> (Template, Vec<u64>) {
        let Code { insts, facts, guards, .. } = self;
        let mut needed = vec![false; insts.len() + 1];
        let mut todo: Vec<Value> = guards.iter().map(|(value, _)| *value).collect();
        todo.extend(effects.iter().flat_map(|effect| effect.operands()));
        todo.extend(tallies.iter().filter_map(|tally| tally.value()));
        while let Some(value) = todo.pop() {
            if value != ENTRY && !std::mem::replace(&mut needed[value.0 as usize], true) {
                todo.extend(insts[value.0 as usize - 1].operands());
            }
        }
        let mut places = vec![ENTRY; insts.len() + 1];
        let mut kept = vec![];
        let (mut params, mut numbers, mut end) = (vec![], vec![], cache_entry::PARAMS);
        let mut next_place = |bytes: u8| {
            let place = end.next_multiple_of(u16::from(bytes));
            end = place + u16::from(bytes);
            place
        };
        let tally_places: Vec<u16> = tallies.iter().map(|tally| next_place(tally.bytes())).collect();
        for (at, inst) in insts.iter().enumerate().filter(|(at, _)| needed[at + 1]) {
            let mut inst = *inst;
            if let Inst::RecLoad(ENTRY, fact, bytes) = &mut inst {
                let number = facts[usize::from(*fact)].number;
                *fact = next_place(*bytes);
                params.push((*fact, *bytes));
                numbers.push(number);
            }
            inst.map_operands(|value| *value = places[value.0 as usize]);
            kept.push(inst);
            places[at + 1] = Value(kept.len() as u32);
        }
        let place = |value: Value| places[value.0 as usize];
        let guards = guards.iter().map(|(value, is_set)| (place(*value), *is_set)).collect();
        let effects = effects.into_iter().map(|mut effect| {
            effect.map_operands(|value| *value = place(*value));
            effect
        });
        let template = Template {
            need,
            room,
            insts: kept,
            guards,
            effects: effects.collect(),
            tallies: tallies.iter().map(|tally| tally.placed(place)).zip(tally_places).collect(),
            params,
            lines: vec![],
            merges: vec![],
            exit,
        };
        (template, numbers)
    }
}

/// Bytes that can store that many bits.
fn width(bits: u8) -> u8 {
    match bits {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}

/// Bits that a result may have set. Fewer than 64 bits of a sum, a difference or a shifted number also say
/// that it did not wrap ([`super::linear`] relies on it). An interval does not say that: a result that always
/// wraps can have a small one, too.
fn bits(op: BinOp, a: TermUse, b: TermUse) -> u8 {
    let by = (b.is == Is::Same).then(|| b.number.min(64) as u8);
    match op {
        BinOp::Add => (a.bits.max(b.bits) + 1).min(64),
        BinOp::Sub => 64,
        BinOp::Mul => a.bits.saturating_add(b.bits).min(64),
        BinOp::Rem => a.bits,
        BinOp::And | BinOp::Min => a.bits.min(b.bits),
        BinOp::Or | BinOp::Xor => a.bits.max(b.bits),
        BinOp::Shl => by.map_or(64, |by| (a.bits + by).min(64)),
        BinOp::Shr => by.map_or(a.bits, |by| a.bits.saturating_sub(by)),
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le => 1,
    }
}
