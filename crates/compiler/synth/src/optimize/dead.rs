//! Writes that are never read, and values that are never used.
//!
//! A write is dead if on every path the same bits are written again before any read. After a drop the
//! packet is not read; at any other exit the receiver may read all of it. Cells and records outlive the
//! packet. At a stage boundary the packet keeps its content, but other packets may read cells and
//! records.
//!
//! A write that is dead on some paths only is moved to the start of the other paths (`sink`, `delay`).

use super::forward::Rewritten;
use super::optimization_note::OptimizationNote;
use super::retain::retain;
use super::unread::{Unread, at_end};
use super::within;
use super::{delay, sink};
use ir::{Block, Program, Term};
use packet::field::Base;

/// Removes dead writes, and moves those that are dead on some paths.
pub fn remove(rewritten: &mut Rewritten) {
    let Rewritten { program, notes, bases } = rewritten;
    let order = program.topological_order();
    let mut starts: Vec<Option<Unread>> = vec![None; program.blocks.len()];
    for &id in order.iter().rev() {
        let block = &mut program.blocks[id.index()];
        let mut unread = at_end(&block.term, &starts);
        let mut keep = vec![true; block.insts.len()];
        for (at, note) in notes[id.index()].iter().enumerate().rev() {
            if let Some(touch) = note.writes {
                if unread.holds(&touch) {
                    keep[at] = false;
                    continue;
                }
                unread.write(touch);
            }
            if let Some(base) = note.moves.filter(|base| *base != Base::Data) {
                if unread.bases >> base as u8 & 1 == 1 {
                    keep[at] = false;
                    continue;
                }
                unread.bases |= 1 << base as u8;
            }
            unread.read(note);
        }
        retain(&mut block.insts, &keep);
        retain(&mut notes[id.index()], &keep);
        starts[id.index()] = Some(unread);
    }
    sink::behind_tests(program, notes, &starts, &order);
    delay::writes(program, notes, &mut starts, bases);
    within::merge(program, notes);
    remove_unused(program, notes);
}

/// Removes instructions and parameters whose value is not used.
pub(super) fn remove_unused(program: &mut Program, notes: &mut [Vec<OptimizationNote>]) {
    let mut used = vec![false; program.value_count()];
    let order = program.topological_order();
    // Uses follow definitions, except for arguments of jumps to parameters: those are walked first.
    for &id in order.iter().rev() {
        let Block { insts, term, .. } = &program.blocks[id.index()];
        let operands = match term {
            Term::Jump(to, args) => {
                let params = &program.block(*to).params;
                args.iter()
                    .zip(params)
                    .filter(|(_, param)| used[param.0 as usize])
                    .map(|pair| *pair.0)
                    .collect()
            }
            term => term.operands(),
        };
        operands.into_iter().for_each(|value| used[value.0 as usize] = true);
        for (value, inst) in insts.iter().rev() {
            if value.is_none_or(|value| used[value.0 as usize]) {
                inst.operands().into_iter().for_each(|value| used[value.0 as usize] = true);
            }
        }
    }
    let keeps: Vec<Vec<bool>> = program
        .blocks
        .iter()
        .map(|block| block.params.iter().map(|param| used[param.0 as usize]).collect())
        .collect();
    for (at, block) in program.blocks.iter_mut().enumerate() {
        let keep: Vec<bool> =
            block.insts.iter().map(|(value, _)| value.is_none_or(|value| used[value.0 as usize])).collect();
        retain(&mut block.insts, &keep);
        retain(&mut notes[at], &keep);
        retain(&mut block.params, &keeps[at]);
        if let Term::Jump(to, args) = &mut block.term {
            retain(args, &keeps[to.index()]);
        }
    }
}
