//! A path through a program: what it has asked and done so far, and how it ends.

use super::expr::Id;
use super::facts::Facts;
use super::filter::Filter;
use super::path_state::PathState;
use super::relation::Relation;
use ir::analysis::interval::IntervalSet;
use ir::program::{BlockId, Value};
use packet::field::Field;
use std::collections::BTreeMap;

/// What a walk is told.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Entries to walk from, by their numbers: classes name an entry by its place in this list. `None`: all.
    pub entries: Option<&'a [usize]>,
    /// Of each block, the number of the element that it is from.
    pub origins: &'a [usize],
    /// The elements' names.
    pub names: &'a [String],
    /// Packets come from a port: the first header is the MAC header, the others are not known.
    pub frames: bool,
    /// What cells hold that no program writes to; only handlers change them, which is then reason for
    /// another walk. `None`: nothing is known of them.
    pub settled_cells: Option<&'a [u64]>,
    /// What the owners of tables promise of their records: by these, a header's checksum is known to be
    /// right after a rewrite.
    pub relations: &'a [Relation],
    /// Most paths that are followed at once, and most classes.
    pub max_ways: usize,
    /// Ways to one block in the same state that are followed apart.
    pub max_ways_apart: usize,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            entries: None,
            origins: &[],
            names: &[],
            frames: false,
            settled_cells: None,
            relations: &[],
            max_ways: 20_000,
            max_ways_apart: 4,
        }
    }
}

/// How a packet leaves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Exit {
    /// Out of a port.
    Emit(u16),
    /// Out of the port of that number.
    EmitTo(Id),
    /// Dropped for a reason.
    Drop(u16),
    /// To a slow path.
    Slow(u16),
}

/// Operations on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Reads of header fields.
    pub reads: usize,
    /// Writes of header fields.
    pub writes: usize,
    /// Checksums computed or mended.
    pub checksums: usize,
    /// Instructions of any kind.
    pub instructions: usize,
}

impl Counts {
    pub(super) fn join(&mut self, other: &Counts) {
        self.reads = self.reads.max(other.reads);
        self.writes = self.writes.max(other.writes);
        self.checksums = self.checksums.max(other.checksums);
        self.instructions = self.instructions.max(other.instructions);
    }
}

/// A decision on the path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The element.
    pub origin: usize,
    /// The block.
    pub block: BlockId,
    /// What was looked at.
    pub of: Id,
    /// What it was found to be.
    pub set: IntervalSet,
}

/// A write that a packet did not need, since it is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wasted {
    /// The element.
    pub origin: usize,
    /// The field.
    pub field: Field,
}

/// A path that was not followed to its end.
#[derive(Clone, Debug)]
pub struct Left {
    /// The entry.
    pub entry: usize,
    /// Where it stopped.
    pub block: BlockId,
    /// Packets that go it.
    pub filter: Filter,
    /// Ways that had become one.
    pub ways: usize,
}

/// A path through a program, as far as it has come.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub facts: Facts,
    pub filter: Filter,
    pub state: PathState,
    /// Values that are still needed.
    pub values: BTreeMap<Value, Id>,
    pub steps: Vec<Step>,
    pub counts: Counts,
    pub wasted: Vec<Wasted>,
    /// Ways that were joined to this one, itself included.
    pub ways: usize,
}

/// A path that has come to its end.
pub(super) struct Done {
    pub path: Path,
    pub exit: Exit,
}
