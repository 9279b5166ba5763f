//! Whether a program makes its headroom by pulling.

use ir::analysis::extent::Extent;
use ir::analysis::order::Order;
use ir::{Inst, Program, Term};

/// Whether a program pushes bytes where the headroom is known only from earlier pulls.
pub fn relies_on_pulls(program: &Program, order: &Order) -> bool {
    let mut at: Vec<Option<Extent>> = vec![None; program.blocks.len()];
    program.entries.iter().for_each(|entry| at[entry.index()] = Some(Extent::default()));
    for id in &order.blocks {
        let mut extent = at[id.index()].unwrap_or_default();
        let block = program.block(*id);
        for (_, inst) in &block.insts {
            match *inst {
                Inst::Push(bytes) if extent.room() < u32::from(bytes) => return true,
                // As if their number were not known.
                inst => extent.pass(inst, |_| None),
            }
        }
        for (which, to) in block.term.successors().into_iter().enumerate() {
            let mut extent = extent;
            if let (Term::Room { bytes, .. }, 0) = (&block.term, which) {
                extent.free(*bytes);
            }
            match &mut at[to.index()] {
                Some(known) => known.meet(&extent),
                none => *none = Some(extent),
            }
        }
    }
    false
}
