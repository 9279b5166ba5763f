//! The addresses of the tables that machine code walks itself.

use super::memory::load_pointer;
use crate::abi::Context;
use crate::lookup_region::LookupRegion;
use cranelift_codegen::ir::{self as clif, InstBuilder};
use cranelift_frontend::FunctionBuilder;
use ir::program::{Matching, Program, TableDecl, Term};
use ir::table::PrefixWalk;
use std::mem::offset_of;

/// The addresses of a table, read before the loop over the batch.
#[derive(Clone, Copy)]
pub(super) struct TablePlace {
    pub root: clif::Value,
    pub entries: clif::Value,
    /// The address of a record of code 0 before the first record: codes count from 1.
    pub records: clif::Value,
}

impl TablePlace {
    /// Reads those of all prefix tables that a region looks up, by the numbers of the program's tables.
    pub fn read(
        f: &mut FunctionBuilder<'_>,
        program: &Program,
        region: &LookupRegion,
        context: clif::Value,
    ) -> Vec<Option<TablePlace>> {
        let looks = |number: usize| {
            region.blocks.iter().any(|block| match program.block(*block).term {
                Term::Lookup { table, args: None, .. } => usize::from(table) == number,
                _ => false,
            })
        };
        let tables = program.tables.iter().enumerate();
        let read = tables.map(|(number, decl)| {
            if decl.matching != Matching::Prefixes4 || !looks(number) {
                return None;
            }
            let walks = load_pointer(f, context, offset_of!(Context, walks));
            let mut field = |at| load_pointer(f, walks, number * size_of::<PrefixWalk>() + at);
            let root = field(offset_of!(PrefixWalk, root));
            let entries = field(offset_of!(PrefixWalk, entries));
            let records = field(offset_of!(PrefixWalk, records));
            let records = f.ins().iadd_imm_s(records, -record_bytes(decl));
            Some(TablePlace { root, entries, records })
        });
        read.collect()
    }
}

/// Bytes from one record to the next.
pub(super) fn record_bytes(decl: &TableDecl) -> i64 {
    i64::from(decl.record_bytes.next_multiple_of(8))
}
