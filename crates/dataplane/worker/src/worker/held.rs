//! Packets that are held in the middle of a program, because others that arrived before them leave it by a
//! slow path first ([`codegen::pass_in_order`]): so tables see packets in the order of their arrival.

use super::Worker;
use super::give_up::NO_PATH;
use codegen::Precedence;
use ir::eval::EvalState;
use shm::Packet;

/// A program in whose middle packets are held.
#[derive(Clone, Copy, Debug)]
pub(super) enum InterruptedProgram {
    /// Of a node.
    Node(usize),
    /// Of a fused region, with the input that they entered by.
    Region(usize, usize),
}

impl Worker {
    /// Lets packets that are held go on, each behind those that arrived before it. All others of the vector
    /// that have something left to do wait.
    #[cold]
    pub(super) fn run_held(&mut self, program: InterruptedProgram, packets: &mut [Packet]) {
        let spare = self.spare_scratches.pop().unwrap_or_default();
        let mut scratch = std::mem::replace(&mut self.scratch, spare);
        let exchanges = self.exchanges;
        let engine = match program {
            InterruptedProgram::Node(node) => {
                self.nodes[node].lowered.as_ref().map(|lowered| lowered.engine.clone())
            }
            InterruptedProgram::Region(region, _) => Some(self.regions[region].compiled.engine.clone()),
        };
        while let (Some(first), Some(engine)) = (scratch.first_held(), &engine) {
            self.run_below(first, packets);
            // Up to the next packet that waits for a slow path, or can reach a table.
            let mut end = self.waiting.first_slow().unwrap_or(u16::MAX);
            if let InterruptedProgram::Region(region, _) = program {
                end = end.min(self.first_before(region));
            }
            let mut exits = self.exits.pop().unwrap_or_default();
            let goes_on = self.exchanges == exchanges && {
                let (now_ns, packets) = (self.now_ns, &mut *packets);
                let (exits, scratch) = (&mut *exits, &mut scratch);
                match program {
                    InterruptedProgram::Node(node) => {
                        let this = &mut self.nodes[node];
                        let cells = &mut self.cells[this.cells.clone()];
                        this.element.as_mut().is_some_and(|tables| {
                            let mut state = EvalState { cells, tables, now_ns };
                            let precedence = Precedence { first: end, outputs: &[] };
                            codegen::resume(engine, packets, precedence, &mut state, scratch, exits)
                        })
                    }
                    InterruptedProgram::Region(region, _) => {
                        let region = &self.regions[region];
                        let mut tables = region.tables(&mut self.nodes);
                        let cells = &mut self.cells[region.cells.clone()];
                        let mut state = EvalState { cells, tables: &mut tables, now_ns };
                        let precedence = Precedence { first: end, outputs: &region.returning };
                        codegen::resume(engine, packets, precedence, &mut state, scratch, exits)
                    }
                }
            };
            match (program, goes_on) {
                (_, false) => self.give_up_held(program, packets, scratch.take_held().collect()),
                (InterruptedProgram::Node(node), true) => self.part_node(node, packets, &exits),
                (InterruptedProgram::Region(region, _), true) => self.part_fused(region, packets, &exits),
            }
            self.exits.push(exits);
        }
        self.spare_scratches.push(scratch);
    }

    /// Drops packets in the middle of a program that was exchanged.
    fn give_up_held(&mut self, program: InterruptedProgram, packets: &[Packet], list: Vec<u16>) {
        let node = match program {
            InterruptedProgram::Node(node) => node,
            InterruptedProgram::Region(region, input) => {
                let region = &mut self.regions[region];
                let part = region.layout.entries[input];
                region.balance[part] = region.balance[part].wrapping_sub(list.len() as u64);
                region.parts[part]
            }
        };
        self.give_up(node, NO_PATH, packets, &list);
    }
}
