//! The fields that a program reads behind each of its blocks.

use ir::{BlockId, Inst, Program};
use packet::field::Field;

/// The fields that are read in or behind each block, by number: a bit for each.
pub(super) struct ReadFields {
    /// The widest first.
    fields: Vec<Field>,
    behind: Vec<Vec<u64>>,
}

impl ReadFields {
    /// Of a program, whose blocks are in topological order.
    pub(super) fn of(program: &Program, order: &[BlockId]) -> ReadFields {
        let mut fields: Vec<Field> = vec![];
        for id in order {
            for (_, inst) in &program.block(*id).insts {
                if let Inst::Load(field) = inst {
                    fields.push(*field);
                }
            }
        }
        fields.sort_unstable_by_key(|field| (std::cmp::Reverse(field.width), field.base as u8, field.bit));
        fields.dedup();
        let words = fields.len().div_ceil(64);
        let mut behind = vec![vec![]; program.blocks.len()];
        for id in order.iter().rev() {
            let block = program.block(*id);
            let mut here = vec![0; words];
            for to in block.term.successors() {
                here.iter_mut().zip(&behind[to.index()]).for_each(|(all, theirs)| *all |= theirs);
            }
            for (_, inst) in &block.insts {
                if let Inst::Load(field) = inst
                    && let Some(at) = fields.iter().position(|known| known == field)
                {
                    here[at / 64] |= 1 << (at % 64);
                }
            }
            behind[id.index()] = here;
        }
        ReadFields { fields, behind }
    }

    /// Those that are read in or behind a block.
    pub(super) fn behind(&self, id: BlockId) -> Vec<Field> {
        let is_read =
            |at: usize| self.behind[id.index()].get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
        (0..self.fields.len()).filter(|at| is_read(*at)).map(|at| self.fields[at]).collect()
    }
}
