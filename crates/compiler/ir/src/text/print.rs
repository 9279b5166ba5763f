//! The printer.

use crate::program::{BlockId, Inst, Matching, Program, RecordDelta, TableDecl, Term, Value};
use packet::anno::{self, Anno};
use packet::field::Field;
use std::fmt::Write;

/// A field by its name, else by its bits.
pub fn field(field: Field) -> String {
    match field.name() {
        Some(name) => name.to_string(),
        None => format!("{}[{}:{}]", field.base.name(), field.bit, field.width),
    }
}

fn anno(anno: Anno) -> String {
    match anno::TABLE.iter().find(|(_, known)| *known == anno) {
        Some((name, _)) => (*name).to_string(),
        None => format!("[{}:{}]", anno.offset, anno.len),
    }
}

fn v(value: Value) -> String {
    format!("v{}", value.0)
}

fn b(block: BlockId) -> String {
    format!("b{}", block.0)
}

fn values(list: &[Value]) -> String {
    list.iter().map(|value| v(*value)).collect::<Vec<_>>().join(" ")
}

fn number(number: u64) -> String {
    if number < 10_000 { number.to_string() } else { format!("{number:#x}") }
}

pub(super) fn inst(inst: Inst) -> String {
    match inst {
        Inst::Const(n) => format!("const {}", number(n)),
        Inst::Bin(op, a, c) => format!("{} {} {}", op.name(), v(a), v(c)),
        Inst::Select(c, a, d) => format!("select {} {} {}", v(c), v(a), v(d)),
        Inst::Load(f) => format!("load {}", field(f)),
        Inst::Store(f, x) => format!("store {} {}", field(f), v(x)),
        Inst::LoadAnno(a) => format!("load_anno {}", anno(a)),
        Inst::StoreAnno(a, x) => format!("store_anno {} {}", anno(a), v(x)),
        Inst::Len => "len".into(),
        Inst::Avail(base) => format!("avail {}", base.name()),
        Inst::Offset(base) => format!("offset {}", base.name()),
        Inst::SetBase(base, x) => format!("set_base {} {}", base.name(), v(x)),
        Inst::ClearBase(base) => format!("clear_base {}", base.name()),
        Inst::Pull(x) => format!("pull {}", v(x)),
        Inst::Push(n) => format!("push {n}"),
        Inst::Take(x) => format!("take {}", v(x)),
        Inst::CellLoad(c) => format!("cell_load {c}"),
        Inst::CellStore(c, x) => format!("cell_store {c} {}", v(x)),
        Inst::CellAdd(c, x) => format!("cell_add {c} {}", v(x)),
        Inst::RecLoad(r, offset, bytes) => format!("rec_load {} {offset} {bytes}", v(r)),
        Inst::RecStore(r, offset, bytes, x) => format!("rec_store {} {offset} {bytes} {}", v(r), v(x)),
        Inst::IpSum => "ip_sum".into(),
        Inst::TransportSum(x) => format!("transport_sum {}", v(x)),
        Inst::CsumUpdate(s, old, new, bits) => {
            format!("csum_update {} {} {} {bits}", v(s), v(old), v(new))
        }
        Inst::Now => "now".into(),
        Inst::Timestamp => "timestamp".into(),
        Inst::PacketType => "packet_type".into(),
        Inst::SetPacketType(x) => format!("set_packet_type {}", v(x)),
        Inst::FlowHash => "flow_hash".into(),
        Inst::Origin => "origin".into(),
    }
}

fn term(term: &Term) -> String {
    match term {
        Term::Jump(to, args) if args.is_empty() => format!("jump {}", b(*to)),
        Term::Jump(to, args) => format!("jump {} {}", b(*to), values(args)),
        Term::Branch(c, yes, no) => format!("branch {} {} {}", v(*c), b(*yes), b(*no)),
        Term::Need { base, bytes, then, els } => {
            format!("need {} {bytes} {} {}", base.name(), b(*then), b(*els))
        }
        Term::Room { bytes, then, els } => format!("room {bytes} {} {}", b(*then), b(*els)),
        Term::Switch(x, cases, default) => {
            let cases: String =
                cases.iter().map(|(case, to)| format!(" {}:{}", number(*case), b(*to))).collect();
            format!("switch {}{cases} else {}", v(*x), b(*default))
        }
        Term::Emit(port) => format!("emit {port}"),
        Term::EmitTo(x, els) => format!("emit_to {} {}", v(*x), b(*els)),
        Term::Drop(reason) => format!("drop {reason}"),
        Term::Slow(slow) => format!("slow {slow}"),
        Term::Lookup { table, key, args, rec, hit, miss, stage } => {
            let (name, with) = match args {
                None => ("lookup", String::new()),
                Some(args) => ("create", format!(" with {}", values(args))),
            };
            let stage = stage.map_or(String::new(), |stage| format!(" stage {stage}"));
            format!("{} = {name} {table} {}{with} -> {} {}{stage}", v(*rec), values(key), b(*hit), b(*miss))
        }
    }
}

pub(super) fn program(program: &Program) -> String {
    let mut out = format!("program {} outputs {}\n", program.name, program.outputs);
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    program.reasons.iter().for_each(|name| line(format!("reason {name}")));
    program.cells.iter().for_each(|cell| line(format!("cell {} {}", cell.name, number(cell.init))));
    for table in &program.tables {
        let matching = match table.matching {
            Matching::Unknown => "",
            Matching::Prefixes4 => " prefixes4",
        };
        let TableDecl { name, key_words, record_bytes, deltas, .. } = table;
        let delta = |RecordDelta { at, key, to }: &RecordDelta| format!(" delta {at} from {key} to {to}");
        let deltas: String = deltas.iter().map(delta).collect();
        line(format!("table {name} key {key_words} record {record_bytes}{matching}{deltas}"));
    }
    program.slow.iter().for_each(|name| line(format!("slow {name}")));
    line(format!("entries {}", program.entries.iter().map(|e| b(*e)).collect::<Vec<_>>().join(" ")));
    if !program.from_ports.is_empty() {
        let entries = program.from_ports.iter().map(u16::to_string).collect::<Vec<_>>();
        line(format!("from_ports {}", entries.join(" ")));
    }
    for (id, block) in program.blocks.iter().enumerate() {
        line(format!("b{id}{}:", block.params.iter().map(|p| format!(" {}", v(*p))).collect::<String>()));
        for (value, instruction) in &block.insts {
            let result = value.map_or(String::new(), |value| format!("{} = ", v(value)));
            line(format!("  {result}{}", inst(*instruction)));
        }
        line(format!("  {}", term(&block.term)));
    }
    out
}
