//! The values that each block needs from the blocks before it.

use crate::program::{BlockId, Program, Value};
use std::collections::BTreeSet;

/// For each block of an order, in which each precedes its successors: the values that it, or a block after
/// it, reads and that are defined before it.
pub fn live_in(program: &Program, order: &[BlockId]) -> Vec<BTreeSet<Value>> {
    let mut live = vec![BTreeSet::new(); program.blocks.len()];
    for id in order.iter().rev() {
        let block = program.block(*id);
        let after = block.term.successors().into_iter().flat_map(|to| &live[to.index()]);
        let mut needed: BTreeSet<Value> = after.copied().collect();
        if let Some(record) = block.term.defines() {
            needed.remove(&record);
        }
        needed.extend(block.term.operands());
        for (value, inst) in block.insts.iter().rev() {
            if let Some(value) = value {
                needed.remove(value);
            }
            needed.extend(inst.operands());
        }
        for param in &block.params {
            needed.remove(param);
        }
        live[id.index()] = needed;
    }
    live
}
