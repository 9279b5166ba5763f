//! A path through a program: its conditions and effects so far, and its exit.

use super::expr::Id;
use super::facts::Facts;
use super::filter::Filter;
use super::path_state::PathState;
use crate::deadline::Deadline;
use crate::optimize;
use ir::analysis::interval::IntervalSet;
use ir::program::{BlockId, Value};
use packet::field::Field;
use serde::Serialize;
use std::collections::BTreeMap;

/// Parameters of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Entries to walk from, by their numbers: classes name an entry by its index in this list. `None`: all.
    pub entries: Option<&'a [usize]>,
    /// For each block, the number of its element.
    pub origins: &'a [usize],
    /// Packets come from a port: the first header is the MAC header, the others are not known.
    pub frames: bool,
    /// Values of cells that no program writes; only handlers change them, which requires another walk.
    /// `None`: their values are unknown.
    pub settled_cells: Option<&'a [u64]>,
    /// The maximum number of paths that are followed at once, and of classes of all entries.
    pub max_paths: usize,
    /// The maximum number of expressions of the classes, which is what a walk needs memory for.
    pub max_expressions: usize,
    /// The maximum number of paths to one block in the same state that are followed separately.
    pub max_paths_apart: usize,
    /// Whether packets that are dropped for one reason are alike, whatever was written to them: nobody sees it.
    pub drops_alike: bool,
    /// Whether paths that a condition parted and that differ in what they store into records and cells, and in nothing else,
    /// become one: what it stores depends on the condition ([`Node::Select`](super::expr::Node::Select)).
    pub stores_by_condition: bool,
    /// When the walk ends, whether all paths were followed or not.
    pub deadline: Option<&'a Deadline>,
}

impl Options<'_> {
    /// Whether the walk has to end.
    pub fn is_over(&self) -> bool {
        self.deadline.is_some_and(Deadline::is_over)
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            entries: None,
            origins: &[],
            frames: false,
            settled_cells: None,
            max_paths: 20_000,
            max_expressions: 4_000_000,
            max_paths_apart: 4,
            drops_alike: false,
            stores_by_condition: false,
            deadline: None,
        }
    }
}

/// The exit of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Exit {
    /// Emitted to a port.
    Emit(u16),
    /// Emitted to the port of that number.
    EmitTo(Id),
    /// Dropped for a reason.
    Drop(u16),
    /// To a slow path.
    Slow(u16),
}

/// Operations on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Debug)]
pub struct Counts {
    /// Reads of header fields.
    pub reads: usize,
    /// Writes of header fields.
    pub writes: usize,
    /// Reads and writes of annotations and of the packet type.
    pub annotations: usize,
    /// Checksums computed or updated.
    pub checksums: usize,
}

impl Counts {
    fn join(&mut self, other: &Counts) {
        self.reads = self.reads.max(other.reads);
        self.writes = self.writes.max(other.writes);
        self.annotations = self.annotations.max(other.annotations);
        self.checksums = self.checksums.max(other.checksums);
    }
}

/// A decision on the path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The element.
    pub origin: usize,
    /// The block.
    pub block: BlockId,
    /// The expression that decided.
    pub of: Id,
    /// Its values on this path.
    pub set: IntervalSet,
}

/// A write that was unnecessary, since the packet is dropped.
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
    /// The block at which it stopped.
    pub block: BlockId,
    /// The packets that take it.
    pub filter: Filter,
    /// Paths that were merged into it.
    pub merged_paths: usize,
}

/// A path through a program, so far.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub facts: Facts,
    pub filter: Filter,
    pub state: PathState,
    /// Values that are still needed.
    pub values: BTreeMap<Value, Id>,
    pub steps: Vec<Step>,
    pub counts: Counts,
    /// All operations of the blocks on it.
    pub met: optimize::Counts,
    pub wasted: Vec<Wasted>,
    /// Paths that were merged into this one, itself included.
    pub merged_paths: usize,
}

impl Path {
    /// Adds what another path met: what is known is what both know. Filters and states are the caller's.
    pub fn absorb(&mut self, other: Path) {
        self.facts.join(&other.facts);
        self.counts.join(&other.counts);
        self.met = self.met.max(&other.met);
        // A chain of sixteen firewalls has more paths than a number has room for.
        self.merged_paths = self.merged_paths.saturating_add(other.merged_paths);
        add_new(&mut self.wasted, other.wasted);
        add_new(&mut self.steps, other.steps);
    }
}

fn add_new<T: PartialEq>(list: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !list.contains(&one) {
            list.push(one);
        }
    }
}

/// A path that has reached an exit.
pub(super) struct Done {
    pub path: Path,
    pub exit: Exit,
}
