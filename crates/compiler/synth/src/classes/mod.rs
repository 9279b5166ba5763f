//! Traffic classes: what a packet program does, class by class (SNF's traffic class units).
//!
//! [`Classes::of`] walks a program with expressions for values. A [`Class`] is a set of packets, given by
//! a filter over how they came in, for which the program does the same: the same exit, the same final
//! value of every field, annotation, cell and record, as expressions over what came in.
//!
//! Invariants: no packet is in two classes; each is in one, where nothing was left ([`Classes::left`]).
//! Lookups stay lookups: a table of thousands of rules is one condition, with the record as parameter.
//!
//! - [`expr`], [`simplify`]: expressions over what came in, and their one form
//! - [`facts`]: what is known on a way; [`filter`]: what it asks
//! - [`path_state`]: a packet in the middle of a way; `writes`: what was written; `sums`: its header's checksum;
//!   `relation`: what tables promise of it
//! - `path`: a path through the program; `walk` and `merge`: the walk
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
mod merge;
mod names;
pub mod packets;
mod path;
pub mod path_state;
mod relation;
pub mod show;
pub mod simplify;
mod sums;
mod walk;
mod writes;

use expr::Pool;
use facts::Facts;
use filter::Filter;
use ir::Verified;
use path_state::PathState;
use simplify::Maker;

pub use path::{Counts, Exit, Left, Options, Step, Wasted};
pub use relation::{Part, Relation};
pub use walk::field_name;

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
    pub end: PathState,
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
    pub start: PathState,
    /// The classes, by entry and in the program's order.
    pub classes: Vec<Class>,
    /// What was not covered.
    pub left: Vec<Left>,
}

impl Classes {
    /// Walks all ways through a program.
    pub fn of(program: &Verified, options: &Options<'_>) -> Classes {
        Classes::among(Pool::default(), program, options)
    }

    /// The same with the expressions of another program's walk, so that those of both can be compared.
    pub fn among(pool: Pool, program: &Verified, options: &Options<'_>) -> Classes {
        let mut walker = walk::Walker::new(program, options);
        walker.pool = pool;
        walker.pool.relations = options.relations.to_vec();
        let mut classes = vec![];
        for entry in 0..walker.entries.len() {
            walker.walk(entry);
            let done = merge::ended(&walker.pool, std::mem::take(&mut walker.done), options.max_ways_apart);
            classes.extend(done.into_iter().map(|path::Done { mut path, exit }| Class {
                entry,
                filter: path.filter,
                exit,
                end: {
                    let mut make = Maker { pool: &mut walker.pool, facts: &path.facts };
                    path.state.bytes = fields::by_field(&mut make, &path.state.bytes);
                    path.state
                },
                before: path.counts,
                steps: path.steps,
                wasted: if matches!(exit, Exit::Drop(_)) { path.wasted } else { vec![] },
                ways: path.ways,
            }));
        }
        let facts = Facts::default();
        let start = PathState::entry(&mut Maker { pool: &mut walker.pool, facts: &facts }, options.frames);
        Classes { pool: walker.pool, start, classes, left: walker.left }
    }
}

#[cfg(test)]
mod tests;
