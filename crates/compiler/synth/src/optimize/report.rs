//! How much of what a program does went away.

use ir::{Inst, Program, Term};

/// What stands in a program, counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Blocks.
    pub blocks: usize,
    /// Instructions.
    pub insts: usize,
    /// Reads of the packet, annotations included.
    pub loads: usize,
    /// Writes to it.
    pub stores: usize,
    /// Tests whether bytes are there or headroom is free.
    pub checks: usize,
    /// Tests of values.
    pub branches: usize,
    /// Checksums over whole headers or segments.
    pub sums: usize,
    /// Checksums mended for a change.
    pub updates: usize,
    /// Lookups, those that make records included.
    pub lookups: usize,
}

impl Counts {
    /// Of one instruction.
    fn count(&mut self, inst: &Inst) {
        self.insts += 1;
        match inst {
            Inst::Load(_) | Inst::LoadAnno(_) | Inst::PacketType => self.loads += 1,
            Inst::Store(..) | Inst::StoreAnno(..) | Inst::SetPacketType(_) => self.stores += 1,
            Inst::IpSum | Inst::TransportSum(_) => self.sums += 1,
            Inst::CsumUpdate(..) => self.updates += 1,
            _ => {}
        }
    }

    fn note_term(&mut self, term: &Term) {
        match term {
            Term::Need { .. } | Term::Room { .. } => self.checks += 1,
            Term::Branch(..) | Term::Switch(..) => self.branches += 1,
            Term::Lookup { .. } | Term::Create { .. } => self.lookups += 1,
            _ => {}
        }
    }

    /// Of everything that stands in a program.
    pub fn of(program: &Program) -> Counts {
        let mut all = Counts { blocks: program.blocks.len(), ..Counts::default() };
        for block in &program.blocks {
            block.insts.iter().for_each(|(_, inst)| all.count(inst));
            all.note_term(&block.term);
        }
        all
    }

    /// Each count, the most of it that one packet can meet. The counts may be of different ways.
    pub fn at_most(program: &Program) -> Counts {
        let mut behind = vec![Counts::default(); program.blocks.len()];
        for id in program.topological_order().into_iter().rev() {
            let block = program.block(id);
            let next = block.term.successors().into_iter();
            let most = next.fold(Counts::default(), |most, to| most.max(&behind[to.index()]));
            let mut here = Counts { blocks: 1, ..Counts::default() };
            block.insts.iter().for_each(|(_, inst)| here.count(inst));
            here.note_term(&block.term);
            behind[id.index()] = most.zip(&here, |a, b| a + b);
        }
        let entries = program.entries.iter();
        entries.fold(Counts::default(), |most, entry| most.max(&behind[entry.index()]))
    }

    fn max(&self, other: &Counts) -> Counts {
        self.zip(other, usize::max)
    }

    fn zip(&self, other: &Counts, with: impl Fn(usize, usize) -> usize) -> Counts {
        Counts {
            blocks: with(self.blocks, other.blocks),
            insts: with(self.insts, other.insts),
            loads: with(self.loads, other.loads),
            stores: with(self.stores, other.stores),
            checks: with(self.checks, other.checks),
            branches: with(self.branches, other.branches),
            sums: with(self.sums, other.sums),
            updates: with(self.updates, other.updates),
            lookups: with(self.lookups, other.lookups),
        }
    }
}

/// What became of a program.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// What stood in it.
    pub before: Counts,
    /// What stands in it now.
    pub after: Counts,
    /// The most that one packet could meet.
    pub packet_before: Counts,
    /// The most that one packet can meet now.
    pub packet_after: Counts,
    /// Walks over the program that it took.
    pub rounds: usize,
}
