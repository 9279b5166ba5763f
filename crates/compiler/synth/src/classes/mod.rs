//! Traffic classes: what a packet program does, class by class (SNF's traffic class units).
//!
//! [`Classes::of`] walks a program with expressions for values. A [`Class`] is a set of packets, given by
//! a filter over how they came in, for which the program does the same: the same exit, the same final
//! value of every field, annotation, cell and record, as expressions over what came in.
//!
//! Invariants: no packet is in two classes; each is in one, where nothing was left ([`Classes::left`]).
//! Lookups stay lookups: a table of thousands of rules is one condition, with the record as parameter.
//!
//! - [`interval`], [`expr`], [`simplify`]: sets of numbers, expressions, and their one form
//! - [`facts`]: what is known on a way; [`filter`]: what it asks
//! - [`state`]: a packet in the middle of a way; `sums`: its header's checksum; `walk` and `merge`: the walk
//! - [`concrete`]: a class on one packet; [`packets`]: packets of a class
//! - [`show`]: classes as text and as data, with `names`, `fields` and `count`
//!
//! Assumed of packets: they lie in one slot of a pool, and those of several segments have bytes behind the
//! first one.

pub mod concrete;
mod count;
pub mod expr;
pub mod facts;
mod fields;
pub mod filter;
pub mod interval;
mod merge;
mod names;
pub mod packets;
pub mod show;
pub mod simplify;
pub mod state;
mod sums;
mod walk;

use expr::{Id, Pool};
use facts::Facts;
use filter::Filter;
use interval::IntervalSet;
use ir::Program;
use ir::program::BlockId;
use packet::field::Field;
use simplify::Maker;
use state::State;

pub use sums::{Part, Relation};
pub use walk::field_name;

/// What a walk is told.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
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
    /// Most ways that are followed at once, and most classes.
    pub max_ways: usize,
    /// Ways to one block in the same state that are followed apart.
    pub max_ways_apart: usize,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
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
    fn join(&mut self, other: &Counts) {
        self.reads = self.reads.max(other.reads);
        self.writes = self.writes.max(other.writes);
        self.checksums = self.checksums.max(other.checksums);
        self.instructions = self.instructions.max(other.instructions);
    }
}

/// A decision on the way.
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

/// A way that was not followed to its end.
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

/// A traffic class.
#[derive(Clone, Debug)]
pub struct Class {
    /// The program's input.
    pub entry: usize,
    /// Which packets are in it.
    pub filter: Filter,
    /// How they leave.
    pub exit: Exit,
    /// What they and their surroundings are like then.
    pub end: State,
    /// Operations on the way; of several ways, the most.
    pub before: Counts,
    /// Decisions on the way.
    pub steps: Vec<Step>,
    /// Writes on the way, if the packet is dropped.
    pub wasted: Vec<Wasted>,
    /// Ways through the program that became this class.
    pub ways: usize,
}

/// The classes of a program.
#[derive(Debug)]
pub struct Classes {
    /// Their expressions.
    pub pool: Pool,
    /// A packet as it comes in.
    pub start: State,
    /// The classes, by entry and in the program's order.
    pub classes: Vec<Class>,
    /// What was not covered.
    pub left: Vec<Left>,
}

impl Classes {
    /// Walks all ways through a program.
    pub fn of(program: &Program, options: &Options<'_>) -> Classes {
        Classes::among(Pool::default(), program, options)
    }

    /// The same with the expressions of another program's walk, so that those of both can be compared.
    pub fn among(pool: Pool, program: &Program, options: &Options<'_>) -> Classes {
        let mut walker = walk::Walker::new(program, options);
        walker.pool = pool;
        walker.pool.relations = options.relations.to_vec();
        let mut classes = vec![];
        for entry in 0..program.entries.len() {
            walker.walk(entry);
            let done = merge::ended(&walker.pool, std::mem::take(&mut walker.done), options.max_ways_apart);
            classes.extend(done.into_iter().map(|walk::Done { mut way, exit }| Class {
                entry,
                filter: way.filter,
                exit,
                end: {
                    let mut make = Maker { pool: &mut walker.pool, facts: &way.facts };
                    way.state.bytes = fields::by_field(&mut make, &way.state.bytes);
                    way.state
                },
                before: way.counts,
                steps: way.steps,
                wasted: if matches!(exit, Exit::Drop(_)) { way.wasted } else { vec![] },
                ways: way.ways,
            }));
        }
        let facts = Facts::default();
        let start = State::entry(&mut Maker { pool: &mut walker.pool, facts: &facts }, options.frames);
        Classes { pool: walker.pool, start, classes, left: walker.left }
    }
}

#[cfg(test)]
mod tests;
