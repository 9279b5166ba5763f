//! Whether a program makes its headroom by pulling.

use ir::analysis::extent::at_blocks;
use ir::analysis::order::Order;
use ir::{Inst, Program};

/// Whether a program pushes bytes where the headroom is known only from earlier pulls.
pub fn relies_on_pulls(program: &Program, order: &Order) -> bool {
    // As if no number were known.
    let extents = at_blocks(program, &order.blocks, |_| None);
    order.blocks.iter().any(|id| {
        let mut extent = extents[id.index()];
        program.block(*id).insts.iter().any(|(_, inst)| {
            let lacks = matches!(inst, Inst::Push(bytes) if extent.room() < u32::from(*bytes));
            extent.pass(*inst, |_| None);
            lacks
        })
    })
}
