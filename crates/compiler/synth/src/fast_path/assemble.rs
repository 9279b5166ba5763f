//! Puts a walked path in front of the block where it begins.

use super::packet_state::HeaderPosition;
use super::walk::{Definition, Guard, Walk};
use crate::copy::{InPlaceOf, copy_from, used_from};
use ir::{BinOp, Block, BlockId, Inst, Program, Term, Value};
use packet::field::Base;
use std::collections::HashMap;

/// The blocks of the fast path under construction.
struct Writer<'a, 'p> {
    program: &'p mut Program,
    walk: Walk<'a>,
    /// The block where packets go on that fail a test.
    start: BlockId,
    /// How much larger the values' numbers are than those of the walk.
    shift: u32,
    here: BlockId,
    is_placed: Vec<bool>,
    /// The last of the lookups that a value hangs on, where that was found.
    last_lookups: HashMap<Value, Option<usize>>,
}

/// Where a fast path ends.
pub(super) enum Ends {
    /// At the port of the walk.
    AtPort,
    /// Before a block. It goes on in a copy of that block and of what follows, where no other path joins it.
    Before(BlockId),
}

/// Leads all that comes to `start` through the fast path first, which begins at the block that is returned. `None`
/// where the path writes what has no place in the packet.
pub(super) fn prepend(program: &mut Program, start: BlockId, walk: Walk<'_>, ends: Ends) -> Option<BlockId> {
    let shift = program.value_count() as u32 - walk.first;
    let head = BlockId(program.blocks.len() as u32);
    let lead = |to: BlockId| if to == start { head } else { to };
    program.blocks.iter_mut().for_each(|block| block.term.map_successors(lead));
    program.entries.iter_mut().for_each(|entry| *entry = lead(*entry));
    program.blocks.push(Block { params: vec![], insts: vec![], term: Term::Jump(start, vec![]) });
    let is_placed = vec![false; walk.values.len()];
    let last_lookups = HashMap::new();
    Writer { program, walk, start, shift, here: head, is_placed, last_lookups }.write(ends)?;
    Some(head)
}

impl Writer<'_, '_> {
    /// The program's number of a value of the walk.
    fn named(&self, value: Value) -> Value {
        if value.0 < self.walk.first { value } else { Value(value.0 + self.shift) }
    }

    fn push(&mut self, value: Option<Value>, mut inst: Inst) {
        inst.map_operands(|operand| *operand = self.named(*operand));
        let value = value.map(|value| self.named(value));
        self.program.blocks[self.here.index()].insts.push((value, inst));
    }

    /// Computes a value, and what it needs, unless that was done.
    fn place(&mut self, value: Value) {
        let Some(Definition::Inst(inst)) = self.walk.definition(value) else { return };
        if std::mem::replace(&mut self.is_placed[(value.0 - self.walk.first) as usize], true) {
            return;
        }
        inst.operands().into_iter().for_each(|operand| self.place(operand));
        self.push(Some(value), inst);
    }

    /// A value that is computed here.
    fn placed(&mut self, inst: Inst) -> Value {
        let value = self.walk.emit(inst);
        self.is_placed.resize(self.walk.values.len(), false);
        self.place(value);
        value
    }

    /// Ends the block; `term` gets the next one, and the block where other packets go on.
    fn end(&mut self, term: impl FnOnce(BlockId, BlockId) -> Term) {
        let next = BlockId(self.program.blocks.len() as u32);
        self.program.blocks.push(Block {
            params: vec![],
            insts: vec![],
            term: Term::Jump(self.start, vec![]),
        });
        self.program.blocks[self.here.index()].term = term(next, self.start);
        self.here = next;
    }

    /// The last of the lookups whose record a value hangs on.
    fn last_lookup(&mut self, value: Value) -> Option<usize> {
        if let Some(known) = self.last_lookups.get(&value) {
            return *known;
        }
        let last = match self.walk.definition(value)? {
            Definition::Record(lookup) => Some(lookup),
            Definition::Inst(inst) => {
                inst.operands().into_iter().filter_map(|operand| self.last_lookup(operand)).max()
            }
        };
        self.last_lookups.insert(value, last);
        last
    }

    fn guard(&mut self, guard: Guard) {
        match guard {
            Guard::Room(bytes) => self.end(|then, els| Term::Room { bytes, then, els }),
            Guard::Test(value, is_set) => {
                self.place(value);
                let value = self.named(value);
                self.end(|next, els| match is_set {
                    true => Term::Branch(value, next, els),
                    false => Term::Branch(value, els, next),
                });
            }
            Guard::NoneOf(value, numbers) => {
                self.place(value);
                let value = self.named(value);
                self.end(|next, els| {
                    Term::Switch(value, numbers.into_iter().map(|number| (number, els)).collect(), next)
                });
            }
        }
    }

    fn write(mut self, ends: Ends) -> Option<()> {
        // Pulled bytes must be known to be there.
        let need = self.walk.need.max(u16::try_from(self.walk.packet.data.max(0)).ok()?);
        if need > 0 {
            self.end(|then, els| Term::Need { base: Base::Data, bytes: need, then, els });
        }
        let guards = std::mem::take(&mut self.walk.guards);
        // Tests of the packet alone, then each lookup with the tests of its record: so no table is asked that
        // would not be asked without a fast path.
        let mut of_packet = vec![];
        let mut of_record: Vec<Vec<Guard>> = vec![vec![]; self.walk.lookups.len()];
        for guard in guards {
            let last = match &guard {
                Guard::Room(_) => None,
                Guard::Test(value, _) | Guard::NoneOf(value, _) => self.last_lookup(*value),
            };
            match last {
                None => of_packet.push(guard),
                Some(lookup) => of_record[lookup].push(guard),
            }
        }
        of_packet.into_iter().for_each(|guard| self.guard(guard));
        // The keys of all lookups, in front of the first: what is between two lookups of a row is its tests.
        let lookups = self.walk.lookups.clone();
        lookups.iter().for_each(|lookup| self.place(lookup.key));
        for (lookup, guards) in lookups.into_iter().zip(of_record) {
            let (key, rec) = (vec![self.named(lookup.key)], self.named(lookup.record));
            let table = lookup.table;
            self.end(|hit, miss| Term::Lookup { table, key, args: None, rec, hit, miss, stage: None });
            guards.into_iter().for_each(|guard| self.guard(guard));
        }
        match ends {
            Ends::AtPort => {
                self.effects()?;
                self.program.blocks[self.here.index()].term = Term::Emit(self.walk.port);
            }
            Ends::Before(next) => {
                let used = used_from(self.program, next);
                let mut known: Vec<(Value, Value)> =
                    used.into_iter().filter_map(|value| Some((value, self.walk.copy_of(value)?))).collect();
                // The order of a set is not always the same.
                known.sort_unstable();
                known.iter().for_each(|(_, copy)| self.place(*copy));
                self.effects()?;
                let known: InPlaceOf =
                    known.into_iter().map(|(value, copy)| (value, self.named(copy))).collect();
                let then = copy_from(self.program, next, known, true);
                self.program.blocks[self.here.index()].term = Term::Jump(then, vec![]);
            }
        }
        Some(())
    }

    /// The packet's final state.
    fn effects(&mut self) -> Option<()> {
        let packet = self.walk.packet.clone();
        let cells = self.walk.cells.clone();
        // All is read before anything is written.
        let written = packet.written.iter().map(|written| written.value);
        let annos = packet.annos.iter().map(|(_, value)| *value);
        let headers = packet.headers.iter().filter_map(|header| match header {
            HeaderPosition::Behind(value, _) => Some(*value),
            _ => None,
        });
        let read: Vec<Value> = (written.chain(annos).chain(headers).chain(packet.packet_type))
            .chain(packet.cut.map(|(value, _)| value))
            .chain(cells.iter().flat_map(|inst| inst.operands()))
            .collect();
        read.into_iter().for_each(|value| self.place(value));
        cells.into_iter().for_each(|inst| self.push(None, inst));
        if let Some((value, from)) = packet.cut {
            let most = self.plus(value, from);
            self.push(None, Inst::Take(most));
        }
        // Bytes are written while they are in the packet: it may have been longer in between.
        let data = packet.data;
        let written = packet.written.iter().map(|written| written.bit.div_euclid(8));
        let set = packet.headers.iter().filter_map(|header| match header {
            HeaderPosition::At(at) => Some(*at),
            _ => None,
        });
        let front = written.chain(set).fold(data.min(0), i64::min);
        if front < 0 {
            self.push(None, Inst::Push(u16::try_from(-front).ok()?));
        }
        for written in &packet.written {
            let field = written.field_behind(front)?;
            self.push(None, Inst::Store(field, written.value));
        }
        // So are headers set: in front of a header that is stripped, nothing is known to be there.
        for base in [Base::Mac, Base::Net, Base::Trans] {
            match packet.headers[base as usize] {
                HeaderPosition::AsBefore(_) => {}
                HeaderPosition::Unset => self.push(None, Inst::ClearBase(base)),
                HeaderPosition::At(at) => {
                    let by = self.placed(Inst::Const((at - front) as u64));
                    self.push(None, Inst::SetBase(base, by));
                }
                HeaderPosition::Behind(value, from) => {
                    let by = self.plus(value, from - front);
                    self.push(None, Inst::SetBase(base, by));
                }
            }
        }
        if data > front {
            let by = self.placed(Inst::Const((data - front) as u64));
            self.push(None, Inst::Pull(by));
        }
        packet.annos.iter().for_each(|(anno, value)| self.push(None, Inst::StoreAnno(*anno, *value)));
        packet.packet_type.into_iter().for_each(|value| self.push(None, Inst::SetPacketType(value)));
        Some(())
    }

    fn plus(&mut self, value: Value, by: i64) -> Value {
        if by == 0 {
            return value;
        }
        let by = self.placed(Inst::Const(by as u64));
        self.placed(Inst::Bin(BinOp::Add, value, by))
    }
}
