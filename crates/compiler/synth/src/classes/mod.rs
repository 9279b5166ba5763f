//! Traffic classes: the behaviour of a packet program, class by class (SNF's traffic class units).
//!
//! [`Classes::of`] walks a program with expressions for values. A [`Class`] is a set of packets, given by a filter over
//! the packets as they arrived. The program treats them alike: the same exit, the same final value of every
//! field, annotation, cell and record, as expressions over the packet as it arrived.
//!
//! Invariants: no packet is in two classes; each is in one, if every path was followed ([`Classes::left`]).
//! Lookups stay lookups: a table of thousands of rules is one condition, with the record as parameter.
//!
//! - [`expr`], [`simplify`]: expressions over the packet as it arrived, and their normal form
//! - [`facts`]: the facts about a path; [`filter`]: its conditions
//! - [`path_state`]: a packet in the middle of a path; `writes`: its writes; `sums`: its header's checksum;
//!   `updates`: updates of checksums
//! - `path`: a path through the program; `walk` and `merge`: the walk, with `pairs` and `stores`: paths that become one
//! - `settle`: classes of two programs in one form
//! - [`concrete`]: a class applied to one packet; [`packets`]: packets of a class
//! - [`show`]: classes as text and as data, with `names`, `fields` and `count`
//!
//! Packets are assumed to be in one slot of a mempool each; packets of several segments have bytes after the
//! first segment.

pub mod concrete;
mod count;
pub mod expr;
pub mod facts;
mod fields;
pub mod filter;
mod merge;
mod names;
pub mod packets;
mod pairs;
mod path;
pub mod path_state;
mod settle;
pub mod show;
pub mod simplify;
mod stores;
mod sums;
mod updates;
mod walk;
mod writes;

use crate::optimize;
use expr::Pool;
use facts::Facts;
use filter::Filter;
use ir::Verified;
use path_state::PathState;
use simplify::Maker;
use std::collections::BTreeMap;
use std::mem::take;

pub use names::field_of;
pub use path::{Counts, Exit, Left, Options, Step, Wasted};
pub use settle::{SettledForm, settle, settled_for_both};

/// A traffic class.
#[derive(Clone, Debug)]
pub struct Class {
    /// The program's input.
    pub entry: usize,
    /// Whether its packets come from a port ([`Program::from_ports`](ir::Program::from_ports)).
    pub is_from_port: bool,
    /// The packets in it.
    pub filter: Filter,
    /// Their exit.
    pub exit: Exit,
    /// The packet and its surroundings at the exit.
    pub end: PathState,
    /// Operations on the path; with several paths, the maximum.
    pub before: Counts,
    /// The same of all kinds, tests and lookups included.
    pub met: optimize::Counts,
    /// Decisions on the path.
    pub steps: Vec<Step>,
    /// Writes on the path, if the packet is dropped.
    pub wasted: Vec<Wasted>,
    /// Paths through the program that were merged into this class.
    pub merged_paths: usize,
}

/// The classes of a program.
#[derive(Debug)]
pub struct Classes {
    /// Their expressions.
    pub pool: Pool,
    /// A packet as it arrives.
    pub start: PathState,
    /// The classes, by entry and in the program's order.
    pub classes: Vec<Class>,
    /// Paths that were not followed to their end.
    pub left: Vec<Left>,
    /// Whether the walk ended at its deadline.
    pub is_late: bool,
    /// The number of conditions that each element added to paths, by the numbers of [`Options::origins`]:
    /// what makes many classes.
    pub asked: BTreeMap<usize, usize>,
}

impl Classes {
    /// Walks all paths through a program.
    pub fn of(program: &Verified, options: &Options<'_>) -> Classes {
        Classes::among(Pool::default(), program, options)
    }

    /// The same with the expressions of another program's walk, so that those of both can be compared.
    pub fn among(pool: Pool, program: &Verified, options: &Options<'_>) -> Classes {
        let mut walker = walk::Walker::new(program, options);
        walker.pool = pool;
        for (table, decl) in (0..).zip(&program.tables) {
            for delta in decl.deltas.iter().map(|delta| (table, *delta)) {
                if !walker.pool.deltas.contains(&delta) {
                    walker.pool.deltas.push(delta);
                }
            }
        }
        let facts = Facts::default();
        let start = PathState::entry(&mut Maker { pool: &mut walker.pool, facts: &facts }, options.frames);
        let mut classes = vec![];
        for entry in 0..walker.entries.len() {
            walker.walk(entry);
            let dropped = walker.done.iter_mut().filter(|done| matches!(done.exit, Exit::Drop(_)));
            for path::Done { path, .. } in dropped.filter(|_| options.drops_alike) {
                let PathState { records, cells, finds, .. } = &mut path.state;
                let (records, cells, finds) = (take(records), take(cells), take(finds));
                path.state = PathState { records, cells, finds, ..start.clone() };
            }
            let is_from_port = walker.is_from_port(entry);
            let done = merge::ended(&mut walker.pool, take(&mut walker.done), options);
            walker.found += done.len();
            classes.extend(done.into_iter().map(|path::Done { mut path, exit }| Class {
                entry,
                is_from_port,
                filter: path.filter,
                exit,
                end: {
                    if !options.is_over() {
                        let mut make = Maker { pool: &mut walker.pool, facts: &path.facts };
                        path.state.bytes = fields::by_field(&mut make, &path.state.bytes);
                    }
                    if is_from_port {
                        path.state.remove_unset(&walker.pool);
                    }
                    path.state
                },
                before: path.counts,
                met: path.met,
                steps: path.steps,
                wasted: if matches!(exit, Exit::Drop(_)) { path.wasted } else { vec![] },
                merged_paths: path.merged_paths,
            }));
        }
        let walk::Walker { pool, left, is_late, asked, .. } = walker;
        Classes { pool, start, classes, left, is_late, asked }
    }
}

#[cfg(test)]
mod tests;
