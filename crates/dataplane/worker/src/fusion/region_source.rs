//! The programs from which a fused region is linked.

use super::limits::{self, Measured, TooLarge};
use ir::Verified;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use synth::link::{LinkError, Linked, Part, link};

/// The programs of a fused region and how they are wired.
#[derive(Clone)]
pub(crate) struct RegionSources {
    pub parts: Vec<RegionSource>,
    /// For each input of the fused region, the part and its input.
    pub entries: Vec<(usize, usize)>,
    /// The inputs that only ports feed.
    pub from_ports: BTreeSet<u16>,
}

/// A part of a fused region.
#[derive(Clone)]
pub(crate) struct RegionSource {
    pub name: String,
    /// The number of its NF in the run.
    pub nf: usize,
    pub program: Arc<Verified>,
    /// The input that it is.
    pub input: usize,
    /// The part before it that is another input of the same element.
    pub shares: Option<usize>,
    /// For each output port, the part and input that it is wired to.
    pub next: Vec<Option<(usize, usize)>>,
    /// The output ports that few packets take.
    pub seldom: Vec<usize>,
}

/// Why the elements of a fused region run one by one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotFused {
    /// It would take too long, or too much memory, to compile.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// Its programs cannot be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl RegionSource {
    /// The instructions that packets of its input reach.
    fn instructions(&self) -> usize {
        let entry = self.program.entries.get(self.input).copied();
        self.program.instructions(self.program.order_from(entry.as_slice()))
    }
}

impl RegionSources {
    /// Links the programs into one.
    ///
    /// # Errors
    /// When they are too large.
    pub fn link(&self) -> Result<Linked, NotFused> {
        self.check_programs()?;
        let parts = self.parts.iter().map(|source| Part {
            name: &source.name,
            program: &source.program,
            shares: source.shares,
            next: source.next.clone(),
        });
        let mut linked =
            link("region", &parts.collect::<Vec<_>>(), &self.entries)?.with_ports(self.from_ports.clone())?;
        let is_seldom = |(part, port): &(usize, usize)| self.parts[*part].seldom.contains(port);
        linked.seldom =
            (0..).zip(&linked.outputs).filter(|(_, of)| is_seldom(of)).map(|(at, _)| at).collect();
        Ok(linked)
    }

    /// Refuses programs that have more instructions than they may have.
    pub(crate) fn check_programs(&self) -> Result<(), TooLarge> {
        let instructions = self.parts.iter().map(|part| part.instructions()).sum();
        self.check(Measured::Programs, instructions, limits::MOST_INSTRUCTIONS)
    }

    /// The same for the functions that their program is compiled to.
    pub(crate) fn check_functions(&self, instructions: usize) -> Result<(), TooLarge> {
        self.check(Measured::Functions, instructions, limits::MOST_COMPILED)
    }

    fn check(&self, measured: Measured, instructions: usize, most: usize) -> Result<(), TooLarge> {
        if instructions <= most {
            return Ok(());
        }
        let (mut elements, mut nfs) = (BTreeMap::<&str, usize>::new(), BTreeMap::<usize, usize>::new());
        for part in &self.parts {
            let own = part.instructions();
            *elements.entry(&part.name).or_default() += own;
            *nfs.entry(part.nf).or_default() += own;
        }
        // Of equal ones, the first.
        let largest = elements.iter().rev().max_by_key(|(_, count)| **count);
        let largest = largest.map_or((String::new(), 0), |(name, count)| ((*name).to_string(), *count));
        let nf =
            nfs.iter().rev().max_by_key(|(_, count)| **count).map_or((0, 0), |(nf, count)| (*nf, *count));
        Err(TooLarge { measured, instructions, most, elements: elements.len(), largest, nf })
    }
}
