//! The program of a table of flow-cache entries.

use super::cache_entry;
use super::key::{KEY_WORDS, Layout};
use super::model::Template;
use ir::eval::Exit;
use ir::program::{Block, BlockId, Matching, Program, TableDecl, Term, Value};
use ir::verify::VerifyError;
use ir::{BinOp, Inst, Verified};
use packet::field::Base;

/// How long entries are valid, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leases {
    /// Until a packet has to renew the entry.
    pub renew_ns: u64,
    /// Until the entry expires.
    pub end_ns: u64,
}

impl Leases {
    /// Half of the time that tables guarantee, and all of it.
    pub fn new(ns: u64) -> Leases {
        // Small enough that no sum overflows.
        let ns = ns.min(1 << 61);
        Leases { renew_ns: ns / 2, end_ns: ns }
    }
}

struct Writer<'a> {
    program: Program,
    values: u32,
    leases: Leases,
    layouts: &'a [Option<Layout>],
}

/// A program that looks up the entry of a packet's flow and runs its template. Packets without an entry, or whose
/// guards fail, leave unchanged by the slow path after those of `whole`: they run through that program. `layouts` has
/// one layout for each entry point, `None` if all its packets are to run through the whole program. Templates are
/// identified by their index in the list, and belong to an entry point.
///
/// # Errors
/// When it breaks the IR's invariants: a bug.
pub fn program(
    whole: &Verified,
    layouts: &[Option<Layout>],
    templates: &[(usize, Template)],
    entry_bytes: usize,
    leases: Leases,
) -> Result<Verified, VerifyError> {
    let entries = TableDecl {
        name: "flows".into(),
        key_words: KEY_WORDS as u8,
        record_bytes: entry_bytes as u16,
        matching: Matching::Unknown,
    };
    let mut slow = whole.slow.clone();
    slow.push("whole program".into());
    let program = Program {
        name: "templates".into(),
        outputs: whole.outputs,
        entries: vec![],
        reasons: whole.reasons.clone(),
        cells: whole.cells.clone(),
        tables: vec![entries],
        slow,
        blocks: vec![],
    };
    let mut writer = Writer { program, values: 0, leases, layouts };
    for input in 0..whole.entries.len() {
        let of_input = |(number, (at, template)): (usize, &'_ (usize, Template))| {
            (*at == input).then(|| (number, template.clone()))
        };
        let own: Vec<(usize, Template)> = templates.iter().enumerate().filter_map(of_input).collect();
        let entry = writer.input(input, &own);
        writer.program.entries.push(entry);
    }
    Verified::new(writer.program)
}

impl Writer<'_> {
    fn block(&mut self) -> BlockId {
        let id = BlockId(self.program.blocks.len() as u32);
        let term = Term::Slow(self.program.slow.len() as u16 - 1);
        self.program.blocks.push(Block { params: vec![], insts: vec![], term });
        id
    }

    fn end(&mut self, block: BlockId, term: Term) {
        self.program.blocks[block.index()].term = term;
    }

    fn fresh(&mut self) -> Value {
        self.values += 1;
        Value(self.values - 1)
    }

    fn value(&mut self, block: BlockId, inst: Inst) -> Value {
        let value = self.fresh();
        self.program.blocks[block.index()].insts.push((Some(value), inst));
        value
    }

    fn act(&mut self, block: BlockId, inst: Inst) {
        self.program.blocks[block.index()].insts.push((None, inst));
    }

    fn bin(&mut self, block: BlockId, op: BinOp, a: Value, number: u64) -> Value {
        let number = self.value(block, Inst::Const(number));
        self.value(block, Inst::Bin(op, a, number))
    }

    fn input(&mut self, input: usize, templates: &[(usize, Template)]) -> BlockId {
        let start = self.block();
        let layout = self.layouts.get(input).copied().flatten();
        let (Some(layout), false) = (layout, templates.is_empty()) else { return start };
        let (long, short, hit, miss) = (self.block(), self.block(), self.block(), self.block());
        self.end(start, Term::Need { base: Base::Data, bytes: layout.bytes(), then: long, els: short });
        let [pair, ports, protocol] = layout.fields().map(|field| self.value(long, Inst::Load(field)));
        let ports = self.bin(long, BinOp::Shl, ports, 16);
        let rest = self.value(long, Inst::Bin(BinOp::Or, ports, protocol));
        let rest = self.bin(long, BinOp::Or, rest, (input as u64 & 0xff) << 8);
        let rec = self.fresh();
        self.end(long, Term::Lookup { table: 0, key: vec![pair, rest], args: None, rec, hit, miss });
        let number = self.value(hit, Inst::RecLoad(rec, cache_entry::TEMPLATE, 2));
        let cases = templates.iter().map(|(number, template)| (*number as u64, self.template(rec, template)));
        let cases: Vec<(u64, BlockId)> = cases.collect();
        let none = self.block();
        self.end(hit, Term::Switch(number, cases, none));
        start
    }

    /// Invalidates an entry; the packet runs through the whole program.
    fn not_so(&mut self, rec: Value) -> BlockId {
        let block = self.block();
        let never = self.value(block, Inst::Const(0));
        self.act(block, Inst::RecStore(rec, cache_entry::RENEW_NS, 8, never));
        self.act(block, Inst::RecStore(rec, cache_entry::END_NS, 8, never));
        block
    }

    fn template(&mut self, rec: Value, template: &Template) -> BlockId {
        let Template { need, room, insts, guards, effects, exit, .. } = template;
        let start = self.block();
        let els = self.not_so(rec);
        let mut here = start;
        let then = self.block();
        self.end(here, Term::Need { base: Base::Data, bytes: *need, then, els });
        here = then;
        if *room > 0 {
            let then = self.block();
            self.end(here, Term::Room { bytes: *room, then, els });
            here = then;
        }
        let mut places = vec![rec];
        for inst in insts {
            let mut inst = *inst;
            inst.map_operands(|value| *value = places[value.0 as usize]);
            let value = self.value(here, inst);
            places.push(value);
        }
        for (value, is_set) in guards {
            let then = self.block();
            let value = places[value.0 as usize];
            let (yes, no) = if *is_set { (then, els) } else { (els, then) };
            self.end(here, Term::Branch(value, yes, no));
            here = then;
        }
        let (act, late) = (self.block(), self.late(rec));
        let now = self.value(here, Inst::Now);
        let renew = self.value(here, Inst::RecLoad(rec, cache_entry::RENEW_NS, 8));
        let is_early = self.value(here, Inst::Bin(BinOp::Lt, now, renew));
        self.end(here, Term::Branch(is_early, act, late));
        for effect in effects {
            let mut effect = *effect;
            effect.map_operands(|value| *value = places[value.0 as usize]);
            self.act(act, effect);
        }
        let exit = match *exit {
            Exit::Emit(port) => Term::Emit(port),
            Exit::Drop(reason) => Term::Drop(reason),
            Exit::Slow(slow) => Term::Slow(slow),
        };
        self.end(act, exit);
        start
    }

    /// A packet that renews the entry, unless that has expired. All guards hold, so that the whole program has the same
    /// result for it as the template, and updates the time in every record.
    fn late(&mut self, rec: Value) -> BlockId {
        let (block, renew, over) = (self.block(), self.block(), self.block());
        let now = self.value(block, Inst::Now);
        let end = self.value(block, Inst::RecLoad(rec, cache_entry::END_NS, 8));
        let is_good = self.value(block, Inst::Bin(BinOp::Lt, now, end));
        self.end(block, Term::Branch(is_good, renew, over));
        let Leases { renew_ns, end_ns } = self.leases;
        let now = self.value(renew, Inst::Now);
        let next = self.bin(renew, BinOp::Add, now, renew_ns);
        self.act(renew, Inst::RecStore(rec, cache_entry::RENEW_NS, 8, next));
        let end = self.bin(renew, BinOp::Add, now, end_ns);
        self.act(renew, Inst::RecStore(rec, cache_entry::END_NS, 8, end));
        block
    }
}
