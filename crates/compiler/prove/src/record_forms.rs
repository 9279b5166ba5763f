//! The ways in which a program changes each number in records.
//!
//! A number may change in several: in a rewriter's mapping, the one that counts UDP's first packets notes TCP's
//! payload. A table knows which one a record has. Tables of tests do not, so the alternatives are tried.

use ir::analysis::lasting::{Written, written};
use ir::{Inst, Program};

/// For each alternative and each table, how numbers change: alternative `n` has the `n`-th way of each number, or
/// its last.
pub fn alternatives(program: &Program) -> Vec<Vec<Written>> {
    let mut forms: Vec<Vec<Written>> = vec![vec![]; program.tables.len()];
    for store in 0..stores(program) {
        for (forms, written) in forms.iter_mut().zip(written(&with_only(program, store))) {
            for (offset, how) in written {
                match forms.iter_mut().find(|all| all.iter().any(|(known, _)| *known == offset)) {
                    Some(all) if all.contains(&(offset, how)) => {}
                    Some(all) => all.push((offset, how)),
                    None => forms.push(vec![(offset, how)]),
                }
            }
        }
    }
    let most = forms.iter().flatten().map(Vec::len).max().unwrap_or(1);
    let alternative = |number: usize| {
        let of_table = |forms: &Vec<Written>| {
            forms.iter().filter_map(|all| all.get(number).or(all.last()).copied()).collect()
        };
        forms.iter().map(of_table).collect()
    };
    (0..most).map(alternative).collect()
}

fn is_store(inst: &Inst) -> bool {
    matches!(inst, Inst::RecStore(..))
}

/// The number of writes to records.
fn stores(program: &Program) -> usize {
    program.blocks.iter().flat_map(|block| &block.insts).filter(|(_, inst)| is_store(inst)).count()
}

/// The program with one of its writes to records.
fn with_only(program: &Program, store: usize) -> Program {
    let (mut program, mut at) = (program.clone(), 0);
    for block in &mut program.blocks {
        block.insts.retain(|(_, inst)| {
            at += usize::from(is_store(inst));
            !is_store(inst) || at == store + 1
        });
    }
    program
}
