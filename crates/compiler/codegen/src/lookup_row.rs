//! Rows of lookups that are one lookup: of tables of prefixes, by one key, behind one another.
//!
//! Prefixes are laminar: of two, one contains the other, or they have nothing in common. So tables that are
//! asked by one key are one table of the *union* of their prefixes, whose record is those of all tables. If the
//! program only goes on where each record has certain numbers, a prefix of the union leads to the records of
//! all tables, or nowhere. [`merge`] finds such rows in a program and makes each a lookup in a table of its own:
//!
//! ```text
//! b1: lookup 0 key -> b2 other          b1: lookup 2 key -> b2 other
//! b2: branch (record[4:4] == 7) b3 other
//! b3: lookup 1 key -> b4 other    =>
//! b4: branch (record[0:4] == 1) b5 other
//! b5: ...                               b2: ...
//! ```
//!
//! Who runs the program has to provide tables that answer like this ([`ir::Tables::union`]), and another
//! program while there are none. That a union answers as the single tables do is not proven, but tested.

use ir::analysis::order::edges_in;
use ir::program::{Block, BlockId, Inst, Matching, Program, TableDecl, Term, Value};
use ir::{BinOp, Verified};
use std::collections::{BTreeMap, BTreeSet};

/// A number that a record must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordTest {
    /// Its offset in the record, in bytes.
    pub offset: u16,
    /// Its bytes: 1, 2, 4 or 8.
    pub bytes: u8,
    /// The number.
    pub number: u64,
}

/// A table of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowPart {
    /// The table, by its number in the program.
    pub table: u16,
    /// Bytes of its record.
    pub record_bytes: u16,
    /// Where its record is in that of the union, in bytes.
    pub offset: u16,
    /// What packets of the row have.
    pub tests: Vec<RecordTest>,
}

/// A row of lookups by one key, which leads on where all tables have a record and all tests hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LookupRow {
    /// The tables, in the order in which they are asked.
    pub parts: Vec<RowPart>,
}

impl LookupRow {
    /// Bytes of the union's record.
    pub fn record_bytes(&self) -> u16 {
        self.parts.last().map_or(0, |part| part.offset + part.record_bytes.next_multiple_of(8))
    }
}

/// Fewer lookups are no row.
const LEAST_PARTS: usize = 2;

/// A row in a program.
struct Found {
    row: LookupRow,
    head: BlockId,
    /// The record of each part.
    records: Vec<Value>,
    /// The blocks between the first lookup and what follows the row.
    inner: Vec<BlockId>,
    then: BlockId,
}

/// The program with each row as a lookup in the table of a union, whose numbers follow those of its tables;
/// `None` where it has no row.
pub fn merge(program: &Verified) -> Option<(Verified, Vec<LookupRow>)> {
    let mut now: Program = Program::clone(program);
    let order = now.topological_order();
    let preds = edges_in(&now, &order);
    let written = written_tables(&now);
    let (mut rows, mut taken) = (vec![], BTreeSet::new());
    for head in order {
        if taken.contains(&head) {
            continue;
        }
        let Some(found) = find(&now, &preds, &written, head) else { continue };
        taken.extend(found.inner.iter().copied());
        let table = u16::try_from(now.tables.len()).ok()?;
        apply(&mut now, &found, table);
        rows.push(found.row);
    }
    if rows.is_empty() {
        return None;
    }
    let order = now.topological_order();
    now.keep(&order);
    // A row whose records are used where the union's is not defined stays as it is.
    Some((Verified::new(now).ok()?, rows))
}

/// The tables whose records the program writes: the union's would not be written.
fn written_tables(program: &Program) -> BTreeSet<u16> {
    let tables: BTreeMap<Value, u16> = program
        .blocks
        .iter()
        .filter_map(|block| match block.term {
            Term::Lookup { table, rec, .. } => Some((rec, table)),
            _ => None,
        })
        .collect();
    let insts = program.blocks.iter().flat_map(|block| &block.insts);
    let stores = insts.filter_map(|(_, inst)| match inst {
        Inst::RecStore(record, ..) => tables.get(record).copied(),
        _ => None,
    });
    stores.collect()
}

fn find(program: &Program, preds: &[u32], written: &BTreeSet<u16>, head: BlockId) -> Option<Found> {
    let Term::Lookup { key: row_key, miss: other, .. } = &program.block(head).term else { return None };
    let mut found =
        Found { row: LookupRow { parts: vec![] }, head, records: vec![], inner: vec![], then: head };
    // The tests of numbers of records, by the values of the row's blocks.
    let mut values: BTreeMap<Value, Inst> = BTreeMap::new();
    loop {
        let at = found.then;
        let Block { params, insts, term } = program.block(at);
        if at != head {
            let is_pure = |inst: &Inst| matches!(inst, Inst::Const(_) | Inst::Bin(..) | Inst::RecLoad(..));
            if preds[at.index()] != 1 || !params.is_empty() || !insts.iter().all(|(_, inst)| is_pure(inst)) {
                break;
            }
            values.extend(insts.iter().filter_map(|(value, inst)| Some(((*value)?, *inst))));
        }
        match term {
            Term::Lookup { table, key, args: None, rec, hit, miss, .. }
                if key == row_key && miss == other =>
            {
                let decl = program.tables.get(usize::from(*table))?;
                let is_new = found.row.parts.iter().all(|part| part.table != *table);
                if decl.matching != Matching::Prefixes4 || written.contains(table) || !is_new {
                    break;
                }
                let Some(offset) = room(&found.row, decl) else { break };
                let record_bytes = decl.record_bytes;
                found.row.parts.push(RowPart { table: *table, record_bytes, offset, tests: vec![] });
                found.records.push(*rec);
                found.then = *hit;
            }
            Term::Branch(test, yes, no) if no == other => {
                let Some((part, test)) = record_test(program, &values, &found.records, *test) else { break };
                found.row.parts[part].tests.push(test);
                found.then = *yes;
            }
            _ => break,
        }
        if at != head {
            found.inner.push(at);
        }
    }
    // What follows the row gets the instructions of its blocks.
    let is_alone = preds[found.then.index()] == 1 && program.block(found.then).params.is_empty();
    (found.row.parts.len() >= LEAST_PARTS && is_alone).then_some(found)
}

/// Where another table's record is in the union's; `None` where it would be too large.
fn room(row: &LookupRow, decl: &TableDecl) -> Option<u16> {
    let offset = row.record_bytes();
    offset.checked_add(decl.record_bytes.checked_next_multiple_of(8)?)?;
    Some(offset)
}

/// The record, by its place in the row, and what a test requires of it.
fn record_test(
    program: &Program,
    values: &BTreeMap<Value, Inst>,
    records: &[Value],
    test: Value,
) -> Option<(usize, RecordTest)> {
    let constant = |value: Value| match values.get(&value) {
        Some(Inst::Const(number)) => Some(*number),
        Some(_) => None,
        None => program.blocks.iter().flat_map(|block| &block.insts).find_map(|(other, inst)| match inst {
            Inst::Const(number) if *other == Some(value) => Some(*number),
            _ => None,
        }),
    };
    let Some(Inst::Bin(BinOp::Eq, a, b)) = values.get(&test) else { return None };
    let (load, number) = match (constant(*a), constant(*b)) {
        (None, Some(number)) => (a, number),
        (Some(number), None) => (b, number),
        _ => return None,
    };
    let Some(Inst::RecLoad(record, offset, bytes)) = values.get(load) else { return None };
    let part = records.iter().position(|known| known == record)?;
    Some((part, RecordTest { offset: *offset, bytes: *bytes, number }))
}

/// Makes a row a lookup in the table of that number.
fn apply(program: &mut Program, found: &Found, table: u16) {
    let names: Vec<&str> =
        (found.row.parts.iter()).map(|part| program.tables[usize::from(part.table)].name.as_str()).collect();
    let decl = TableDecl {
        name: names.join("+"),
        key_words: 1,
        record_bytes: found.row.record_bytes(),
        matching: Matching::Prefixes4,
        deltas: vec![],
    };
    program.tables.push(decl);
    let union = Value(program.value_count() as u32);
    let mut insts: Vec<(Option<Value>, Inst)> = vec![];
    for id in &found.inner {
        insts.append(&mut program.blocks[id.index()].insts);
    }
    program.blocks[found.then.index()].insts.splice(0..0, insts);
    if let Term::Lookup { table: to, rec, hit, stage, .. } = &mut program.blocks[found.head.index()].term {
        // No stage: it is done where it is.
        (*to, *rec, *hit, *stage) = (table, union, found.then, None);
    }
    // The inner blocks' ends define records, which now are parts of the union's.
    for id in &found.inner {
        program.blocks[id.index()].term = Term::Jump(found.then, vec![]);
    }
    let loads = program.blocks.iter_mut().flat_map(|block| &mut block.insts);
    for (_, inst) in loads {
        if let Inst::RecLoad(record, offset, _) = inst
            && let Some(part) = found.records.iter().position(|known| known == record)
        {
            (*record, *offset) = (union, *offset + found.row.parts[part].offset);
        }
    }
}
