//! The walk along a packet's path.

use super::code::Code;
use super::counting::{self, Stored};
use super::fault;
use super::frame::Frame;
use super::key::Layout;
use super::model::Template;
use super::noted_cells::noted_cells;
use super::sum::Sums;
use super::tally::{self, Merging, Tally};
use super::term::{CELL, Change, Changing, Is, Recorded, Refusal, TermSource, TermUse};
use ir::analysis::interval::ones;
use ir::eval::{Buffer, EvalState, Exit, Step};
use ir::program::{BlockId, Matching};
use ir::{BinOp, Inst, Lasting, Merge, Program, Term, Verified};
use shm::descriptor::Packet;

/// The record of a packet's path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recording {
    /// The operations for packets of such flows.
    pub template: Template,
    /// This flow's numbers, for [`Template::params`].
    pub numbers: Vec<u64>,
    /// The records that were found, for [`Template::lines`].
    pub lines: Vec<u64>,
    /// The work that it saves.
    pub saved: Saved,
}

/// Work that is not repeated for later packets of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Saved {
    /// Lookups in tables.
    pub lookups: usize,
    /// Lookups among them in tables to which packets add records: state.
    pub states: usize,
    /// Lookups in prefix tables, which are fast while the tables are small.
    pub prefixes: usize,
    /// Decisions.
    pub decisions: usize,
}

/// A record that was found.
#[derive(Clone, Copy)]
struct Record {
    table: usize,
    handle: u64,
    /// Whether its table reports when it is removed.
    reports_removal: bool,
}

/// Memory that recording needs, reused from packet to packet.
#[derive(Default)]
pub struct Recorder {
    code: Code,
    sums: Sums,
    values: Vec<TermUse>,
    /// For each cell of the program, whether it only notes a time.
    noted: Vec<bool>,
    /// The tables that the last packet asked for a record of its own, with the first argument of its creation.
    asked: Vec<(u16, Option<u64>)>,
}

struct Walk<'a, 's, B: ?Sized> {
    state: &'a mut EvalState<'s>,
    code: &'a mut Code,
    sums: &'a mut Sums,
    frame: Frame<'a, B>,
    values: &'a mut [TermUse],
    noted: &'a [bool],
    asked: &'a mut Vec<(u16, Option<u64>)>,
    records: Vec<Record>,
    /// Changes of cells and records.
    effects: Vec<Inst>,
    tallies: Vec<Tally>,
    /// Numbers of records that change: the record's index, offset and bytes, and what is merged into it: the
    /// time of the last packet, or a tally.
    merges: Vec<(u32, u16, u8, Merge, Option<usize>)>,
    saved: Saved,
}

impl Recorder {
    /// A recorder for a program.
    pub fn new(program: &Verified) -> Recorder {
        let values = vec![TermUse::same(0); program.value_count()];
        Recorder { values, noted: noted_cells(program), ..Recorder::default() }
    }

    /// The tables that the last packet asked for a record of its own, as far as its path was recorded, each with the
    /// first argument of its creation.
    pub fn asked(&self) -> &[(u16, Option<u64>)] {
        &self.asked
    }

    /// Records the path of a packet that entered by an input. Nothing is changed: neither the packet, nor
    /// cells or records.
    ///
    /// # Errors
    /// If there is no template for the packet, now or ever.
    pub fn record<B: Buffer + ?Sized>(
        &mut self,
        program: &Verified,
        input: usize,
        layout: Layout,
        packet: &Packet,
        buffer: &B,
        state: &mut EvalState<'_>,
    ) -> Result<Recording, Refusal> {
        self.code.clear();
        self.sums.clear();
        self.asked.clear();
        let entry = *program.entries.get(input).ok_or(Refusal::Never("it has no such entry"))?;
        if u32::from(layout.bytes()) > packet.len() {
            return Err(Refusal::Never("it is too short"));
        }
        let mut walk = Walk {
            state,
            code: &mut self.code,
            sums: &mut self.sums,
            frame: Frame::new(packet, buffer, layout),
            values: &mut self.values,
            noted: &self.noted,
            asked: &mut self.asked,
            records: vec![],
            effects: vec![],
            tallies: vec![],
            merges: vec![],
            saved: Saved::default(),
        };
        walk.frame.fix_header_length(walk.code)?;
        let mut at = entry;
        let exit = loop {
            let block = program.block(at);
            for (value, inst) in &block.insts {
                let seen = walk.inst(*inst, packet)?;
                if let Some(value) = value {
                    walk.values[value.0 as usize] = seen;
                }
            }
            match walk.term(program, &block.term)? {
                Step::Goto(to) => at = to,
                Step::Exit(exit) => break exit,
            }
        };
        if let Exit::Slow(_) = exit {
            return Err(Refusal::Never("an element's own code decides"));
        }
        let mut effects = std::mem::take(&mut walk.effects);
        if !matches!(exit, Exit::Drop(_)) {
            walk.frame.effects(walk.code, &mut effects)?;
        }
        let Walk { code, frame, saved, records, tallies, merges, .. } = walk;
        let saved = Saved { decisions: code.decided, ..saved };
        let (mut template, mut numbers) = code.finish(frame.need, frame.room, effects, &tallies, exit);
        // A record that several elements use is one of the entry's.
        let mut lines: Vec<u64> = vec![];
        let mut line_of = vec![None; records.len()];
        for (record, line) in records.iter().zip(&mut line_of).filter(|(record, _)| record.reports_removal) {
            let known = template.lines.iter().zip(&lines);
            let this = (record.table as u16, record.handle);
            *line = known.clone().position(|(table, line)| (*table, *line) == this).or_else(|| {
                template.lines.push(this.0);
                lines.push(this.1);
                Some(lines.len() - 1)
            });
        }
        for (record, offset, bytes, how, tally) in merges {
            let line = line_of[record as usize].ok_or(Refusal::Never("a table does not report what goes"))?;
            let tally = tally.map_or(tally::LAST, |at| {
                let (tally, at) = template.tallies[at];
                (at, tally.bytes())
            });
            let merging = Merging { line: line as u16, offset, bytes, how, tally };
            if !template.merges.contains(&merging) {
                template.merges.push(merging);
            }
        }
        if template.entry_bytes() > super::cache_entry::MOST_BYTES {
            return Err(Refusal::Never("it has too many numbers"));
        }
        fault::spoil(&mut template, &mut numbers, &mut lines, program.outputs);
        Ok(Recording { template, numbers, lines, saved })
    }
}

/// The cell that an instruction writes.
fn written_cell(inst: &Inst) -> Option<u16> {
    match inst {
        Inst::CellStore(cell, _) | Inst::CellAdd(cell, _) => Some(*cell),
        _ => None,
    }
}

impl<B: Buffer + ?Sized> Walk<'_, '_, B> {
    fn get(&self, value: ir::Value) -> TermUse {
        self.values[value.0 as usize]
    }

    /// Decides a branch: by the flow, or by this packet's value, with a guard for the others.
    fn decide(&mut self, seen: TermUse) -> Recorded<bool> {
        let is_set = seen.number != 0;
        match self.code.steady(seen)?.is {
            Is::Packet(value) => self.code.guard(value, is_set),
            Is::Flow(_) => self.code.decided += 1,
            _ => {}
        }
        Ok(is_set)
    }

    fn bin(&mut self, op: BinOp, a: TermUse, b: TermUse) -> Recorded<TermUse> {
        if let Is::Record(_) = a.is {
            return Err(Refusal::Never("it computes with a record"));
        }
        if let (Is::Changing(_), _) | (_, Is::Changing(_)) = (a.is, b.is) {
            return counting::bin(self.code, op, a, b);
        }
        match op {
            BinOp::Add => self.sums.add(self.code, a, b),
            BinOp::Xor => self.sums.xor(self.code, a, b),
            BinOp::Eq => self.sums.equal(self.code, op, a, b),
            _ => self.code.bin(op, a, b),
        }
    }

    fn inst(&mut self, inst: Inst, packet: &Packet) -> Recorded<TermUse> {
        let nothing = |()| TermUse { number: 0, is: Is::Same, bits: 0 };
        let code = &mut *self.code;
        let values = &*self.values;
        let get = |value: ir::Value| values[value.0 as usize];
        Ok(match inst {
            Inst::Const(number) => TermUse::same(number),
            Inst::Bin(op, a, b) => self.bin(op, self.get(a), self.get(b))?,
            Inst::Select(c, a, b) => match counting::select(code, get(c), get(a), get(b))? {
                Some(chosen) => chosen,
                None => self.sums.select(code, get(c), get(a), get(b))?,
            },
            Inst::Load(field) => self.frame.load(code, field)?,
            Inst::Store(field, value) => self.frame.store(code, field, get(value)).map(nothing)?,
            Inst::LoadAnno(anno) => self.frame.load_anno(code, anno)?,
            Inst::StoreAnno(anno, value) => self.frame.store_anno(code, anno, get(value)).map(nothing)?,
            Inst::Len => self.frame.length(code, self.frame.data, true)?,
            Inst::Avail(base) => match self.frame.base(code, base)? {
                Some(place) => self.frame.length(code, place, false)?,
                None => TermUse::same(0),
            },
            Inst::Offset(base) => match self.frame.base(code, base)? {
                Some(place) => TermUse::same((place - self.frame.data) as u64),
                None => TermUse::same(u64::MAX),
            },
            Inst::SetBase(base, value) => {
                let by = code.pin(get(value))?;
                self.frame.set_base(base, Some(self.frame.data.wrapping_add(by as i64))).map(nothing)?
            }
            Inst::ClearBase(base) => self.frame.set_base(base, None).map(nothing)?,
            Inst::Pull(value) => {
                let bytes = code.pin(get(value))?;
                self.frame.pull(code, bytes).map(nothing)?
            }
            Inst::Push(bytes) => self.frame.push(bytes).map(nothing)?,
            Inst::Take(bytes) => self.frame.take(code, get(bytes)).map(nothing)?,
            Inst::CellLoad(cell) | Inst::CellStore(cell, _) if !self.noted[usize::from(cell)] => {
                return Err(Refusal::Never("it hangs on a number that packets change"));
            }
            Inst::CellLoad(cell) => {
                // Templates read all that they read before they write.
                if self.effects.iter().any(|effect| written_cell(effect) == Some(cell)) {
                    return Err(Refusal::Never("it reads a cell that it has written"));
                }
                let number = self.state.cells.get(usize::from(cell)).copied().unwrap_or(0);
                let is = Is::Changing(Changing { record: CELL, offset: cell, change: Change::Nothing });
                TermUse { number, is, bits: 64 }
            }
            Inst::CellStore(cell, value) => {
                let value = counting::into_cell(code, cell, get(value))?;
                self.effects.push(Inst::CellStore(cell, value));
                nothing(())
            }
            Inst::CellAdd(cell, value) => {
                let value = code.value(get(value))?;
                self.effects.push(Inst::CellAdd(cell, value));
                nothing(())
            }
            Inst::RecLoad(rec, offset, bytes) => self.rec_load(self.get(rec), offset, bytes)?,
            Inst::RecStore(rec, offset, bytes, value) => {
                self.rec_store(self.get(rec), offset, bytes, self.get(value)).map(nothing)?
            }
            Inst::IpSum => {
                let (words, halves) = self.frame.header(code)?;
                self.sums.header(code, &words, &halves)?
            }
            Inst::TransportSum(_) => return Err(Refusal::Never("it sums the whole packet")),
            Inst::CsumUpdate(sum, old, new, bits) => {
                self.sums.update(code, [sum, old, new].map(get), bits)?
            }
            Inst::Now => code.seen(inst, self.state.now_ns, 64)?,
            Inst::Timestamp => code.seen(inst, packet.timestamp_ns, 64)?,
            Inst::PacketType => self.frame.packet_type(code)?,
            Inst::SetPacketType(value) => self.frame.set_packet_type(code, get(value)).map(nothing)?,
            Inst::FlowHash => code.seen(inst, u64::from(packet.flow_hash), 32)?,
            Inst::Origin => code.seen(inst, u64::from(packet.origin), 16)?,
        })
    }

    fn record(&self, seen: TermUse) -> Recorded<(u32, Record)> {
        match seen.is {
            Is::Record(at) => Ok((at, self.records[at as usize])),
            _ => Err(Refusal::Never("it takes a number for a record")),
        }
    }

    fn read(&mut self, record: Record, offset: u16, bytes: u8) -> Recorded<(u64, Lasting)> {
        let table = self.state.tables.table(record.table).ok_or(Refusal::Never("a table is missing"))?;
        Ok((table.record_load(record.handle, offset, bytes), table.lasting(record.handle, offset)))
    }

    fn rec_load(&mut self, record: TermUse, offset: u16, bytes: u8) -> Recorded<TermUse> {
        let (at, record) = self.record(record)?;
        let (number, lasting) = self.read(record, offset, bytes)?;
        match lasting {
            Lasting::Fixed => Ok(self.code.flow(TermSource::Record(at, offset, bytes), number, bytes * 8)),
            Lasting::Merged(how) => {
                let is_counted = |(other, to, ..): &(u32, u16, u8, Merge, Option<usize>)| {
                    let other = self.records[*other as usize];
                    (other.table, other.handle) == (record.table, record.handle) && *to == offset
                };
                if let Merge::SumTo(_) = how
                    && self.merges.iter().any(is_counted)
                {
                    return Err(Refusal::Never("it counts a packet twice"));
                }
                let is = Is::Changing(Changing { record: at, offset, change: Change::Nothing });
                Ok(TermUse { number, is, bits: bytes * 8 })
            }
            Lasting::Moving => Err(Refusal::Never("it reads a number that packets change")),
        }
    }

    /// Packets of the flow do not write to records: the record already contains the value, or the entry
    /// counts what is merged into it.
    fn rec_store(&mut self, record: TermUse, offset: u16, bytes: u8, value: TermUse) -> Recorded<()> {
        let (at, record) = self.record(record)?;
        let (number, lasting) = self.read(record, offset, bytes)?;
        match lasting {
            Lasting::Moving => return Err(Refusal::Never("it writes a number that packets change")),
            Lasting::Merged(how) => {
                let tally = match counting::stored(self.code, (at, offset), bytes, how, value)? {
                    Stored::Nothing => return Ok(()),
                    Stored::Last => None,
                    Stored::Tally(tally) => {
                        let known = self.tallies.iter().position(|known| *known == tally);
                        Some(known.unwrap_or_else(|| {
                            self.tallies.push(tally);
                            self.tallies.len() - 1
                        }))
                    }
                };
                self.merges.push((at, offset, bytes, how, tally));
                return Ok(());
            }
            Lasting::Fixed => {}
        }
        let own = self.code.flow(TermSource::Record(at, offset, bytes), number, bytes * 8);
        if own.is == value.is {
            return Ok(());
        }
        let mask = ones(bytes * 8);
        if self.code.steady(value)?.number & mask != number {
            return Err(Refusal::Unsteady);
        }
        if value.on_packet().is_some() {
            let value = self.code.bin(BinOp::And, value, TermUse::same(mask))?;
            if value.on_packet().is_some() {
                let is = self.code.bin(BinOp::Eq, value, TermUse::same(number))?;
                self.decide(is)?;
            }
        }
        Ok(())
    }

    fn term(&mut self, program: &Program, term: &Term) -> Recorded<Step> {
        Ok(match term {
            Term::Jump(to, args) => {
                let args: Vec<TermUse> = args.iter().map(|arg| self.get(*arg)).collect();
                for (param, arg) in program.block(*to).params.iter().zip(args) {
                    self.values[param.0 as usize] = arg;
                }
                Step::Goto(*to)
            }
            Term::Branch(value, yes, no) => {
                let is_set = self.decide(self.get(*value))?;
                Step::Goto(if is_set { *yes } else { *no })
            }
            Term::Need { base, bytes, then, els } => match self.frame.base(self.code, *base)? {
                None => Step::Goto(*els),
                Some(place) if self.frame.is_there(self.code, place + i64::from(*bytes))? => {
                    Step::Goto(*then)
                }
                Some(_) => return Err(Refusal::Never("it is too short")),
            },
            Term::Room { bytes, then, .. } => match self.frame.has_room(*bytes)? {
                true => Step::Goto(*then),
                false => return Err(Refusal::Never("there is no headroom")),
            },
            Term::Switch(value, cases, default) => {
                let seen = self.code.steady(self.get(*value))?;
                let case = cases.iter().find(|(case, _)| *case == seen.number);
                if let Is::Flow(_) = seen.is {
                    self.code.decided += 1;
                }
                match case {
                    Some(_) => {
                        self.code.pin(seen)?;
                    }
                    None if seen.on_packet().is_some() => {
                        for (case, _) in cases {
                            let other = self.code.bin(BinOp::Ne, seen, TermUse::same(*case))?;
                            self.decide(other)?;
                        }
                    }
                    None => {}
                }
                Step::Goto(case.map_or(*default, |(_, block)| *block))
            }
            Term::Emit(port) => Step::Exit(Exit::Emit(*port)),
            Term::EmitTo(value, els) => {
                let port = self.code.pin(self.get(*value))?;
                match u16::try_from(port) {
                    Ok(port) if port < program.outputs => Step::Exit(Exit::Emit(port)),
                    _ => Step::Goto(*els),
                }
            }
            Term::Drop(reason) => Step::Exit(Exit::Drop(*reason)),
            Term::Slow(slow) => Step::Exit(Exit::Slow(*slow)),
            Term::Lookup { table, key, args, rec, hit, miss, .. } => {
                // An existing record is found by a creation as by a lookup.
                let miss = args.is_none().then_some(*miss);
                if let Some(args) = args {
                    self.asked.push((*table, args.first().map(|first| self.get(*first).number)));
                }
                self.look_up(program, *table, key, (*rec, *hit), miss)?
            }
        })
    }

    fn look_up(
        &mut self,
        program: &Program,
        number: u16,
        key: &[ir::Value],
        (rec, hit): (ir::Value, BlockId),
        miss: Option<BlockId>,
    ) -> Recorded<Step> {
        let mut words = Vec::with_capacity(key.len());
        for word in key {
            words.push(self.code.pin_to_flow(self.get(*word))?.number);
        }
        let index = usize::from(number);
        let table = self.state.tables.table(index).ok_or(Refusal::Never("a table is missing"))?;
        let validity = table.cache_validity().ok_or(Refusal::Never("a table promises nothing"))?;
        match program.tables.get(index).map(|decl| decl.matching) {
            Some(Matching::Prefixes4) => self.saved.prefixes += 1,
            _ => self.saved.lookups += 1,
        }
        self.saved.states += usize::from(miss.is_none());
        match (table.lookup(&words), miss) {
            (Some(handle), _) => {
                let at = self.records.len() as u32;
                self.records.push(Record { table: index, handle, reports_removal: validity.gone.is_some() });
                self.values[rec.0 as usize] = TermUse { number: handle, is: Is::Record(at), bits: 64 };
                Ok(Step::Goto(hit))
            }
            (None, Some(miss)) if validity.misses => Ok(Step::Goto(miss)),
            _ => Err(Refusal::New),
        }
    }
}
