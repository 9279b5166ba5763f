//! The effect of the optimiser on a program, in numbers.

use ir::{Block, Inst, Program, Term};

/// Counts of a program's parts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Blocks.
    pub blocks: usize,
    /// Instructions.
    pub insts: usize,
    /// Reads of the packet's bytes, of at most 64 bits each.
    pub loads: usize,
    /// Writes to them.
    pub stores: usize,
    /// Reads and writes of its annotations and of its packet type.
    pub annos: usize,
    /// Tests whether bytes are there or headroom is free.
    pub checks: usize,
    /// Tests of values.
    pub branches: usize,
    /// Checksums over whole headers or segments.
    pub sums: usize,
    /// Checksum updates.
    pub updates: usize,
    /// Lookups, including those that create records.
    pub lookups: usize,
}

impl Counts {
    /// The counts of a block.
    pub(crate) fn of_block(block: &Block) -> Counts {
        let mut counts = Counts { blocks: 1, insts: block.insts.len(), ..Counts::default() };
        for (_, inst) in &block.insts {
            match inst {
                Inst::Load(_) => counts.loads += 1,
                Inst::Store(..) => counts.stores += 1,
                Inst::LoadAnno(_) | Inst::StoreAnno(..) => counts.annos += 1,
                Inst::PacketType | Inst::SetPacketType(_) => counts.annos += 1,
                Inst::IpSum | Inst::TransportSum(_) => counts.sums += 1,
                Inst::CsumUpdate(..) => counts.updates += 1,
                _ => {}
            }
        }
        match block.term {
            Term::Need { .. } | Term::Room { .. } => counts.checks += 1,
            Term::Branch(..) | Term::Switch(..) => counts.branches += 1,
            Term::Lookup { .. } => counts.lookups += 1,
            _ => {}
        }
        counts
    }

    /// The counts of a whole program.
    pub fn of(program: &Program) -> Counts {
        program.blocks.iter().fold(Counts::default(), |all, block| all.plus(&Counts::of_block(block)))
    }

    /// For each count, the maximum over the paths through the program's graph. Different counts may be from
    /// different paths, and no packet may take a path: its tests may contradict each other. The maximum over
    /// packets is that over the classes of the program ([`crate::classes::Class::met`]).
    pub fn at_most(program: &Program) -> Counts {
        let mut behind = vec![Counts::default(); program.blocks.len()];
        for id in program.topological_order().into_iter().rev() {
            let block = program.block(id);
            let next = block.term.successors().into_iter();
            let most = next.fold(Counts::default(), |most, to| most.max(&behind[to.index()]));
            behind[id.index()] = most.plus(&Counts::of_block(block));
        }
        let entries = program.entries.iter();
        entries.fold(Counts::default(), |most, entry| most.max(&behind[entry.index()]))
    }

    /// The sum of both.
    pub(crate) fn plus(&self, other: &Counts) -> Counts {
        self.zip(other, |a, b| a + b)
    }

    /// For each count, the larger one.
    pub fn max(&self, other: &Counts) -> Counts {
        self.zip(other, usize::max)
    }

    fn zip(&self, other: &Counts, with: impl Fn(usize, usize) -> usize) -> Counts {
        Counts {
            blocks: with(self.blocks, other.blocks),
            insts: with(self.insts, other.insts),
            loads: with(self.loads, other.loads),
            stores: with(self.stores, other.stores),
            annos: with(self.annos, other.annos),
            checks: with(self.checks, other.checks),
            branches: with(self.branches, other.branches),
            sums: with(self.sums, other.sums),
            updates: with(self.updates, other.updates),
            lookups: with(self.lookups, other.lookups),
        }
    }
}

/// The result of optimising a program.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// Counts of the original program.
    pub before: Counts,
    /// Counts of the optimised program.
    pub after: Counts,
    /// The maximum for one path ([`Counts::at_most`]), in the original program.
    pub packet_before: Counts,
    /// The maximum for one path, in the optimised program.
    pub packet_after: Counts,
    /// The number of walks over the program.
    pub rounds: usize,
}
